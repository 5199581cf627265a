"""Command tools: a program with arguments, never a shell; JSON in, JSON or text out.

The input goes to stdin as JSON, and its properties into `{placeholders}` of the arguments. The
program runs in a process group of its own, in the manifest's folder; whatever is left of
the group is killed when the call ends, however it ends.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

from codemode.core.errors import InvalidInput, NestedToolFailed
from codemode.core.limits import COMMAND_FLUSH_MS, MAX_BRIDGE_BYTES, STDERR_TAIL_BYTES
from codemode.core.tables import Where
from codemode.core.types import Json, RunContext
from codemode.definitions import CommandTemplate
from codemode.tools.templates import Placeholders, Variables

_NUMBER = re.compile(r"-[0-9.]+\Z")  # no option


class Finished(NamedTuple):
    """How a program ended: `status` is negative for a signal; `stderr` is the tail of it."""

    status: int
    stdout: bytes
    stderr: str


class CommandTool:
    """One command template: call it with an input, or `probe` it without running it."""

    def __init__(
        self, template: CommandTemplate, placeholders: Placeholders, folder: Path, where: Where, variables: Variables
    ) -> None:
        """Keep the template; variables are expanded at the first call."""
        self._template = template
        self._placeholders = placeholders
        self._folder = folder
        self._where = where.at("command")
        self._variables = variables
        self._argv: list[str] | None = None

    async def __call__(self, given: dict[str, Json], context: RunContext) -> Json:  # noqa: ARG002
        """Run the program as a tool; it learns nothing of the run."""
        return await self.run(given)

    async def run(self, given: dict[str, Json]) -> Json:
        """Run the program and return what it printed: JSON, else text, else null.

        Raises:
            InvalidInput: A placeholder's value is missing or may not stand in an argument.
            NestedToolFailed: It cannot be started, fails, or prints too much or no UTF-8.
            InvalidConfig: A variable is not set.

        Contract: tools:command:json-in-and-out, tools:command:placeholders, tools:command:failures
        """
        argv = self._filled(given)
        finished = await run_program(argv, json.dumps(given, ensure_ascii=False).encode(), self._folder)
        if finished.status != 0:
            raise NestedToolFailed(describe_end(argv[0], finished))
        return parse_output(argv[0], finished.stdout)

    def probe(self) -> None:
        """Say whether the program can be found.

        Raises:
            InvalidConfig: A variable is not set, or there is no such program.
        """
        import shutil  # with its archive modules 4 ms, and only a check needs it

        program = self._expanded()[0]
        if shutil.which(program) is None and not (self._folder / program).is_file():
            self._where.fail(f'there is no program "{program}"; install it or give its path.')

    def _expanded(self) -> list[str]:
        if self._argv is None:
            self._argv = cast("list[str]", self._variables.expand(list(self._template.argv), self._where))
        return self._argv

    def _filled(self, given: dict[str, Json]) -> list[str]:
        filled: list[str] = []
        for part in self._expanded():
            argument = self._placeholders.fill(part, given, _harmless)
            may_look_like_option = part.startswith("-") or "--" in filled or argument == part
            if argument.startswith("-") and not may_look_like_option and not _NUMBER.match(argument):
                names = ", ".join(sorted(self._placeholders.used(part)))
                raise InvalidInput(f'the property {names} would be read as an option: it begins with "-"')
            filled.append(argument)
        return filled


async def run_program(argv: Sequence[str], stdin: bytes, folder: Path) -> Finished:
    """Run a program to its end and return what it printed.

    Cancelling kills its whole process group; so does printing more than the bridge takes.

    Raises:
        NestedToolFailed: It cannot be started, or it printed too much.

    Contract: tools:command:group-killed, tools:command:output-bounded
    """
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(loop.subprocess_exec(_Collector, *argv, cwd=folder, start_new_session=True))
    try:
        transport, protocol = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end_started(starting)
        raise
    except OSError as error:
        raise NestedToolFailed(f'cannot run "{argv[0]}": {error.strerror}.') from error
    try:
        pipe = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        pipe.write(stdin)
        pipe.write_eof()
        await protocol.exited.wait()
        if not protocol.overflowed:
            with contextlib.suppress(TimeoutError):  # a child of its own may hold the pipes for ever
                await asyncio.wait_for(protocol.drained.wait(), COMMAND_FLUSH_MS / 1000)
    finally:
        _kill_group(transport.get_pid())
        await protocol.exited.wait()  # killed: it cannot take long
        transport.close()
    if protocol.overflowed:
        raise NestedToolFailed(f'"{argv[0]}" printed more than {MAX_BRIDGE_BYTES} bytes; ask it for less.')
    return Finished(transport.get_returncode() or 0, bytes(protocol.stdout), protocol.stderr_text())


async def _end_started(starting: "asyncio.Future[tuple[asyncio.SubprocessTransport, _Collector]]") -> None:
    """End a program that was still starting when its call was cancelled: it may have started others."""
    with contextlib.suppress(OSError):  # it could not be started
        transport, protocol = await starting
        _kill_group(transport.get_pid())
        await protocol.exited.wait()
        transport.close()


def describe_end(program: str, finished: Finished) -> str:
    """Return one sentence for a program that failed: exit status or signal, and the tail of stderr, else of stdout."""
    if finished.status < 0:
        ending = f"was ended by {_signal_name(-finished.status)}"
    else:
        ending = f"exited with status {finished.status}"
    said = finished.stderr or _tail(finished.stdout)
    return f'"{program}" {ending}' + (f": {said}" if said else ".")


def parse_output(program: str, stdout: bytes) -> Json:
    """Return what a program printed: JSON, else text, else null.

    Raises:
        NestedToolFailed: It is not UTF-8.
    """
    try:
        text = stdout.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NestedToolFailed(f'"{program}" printed binary data; binary is not supported, print base64.') from error
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.removesuffix("\n")


class _Collector(asyncio.SubprocessProtocol):
    """Gathers what a program prints, within bounds, and says when it exited and when its pipes ended."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.stdout = bytearray()
        self.overflowed = False
        self._stderr = bytearray()
        self._is_cut = False  # then its beginning is marked, so that what is left there of a secret is masked
        self._open = {1, 2}
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._stderr += data
            self._is_cut |= len(self._stderr) > STDERR_TAIL_BYTES
            del self._stderr[:-STDERR_TAIL_BYTES]
        elif len(self.stdout) + len(data) <= MAX_BRIDGE_BYTES:
            self.stdout += data
        elif not self.overflowed and self._transport is not None:
            self.overflowed = True
            _kill_group(self._transport.get_pid())

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()

    def stderr_text(self) -> str:
        return _tail(self._stderr, is_cut=self._is_cut)


def _tail(data: bytes | bytearray, *, is_cut: bool = False) -> str:
    text = data[-STDERR_TAIL_BYTES:].decode(errors="replace").strip()
    return f"…{text}" if is_cut or len(data) > STDERR_TAIL_BYTES else text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most of the real-time signals have none
        return f"signal {number}"


def _kill_group(pid: int | None) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if pid is not None:
            os.killpg(pid, signal.SIGKILL)


def _harmless(name: str, text: str) -> str:
    if "\0" in text:
        raise InvalidInput(f"the property {name} holds a NUL character, which no argument can")
    return text
