"""A REPL on this terminal: a session for it, somewhere to show things, and a way to read.

The REPL itself is in `codemode.repl`, which knows neither terminal nor command line; here both
are tied together. Values look as they do in the other commands, because these functions show them.
"""

import asyncio
import gc
import sys
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import codemode
from codemode.cli import show
from codemode.cli.hangup import run_until_hangup
from codemode.cli.person import invite_person, is_person_here
from codemode.cli.progress import Progress
from codemode.cli.repl import ReplOptions
from codemode.cli.status import STATUS_OF_CODE, ExitStatus, status_of_result
from codemode.cli.terminal import Terminal
from codemode.composition import Setup, Toolbox, open_pool, open_store, open_toolbox, session_over
from codemode.core.errors import CodeModeError, ErrorCode, UnsupportedLanguage
from codemode.core.types import Json, Language
from codemode.live.journal import Journal
from codemode.manifest import find_manifest
from codemode.mcp.shared import Onlooker
from codemode.render.plain_catalog import failure_lines
from codemode.render.report import ErrorReport
from codemode.render.words import counted, printable
from codemode.repl.commands import LANGUAGES, Argument, Commands, Desk
from codemode.repl.driver import Driver, Stage
from codemode.repl.evaluator import Evaluator
from codemode.repl.index import Word
from codemode.repl.interrupts import Interrupts
from codemode.repl.loop import Outcome, Repl
from codemode.repl.printer import Printer
from codemode.repl.reader import LineReader, Reader
from codemode.repl.record import Record
from codemode.repl.syntax import Syntax
from codemode.repl.ticker import Ticker
from codemode.repl.vocabulary import Vocabulary
from codemode.session import Identity, Session
from codemode.store.place import state_dir
from codemode.supervisor.pool import WorkerPool
from codemode.supervisor.spawn import Child

_HISTORY = "repl_history"
_NAMED = 3  # MCP servers in the greeting
_PATIENCE_S = 0.1  # before a person is told that calls are in flight


class TerminalScreen:
    """Shows values as the other commands do."""

    def __init__(self, terminal: Terminal) -> None:
        """Show on a terminal."""
        self._terminal = terminal

    def text(self, text: str) -> None:
        """Show a text that a cell put out."""
        self._terminal.write(printable(text) if self._terminal.styled_out else text)

    def value(self, value: Json) -> None:
        """Show a JSON value."""
        show.show_value(self._terminal, value, "folded; text(_) shows all of it")

    def note(self, text: str) -> None:
        """Remark something, beside what is shown."""
        if self._terminal.styled_err:
            from rich.text import Text  # on a terminal, where rich is loaded already

            self._terminal.print_err(Text(text, "dim"))
        else:
            self._terminal.note(text)

    def error(self, report: ErrorReport) -> None:
        """Show an error."""
        show.show_error(self._terminal, report)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show rows of texts."""
        show.show_table(self._terminal, headings, rows)

    def trajectory(self, trajectory: Json) -> None:
        """Show what happened in a run."""
        show.show_trajectory(self._terminal, trajectory, inputs=True, on_stdout=True)

    def telemetry(self, telemetry: Json) -> None:
        """Show the counts of the agent run."""
        show.show_telemetry(self._terminal, telemetry)


class ToolboxLookup:
    """Answers about the catalog of a toolbox as `codemode catalog` and `debug-payload` do.

    What only an answer needs is imported when one is asked for: the prompt must come at once.
    """

    def __init__(self, terminal: Terminal, box: Toolbox) -> None:
        """Answer on a terminal."""
        self._terminal = terminal
        self._box = box

    def tools(self, pattern: str) -> None:
        """Show the tools that have a text in their id, else all of them."""
        from codemode.cli.listing import build_listing

        listing = build_listing(self._box)
        wanted = pattern.lower()
        tools = [tool for tool in listing["tools"] if wanted in tool["id"].lower()]
        namespaces = [each for each in listing["namespaces"] if wanted in each["name"].lower()]
        if tools or namespaces or not pattern:
            show.show_catalog(self._terminal, listing | {"tools": tools, "namespaces": namespaces})
        else:
            self._terminal.note(f'no id has "{pattern}" in it; :search asks for a meaning')

    def search(self, query: str) -> None:
        """Show the tools that a query means."""
        from codemode.cli.listing import build_ranking

        ranking = build_ranking(self._box, self._box.catalog.explain(query), reasons=False)
        if ranking:
            show.show_ranking(self._terminal, ranking)
        else:
            self._terminal.note("nothing matches; :tools lists all there is")

    def describe(self, tool: str) -> None:
        """Show one tool, or one namespace of a plugin."""
        from codemode.cli.listing import build_calls, build_tool, find_tool

        if about := namespaces_of(self._box).get(tool):
            show.show_table(self._terminal, ("namespace", "what it is"), [(tool, about)])
            return
        found = find_tool(self._box.catalog, tool)
        show.show_tool(self._terminal, build_tool(self._box, found, build_calls(self._box.catalog)[found.id]))

    def types(self, server: str) -> None:
        """Show the declarations of one MCP server, or of all."""
        from codemode.cli.listing import find_declarations

        files = find_declarations(self._box, server or None)
        if files:
            show.show_declarations(self._terminal, files)
        else:
            self._terminal.note("no MCP server is visible, so there are no declarations")

    def payload(self, provider: str) -> None:
        """Show the request that a model of a provider would get."""
        from codemode.cli.requests import Asked, show_request
        from codemode.config import ModelRequest
        from codemode.payload.providers import parse_provider

        chosen = parse_provider(provider or "openai")
        show_request(self._terminal, self._box, Asked(chosen, None, chosen.model, "Hello!", ModelRequest()))


def namespaces_of(box: Toolbox) -> dict[str, str]:
    """Return the globals that plugins bring, and what each says of itself."""
    visible = box.namespaces.visible(box.catalog) if box.namespaces else ()
    return {each.global_name: each.about for each in visible}


def open_repl(terminal: Terminal, options: ReplOptions, first: Child | None) -> ExitStatus:
    """Hold a REPL until it is left, and return its exit status.

    Args:
        terminal: Where to show things; a person sits at it if standard input is a terminal too.
        options: Those of the command.
        first: A worker that was started already.

    Contract: repl:pipe:status
    """
    language = _language(options.language)
    outcome, is_waiting = run_until_hangup(_hold(terminal, options, language, first))
    if isinstance(outcome, CodeModeError):
        return STATUS_OF_CODE[outcome.code or ErrorCode.INTERNAL_ERROR]
    if outcome is not None:
        return status_of_result(outcome.to_json())
    return ExitStatus.WAITING if is_waiting and not sys.stdin.isatty() else ExitStatus.OK


def _language(name: str) -> Language:
    for language in LANGUAGES:
        if name == language:
            return language
    raise UnsupportedLanguage(f'"{name}" is no language of cells; they are {" and ".join(LANGUAGES)}')


class _World(NamedTuple):
    """What a REPL stands on."""

    terminal: Terminal
    pool: WorkerPool
    session: Session
    journal: Journal
    box: Toolbox
    interrupts: Interrupts
    warnings: list[str]


async def _hold(
    terminal: Terminal, options: ReplOptions, language: Language, first: Child | None
) -> tuple[Outcome, bool]:
    """Open a session, go round until the person leaves, and wait for what is still in flight."""
    async with AsyncExitStack() as stack:
        pool = open_pool(first)
        stack.push_async_callback(pool.close)
        world = await _open_world(stack, terminal, options, pool)
        evaluator = Evaluator(world.session, language)
        evaluator.fresh = options.fresh
        vocabulary = Vocabulary(world.box.catalog, namespaces_of(world.box))
        repl = _build(world, evaluator, vocabulary)
        if sys.stdin.isatty():
            _greet(world, vocabulary)
            opening = asyncio.ensure_future(_open_namespaces(world.session, vocabulary))
            stack.callback(opening.cancel)
        gc.freeze()  # what is loaded stays; no key press waits for a search through it
        gc.enable()
        outcome = await repl.run(
            to_first_failure=not sys.stdin.isatty(),
            declare=lambda: vocabulary.declare(evaluator.states.current.names),
        )
        await _settle(world)
        return outcome, bool(evaluator.waiting)


async def _open_namespaces(session: Session, vocabulary: Vocabulary) -> None:
    """Open what plugins bring, so that it can be completed; the first cell tells what is wrong with it."""
    with suppress(CodeModeError):
        scope, written = await session.open_scope()
        paths = [path for each in (written or {}).values() for path in each.items()]
        vocabulary.open(scope, {path for path, stored in paths if stored["mapper"] is not None})


async def _open_world(stack: AsyncExitStack, terminal: Terminal, options: ReplOptions, pool: WorkerPool) -> _World:
    """Open what the REPL stands on; it is closed with the stack.

    Contract: repl:approvals:nobody
    """
    named = options.manifest or terminal.manifest
    path = Path(named) if named else find_manifest(Path.cwd())
    who = Identity(session=options.session)
    setup = Setup(path, who, options.limits, may_ask=is_person_here(), refresh=options.refresh)
    warnings: list[str] = []
    store = open_store()
    stack.callback(store.close)
    with Progress(terminal) as progress:
        onlooker = Onlooker(invite_person(progress.complain), progress.look, warnings.append)
        box = await stack.enter_async_context(open_toolbox(path, who.agent_id, options.refresh, onlooker=onlooker))
    session = await stack.enter_async_context(session_over(box, setup, pool, store))
    interrupts = stack.enter_context(Interrupts())
    return _World(terminal, pool, session, session.parts.around.journal, box, interrupts, warnings)


def _build(world: _World, evaluator: Evaluator, vocabulary: Vocabulary) -> Repl:
    """Tie the parts of the REPL together."""
    terminal, pool, session, _, box, interrupts, warnings = world
    screen, syntax, record = TerminalScreen(terminal), Syntax(pool), Record()
    printer = Printer(screen, box.redactor.text)
    ticker = Ticker(record, sys.stderr if terminal.styled_err else None)

    def arguments(argument: Argument) -> Iterable[Word]:
        return commands.words(argument)  # the reader comes before the commands, which need the driver

    if terminal.styled_out and sys.stdin.isatty():
        from codemode.repl.prompt import Parts, PromptReader  # prompt-toolkit, which a pipe need not wait for
        from codemode.repl.toolbar import Toolbar

        toolbar = Toolbar(box.catalog, evaluator, record)
        history = state_dir() / _HISTORY
        reader: Reader = PromptReader(
            Parts(syntax, vocabulary, toolbar, lambda: evaluator.language, arguments, history)
        )
    else:
        prompt = _write_prompt if sys.stdin.isatty() else None
        reader = LineReader(sys.stdin.fileno(), syntax, lambda: evaluator.language, interrupts, prompt)
    driver = Driver(Stage(evaluator, printer, reader, record, ticker, interrupts, session.abort))
    desk = Desk(driver, interrupts, evaluator, record, screen, ToolboxLookup(terminal, box), syntax, session.abort)
    commands = Commands(desk)
    session.listen(record.hear)
    world.journal.watchers.append(driver.stream)
    return Repl(reader, driver, commands, printer, warnings)


def _write_prompt(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _greet(world: _World, vocabulary: Vocabulary) -> None:
    """Say what this is, how a cell reaches what is there, and which servers could not be listed."""
    terminal, box = world.terminal, world.box
    listing = {
        "failures": [failure.to_json() for failure in box.servers.failures] if box.servers else [],
        "warnings": [*box.notes, *(box.servers.warnings if box.servers else ())],
    }
    for line in failure_lines(listing):
        terminal.complain(line)
    tools = counted(box.catalog.size, "tool")
    terminal.note(f"codemode {codemode.__version__}, {tools}. :help lists commands, Ctrl-D leaves")
    if servers := [f"MCP.{word.text}" for word in vocabulary.servers.words]:
        named = f"{servers[0]}.TOOL(input)" if len(servers) == 1 else ", ".join(servers[:_NAMED])
        more = f" and {len(servers) - _NAMED} more" if len(servers) > _NAMED else ""
        tools = counted(box.catalog.sources["mcp"], "MCP tool")
        terminal.note(f"{tools}: {named}{more}; ALL_TOOLS leaves them out")
    if namespaces := namespaces_of(box):
        terminal.note(f"plugins bring {', '.join(namespaces)}; :tools says what that is")


async def _settle(world: _World) -> None:
    """Wait for the calls of waiting runs that are in flight here, unless Ctrl-C says not to."""
    settling = asyncio.ensure_future(world.session.settled())
    _, unsettled = await asyncio.wait({settling}, timeout=_PATIENCE_S)
    if unsettled:
        with world.interrupts.calling(settling.cancel):  # before it is said: a person may be quick
            world.terminal.note("waiting for the calls that are in flight; Ctrl-C interrupts them")
            await asyncio.wait({settling})
