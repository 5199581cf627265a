"""One connection to one server: opened once, used by many calls at a time, ended once.

A task of its own holds the transport from handshake to end, as the SDK demands, and reaps the
server's process. When the conversation ends, for whatever reason, open requests reject at once
and the connection is dead; `connections` makes a new one for the next call.
"""

import asyncio
import gc
import importlib
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from codemode.core.limits import MCP_EXIT_MS, MCP_LISTED_EXIT_MS, MCP_SIGN_IN_MS
from codemode.core.redact import Redactor
from codemode.core.types import Json
from codemode.mcp.failures import (
    BAD_STATUS,
    FailureKind,
    RequestFailed,
    ServerFailure,
    ServerUnavailable,
    describe_exit,
    explain_status,
)
from codemode.mcp.greeting import Greeting, Listener
from codemode.mcp.guard import Guard
from codemode.mcp.listings import Listing, list_tools
from codemode.mcp.process import Command, ServerProcess
from codemode.mcp.servers import Resolved, ServerSpec, resolve
from codemode.mcp.signin import SignIn

if TYPE_CHECKING:
    from codemode.mcp import sdk
    from codemode.mcp.oauth import BrowserAuth

_LAST_BREATH_S = 0.5  # from the end of a server's output to its exit status
_SHOWN_CHARS = 120  # of a stray line, in a warning


class Surroundings(NamedTuple):
    """What all connections share: variables, redaction, the watchdog, where warnings go, and who may sign in."""

    environment: Mapping[str, str]
    redactor: Redactor
    guard: Guard
    warn: Callable[[str], None]
    sign_in: SignIn


class Connection:
    """A conversation with a server, and the process behind it if there is one.

    It has two stages over stdio: a `Greeting` without the SDK, enough to list tools, and the
    SDK's conversation from the first call on. A connection that is opened to call skips the first.
    """

    def __init__(self, spec: ServerSpec, around: Surroundings) -> None:
        """Prepare a connection; `open` makes it."""
        self._spec = spec
        self._around = around
        self._listener = Listener(self._hear_noise, self._hear_request, self._hear_change, self._hear_end)
        self._process: ServerProcess | None = None
        self._greeting: Greeting | None = None
        self._conversation: sdk.Conversation | None = None
        self._ready = asyncio.Event()
        self._wanted = asyncio.Event()
        self._conversing = asyncio.Event()
        self._ended = asyncio.Event()
        self._explained = asyncio.Event()
        self._is_closing = False
        self._is_parting = False  # what ends the server has begun; to cancel that would leave it
        self._hung_up = False
        self._cause: tuple[FailureKind, str] = ("offline", "closed the connection.")
        self._exit_status: int | None = None
        self._http_status = 0
        self._was_cut = False
        self._awaited = 0  # requests that are open
        self._warned: set[str] = set()
        self.capabilities: dict[str, Json] = {}  # of the server; known after `open`
        self.tools_changed = False  # the server said so since the last listing

    @property
    def is_alive(self) -> bool:
        """Whether a request can be made; after an answer that broke off only while others are awaited."""
        is_doubtful = self._was_cut and not self._awaited
        return self._ready.is_set() and not self._ended.is_set() and not is_doubtful

    async def open(self, to_call: bool) -> None:
        """Connect and shake hands, within the server's `startTimeoutMs`.

        Args:
            to_call: A call is what it is opened for: the SDK is loaded while the server starts.

        Raises:
            InvalidConfig: A variable of its definition is unset.
            ServerUnavailable: It cannot be used.

        Contract: mcp:start:timeout, mcp:start:failure-kinds
        """
        resolved = resolve(self._spec, self._around.environment)
        self._around.redactor.learn(resolved.secrets)
        if to_call:
            self._wanted.set()
        self._task = asyncio.create_task(self._live(resolved))
        limit_ms = self._spec.start_timeout_ms
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_ms / 1000) as self._clock:
                    await _first_of(self._ready.wait(), asyncio.wait({self._task}))
            if self._ready.is_set():
                return
            if not self._task.done():
                await self.close()
                self._cause = "timeout", f"did not answer within startTimeoutMs = {limit_ms} ms."
            raise ServerUnavailable(self._failure(*self._cause))
        except asyncio.CancelledError:
            await self.close()
            raise

    async def request(
        self, method: str, params: Mapping[str, Json], on_progress: Callable[[Json], None] | None = None
    ) -> dict[str, Json]:
        """Send a request and return the server's result untouched, within `callTimeoutMs`.

        Raises:
            ServerUnavailable: No answer, or an error for one; the sentence says which.

        Contract: mcp:call:native-result, mcp:call:timeout, mcp:call:death, mcp:call:cancelled
        """
        conversation = await self._converse_by_now()
        limit_ms = self._spec.call_timeout_ms
        self._awaited += 1
        try:
            return await conversation.request(method, params, limit_ms, on_progress)
        except RequestFailed as error:
            raise await self._explain_request(error, method, f"callTimeoutMs = {limit_ms} ms") from error
        finally:
            self._awaited -= 1

    async def list_tools(self, now: float) -> Listing:
        """Ask for all tools, within `startTimeoutMs` for all pages together; `now` is in Unix seconds.

        Raises:
            ServerUnavailable: As `request` does.

        Contract: mcp:list:bounded
        """
        clock, limit_ms = asyncio.get_running_loop().time, self._spec.start_timeout_ms
        ends = clock() + limit_ms / 1000

        async def ask(method: str, params: Mapping[str, Json]) -> dict[str, Json]:
            left_ms = max(1, int((ends - clock()) * 1000))
            try:
                if self._greeting is not None and not self._wanted.is_set():
                    return await self._greeting.request(method, params, left_ms)
                conversation = await self._converse_by_now()
                return await conversation.request(method, params, left_ms, None)
            except RequestFailed as error:
                raise await self._explain_request(error, method, f"startTimeoutMs = {limit_ms} ms") from error

        return await list_tools(ask, self.capabilities, now)

    async def close(self) -> None:
        """End the conversation and the process, whatever state they are in.

        Contract: mcp:close:no-process-left
        """
        self._is_closing = True
        self._ended.set()
        if not self._ready.is_set() and not self._is_parting:
            self._is_parting = True
            self._task.cancel()
        await asyncio.wait({self._task})

    async def _converse_by_now(self) -> "sdk.Conversation":
        self._wanted.set()
        await _first_of(self._conversing.wait(), self._explained.wait())
        if self._conversation is None:
            raise ServerUnavailable(self._failure(*self._cause))
        return self._conversation

    async def _live(self, resolved: Resolved) -> None:
        try:
            if resolved.command is not None and not await self._spawn(resolved.command):
                return
            if self._process is not None and not self._wanted.is_set() and not await self._greet(self._process):
                return
            await asyncio.to_thread(_load_sdk)  # after the spawn, so that the server starts meanwhile
            await self._talk(resolved)
        finally:
            self._is_parting = True
            self._ended.set()
            await self._explain_end()
            if self._process is not None:
                was_listed_only = self._conversation is None
                await self._process.close(MCP_LISTED_EXIT_MS if was_listed_only else MCP_EXIT_MS)
                self._around.guard.forget(self._process.pid, self._process.mark)

    async def _spawn(self, command: Command) -> bool:
        try:
            self._process = await ServerProcess.spawn(command)
        except (OSError, ValueError) as error:
            self._cause = "offline", _explain_spawn(command, error)
            return False
        self._around.guard.watch(self._process.pid, self._process.mark)
        return True

    async def _greet(self, process: ServerProcess) -> bool:
        """Shake hands without the SDK and wait for a call; say whether there is one to be made."""
        greeting = Greeting(process, self._listener)
        try:
            await greeting.shake_hands()
        except RequestFailed as error:
            if error.reason == "refused":
                self._cause = "protocol", f"answered the handshake with {error}."
            return False
        self._greeting = greeting
        self.capabilities = greeting.hello["capabilities"]
        self._ready.set()
        await _first_of(self._wanted.wait(), self._ended.wait(), process.exited.wait())
        await greeting.finish()
        return self._wanted.is_set() and not self._ended.is_set()

    async def _talk(self, resolved: Resolved) -> None:
        from codemode.mcp import sdk  # loaded by now

        if self._process is not None:
            await self._converse(sdk.open_stdio(self._process, self._hear_noise))
            return
        target = resolved.url, resolved.headers, self._hear_status, self._authenticate(resolved)
        if self._spec.transport == "sse":
            await self._converse(sdk.open_sse(*target))
            return
        await self._converse(sdk.open_http(*target))
        first = self._cause
        is_sure = self._spec.transport == "http" or self._ready.is_set() or first[0] == "auth"
        if not is_sure and _suggests_sse(self._http_status):
            await self._converse(sdk.open_sse(*target))
            self._cause = self._cause if self._ready.is_set() else first

    async def _converse(self, streams: "sdk.Streams") -> None:
        from codemode.mcp import sdk  # loaded by now

        if not self._is_closing:
            self._ended.clear()
        hello = self._greeting.hello if self._greeting is not None else None
        try:
            async with sdk.converse(streams, self._listener, hello) as conversation:
                self._conversation = conversation
                self.capabilities = conversation.capabilities
                self._conversing.set()
                self._ready.set()
                await self._ended.wait()
        except sdk.FAILURES as error:
            self._cause = sdk.explain(error, self._http_status)

    def _authenticate(self, resolved: Resolved) -> "BrowserAuth | None":
        if resolved.oauth is None:
            return None
        from codemode.mcp.oauth import BrowserAuth, Desk  # loaded by now, with the SDK

        around = self._around
        is_opening = lambda: not self._ready.is_set()  # noqa: E731
        desk = Desk(
            self._spec.name, around.sign_in, around.redactor.learn, is_opening, self._hear_person, self._hear_refusal
        )
        return BrowserAuth(resolved.url, resolved.oauth, desk)

    async def _explain_end(self) -> None:
        process = self._process
        if process is not None and (self._hung_up or process.exit_status is not None):
            await process.wait_exit(_LAST_BREATH_S)
            self._exit_status = process.exit_status
            if process.fault is not None:
                self._cause = "protocol", f"was disconnected: {process.fault}."
            elif self._exit_status is not None:
                self._cause = "exited", f"{describe_exit(self._exit_status)}."
            else:
                self._cause = "exited", "closed its pipes."
        self._explained.set()

    async def _explain_request(self, error: RequestFailed, method: str, limit: str) -> ServerUnavailable:
        if error.reason == "timeout":
            return ServerUnavailable(self._failure("timeout", f"did not answer {method} within {limit}."))
        if error.reason == "refused":
            return ServerUnavailable(self._refusal(method, str(error)))
        if error.reason == "cut":
            self._was_cut = True
            why = f"broke off its answer to {method}, which may have taken effect."
            return ServerUnavailable(self._failure("offline", why))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._explained.wait(), 2 * _LAST_BREATH_S)
        kind, why = self._cause
        if kind != "auth":  # what was refused has done nothing
            why = f"{why[:-1]} during {method}, which may have taken effect."
        return ServerUnavailable(self._failure(kind, why))

    def _hear_noise(self, line: str) -> None:
        shown = line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}…"
        self._warn_once("noise", f"writes lines to stdout that are no MCP messages; they are skipped. First: {shown}")

    def _hear_request(self, method: str) -> None:
        self._warn_once(method, f"asked for {method}; it was declined, as nobody is there to answer.")

    def _hear_change(self) -> None:
        self.tools_changed = True

    def _hear_end(self) -> None:
        self._hung_up = True
        self._ended.set()

    def _hear_person(self, is_busy: bool) -> None:
        """Let the start take longer while a person signs in, who has a time of their own."""
        left_ms = self._spec.start_timeout_ms + (MCP_SIGN_IN_MS if is_busy else 0)
        self._clock.reschedule(asyncio.get_running_loop().time() + left_ms / 1000)

    def _hear_refusal(self, why: str) -> None:
        self._cause = "auth", why

    def _hear_status(self, status: int) -> None:
        self._http_status = status

    def _warn_once(self, topic: str, what: str) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            self._around.warn(self._around.redactor.text(f'MCP server "{self._spec.name}" {what}'))

    def _refusal(self, method: str, text: str) -> ServerFailure:
        if self._http_status < BAD_STATUS:
            # The server lives: the end of its stderr would be what it said long ago.
            return self._failure("protocol", f"answered {method} with {text}.")._replace(stderr="")
        if self._http_status == 404:  # the session is gone: the next call begins a new one
            self._ended.set()
        return self._failure(*explain_status(self._http_status))

    def _failure(self, kind: FailureKind, why: str) -> ServerFailure:
        redact = self._around.redactor.text
        return ServerFailure(
            server=self._spec.name,
            kind=kind,
            message=redact(f'MCP server "{self._spec.name}" {why}'),
            exit_status=self._exit_status,
            stderr=redact(self._process.stderr_tail) if self._process is not None else "",
            origin=self._spec.where.file,
        )


async def _first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait for one of several things."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _load_sdk() -> None:
    """Import the SDK: half a second, a tenth less while its many objects are not searched for garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module("codemode.mcp.sdk")
    finally:
        if was_enabled:
            gc.enable()


def _suggests_sse(status: int) -> bool:
    """A refused POST is how a server that only speaks SSE answers."""
    return 400 <= status < 500


def _explain_spawn(command: Command, error: OSError | ValueError) -> str:
    name = command.argv[0]
    if not command.cwd.is_dir():
        return f"cannot be started: its folder {command.cwd} does not exist; correct cwd."
    if isinstance(error, FileNotFoundError):
        hint = " Write its arguments in args." if " " in name else ""
        return f'cannot be started: the command "{name}" was not found; install it, or correct command.{hint}'
    if isinstance(error, PermissionError):
        return f'cannot be started: "{name}" may not be executed.'
    return f'cannot be started: "{name}": {error}.'
