"""The worker as a process: frames, lockdown, what it imports."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import wasmtime

from codemode.core.errors import RuntimeUnavailable
from codemode.core.protocol import (
    HEADER_BYTES,
    Deliver,
    Drop,
    Request,
    Start,
    TakeSnapshot,
    encode_request,
    parse_header,
    parse_lengths,
)
from codemode.core.types import Json
from codemode.sandbox import image as image_module
from codemode.sandbox.image import Workshop, load_asset
from codemode.sandbox.lockdown import _NUMBERS, build_filter
from codemode.sandbox.worker import build_engine
from tests.requirements import requirement
from tests.support.processes import has_ended

ROOT = Path(__file__).parents[2]
SITE = Path(__import__("wasmtime").__file__).parents[1]
MAIN = "import sys; sys.path += sys.argv[1:3]; from codemode.sandbox.worker import main; main()"
SCOPE = json.dumps({"tools": "[]", "names": "{}", "mcp": "null", "files": "[]", "namespaces": "[]"})


class Process:
    """A real worker process, spoken to with blocking frames."""

    def __init__(self, cache: Path, main: str = MAIN) -> None:
        argv = [sys.executable, "-I", "-S", "-c", main, str(ROOT), str(SITE), str(cache)]
        self.child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}
        )
        self.ready = self.read()[0]

    def read(self) -> tuple[dict[str, Json], bytes]:
        assert self.child.stdout is not None
        head = self.child.stdout.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            assert self.child.stderr is not None
            raise EOFError(self.child.stderr.read().decode())
        header, blob = parse_lengths(head)
        return parse_header(self.child.stdout.read(header)), self.child.stdout.read(blob)

    def ask(self, request: Request) -> tuple[dict[str, Json], bytes]:
        assert self.child.stdin is not None
        self.child.stdin.write(encode_request(request))
        self.child.stdin.flush()
        return self.read()

    def run(self, source: str, budget_ms: float = 5000.0) -> tuple[dict[str, Json], bytes]:
        text = SCOPE.encode()
        return self.ask(Start(source, "javascript", budget_ms, 64 << 20, 65536, 16, 1, "digest", text))

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def process(engine_cache: Path):
    worker = Process(engine_cache)
    yield worker
    worker.close()


def test_a_worker_answers_each_request_with_one_event(process: Process) -> None:
    assert process.ready["event"] == "ready"
    assert len(process.ready["build"]) == 64
    header, rows = process.run("await yield_control('x'); return 2")
    assert (header["event"], header["state"], rows) == ("turn", "suspended", b'[["yield",1,"x"]]')
    header, rows = process.ask(Deliver(1000.0, b"[[1,true,null]]"))
    assert (header["state"], rows) == ("completed", b'[["value",2]]')
    assert process.ask(Drop())[0] == {"event": "dropped"}


def test_a_kept_vm_can_be_snapshot_twice(process: Process) -> None:
    """The REPL's undo snapshots a VM and goes on with it."""
    process.run("await yield_control()")
    assert process.ask(TakeSnapshot(1 << 20, keep=True))[0] == {"event": "snapshot", "fits": True}
    assert process.ask(TakeSnapshot(1 << 20))[0] == {"event": "snapshot", "fits": True}


def test_a_worker_ends_when_its_host_is_gone(process: Process) -> None:
    assert process.child.stdin is not None
    process.child.stdin.close()
    assert process.child.wait(60) == 0


@requirement("sandbox:recursion:range-error")
@pytest.mark.parametrize(
    "source",
    [
        "try { (function f() { f() })() } catch (e) { return e.name }",
        "try { const f = n => [n].map(f); f(1) } catch (e) { return e.name }",
        "let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; try { JSON.stringify(o) } catch (e) { return e.name }",
        "try { JSON.parse('['.repeat(1e6)) } catch (e) { return e.name }",
        "let o = []; for (let i = 0; i < 200; i++) o = [o]; try { text(o) } catch (e) { return e.name }",
    ],
)
def test_too_deep_recursion_is_a_range_error_that_a_cell_can_catch(process: Process, source: str) -> None:
    header, rows = process.run(source)
    assert (header["state"], rows) == ("completed", b'[["value","RangeError"]]')
    assert process.run("return 1")[1] == b'[["value",1]]'


@requirement("sandbox:worker:imports")
def test_a_worker_imports_only_the_standard_library_wasmtime_and_our_inner_packages(engine_cache: Path) -> None:
    """What runs beside hostile code can be read without the rest."""
    probe = "sys.stderr.write(' '.join(sys.modules))"
    main = f"import sys; sys.path += sys.argv[1:3]; import codemode.sandbox.worker; {probe}"
    argv = [sys.executable, "-I", "-S", "-c", main, str(ROOT), str(SITE), str(engine_cache)]
    modules = subprocess.run(argv, capture_output=True, text=True, check=True, env={}).stderr.split()
    foreign = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    ours = {name for name in modules if name.startswith("codemode.")}
    assert foreign - {"__main__", "codemode", "wasmtime"} == set()
    assert all(name.split(".")[1] in ("core", "sandbox") for name in ours)


@requirement("sandbox:lockdown:measures")
@pytest.mark.skipif(sys.platform != "linux", reason="the lockdown is Linux's")
@pytest.mark.parametrize(
    ("attempt", "outcome"),
    [
        ("open('/etc/passwd')", "PermissionError"),
        ("open('/tmp/codemode-probe', 'w')", "PermissionError"),
        ("os.listdir('/')", "PermissionError"),
        ("os.fork()", "PermissionError"),
        ("os.kill(os.getppid(), 0)", "PermissionError"),
        ("sys.exit(len(os.environ))", "SystemExit"),
        ("_socket.socket()", "killed"),
        ("os.execv('/bin/true', ['true'])", "killed"),
    ],
)
def test_a_locked_worker_can_reach_nothing(engine_cache: Path, attempt: str, outcome: str) -> None:
    """Each attempt runs in a real process after the same start-up as a worker's."""
    main = (
        "import sys, os; sys.path += sys.argv[1:3]\n"
        "import _socket\n"
        "from pathlib import Path\n"
        "from codemode.sandbox.worker import build_engine\n"
        "from codemode.sandbox.lockdown import lock_down\n"
        "build_engine(Path(sys.argv[3]))\n"
        "measures = lock_down()\n"
        "assert all(m.enforced for m in measures), measures\n"
        f"try:\n    {attempt}\nexcept BaseException as error:\n    print(type(error).__name__)\n"
        "else:\n    print('succeeded')\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", main, str(ROOT), str(SITE), str(engine_cache)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={"SECRET": "x"}, timeout=60)
    if "seccomp" in done.stderr and "enforced=False" in done.stderr:
        pytest.skip(f"this machine does not offer it: {done.stderr.splitlines()[-1]}")
    assert done.stdout.strip() == ("" if outcome == "killed" else outcome), done.stderr
    assert (done.returncode == -31) == (outcome == "killed")


def test_the_filter_refuses_foreign_architectures_first() -> None:
    """A 32-bit call would otherwise be read with the wrong numbers."""
    for architecture, numbers in _NUMBERS.values():
        program = build_filter(architecture, numbers)
        assert len(program) % 8 == 0
        assert program[:8] == bytes([0x20, 0, 0, 0, 4, 0, 0, 0])


# ---- the cache and the assets ----


@requirement("sandbox:cache:verified")
def test_a_cached_artefact_that_does_not_verify_is_rebuilt(tmp_path: Path) -> None:
    build_engine(tmp_path)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert len(names) == 5
    for file in tmp_path.iterdir():
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(data)

    engine = build_engine(tmp_path)

    assert engine.image.memory
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())


@requirement("sandbox:cache:verified")
def test_a_cached_file_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.machine()
    (cached,) = tmp_path.iterdir()
    cached.chmod(0o666)
    assert Workshop(tmp_path)._read(cached.name) is None


@requirement("sandbox:cache:verified")
def test_an_artefact_for_another_configuration_is_compiled_anew(tmp_path: Path) -> None:
    """It verifies, because somebody wrote it whole; the engine itself refuses it."""
    Workshop(tmp_path).machine()
    (cached,) = tmp_path.iterdir()
    config = wasmtime.Config()
    config.consume_fuel = True
    engine = wasmtime.Engine(config)
    foreign = bytes(wasmtime.Module(engine, load_asset("quickjs.wasm").data).serialize())
    cached.write_bytes(hashlib.sha256(foreign).digest() + foreign)

    assert Workshop(tmp_path).machine().module is not None
    assert cached.read_bytes()[32:] != foreign


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("x", encoding="utf-8")
    assert build_engine(blocker / "cache").image.memory


@requirement("sandbox:assets:missing")
def test_a_missing_or_damaged_engine_is_runtime_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "guest").mkdir()
    monkeypatch.setattr(image_module, "files", lambda _: tmp_path)
    with pytest.raises(RuntimeUnavailable, match=r"quickjs\.wasm cannot be read .*reinstall codemode"):
        build_engine(None)
    (tmp_path / "assets/quickjs.wasm").write_bytes(b"\0asm\1\0\0\0broken")
    with pytest.raises(RuntimeUnavailable, match="damaged"):
        Workshop(None).machine()


def test_a_worker_without_an_engine_says_so_and_ends(tmp_path: Path) -> None:
    """The host turns it into runtime_unavailable rather than waiting."""
    package = tmp_path / "codemode"
    for folder in ("core", "sandbox"):
        (package / folder).mkdir(parents=True)
        for file in (ROOT / "codemode" / folder).glob("*.py"):
            shutil.copy(file, package / folder)
    shutil.copy(ROOT / "codemode/__init__.py", package)
    argv = [sys.executable, "-I", "-S", "-c", MAIN, str(tmp_path), str(SITE), str(tmp_path / "cache")]
    done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, check=False, env={}, timeout=60)
    size, _ = parse_lengths(done.stdout[:HEADER_BYTES])
    header = parse_header(done.stdout[HEADER_BYTES : HEADER_BYTES + size])
    assert header["event"] == "fatal"
    assert header["code"] == "runtime_unavailable"


@requirement("sandbox:worker:dies-with-host")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the worker ends when it next reads its pipe")
def test_a_worker_inside_an_endless_built_in_dies_with_its_host(engine_cache: Path) -> None:
    """It looks at no pipe there; the kernel tells it."""
    host = (
        "import sys, time; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from tests.unit.test_worker import Process, SCOPE\n"
        "from codemode.core.protocol import Start, encode_request\n"
        "worker = Process(Path(sys.argv[3]))\n"
        "source = 'new Array(1e9).join()'\n"
        "request = Start(source, 'javascript', 60000.0, 64 << 20, 65536, 16, 1, 'd', SCOPE.encode())\n"
        "worker.child.stdin.write(encode_request(request)); worker.child.stdin.flush()\n"
        "print(worker.child.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", host, str(ROOT), str(SITE), str(engine_cache)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()

    assert has_ended(pid)
