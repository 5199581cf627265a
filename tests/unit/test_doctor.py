"""The checks of `doctor`, one by one, against what is right and what is wrong."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest

from codemode.catalog import Note
from codemode.cli.checks import claims, ground, lockdown, order, reach
from codemode.cli.checks.check import Check
from codemode.cli.checks.claims import CLAIMS, Claim, check_claims
from codemode.cli.checks.lockdown import Probed, check_attempts, check_measures, probe
from codemode.composition import Toolbox
from codemode.config import CodeModeConfig, ModelRequest, decide_activation, parse_code_mode, unmet_conditions
from codemode.core.errors import ErrorCode, RuntimeUnavailable
from codemode.core.tables import Where
from codemode.core.types import Measure
from codemode.manifest import Manifest, load_manifest
from codemode.mcp.connections import McpListing
from codemode.mcp.failures import ServerFailure
from codemode.mcp.shared import Onlooker
from codemode.sandbox.probe import ATTEMPTS
from codemode.store.audit import audit_store
from codemode.store.sqlite import SqliteStore
from codemode.supervisor.pool import WorkerPool
from tests.requirements import requirement
from tests.support.scripted_worker import spawner
from tests.support.sessions import tool, toolbox

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the lockdown is Linux's")
WHOLE = Probed(dict.fromkeys(ATTEMPTS, "PermissionError"), True, [("image-1", 10, "verified")])


def states(checks: Iterable[Check]) -> list[tuple[str, str]]:
    return [(check.name, check.state) for check in checks]


def only(checks: Iterable[Check]) -> Check:
    (check,) = checks
    return check


# Claims


@requirement("doctor:claims:tried", "doctor:lockdown:reported")
async def test_every_claim_holds_with_real_workers() -> None:
    found = await check_claims()
    tried = {check.says.rpartition(" (")[0] for check in found if check.name == "sandbox"}

    assert [check for check in found if check.state == "failed"] == []
    assert tried == {claim.says for claim in CLAIMS}
    assert {check.name for check in found} == {"engine", "sandbox", "snapshot", "lockdown"}


@requirement("doctor:claims:tried")
def test_the_claims_cover_what_the_issue_lists() -> None:
    codes = {claim.code for claim in CLAIMS}

    assert {
        ErrorCode.TIMEOUT,
        ErrorCode.MEMORY_LIMIT_EXCEEDED,
        ErrorCode.OUTPUT_LIMIT_EXCEEDED,
        ErrorCode.MODULE_ACCESS_DENIED,
    } <= codes
    assert any(claim.value == "RangeError" for claim in CLAIMS)
    assert len({claim.says for claim in CLAIMS}) == len(CLAIMS)


@requirement("doctor:claims:tried")
@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (Claim("it ends", "return 1", ErrorCode.TIMEOUT), "it ends: not so, it ended with the value 1"),
        (Claim("it gives 2", "return 1", value=2), "it gives 2: not so, it ended with the value 1"),
        (Claim("it gives 2", "throw 'no'", value=2), "it gives 2: not so, it ended with an error of its own: "),
        (Claim("it ends", "require('a')", ErrorCode.TIMEOUT), "it ends: not so, it ended with module_access_denied: "),
        (Claim("it gives 2", "await yield_control()", value=2), "it gives 2: not so, it ended with a suspension"),
    ],
)
async def test_a_claim_that_does_not_hold_is_a_failure_that_says_how_it_ended(
    claim: Claim, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "CLAIMS", (claim,))
    (broken,) = [check for check in await check_claims() if check.name == "sandbox"]

    assert broken.state == "failed"
    assert broken.says.startswith(says)
    assert "Do not run cells that you do not trust" in broken.fix


@requirement("doctor:claims:tried")
@pytest.mark.parametrize("cell", ["return 42", "await yield_control(); return 41", "await yield_control(); throw 1"])
async def test_a_cell_that_does_not_come_back_from_its_snapshot_is_a_failure(
    cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "CLAIMS", ())
    monkeypatch.setattr(claims, "_SUSPENDED", cell)
    (snapshot,) = [check for check in await check_claims() if check.name == "snapshot"]

    assert snapshot.state == "failed"
    assert "another session: not so, it ended with" in snapshot.says


async def test_without_workers_there_is_only_the_engine_to_complain_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies before it is ready."""
    monkeypatch.setattr(claims, "open_pool", lambda: WorkerPool(1, spawn=spawner(["exit", 3])))

    engine = only(await check_claims())
    assert (engine.name, engine.state) == ("engine", "failed")
    assert "status 3" in engine.says
    assert "wheel" in engine.fix


async def test_a_claim_that_cannot_be_tried_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_args: object) -> None:
        raise RuntimeUnavailable("no more processes")

    monkeypatch.setattr(claims, "_try", fail)
    found = await claims._check(CLAIMS[0], None)  # type: ignore[arg-type]

    assert (found.name, found.state) == ("sandbox", "failed")
    assert found.says.endswith("it could not be tried: no more processes")


# Lockdown


@LINUX
@requirement("doctor:lockdown:tried", "sandbox:lockdown:measures")
def test_a_locked_process_is_refused_every_attempt() -> None:
    probed = probe()
    if not probed.whole:
        pytest.skip("this machine does not offer every measure")

    assert set(probed.outcomes) == set(ATTEMPTS)
    assert probed.outcomes["socket"] == probed.outcomes["program"] == "the process is ended by SIGSYS"
    assert [check for check in check_attempts(probed) if check.state != "ok"] == []
    assert {state for _, _, state in probed.cache} == {"verified"}


@requirement("doctor:lockdown:tried")
def test_an_attempt_that_is_allowed_is_a_failure_or_a_warning_where_a_measure_is_missing() -> None:
    open_file = WHOLE.outcomes | {"read": "allowed"}
    hole = only(check for check in check_attempts(WHOLE._replace(outcomes=open_file)) if check.state != "ok")
    known = only(check for check in check_attempts(Probed(open_file, False, ())) if check.state != "ok")

    assert (hole.state, hole.says) == ("failed", "opening a file is allowed")
    assert known.state == "warning"
    assert hole.fix == known.fix == "Run codemode in a container, or as a user who may do little."


@requirement("doctor:lockdown:tried")
def test_refusals_are_told_in_words() -> None:
    outcomes = WHOLE.outcomes | {"memory": "MemoryError", "socket": "the process is ended by SIGSYS"}
    says = [check.says for check in check_attempts(WHOLE._replace(outcomes=outcomes))]

    assert "opening a file is refused: not permitted" in says
    assert "taking more memory than a worker may have is refused: there is no more" in says
    assert "opening a socket is refused: the process is ended by SIGSYS" in says


@requirement("doctor:lockdown:tried")
@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ('print(\'{"fatal": "the engine is damaged"}\')', "the engine is damaged"),
        ("raise SystemExit('no wasmtime')", "it ended with status 1: no wasmtime"),
        ("import os; os.kill(os.getpid(), 9)", "the process is ended by SIGKILL"),
    ],
)
def test_a_probe_that_cannot_try_is_a_failure_that_says_why(
    program: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockdown, "sandbox_argv", lambda _module: [sys.executable, "-c", program])
    probed = probe()
    check = only(check_attempts(probed))

    assert probed == Probed({}, False, (), fault)
    assert (check.state, check.says) == ("failed", f"it could not be tried: {fault}")


@requirement("doctor:lockdown:tried")
def test_a_probe_that_survives_what_should_end_it_was_allowed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`execv` that works replaces the probe, which then tells nothing of it and ends well."""
    told = json.dumps({"lockdown": [["seccomp", True, "x"]], "cache": []})
    monkeypatch.setattr(lockdown, "sandbox_argv", lambda _module: [sys.executable, "-c", f"print({told!r})"])

    assert probe() == Probed(dict.fromkeys(ATTEMPTS, "allowed"), True, [])


def test_a_probe_that_hangs_or_cannot_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockdown, "WORKER_START_MS", 200)
    monkeypatch.setattr(
        lockdown, "sandbox_argv", lambda _module: [sys.executable, "-c", "import signal; signal.pause()"]
    )
    assert "timed out" in probe().fault

    monkeypatch.setattr(lockdown, "sandbox_argv", lambda _module: ["/no/such/program"])
    assert "No such file" in probe().fault


@requirement("doctor:lockdown:reported")
def test_a_measure_that_is_missing_is_a_warning_with_what_to_do() -> None:
    found = list(check_measures([Measure("seccomp", True, "36 calls"), Measure("landlock", False, "refused")]))

    assert [(check.state, check.says) for check in found] == [
        ("ok", "seccomp: 36 calls"),
        ("warning", "landlock: refused"),
    ]
    assert "container" in found[1].fix


@requirement("doctor:lockdown:reported")
async def test_a_worker_shows_what_it_has_given_up_once_it_is_ready() -> None:
    pool = WorkerPool(1)
    worker = await pool.acquire()
    try:
        names = [measure.name for measure in worker.lockdown]
        assert {"environment", "landlock", "seccomp"} <= set(names)
        assert all(measure.detail for measure in worker.lockdown)
    finally:
        pool.release(worker)
        await pool.close()


async def test_a_worker_that_reports_nothing_has_given_up_nothing() -> None:
    pool = WorkerPool(1, spawn=spawner())
    worker = await pool.acquire()
    try:
        assert worker.lockdown == ()
    finally:
        pool.release(worker)
        await pool.close()


def test_the_host_has_words_for_every_attempt_that_the_sandbox_knows() -> None:
    assert set(lockdown._TOGETHER | lockdown._ALONE) == set(ATTEMPTS)


# Versions


@requirement("doctor:versions:named")
def test_versions_are_named_on_one_line() -> None:
    check = only(ground.check_versions())

    assert check.state == "ok"
    assert check.says.startswith("codemode ")
    assert "wasmtime 50.0.1" in check.says


@requirement("doctor:versions:named")
def test_what_is_missing_or_of_another_version_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "versions", lambda: {"acorn": "missing: reinstall codemode", "wasmtime": "49.0.0"})
    monkeypatch.setattr(ground, "_pinned", lambda: {"wasmtime": "50.0.1", "other": "1"})
    _, missing, other = ground.check_versions()

    assert (missing.state, missing.says) == ("failed", "acorn is missing")
    assert (other.state, other.fix) == ("failed", "Install wasmtime==50.0.1.")
    assert "49.0.0" in other.says


def test_pins_are_read_from_what_is_installed_and_a_checkout_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    monkeypatch.setattr(metadata, "requires", lambda _name: ["wasmtime==50.0.1", "rich>=14", "mcp<3,>=2.3"])
    assert ground._pinned() == {"wasmtime": "50.0.1"}
    monkeypatch.setattr(metadata, "requires", lambda _name: None)
    assert ground._pinned() == {}

    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    assert ground._pinned() == {}


# Cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("CODEMODE_CACHE_DIR", str(folder))
    return folder


@requirement("doctor:cache:verified")
def test_a_cache_whose_files_verify_is_fine(cache: Path) -> None:
    check = only(ground.check_cache([("image-1", 1500, "verified"), ("module-1", 500, "verified")]))

    assert (check.state, check.says) == ("ok", f"{cache}, 2 files verified, 2.0 kB")


@requirement("doctor:cache:verified")
def test_damaged_and_foreign_files_are_counted_and_never_loaded(cache: Path) -> None:
    files = [("a", 1, "verified"), ("b", 1, "damaged"), ("c", 1, "not trusted"), ("d", 1, "not trusted")]
    _, damaged, foreign = ground.check_cache(files)

    assert (damaged.state, damaged.says) == ("warning", f"1 file in {cache} is damaged, and never loaded")
    assert foreign.says == f"2 files in {cache} are not trusted, and never loaded"
    assert damaged.fix == "Remove the folder; what is needed is made anew."


@requirement("doctor:cache:verified")
def test_a_cache_that_cannot_be_used_costs_time_and_says_so(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.chmod(0o777)
    loose = only(ground.check_cache([]))
    monkeypatch.setenv("CODEMODE_CACHE_DIR", str(tmp_path / "none"))
    missing = only(ground.check_cache([]))
    monkeypatch.delenv("CODEMODE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "")
    nowhere = only(ground.check_cache([]))

    assert {check.state for check in (loose, missing, nowhere)} == {"warning"}
    assert "can be written by others" in loose.says
    assert "cannot be written (No such file or directory)" in missing.says
    assert nowhere.says.startswith("there is no folder for it")
    assert "half a second" in nowhere.says


@requirement("doctor:cache:verified")
def test_a_probe_sees_which_files_of_a_cache_verify(cache: Path) -> None:
    probe()
    names = sorted(file.name for file in cache.iterdir())
    (cache / "image-0").write_bytes(b"x" * 100)
    (cache / "image-1").write_bytes(b"")
    (cache / "image-2").write_bytes(b"y" * 100)
    (cache / "image-2").chmod(0o666)
    (cache / "tmp_left").write_bytes(b"z")
    (cache / "image-0").chmod(0o600)
    seen = {name: state for name, _, state in probe().cache}

    assert {name: seen.pop(name) for name in ("image-0", "image-1", "image-2")} == {
        "image-0": "damaged",
        "image-1": "not trusted",
        "image-2": "not trusted",
    }
    assert seen == dict.fromkeys(names, "verified")


# Store


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@requirement("doctor:store:facts")
def test_a_new_store_is_private_sound_and_empty(state: Path) -> None:
    check = ground.check_store()
    facts = audit_store(state / "codemode.db")

    assert check.state == "ok"
    assert check.says.startswith(f"{state}/codemode.db, schema {facts.schema}, wal journal, ")
    assert check.says.endswith(": no runs yet")
    assert (facts.file_mode, facts.folder_mode, facts.fault, facts.runs) == (0o600, 0o700, "", {})
    assert facts.bytes > 0


@requirement("doctor:store:facts")
def test_runs_are_counted_by_their_state(state: Path) -> None:
    from tests.contract.test_cli_commands import begin, suspend

    store = SqliteStore()
    for _ in range(2):
        suspend(store, begin(store))
    store.finish(begin(store), "completed")
    store.close()

    assert ground.check_store().says.endswith(": completed 1, waiting 2")


@requirement("doctor:store:facts")
def test_a_folder_that_others_can_read_is_a_warning_with_the_command_that_mends_it(state: Path) -> None:
    SqliteStore().close()
    state.chmod(0o755)
    check = ground.check_store()

    assert (check.state, check.fix) == ("warning", f"chmod 700 {state}")
    assert check.says.endswith(f"Others can get at {state} (mode 755)")


@requirement("doctor:store:facts")
def test_a_store_that_is_damaged_or_cannot_be_is_a_failure(state: Path) -> None:
    SqliteStore().close()
    for path in state.iterdir():
        path.write_bytes(b"no database at all" * 100)
    damaged = ground.check_store()
    for path in state.iterdir():
        path.unlink()
    state.rmdir()
    state.write_text("a file")
    impossible = ground.check_store()

    assert damaged.state == impossible.state == "failed"
    assert "damaged" in damaged.says
    assert impossible.fix == "Set CODEMODE_STATE_DIR to a folder that is yours."


@requirement("doctor:store:facts")
def test_what_sqlite_finds_wrong_within_the_file_is_told(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = audit_store(state / "codemode.db")._replace(fault="row 7 missing from index runs_live")
    monkeypatch.setattr(ground, "audit_store", lambda _path: facts)
    check = ground.check_store()

    assert check.state == "failed"
    assert check.says.endswith("is damaged: row 7 missing from index runs_live")


# Manifest


@requirement("doctor:manifest:clamps")
def test_clamped_numbers_are_named_with_what_is_used_those_of_agents_too(tmp_path: Path) -> None:
    path = tmp_path / "codemode.toml"
    path.write_text(
        "[tools.codeMode]\nenabled = true\ntimeoutMs = 5\n"
        "[agents.night.tools.codeMode]\nmaxPendingToolCalls = 1000\n[agents.day.tools.codeMode]\nenabled = false\n"
    )
    found = list(reach.check_manifest(load_manifest(path)))

    assert states(found) == [("manifest", "ok"), ("limits", "warning"), ("limits", "warning")]
    assert [check.says for check in found[1:]] == [
        "tools.codeMode.timeoutMs = 5 is out of range; 100 is used",
        "agents.night.tools.codeMode.maxPendingToolCalls = 1,000 is out of range; 128 is used",
    ]
    assert [check.fix for check in found[1:]] == ["Write 100.", "Write 128."]


def test_no_manifest_is_a_warning_and_no_tools_are_not_looked_at() -> None:
    check = only(reach.check_manifest(Manifest()))

    assert (check.state, "-m FILE" in check.fix) == ("warning", True)
    assert list(reach.check_tools(Manifest())) == []


# Servers


@requirement("doctor:servers:why-not")
@pytest.mark.parametrize("kind", ["auth", "offline", "http", "exited", "timeout", "protocol"])
def test_each_kind_of_failure_says_what_to_do(kind: Any) -> None:
    failure = ServerFailure("git", kind, "MCP server git did not work.", stderr="last words")
    listing = McpListing((), failures=(failure,))
    check = only(reach.check_servers(toolbox()._replace(servers=listing)))

    assert (check.name, check.state) == ("server", "failed")
    assert check.says == "MCP server git did not work. Its stderr ends with: last words"
    assert check.fix.endswith(".")


def test_a_toolbox_without_servers_has_nothing_to_say_of_them() -> None:
    assert list(reach.check_servers(toolbox())) == []


# Activation


def box_of(enabled: bool, allow: tuple[str, ...] = ("*",), agents: dict[str, CodeModeConfig] | None = None) -> Toolbox:
    async def look() -> None:
        return None

    box = toolbox(tools=[tool("look", look)])
    return box._replace(
        config=box.config._replace(enabled=enabled), manifest=Manifest(allow=allow, agents=agents or {})
    )


PLUGIN = """
import asyncio
from codemode.plugins import namespace_tool

SCOPE = {scope}

def register(plugin):
    plugin.tool("list", lambda: [], description="Lists.")
    plugin.tool("no function", 7, description="Cannot be called.")
    plugin.namespace("lists", global_name="Lists", description="Lists.", required_tool_names=["list"],
                     create_scope=SCOPE)
    plugin.namespace("needy", global_name="Needy", description="Needs more.", required_tool_names=["list", "close"],
                     create_scope=SCOPE)
    plugin.namespace("twice", global_name="Lists", description="Taken.", required_tool_names=["list"],
                     create_scope=SCOPE)
"""


def of_plugin(checks: Iterable[Check], *names: str) -> list[tuple[str, str]]:
    return [(check.state, check.says) for check in checks if check.name in names]


@requirement("doctor:catalog:left-out", "doctor:namespaces:opened")
async def test_what_a_plugin_brings_is_opened_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    """Notes of the plugin itself, a namespace that cells see, and one that lacks a tool."""
    (tmp_path / "lists_well.py").write_text(PLUGIN.format(scope='lambda ctx: {"all": [namespace_tool("list")]}'))
    (tmp_path / "codemode.toml").write_text('[[plugin]]\nid = "lists"\nmodule = "lists_well"\n')
    checks = await reach.check_catalog(tmp_path / "codemode.toml")

    assert of_plugin(checks, "namespace") == [
        ("warning", "Needy of the plugin lists is hidden: it has no close"),
        ("ok", "Lists of the plugin lists opens, 1 call"),
    ]
    left_out = of_plugin(checks, "catalog")
    assert [state for state, _ in left_out] == ["warning", "warning"]
    assert "no function" in left_out[0][1]
    assert "Lists is the global of lists already" in left_out[1][1]


@requirement("doctor:catalog:summed")
def test_of_many_renamed_tools_a_few_of_a_kind_are_named_and_the_rest_counted() -> None:
    """With a server of 10,000 tools there were as many lines."""
    renamed = [Note(f"client:app:a-{number}", "normalised", f"its function is tools.a_{number}") for number in range(9)]
    taken = [Note(f"client:app:{name}", "collision", "tools.b is taken") for name in "abcd"]
    checks = list(reach.check_names([*renamed, *taken]))

    assert [check.says for check in checks] == [
        *(f"client:app:a-{number}: its function is tools.a_{number}" for number in range(3)),
        "6 more tools are called by a function of another name",
        *(f"client:app:{name}: tools.b is taken" for name in "abcd"),
    ]
    assert checks[3].fix == "codemode catalog names each of them."
    assert set(get_args(Note.__annotations__["kind"])) == set(reach._WHAT_BECAME)


POLICY = """
[tools]
allow = ["pay", "look*", "mcp:*"]
deny = ["refnd", "client:app:REFUND"]
[tools.sandbox.tools]
deny = ["bundle-mcp", "nothing-*"]
[approvals]
"*" = "never"
"pay" = "ask"
"plugin:shop:*" = "ask"
[core]
tools = ["read_file"]
roots = ["."]
[[tool]]
name = "pay"
description = "Pays."
value = 1
[[tool]]
name = "refund"
description = "Hidden, and known all the same."
value = 1
"""


@requirement("doctor:policy:idle")
async def test_a_glob_that_matches_no_tool_is_named(tmp_path: Path) -> None:
    """A misspelt `deny` leaves open what it should close, and nothing else would tell."""
    (tmp_path / "codemode.toml").write_text(POLICY)
    checks = await reach.check_catalog(tmp_path / "codemode.toml")

    assert [(check.state, check.says) for check in checks if check.name == "policy"] == [
        ("warning", 'tools.allow: "look*" matches no tool.'),
        ("warning", 'tools.allow: "mcp:*" matches no tool.'),
        ("warning", 'tools.deny: "refnd" matches no tool. Did you mean "refund"?'),
        ("warning", 'approvals: "plugin:shop:*" matches no tool.'),
        ("warning", 'tools.sandbox.tools.deny: "nothing-*" matches no tool.'),
    ]


@requirement("doctor:policy:idle")
async def test_no_glob_is_called_idle_where_a_server_does_not_say_what_it_has(tmp_path: Path) -> None:
    server = f'[mcp.servers.gone]\ncommand = "{tmp_path / "nowhere"}"\n'
    (tmp_path / "codemode.toml").write_text(f'[tools]\ndeny = ["mcp:gone:drop_table"]\n{server}')
    checks = await reach.check_catalog(tmp_path / "codemode.toml")

    assert [check.state for check in checks if check.name == "server"] == ["failed"]
    assert [check for check in checks if check.name == "policy"] == []


@requirement("doctor:namespaces:opened")
@pytest.mark.parametrize(
    ("scope", "says"),
    [
        ("lambda ctx: 1 / 0", "create_scope failed: ZeroDivisionError"),
        ("lambda ctx: {'run': print}", "create_scope gave a raw function at Lists.run"),
        ("lambda ctx: asyncio.Event().wait()", "create_scope takes longer than timeoutMs"),
    ],
)
async def test_a_namespace_that_cannot_be_opened_fails(tmp_path: Path, scope: str, says: str) -> None:
    """Each exec would fail with it, so doctor says so before."""
    name = f"lists_{sum(map(ord, scope))}"
    (tmp_path / f"{name}.py").write_text(PLUGIN.format(scope=scope))
    settings = "[tools.codeMode]\ntimeoutMs = 200\n"
    (tmp_path / "codemode.toml").write_text(f'{settings}[[plugin]]\nid = "lists"\nmodule = "{name}"\n')
    ((state, found),) = of_plugin(await reach.check_catalog(tmp_path / "codemode.toml"), "namespace")[1:]

    assert (state, says in found) == ("failed", True), found


@requirement("doctor:activation:reasons")
def test_code_mode_is_on_with_how_many_tools_and_off_for_the_three_kinds_of_requests() -> None:
    on, raw, disabled, toolless = reach.check_activation(box_of(True))

    assert (on.state, on.says) == ("ok", "on: 1 tool behind exec and wait")
    assert [check.says for check in (raw, disabled, toolless)] == [
        "off with --raw, as it should be: this is a raw model call",
        "off with --disable-tools, as it should be: tools are disabled for this request",
        "off with --no-model-tools, as it should be: the model does not support tools",
    ]
    assert {check.state for check in (raw, disabled, toolless)} == {"ok"}


@requirement("doctor:activation:reasons")
def test_every_reason_that_it_is_off_is_given_with_what_to_do() -> None:
    box = box_of(False, allow=())._replace(catalog=toolbox().catalog)
    off = next(iter(reach.check_activation(box)))

    assert off.state == "warning"
    assert off.says == (
        "off: tools.codeMode.enabled is not true; the allowlist tools.allow is empty; "
        "no tool is effective after allow and deny"
    )
    assert off.fix.count(".") >= 3
    assert "enabled = true" in off.fix
    assert 'allow = ["*"]' in off.fix


@requirement("doctor:activation:reasons", "config:agents:override")
def test_each_agent_with_settings_of_its_own_is_judged_by_them() -> None:
    where = Where("codemode.toml", "agents.night")
    night = parse_code_mode({"enabled": False}, where)
    main, other, *_ = reach.check_activation(box_of(True, agents={"night": night}))

    assert main.says == "on for the agent main: 1 tool behind exec and wait"
    assert (other.state, other.says) == ("warning", "off for the agent night: tools.codeMode.enabled is not true")


@requirement("doctor:activation:reasons", "config:gate:conditions")
def test_the_gate_names_the_first_reason_and_doctor_all_of_them() -> None:
    request = ModelRequest(supports_tools=False, tools_disabled=True, raw=True)

    assert len(unmet_conditions(False, request, (), 0)) == 6
    assert unmet_conditions(True, ModelRequest(), ("*",), 3) == []
    assert decide_activation(False, request, (), 0).reason == ("Code mode is off: tools.codeMode.enabled is not true.")
    assert decide_activation(True, ModelRequest(), ("*",), 3).active


@requirement("cli:progress:servers")
async def test_who_looks_on_hears_which_servers_are_asked(tmp_path: Path, state: Path) -> None:
    heard: list[tuple[str, ...]] = []
    (tmp_path / "codemode.toml").write_text('[mcp.servers.gone]\ncommand = "no-such-command-anywhere"\n')
    await reach.check_catalog(tmp_path / "codemode.toml", Onlooker(look=lambda *told: heard.append(told)))

    assert heard == [("gone", "asked"), ("gone", "failed")]


# All together


def test_a_manifest_that_cannot_be_read_ends_the_list_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    async def nothing() -> list[Check]:
        return []

    (tmp_path / "codemode.toml").write_text("[tools]\nalow = []\n")
    monkeypatch.setattr(order, "check_claims", nothing)
    monkeypatch.setattr(order, "probe", lambda: WHOLE)
    last = list(order.check_all(tmp_path / "codemode.toml"))[-1]

    assert (last.name, last.state) == ("manifest", "failed")
    assert "alow" in last.says
    assert last.fix


def test_a_check_as_json_has_a_fix_only_where_there_is_one() -> None:
    assert Check("store", "ok", "fine").to_json() == {"name": "store", "state": "ok", "says": "fine"}
    assert Check("store", "failed", "no", "Do it.").to_json()["fix"] == "Do it."


def test_what_a_probe_imports_is_what_a_worker_imports() -> None:
    """Nothing but the standard library, wasmtime, and our two innermost packages."""
    from codemode.supervisor.spawn import sandbox_argv

    argv = sandbox_argv("probe")
    argv[4] = "import sys; sys.path += sys.argv[1:3]; import codemode.sandbox.probe; print(' '.join(sys.modules))"
    modules = subprocess.run(argv, capture_output=True, text=True, check=True, env={}).stdout.split()
    ours = {name.split(".")[1] for name in modules if name.startswith("codemode.")}
    foreign = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)

    assert ours == {"core", "sandbox"}
    assert foreign <= {"__main__", "codemode", "wasmtime"}
