"""The `:commands`: a table of what there is, and one method for each.

What they show comes from the session's own parts and, about the catalog, from the command line.
"""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from codemode.core.errors import InvalidInput
from codemode.core.names import did_you_mean
from codemode.core.types import CodeModeResult, Language, PendingCall, Waiting
from codemode.render.words import counted
from codemode.repl.cells import choose, declared_twice
from codemode.repl.driver import Driver
from codemode.repl.evaluator import Decision, Evaluator
from codemode.repl.index import Word
from codemode.repl.interrupts import Interrupts
from codemode.repl.record import Record
from codemode.repl.saving import program, read_file, write_file
from codemode.repl.screen import Lookup, Screen
from codemode.repl.states import MAX_BYTES, MAX_STATES
from codemode.repl.syntax import Judge
from codemode.trajectory import to_json

Argument = Literal[
    "", "command", "tool", "server", "run", "call", "approval", "remembered", "provider", "switch", "language", "path"
]
_ALWAYS = "--always"
_KEPT = f"{MAX_STATES} cells, or {MAX_BYTES // 1_000_000} MB of their variables"
_SHELL_WORDS = {"exit": "quit", "quit": "quit", "help": "help"}  # typed by habit, without a colon
LANGUAGES: tuple[Language, ...] = ("javascript", "typescript")


class Command(NamedTuple):
    """A command: how to type its argument, what it does, and what its argument is."""

    name: str
    usage: str
    about: str
    argument: Argument = ""


COMMANDS = (
    Command("help", "[COMMAND]", "list the commands and keys, or explain one command", "command"),
    Command("tools", "[TEXT]", "list what a cell can reach, or what has this text in its id"),
    Command("search", "QUERY", "rank tools as tools.search does in a cell"),
    Command("describe", "TOOL", "show a tool: what it does, how to call it, what it takes", "tool"),
    Command("types", "[SERVER]", "print the declarations of the MCP servers", "server"),
    Command("wait", "[RUN]", "go on with a run that waits, the latest without an id", "run"),
    Command(
        "approve", "[--always] [CALL]", "run calls that await approval; --always: their tools from now on", "approval"
    ),
    Command("deny", "[CALL]", "refuse calls that await approval", "call"),
    Command("ask", "[TOOL]", "ask again about a tool that was approved always, or about all of them", "remembered"),
    Command("abort", "[RUN]", "end a run that waits", "run"),
    Command("trace", "[RUN]", "show what happened in a run, the last one without an id", "run"),
    Command("stats", "", "show the counts of this session"),
    Command("payload", "[PROVIDER]", "show the request that a model would get", "provider"),
    Command("undo", "", f"go back to the variables before the last cell; at most {_KEPT}"),
    Command("redo", "", "take an undo back"),
    Command("fresh", "[on|off]", "give each cell its own VM, as the model has it, or let variables live on", "switch"),
    Command("language", "[NAME]", "read cells as javascript or typescript", "language"),
    Command("load", "FILE", "run a file as one cell", "path"),
    Command("save", "FILE [CELLS]", "write the last cell and what it needs, or cells such as 1-3 5, or all", "path"),
    Command("save!", "FILE [CELLS]", "as :save, and replace the file that is there", "path"),
    Command("quit", "", "leave; Ctrl-D does too"),
)

KEYS = (
    ("Enter", "run a whole input; go on with half of one; once more, run it whatever the parser says"),
    ("Alt-Enter", "a new line"),
    ("Tab", "complete"),
    ("Up, Down, Ctrl-R", "earlier inputs, also of earlier sessions"),
    ("Ctrl-X Ctrl-E", "edit in $EDITOR"),
    ("Ctrl-C", "clear the input, or abort the cell that runs"),
    ("Ctrl-D", "leave"),
)


NAMES = (
    ("await tools.NAME(input)", "call a tool; tools.search(text), tools.describe(id), tools.call(id, input)"),
    ("await MCP.SERVER.TOOL(input)", "call an MCP tool; ALL_TOOLS leaves these out, :search finds them"),
    ("await API.read(path)", "read a server's declarations, as :types does; API.list() names them"),
    ("text(value), json(value)", "put something out; a trailing expression prints by itself"),
    ("_", "the last value"),
)


class Leave(Exception):
    """The person wants to leave."""


class Desk(NamedTuple):
    """What the commands work with; `abort` ends a run that waits."""

    driver: Driver
    interrupts: Interrupts
    evaluator: Evaluator
    record: Record
    screen: Screen
    lookup: Lookup
    judge: Judge
    abort: Callable[[str], object]


Handler = Callable[[str], Awaitable[CodeModeResult | None]]


class Commands:
    """Carries out what follows a colon."""

    def __init__(self, desk: Desk) -> None:
        """Work at this desk."""
        self._desk = desk
        lookup = desk.lookup
        plain: dict[str, Callable[[str], None]] = {
            "help": self._help, "tools": lookup.tools, "search": lookup.search, "describe": lookup.describe,
            "types": lookup.types, "abort": self._abort, "trace": self._trace, "stats": self._stats,
            "payload": lookup.payload, "ask": self._ask, "undo": self._undo, "redo": self._redo, "fresh": self._fresh,
            "language": self._language, "quit": self._quit,
        }  # fmt: skip
        self._handlers: dict[str, Handler] = {name: self._plain(handler) for name, handler in plain.items()}
        self._handlers |= {"wait": self._wait, "approve": self._approve, "deny": self._deny}
        self._handlers |= {"load": self._load, "save": self._save, "save!": self._replace}

    async def run(self, line: str) -> CodeModeResult | None:
        """Carry out `:name argument`; return the result of a cell that ran for it.

        Raises:
            InvalidInput: There is no such command, or its argument means nothing.
            Leave: It is `:quit`.

        Contract: repl:commands:table
        """
        name, _, argument = line.removeprefix(":").strip().partition(" ")
        return await self._handlers[find_command(name).name](argument.strip())

    def meant(self, cell: str) -> str | None:
        """Return the command that is meant by a cell that is only `exit`, `quit` or `help`, if no cell declared that.

        Contract: repl:commands:habits
        """
        word = cell.strip().removesuffix("()")
        return None if word in self._desk.evaluator.states.current.names else _SHELL_WORDS.get(word)

    def words(self, argument: Argument) -> Iterator[Word]:
        """Yield what fits an argument, as far as it is known here."""
        waiting = self._desk.evaluator.waiting
        match argument:
            case "command":
                yield from (Word(command.name, command.about) for command in COMMANDS)
            case "run":
                yield from (Word(run_id, counted(len(each.pending), "open call")) for run_id, each in waiting.items())
            case "remembered":
                yield from map(Word, sorted(self._desk.driver.approvals.always))
            case "approval":
                yield Word(_ALWAYS, "and their tools' later calls, until you leave")
                yield from self.words("call")
            case "call":
                yield from (Word(call.id, call.tool_id or "") for each in waiting.values() for call in _asked(each))
            case "provider":
                yield from map(Word, ("openai", "openai-responses", "anthropic", "gemini"))
            case "switch":
                yield from map(Word, ("on", "off"))
            case "language":
                yield from map(Word, LANGUAGES)

    def _plain(self, handler: Callable[[str], None]) -> Handler:
        """Turn a function that awaits nothing into a handler, which Ctrl-C ends."""

        async def handle(argument: str) -> None:
            with self._desk.interrupts.raising():
                handler(argument)

        return handle

    # ---- about the session ----

    def _help(self, argument: str) -> None:
        screen = self._desk.screen
        if argument:
            command = find_command(argument.removeprefix(":"))
            screen.note(f":{command.name} {command.usage}".rstrip())
            screen.note(f"  {command.about}")
            return
        rows = [(f":{command.name} {command.usage}".rstrip(), command.about) for command in COMMANDS]
        screen.table(("command", "does"), rows)
        screen.table(("key", "does"), KEYS)
        screen.table(("in a cell", "does"), NAMES)

    def _trace(self, argument: str) -> None:
        run_id = argument or self._desk.record.last_run
        if not run_id:
            raise InvalidInput("no cell has run yet, so there is nothing to trace")
        if not self._desk.record.knows(run_id):
            raise InvalidInput(f'no run "{run_id}" was seen here; codemode trace shows runs of other processes')
        self._desk.screen.trajectory(to_json(self._desk.record.trajectory(run_id)))

    def _stats(self, _argument: str) -> None:
        last = self._desk.evaluator.last
        if last is None:
            raise InvalidInput("no cell has run yet, so there is nothing to count")
        self._desk.screen.telemetry(last.telemetry)

    def _quit(self, _argument: str) -> None:
        raise Leave

    # ---- runs that wait ----

    async def _wait(self, argument: str) -> CodeModeResult | None:
        return await self._desk.driver.go_on(argument or self._latest(), Decision({}))

    async def _approve(self, argument: str) -> CodeModeResult | None:
        words = argument.split()
        return await self._decide([word for word in words if word != _ALWAYS], True, always=_ALWAYS in words)

    async def _deny(self, argument: str) -> CodeModeResult | None:
        return await self._decide(argument.split(), False)

    async def _decide(self, wanted: list[str], approved: bool, *, always: bool = False) -> CodeModeResult | None:
        """Decide of the calls of these ids, which one run has; without an id, of all calls of the latest run.

        Contract: repl:approvals:always
        """
        driver = self._desk.driver
        for run_id, waiting in reversed(self._desk.evaluator.waiting.items()):
            asked = {call.id: call for call in _asked(waiting)}
            chosen = wanted or list(asked)
            if asked and set(chosen) <= set(asked):
                if always:
                    driver.approvals.remember({asked[call_id].tool_id or "" for call_id in chosen})
                decided = dict.fromkeys(chosen, approved)
                return await driver.go_on(run_id, driver.approvals.decision(decided, list(asked.values())))
        raise InvalidInput(f'no call "{" ".join(wanted)}" awaits approval' if wanted else "no call awaits approval")

    def _ask(self, argument: str) -> None:
        always = self._desk.driver.approvals.always
        if not always:
            raise InvalidInput("every tool that needs approval is asked about already")
        if argument and argument not in always:
            raise InvalidInput(f'"{argument}" was not approved always; {", ".join(sorted(always))} was')
        again = {argument} if argument else set(always)
        always -= again
        self._desk.screen.note(f"{', '.join(sorted(again))} will be asked about again")

    def _abort(self, argument: str) -> None:
        run_id = argument or self._latest()
        self._desk.abort(run_id)
        self._desk.evaluator.forget(run_id)
        self._desk.screen.note(f"{run_id} is aborted")

    def _latest(self) -> str:
        waiting = self._desk.evaluator.waiting
        if not waiting:
            raise InvalidInput("no run of this session waits")
        return next(reversed(waiting))

    # ---- variables ----

    def _undo(self, _argument: str) -> None:
        left = self._desk.evaluator.states.undo()
        if left is None:
            gone = f": no more than {_KEPT} can be undone"
            raise InvalidInput("there is no cell to undo" + (gone if self._desk.evaluator.states.has_let_go else ""))
        self._desk.screen.note(f"variables are as they were before cell [{left.number}]; what tools did stays done")

    def _redo(self, _argument: str) -> None:
        state = self._desk.evaluator.states.redo()
        if state is None:
            raise InvalidInput("nothing was undone")
        self._desk.screen.note(f"variables are as they were after cell [{state.number}]")

    def _fresh(self, argument: str) -> None:
        evaluator = self._desk.evaluator
        if argument not in ("", "on", "off"):
            raise InvalidInput(f'"{argument}" is neither on nor off')
        evaluator.fresh = argument == "on" if argument else not evaluator.fresh
        self._desk.screen.note(
            "each cell has its own VM now; `return` gives its value. :fresh off goes back to the variables"
            if evaluator.fresh
            else "variables live on from cell to cell"
        )

    def _language(self, argument: str) -> None:
        evaluator = self._desk.evaluator
        language = next((each for each in LANGUAGES if argument and each.startswith(argument.lower())), None)
        if argument and language is None:
            raise InvalidInput(f'"{argument}" is no language of cells; they are javascript and typescript')
        evaluator.language = language or evaluator.language
        self._desk.screen.note(f"cells are read as {evaluator.language}")

    # ---- files ----

    async def _load(self, argument: str) -> CodeModeResult | None:
        path = _path(argument)
        text = read_file(path)
        language: Language = "typescript" if path.suffix in (".ts", ".mts", ".cts") else "javascript"
        verdict = await self._desk.judge.judge(text, language)
        return await self._desk.driver.run(text, verdict, language)

    async def _save(self, argument: str) -> None:
        """Write cells as one for `codemode run`; a file that is there already stays.

        Contract: repl:save:needed, repl:save:runs, repl:save:refuses
        """
        try:
            await self._write(argument, replace=False)
        except FileExistsError:
            file = argument.partition(" ")[0]
            raise InvalidInput(f'"{file}" is there already; :save! {argument} replaces it') from None

    async def _replace(self, argument: str) -> None:
        await self._write(argument, replace=True)

    async def _write(self, argument: str, *, replace: bool) -> None:
        name, _, asked = argument.partition(" ")
        path, cells = _path(name), choose(self._desk.evaluator.completed, asked.strip())
        write_file(path, await program(cells, self._desk.judge), replace=replace)
        numbers = ", ".join(cell.name for cell in cells)
        self._desk.screen.note(f"{path} holds {numbers}; codemode run {path}")
        if twice := declared_twice(cells):
            self._desk.screen.note(f"more than one of these cells declares {', '.join(twice)}; give each its own name")


def find_command(name: str) -> Command:
    """Return the command of this name, or the only one that begins with it; one that ends with `!` is never meant.

    Raises:
        InvalidInput: There is none, or several.
    """
    begun = [each for each in COMMANDS if each.name == name or each.name.removesuffix("!").startswith(name)]
    begun = [each for each in begun if each.name.endswith("!") == name.endswith("!")]
    exact = [command for command in begun if command.name == name]
    if len(begun) == 1 or exact:
        return (exact or begun)[0]
    if begun and name:
        raise InvalidInput(f":{name} means {' or '.join(f':{each.name}' for each in begun)}")
    near = did_you_mean(f":{name}", [f":{command.name}" for command in COMMANDS]).replace('"', "")
    raise InvalidInput(f"there is no command :{name}.{near} :help lists them")


def _asked(waiting: Waiting) -> list[PendingCall]:
    return [call for call in waiting.pending if call.state == "awaiting_approval"]


def _path(argument: str) -> Path:
    if not argument:
        raise InvalidInput("give the name of a file")
    return Path(argument).expanduser()
