"""The command's spans at a real collector: OTLP over HTTP on loopback, from several processes."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.requirements import requirement
from tests.support.cells import BOUND_S, ROOT

MANIFEST = """
[[tool]]
name = "quote"
description = "Quote a price."
value = 12
[[tool]]
name = "pay"
description = "Pay."
approval = "ask"
value = "paid"
"""
PROGRAM = """
import asyncio
from codemode import CodeMode

async def main():
    async with CodeMode("codemode.toml") as first, CodeMode("codemode.toml", beside=first) as second:
        await asyncio.gather(*(each.exec("return await tools.quote()") for each in (first, second)))

asyncio.run(main())
"""
NAMES = {"execute_tool exec", "execute_tool quote"}
CELL = "const price = await tools.quote(); return [price, await tools.pay(), await tools.quote()]"


class Collector:
    """Takes spans and lets a test wait for so many of them."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.services: set[str] = set()
        self._spans: list[Any] = []
        self._more = threading.Condition()

    def take(self, path: str, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._more:
            self.paths.append(path)
            for resource in request.resource_spans:
                named = {each.key: each.value.string_value for each in resource.resource.attributes}
                self.services.add(named["service.name"])
                self._spans += [span for scope in resource.scope_spans for span in scope.spans]
            self._more.notify_all()

    def spans(self, count: int) -> list[Any]:
        """Wait until so many came; return them in the order in which they began."""
        with self._more:
            assert self._more.wait_for(lambda: len(self._spans) >= count, BOUND_S), [s.name for s in self._spans]
            assert len(self._spans) == count
            return sorted(self._spans, key=lambda span: span.start_time_unix_nano)


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "codemode.toml").write_text(MANIFEST)
    return tmp_path


def python(folder: Path, *arguments: str, typed: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    own = {"CODEMODE_STATE_DIR": str(folder / "state"), "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=kept | own | variables, input=typed, capture_output=True, text=True, timeout=BOUND_S,
        check=False,
    )  # fmt: skip


def codemode(folder: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, Any], str]:
    done = python(folder, "-m", "codemode", *arguments, "--json", **variables)
    return done.returncode, json.loads(done.stdout), done.stderr


def attributes(span: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


@requirement("spans:export:one-trace", "spans:tree:nested", "spans:names:genai")
def test_the_spans_of_all_processes_of_a_run_are_one_trace(folder: Path, collector: tuple[Collector, str]) -> None:
    kept, url = collector
    on = {"CODEMODE_OTEL": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": url}
    status, first, _ = codemode(folder, "run", "-e", CELL, **on)
    assert status == 3
    before = kept.spans(2)
    status, end, _ = codemode(folder, "wait", first["runId"], "--approve", "2", **on)
    assert (status, end["value"]) == (0, [12, "paid", 12])
    spans = kept.spans(5)
    cell = spans[0]

    assert [span.name for span in before] == ["execute_tool exec", "execute_tool quote"]
    assert sorted(span.name for span in spans[2:]) == ["execute_tool pay", "execute_tool quote", "execute_tool wait"]
    assert {span.trace_id.hex() for span in spans} == {first["runId"].removeprefix("cm_").replace("-", "")}
    assert {span.parent_span_id for span in spans[1:]} == {cell.span_id}
    assert cell.parent_span_id == b""
    assert {attributes(span)["codemode.run.id"] for span in spans} == {first["runId"]}
    assert (set(kept.paths), kept.services) == ({"/v1/traces"}, {"codemode"})


@requirement("spans:export:everywhere")
@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        (["-m", "codemode", "repl"], "await tools.quote()\nawait tools.quote()\n"),
        (["-m", "codemode", "smoke", "one.js", "two.js", "--jobs", "2"], ""),
        (["program.py"], ""),
    ],
    ids=["repl", "smoke", "library"],
)
def test_every_session_sends_its_spans(
    folder: Path, collector: tuple[Collector, str], arguments: list[str], typed: str
) -> None:
    """Two cells with a call each, wherever they are run: each is a trace of its own."""
    kept, url = collector
    for name in ("one.js", "two.js"):
        (folder / name).write_text("// @value 12\nreturn await tools.quote()\n")
    (folder / "program.py").write_text(PROGRAM)
    done = python(folder, *arguments, typed=typed, CODEMODE_OTEL="1", OTEL_EXPORTER_OTLP_ENDPOINT=url)
    assert done.returncode == 0, done.stderr
    spans = kept.spans(4)

    assert sorted(span.name for span in spans) == ["execute_tool exec"] * 2 + ["execute_tool quote"] * 2
    traces = {span.trace_id for span in spans}
    assert all({span.name for span in spans if span.trace_id == trace} == NAMES for trace in traces)
    assert len(traces) == 2


@requirement("spans:export:off")
def test_nothing_is_sent_unless_asked_for(folder: Path, collector: tuple[Collector, str]) -> None:
    kept, url = collector
    status, _, _ = codemode(folder, "run", "-e", "return await tools.quote()", OTEL_EXPORTER_OTLP_ENDPOINT=url)

    assert (status, kept.paths) == (0, [])


@requirement("spans:export:off")
def test_nothing_of_opentelemetry_is_loaded_unless_asked_for(folder: Path) -> None:
    program = """
import asyncio, sys
from codemode.composition import Setup, open_session
from codemode.store.memory import MemoryStore

async def main():
    async with open_session(Setup(), store=MemoryStore()) as session:
        await session.exec({"code": "return 1"})
    print([name for name in sys.modules if name.startswith("opentelemetry")])

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=BOUND_S
    )

    assert done.stdout.strip() == "[]"


@requirement("spans:export:unreachable")
def test_a_collector_that_does_not_answer_changes_nothing(folder: Path) -> None:
    on = {"CODEMODE_OTEL": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    status, result, stderr = codemode(folder, "run", "-e", "return await tools.quote()", **on)

    assert (status, result["value"], stderr) == (0, 12, "")


@requirement("spans:export:missing")
def test_without_the_packages_the_error_says_what_to_install(folder: Path) -> None:
    (folder / "opentelemetry.py").write_text("raise ImportError('not installed')")
    paths = os.pathsep.join((str(folder), str(ROOT)))
    status, result, _ = codemode(folder, "run", "-e", "1", CODEMODE_OTEL="1", PYTHONPATH=paths)

    assert (status, result["code"]) == (2, "invalid_config")
    assert "codemode[otel]" in result["error"]
