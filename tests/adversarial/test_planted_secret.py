"""A planted secret: put it everywhere, run everything, find it nowhere but in raw output."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import pytest

from codemode.cli.overview import ROOMS
from codemode.payload.providers import PROVIDERS
from tests.requirements import requirement
from tests.support.cells import without_settings
from tests.support.command import Done

ROOT = Path(__file__).parents[2]
PATIENCE_S = 100
PATIENTLY = ("--timeout-ms", "60000")  # a run that waits has a snapshot in the store, which holds what its cell held
SECRET = "Pl4nt\"ed\\8f/3a+b2&c1 =7e%5d<0>'x"  # every place that it comes through writes it in another way
SERVER = """
import json, os, sys
sys.stderr.write("starting with " + os.environ["PLANTED"] + "\\n")
mode = sys.argv[1]
if mode == "dies":
    sys.stderr.write("cannot use " + sys.argv[2] + "\\n")
    sys.exit(3)
told = "keep " + os.environ["PLANTED"] if mode == "says" else "keep it"
schema = {"type": "object", "properties": {"as": {"type": "string", "description": told, "default": told}}}
tools = [{"name": name, "description": told, "inputSchema": schema} for name in ("tell", "refuse", "break")]
for line in sys.stdin:
    asked = json.loads(line)
    method, secret = asked["method"], os.environ["PLANTED"]
    if "id" not in asked:
        continue
    answer = {"result": {}}
    if method == "initialize":
        info = {"name": "planted", "version": "1"}
        version = asked["params"]["protocolVersion"]
        answer = {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        answer["result"]["instructions"] = "log in with " + secret
    elif method == "tools/list":
        answer = {"result": {"tools": tools}}
    elif method == "tools/call" and asked["params"]["name"] == "tell":
        answer = {"result": {"content": [{"type": "text", "text": secret}]}}
    elif method == "tools/call" and asked["params"]["name"] == "refuse":
        answer = {"error": {"code": -32000, "message": "no: " + secret}}
    elif method == "tools/call":
        sys.stderr.write("breaking over " + secret + "\\n")
        sys.stderr.flush()
        print("not json " + secret, flush=True)
        sys.exit(4)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | answer), flush=True)
"""
MODULE = """
import os

async def fails(context, **given):
    context.progress({"with": os.environ["PLANTED"]})
    raise ValueError(f"cannot use {given} with {os.environ['PLANTED']!r}")

def hook(event):
    if event["toolName"] == "blocked":
        return {"block": "because of " + os.environ["PLANTED"]}
"""
MANIFEST = """
[tools.codeMode]
enabled = true

[[tool]]
name = "told"
description = "Prints its argument."
command = ["sh", "-c", 'printf %s "$0"', "${PLANTED}"]

[[tool]]
name = "broken"
description = "Fails with its argument on stderr."
command = ["sh", "-c", 'printf %s "$0" >&2; exit 3', "${PLANTED}"]

[[tool]]
name = "missing"
description = "Names a program that is not there."
command = ["/nowhere/${PLANTED}"]

[[tool]]
name = "fetch"
description = "Sends it in a header and in the query."
parameters = { type = "object", properties = { status = { type = "string" } } }
[tool.http]
url = "URL/{status}?key=${PLANTED}"
headers = { Authorization = "Bearer ${PLANTED}", "X-Key" = "${PLANTED}" }

[[tool]]
name = "unreachable"
description = "Nobody listens there."
http = { url = "http://127.0.0.1:9/${PLANTED}", headers = { "X-Key" = "${PLANTED}" } }

[[tool]]
name = "fails"
description = "Raises."
python = "planted_tools:fails"

[[tool]]
name = "blocked"
description = "Is blocked by a hook."
value = 1

[[tool]]
name = "ask"
description = "Asks."
approval = "ask"
value = 1

[[tool]]
name = "strict"
description = "Takes a number."
parameters = { type = "object", properties = { n = { type = "integer" } } }
value = 1

[[hook]]
event = "before_tool_call"
python = "planted_tools:hook"

[mcp.servers.good]
command = "PYTHON"
args = ["server.py", "runs"]
env = { PLANTED = "${PLANTED}" }

"""
BROKEN = """
[mcp.servers.dies]
command = "PYTHON"
args = ["server.py", "dies", "${PLANTED}"]
env = { PLANTED = "${PLANTED}" }

[mcp.servers.gone]
url = "http://127.0.0.1:9/mcp?key=${PLANTED}"
headers = { Authorization = "Bearer ${PLANTED}" }
"""
TRY_ALL = """
const secret = THE_SECRET;
// a cell that holds it, passes it on, and lets everything fail with it
const attempts = [
  () => tools.told(), () => tools.broken(), () => tools.missing(), () => tools.fetch({status: "200"}),
  () => tools.fetch({status: "500"}), () => tools.unreachable(), () => tools.fails({with: secret}),
  () => tools.fails({[secret]: 1}), () => tools.blocked({secret}), () => tools.strict({n: secret}),
  () => tools.call(secret, {secret}), () => tools.search(secret), () => tools.describe(secret),
  () => MCP.good.tell({secret}), () => MCP.good.refuse({secret}), () => MCP.good.break({secret}),
  () => MCP.good.tell(secret), () => MCP.good.$api(secret), () => API.read("mcp/" + secret),
];
const failures = [];
for (const attempt of attempts) await attempt().catch((error) => failures.push(error.message));
"""


class Echo(BaseHTTPRequestHandler):
    """Answers with everything that it was sent, under the status that the path names."""

    def do_GET(self) -> None:
        status = int(self.path.strip("/").partition("?")[0] or 200)
        body = f"{self.path} {unquote(self.path)} {dict(self.headers)}".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Place:
    """A folder with the planted manifest, and everything that codemode writes under it."""

    def __init__(self, path: Path, url: str, secret: str) -> None:
        self.path = path
        self.secret = secret
        manifest = MANIFEST.replace("URL", url).replace("PYTHON", sys.executable)
        (path / "codemode.toml").write_text(manifest)
        (path / "broken.toml").write_text(manifest + BROKEN.replace("PYTHON", sys.executable))
        server = {"command": "npx", "args": ["x", "--token", secret], "env": {"API_KEY": secret}}
        (path / "clients.json").write_text(json.dumps({"mcpServers": {"x": server}}))
        (path / "planted_tools.py").write_text(MODULE)
        (path / "server.py").write_text(SERVER)
        self.environment = without_settings() | {
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_STATE_HOME": str(path / "state"),
            "CODEMODE_CACHE_DIR": str(path / "cache"),
            "PLANTED": secret,
            "COLUMNS": "200",
        }

    def cell(self, ending: str) -> str:
        return TRY_ALL.replace("THE_SECRET", json.dumps(self.secret)) + ending

    def run(self, *arguments: str, stdin: str = "") -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "codemode", *arguments, *(PATIENTLY if arguments[0] in ("run", "repl") else ())],
            cwd=self.path,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def runs(self) -> list[dict[str, Any]]:
        return json.loads(self.run("runs", "--json").out)


def forms_of(secret: str) -> set[str]:
    """Every spelling in which somebody could read it."""
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}


def found_in(text: str, secret: str) -> list[str]:
    """Return where it shows: the text around each spelling, and around half of it."""
    shown = []
    for form in forms_of(secret) | {secret[:12], secret[-12:]}:
        at = text.find(form)
        if at >= 0:
            shown.append(f"…{text[max(at - 160, 0) : at + 80]}…")
    return shown


@pytest.fixture
def place(tmp_path: Path, url: str) -> Place:
    return Place(tmp_path, url, SECRET)


# ---- everything but raw output ----


def quiet_commands(place: Place) -> Iterator[tuple[str, ...]]:
    """Every command, in each form in which no value or output of a cell was asked for."""
    quietly = place.cell("return failures.length;")
    failing = place.cell("throw new Error('it ends with ' + secret);")
    literal = json.dumps(place.secret)
    yield ("run", "--json", "-e", f"throw new Error({literal})")  # before anything was used
    yield ("run", "-e", f"const kept = {literal}; throw new Error(kept)")
    yield ("run", "-e", f"const wrong = ; // {place.secret}")
    yield ("run", "--trace", "-e", quietly)
    yield ("run", "--verbose", "-e", failing)
    yield ("run", "--json", "-e", failing)
    yield ("run", "-m", "broken.toml", "-e", place.cell("await tools.missing();"))
    yield ("run", "--record", "calls.jsonl", "--quiet", "-e", quietly)
    yield ("run", "--replay", "calls.jsonl", "-e", quietly)
    yield ("catalog", "-m", "broken.toml")
    yield ("catalog", "list", "-m", "broken.toml", "--refresh", "--json")
    yield ("catalog", "search", "secret", "--explain", "--json")
    yield ("catalog", "describe", "client:app:fetch")
    yield ("catalog", "describe", "client:app:told", "--json")
    yield ("catalog", "types")
    yield ("catalog", "lint")
    yield ("doctor", "-m", "broken.toml")
    yield ("doctor", "-m", "broken.toml", "--json")
    for provider in PROVIDERS:
        yield ("debug-payload", "--provider", provider, "--json", "--prompt", f"use {place.secret}")
    yield ("debug-payload", "--level", "full-redacted", "--prompt", f"use {place.secret}")
    yield ("debug-payload", "--direct")
    yield ("import", "clients.json", "-m", "imported.toml", "--json")
    yield ("init", "new", "--json")


@requirement("redaction:planted:everywhere", "redaction:planted:files", "redaction:known:at-once")
@pytest.mark.timeout(600)
def test_it_is_found_nowhere_but_in_raw_output(place: Place) -> None:
    leaks = []
    for arguments in quiet_commands(place):
        done = place.run(*arguments)
        leaks += [(arguments[0], arguments[2:], where) for where in found_in(done.out + done.err, place.secret)]
    for number, run in enumerate(place.runs()):
        for form in (
            ("--html", f"page-{number}.html"),
            *((("--inputs",), ("--json",), ("--jsonl",)) if number == 2 else ()),
        ):
            done = place.run("trace", run["runId"], *form)
            leaks += [("trace", form, where) for where in found_in(done.out + done.err, place.secret)]
    for form in ((), ("--json",)):
        done = place.run("runs", *form)
        leaks += [("runs", form, where) for where in found_in(done.out + done.err, place.secret)]

    assert leaks == []
    assert files_that_hold(place) == []


@requirement("redaction:planted:everywhere")
def test_raw_output_is_raw(place: Place) -> None:
    """What the cell returns and puts out is what was asked for; telemetry and trajectory beside it are not."""
    done = place.run("run", "--trace", "-e", place.cell("text(secret); return {secret, told: await tools.told()};"))

    assert done.status == 0
    assert done.out.count(json.dumps(place.secret)) == 2
    assert place.secret in done.out.splitlines()
    assert found_in(done.err, place.secret) == []


@requirement("redaction:planted:everywhere", "redaction:planted:files")
def test_a_call_that_a_person_decides_on_shows_it_to_nobody(place: Place) -> None:
    cell = place.cell("return await tools.ask({secret});")
    seen = []
    for decision in ("--approve", "--deny"):
        waiting = place.run("run", "-e", cell, "--json")
        pending = json.loads(waiting.out)
        listed = [place.run("runs"), place.run("runs", "--json"), place.run("trace", pending["runId"], "--inputs")]
        call = pending["pendingToolCalls"][0]["id"]
        ended = place.run("wait", pending["runId"], decision, call, "--verbose")
        seen += [waiting, *listed, ended]
    left = place.run("run", "-e", cell, "--json")
    seen += [left, place.run("abort", json.loads(left.out)["runId"], "--json")]

    assert [where for done in seen for where in found_in(done.out + done.err, place.secret)] == []
    assert files_that_hold(place) == []


@requirement("redaction:planted:everywhere")
def test_smoke_and_the_repl_keep_it_too(place: Place) -> None:
    (place.path / "check.js").write_text(
        "// @flags --timeout-ms 60000\n// @status failed\n" + place.cell("throw new Error(secret);")
    )
    (place.path / "wrong.js").write_text(
        "// @flags --timeout-ms 60000\n// @value 1\n" + place.cell("throw new Error(secret);")
    )
    talk = "\n".join(
        [place.cell("throw new Error(secret)").replace("\n", " "), ":trace", ":stats", ":payload", ":quit"]
    )
    seen = [
        place.run("smoke", "check.js", "wrong.js", "--junit", "junit.xml", "--verbose"),
        place.run("smoke", "check.js", "wrong.js", "--json"),
        place.run("repl", stdin=talk + "\n"),
    ]

    assert [where for done in seen for where in found_in(done.out + done.err, place.secret)] == []
    assert files_that_hold(place, but=("clients.json", "check.js", "wrong.js")) == []


@requirement("redaction:listings:brought")
def test_what_a_server_says_of_its_tools_is_listed_without_it(place: Place) -> None:
    manifest = place.path / "codemode.toml"
    manifest.write_text(manifest.read_text().replace('"server.py", "runs"', '"server.py", "says"'))
    asked = ":tools\n:search keep\n:types good\n:describe mcp:good:tell\n:quit"
    seen = [
        place.run("catalog"),
        place.run("catalog", "--json"),
        place.run("catalog", "search", "keep", "--explain", "--json"),
        place.run("catalog", "describe", "mcp:good:tell"),
        place.run("catalog", "types"),
        place.run("catalog", "types", "good", "--json"),
        place.run("catalog", "lint", "--json"),
        place.run("debug-payload", "--json", "--disable-tools"),
        place.run("debug-payload", "--direct", "--json"),
        place.run("run", "--json", "--record", "calls.jsonl", "-e", "return (await MCP.good.$api()).tools.length"),
        place.run("repl", stdin=asked + "\n"),
    ]

    assert [where for done in seen for where in found_in(done.out + done.err, place.secret)] == []
    assert all("keep" in done.out for done in (*seen[:6], seen[-1]))
    assert found_in((place.path / "calls.jsonl").read_text(), place.secret) == []


PLUGIN = """
import os
from codemode.plugins import namespace_tool

SECRET = os.environ["PLANTED"]
HOW = {how!r}
if HOW == "import":
    raise RuntimeError("no import with " + SECRET)

def scope(context):
    if HOW == "scope":
        raise RuntimeError("no scope with " + SECRET)
    return {{"key": SECRET, "go": namespace_tool("go", mapper)}}

def mapper(arguments):
    raise RuntimeError("no input with " + SECRET)

def register(plugin):
    if HOW == "register":
        raise RuntimeError("no plugin with " + SECRET)
    plugin.tool("bad " + SECRET, 7, description="Left out.")
    plugin.tool("go", lambda: 1, description="Goes.")
    plugin.namespace("planted", global_name="Planted", description="Holds it.", required_tool_names=["go"],
                     create_scope=scope)
"""


@requirement("redaction:setup:errors", "redaction:planted:everywhere", "redaction:planted:files")
@pytest.mark.parametrize("how", ["import", "register", "scope", "mapper"])
def test_a_plugin_that_fails_with_it_does_so_in_other_words(place: Place, how: str) -> None:
    """While it is loaded, opened or called, and in what doctor and the listings say of what was left out."""
    (place.path / "planted_plugin.py").write_text(PLUGIN.format(how=how))
    with (place.path / "codemode.toml").open("a") as manifest:
        manifest.write('\n[[plugin]]\nid = "planted"\nmodule = "planted_plugin"\n')
    (place.path / "check.js").write_text("// @flags --timeout-ms 60000\nreturn await Planted.go(Planted.key)\n")
    cell = "return await Planted.go(Planted.key)"
    seen = [
        place.run("run", "--trace", "-e", cell),
        place.run("run", "--json", "--record", "calls.jsonl", "-e", cell),
        place.run("catalog"),
        place.run("catalog", "--json"),
        place.run("doctor", "--json"),
        place.run("debug-payload"),
        place.run("smoke", "check.js"),
        place.run("repl", stdin=cell + "\n"),
        place.run("trace"),
        place.run("runs"),
    ]

    assert [where for done in seen for where in found_in(done.out + done.err, place.secret)] == []
    assert files_that_hold(place) == []


def files_that_hold(place: Place, but: tuple[str, ...] = ("clients.json",)) -> list[str]:
    """Return the files below the place that hold it in any spelling."""
    forms = [form.encode() for form in forms_of(place.secret) | {place.secret[:12]}]
    while True:
        files = [path for path in place.path.rglob("*") if path.is_file() and path.name not in but]
        try:
            held = [path for path in files if any(form in path.read_bytes() for form in forms)]
        except FileNotFoundError:  # a host that ends has just put its log away
            continue
        return [str(path.relative_to(place.path)) for path in held]


def test_every_command_is_tried(tmp_path: Path) -> None:
    """A command that is added must be added here."""
    tried = {arguments[0] for arguments in quiet_commands(Place(tmp_path, "http://127.0.0.1:9", SECRET))}

    assert set(ROOMS) == tried | {"wait", "runs", "abort", "trace", "repl", "smoke"}
