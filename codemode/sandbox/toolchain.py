"""From the text of a cell to a script that the engine may run, or the reason why not.

Syntax, source form, module guard and TypeScript are decided here, by parsers that run in VMs
of their own (`assets/acorn.js`, `assets/sucrase.js`): parsing hostile source is hostile work.
Most cells need none of them. The engine itself, asked to compile and not to run, says whether
a body is well formed; only where that cannot decide is a parser asked, and only a TypeScript
cell loads the TypeScript one. Called by `cell.py`; nothing here evaluates a cell.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from codemode.core.errors import CodeModeError, GuestError, ModuleAccessDenied, TransformFailed
from codemode.core.names import GUEST_GLOBALS
from codemode.core.types import Json, Language
from codemode.sandbox.image import Workshop
from codemode.sandbox.toolvm import ToolVm


class Place(NamedTuple):
    """A position in a text; line and column count from 1."""

    line: int
    column: int


class Fault(NamedTuple):
    """Why the engine does not compile a script; its column counts UTF-8 bytes, as the engine does."""

    message: str
    place: Place


class Prepared(NamedTuple):
    """A cell that may run, and what leads a position in its script back to the author's source.

    `script` evaluates to the promise of the cell's value. `shift` is how many bytes stand before
    the author's text on line 1. The positions of a resumed cell need no script.
    """

    script: str
    source: str
    language: Language
    shift: int
    is_script: bool = False  # a global script, as in the REPL: its promise gives `{value}`

    @property
    def filename(self) -> str:
        """The name by which errors call the cell."""
        return _filename(self.language)


class CellSyntaxError(GuestError):
    """JavaScript that does not parse. It has no code, and nothing of the cell ran."""

    phase = "transform"


Compile = Callable[[str], Fault | None]


class Parser(Protocol):
    """A script of ours that answers questions in a VM of its own, JSON for JSON."""

    def ask(self, name: str, request: Json, deadline: float) -> Json:
        """Call one of its functions."""

    def make_spare(self) -> None:
        """Do beforehand what the next question would wait for."""


class _Shape(NamedTuple):
    """A cell's code and what stands around it, so that it gives its value."""

    head: str
    code: str
    tail: str

    def within(self, wrapper: tuple[str, str]) -> str:
        return f"{wrapper[0]}{self.head}{self.code}{self.tail}{wrapper[1]}"


class _Draft(NamedTuple):
    """A cell on its way: the author's source, and the JavaScript that its types left behind."""

    source: str
    language: Language
    code: str
    deadline: float


# Brackets that end one wrapper early do not fit the other: `})(); evil(); (async () => {`.
_CALLED = ("(async () => {", "\n})()")
_DECLARED = ("async function cell(){", "\n}")
_RETURN = "return ("

_LEAD = r"(?>[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*[\s\S]*?\*/)*+"
_KEYWORDS = "const|var|if|for|while|do|switch|try|throw|return|break|continue|debugger|with"
_GUARDED = re.compile(r"\b(?:import|export|require|module|exports)\b|\\u")
_BLANK = re.compile(_LEAD)
_STATEMENT = re.compile(rf"{_LEAD}(?:(?:{_KEYWORDS})(?![\w$\\])|let\s+(?!in\b|instanceof\b)[\w$\[{{])")
_AMBIGUOUS = re.compile(rf"{_LEAD}(?:[({{]|async\b|function\b|class\b|[\w$]++\s*+=>|\Z)")


def build_toolchain(workshop: Workshop) -> "Toolchain":
    """Return the toolchain whose parsers are images of the workshop, each loaded when first asked."""

    def parser(asset: str, *names: str) -> ToolVm:
        return ToolVm(workshop.machine(), workshop.reserve(asset, f"[{','.join(names)}]"), names)

    return Toolchain(parser("acorn.js", "inspect"), parser("sucrase.js", "transform", "mapPositions"))


class Toolchain:
    """Prepares cells, and leads positions back to their source."""

    def __init__(self, syntax: Parser, typescript: Parser) -> None:
        """Use these two parsers; neither is asked before a cell needs it."""
        self._syntax = syntax
        self._typescript = typescript

    def prepare(self, source: str, language: Language, compiles: Compile, deadline: float) -> Prepared:
        """Check a cell and return the script that runs it.

        A cell that is one single expression completes with its value, a sole function is called,
        and otherwise only `return` gives a value.

        Args:
            source: The author's text.
            language: How to read it.
            compiles: Compiles a script without running it, and says what is wrong with it.
            deadline: The moment of `time.monotonic` at which parsing is given up.

        Raises:
            CellSyntaxError: The cell is not JavaScript.
            TransformFailed: The cell is not TypeScript, or uses what cannot be stripped.
            ModuleAccessDenied: The cell asks for a module.

        Contract: toolchain:form:expression, toolchain:form:function, toolchain:form:statements,
        toolchain:structure:escape, toolchain:guard:denied, toolchain:typescript:lines
        """
        code = source if language == "javascript" else self._strip(source, deadline)
        draft = _Draft(source, language, code, deadline)
        guess = _guess_form(code)
        shape = _compiled_expression(code, compiles) if guess == "expression" else None
        if shape is None:
            shape = self._parsed_shape(draft) if guess == "unclear" else _Shape("", code, "")
            fault = _check(shape, _CALLED, compiles) or _check(shape, _DECLARED, compiles)
            if fault is not None:
                raise self._explained(draft, fault)
        shift = len(_CALLED[0]) + len(shape.head)
        return Prepared(shape.within(_CALLED), source, language, shift)

    def prepare_script(self, source: str, language: Language, compiles: Compile, deadline: float) -> Prepared:
        """Check a cell of the REPL and return it as a global script, whose declarations live on.

        A name may be declared again in a later cell. The value is that of the last expression. A
        cell that returns cannot be a script: it runs as the model's cells do.

        Raises:
            CellSyntaxError: The cell is not JavaScript, or declares one of our globals.
            TransformFailed: The cell is not TypeScript, or uses what cannot be stripped.
            ModuleAccessDenied: The cell asks for a module.

        Contract: toolchain:repl:script
        """
        code = source if language == "javascript" else self._strip(source, deadline)
        draft = _Draft(source, language, code, deadline)
        answer = self.inspect(code, ["guard", "names", "script"], deadline)
        self._raise_refusal(draft, answer)
        for name in answer["names"]:
            if name in GUEST_GLOBALS:
                raise CellSyntaxError(f"SyntaxError: {name} is one of codemode's own globals; choose another name")
        if answer["returns"]:
            return self.prepare(source, language, compiles, deadline)
        is_object = answer["form"] == "expression" and code.lstrip().startswith("{")
        script = f"({code}\n)" if is_object else answer["script"]
        return Prepared(script, source, language, int(is_object), is_script=True)

    def inspect(self, source: str, wants: list[str], deadline: float) -> dict[str, Json]:
        """Ask the syntax parser about a text; the REPL asks whether an input is complete.

        Returns:
            `{"error": {"message", "line", "column", "incomplete", "typescript"}}`, or
            `{"denied": {"what", "line", "column"}}`, or `{"form", "tail", "names"}` and what else
            was wanted; `guest/acorn.js` says it in full.

        Contract: toolchain:repl:complete, toolchain:repl:names
        """
        answer: dict[str, Json] = self._syntax.ask("inspect", {"source": source, "wants": wants}, deadline)
        return answer

    def make_ready(self) -> None:
        """Do beforehand what the next question to a parser that was asked before would wait for."""
        self._syntax.make_spare()
        self._typescript.make_spare()

    def locate(self, prepared: Prepared, places: list[Place], deadline: float) -> list[Place]:
        """Lead positions in a cell's script, as the engine reports them, to the author's source.

        Args:
            prepared: The cell; its script is not needed.
            places: Lines of the script, columns in UTF-8 bytes.
            deadline: The moment of `time.monotonic` at which a TypeScript cell's map is given up.

        Returns:
            The places in the source, columns in characters, in the same order.

        Contract: toolchain:errors:position, toolchain:typescript:position
        """
        shift = prepared.shift
        inner = [Place(line, max(1, column - shift) if line == 1 else column) for line, column in places]
        found = self._in_source(prepared.source, prepared.language, inner, deadline, ran=True)
        ours = [line == 1 and column <= shift for line, column in places]  # what stands around a sole expression
        first = _first_word(prepared.source)
        return [first if is_ours else place for is_ours, place in zip(ours, found, strict=True)]

    # ---- the parsers ----

    def _strip(self, source: str, deadline: float) -> str:
        """Return the JavaScript of a TypeScript cell, line for line."""
        answer = self._typescript.ask("transform", {"source": source}, deadline)
        if "error" in answer:
            raise TransformFailed(_located(answer["error"]["message"], "typescript", _place_of(answer["error"])))
        if "denied" in answer:
            raise _denied(answer["denied"]["what"], "typescript", _place_of(answer["denied"]))
        code: str = answer["code"]
        return code

    def _parsed_shape(self, draft: _Draft) -> _Shape:
        """Let acorn say which form the cell has, and whether it asks for a module."""
        code = draft.code
        answer = self.inspect(code, ["guard"], draft.deadline)
        self._raise_refusal(draft, answer)
        if answer["form"] == "statements":
            return _Shape("", code, "")
        sole = code[: len(code) - answer["tail"]]
        return _Shape(_RETURN, sole, "\n)" if answer["form"] == "expression" else "\n)()")

    # ---- errors and positions ----

    def _raise_refusal(self, draft: _Draft, answer: dict[str, Json]) -> None:
        if "error" in answer:
            raise self._syntax_error(draft, answer["error"])
        if "denied" in answer:
            place = self._from_code(draft, _place_of(answer["denied"]))
            raise _denied(answer["denied"]["what"], draft.language, place)

    def _explained(self, draft: _Draft, fault: Fault) -> CodeModeError:
        """Return the error of code that does not compile: in acorn's words, where it agrees."""
        error = self.inspect(draft.code, [], draft.deadline).get("error")
        if error is not None:
            return self._syntax_error(draft, error)
        place = self._in_source(draft.source, draft.language, [fault.place], draft.deadline)[0]
        return _syntax_error(fault.message, draft.language, place)

    def _syntax_error(self, draft: _Draft, error: dict[str, Json]) -> CodeModeError:
        place = self._from_code(draft, _place_of(error))
        return _syntax_error(error["message"], draft.language, place, is_typed=bool(error.get("typescript")))

    def _from_code(self, draft: _Draft, place: Place) -> Place:
        """Lead a position in the stripped code, counted in characters, to the source."""
        if draft.language == "javascript":
            return place
        line = draft.code.split("\n")[place.line - 1]
        in_bytes = Place(place.line, len(_encode(line[: place.column - 1])) + 1)
        return self._in_source(draft.source, draft.language, [in_bytes], draft.deadline)[0]

    def _in_source(
        self, source: str, language: Language, places: list[Place], deadline: float, *, ran: bool = False
    ) -> list[Place]:
        """Lead positions in the code, counted in bytes, to the source; those of code that `ran` may be one short."""
        if language == "javascript":
            return _in_characters(source, [_at_name(source, place) for place in places] if ran else places)
        request = {"source": source, "positions": places, "ran": ran}
        return [Place(*place) for place in self._typescript.ask("mapPositions", request, deadline)["positions"]]


def _guess_form(code: str) -> Literal["statements", "expression", "unclear"]:
    """Read the form off the first word where that is certain; "expression" is a guess."""
    if _GUARDED.search(code):
        return "unclear"
    if _STATEMENT.match(code):
        return "statements"
    if _AMBIGUOUS.match(code) or _may_end_in_comment(code.rstrip()):
        return "unclear"
    return "expression"


def _may_end_in_comment(code: str) -> bool:
    """Say whether the last line could be a comment's; not by a regex, which begins anew at each of a thousand URLs."""
    return code.endswith("*/") or "//" in code[code.rfind("\n") + 1 :]


def _compiled_expression(code: str, compiles: Compile) -> _Shape | None:
    """Return the shape of a sole expression: balanced as statements, and compiling in parentheses."""
    shape = _Shape(_RETURN, code.rstrip(" \t\r\n;"), "\n)")
    as_statement = shape._replace(head="", tail="")
    compiled = _check(shape, _CALLED, compiles) is None and _check(as_statement, _DECLARED, compiles) is None
    return shape if compiled else None


def _check(shape: _Shape, wrapper: tuple[str, str], compiles: Compile) -> Fault | None:
    """Compile a shape in a wrapper; a fault's position is one in the shape's code."""
    fault = compiles(shape.within(wrapper))
    if fault is None or fault.place.line > 1:
        return fault
    shift = len(wrapper[0]) + len(shape.head)
    return fault._replace(place=Place(1, max(1, fault.place.column - shift)))


def _filename(language: Language) -> str:
    return "cell.ts" if language == "typescript" else "cell.js"


def _located(message: str, language: Language, place: Place) -> str:
    return f"{message} ({_filename(language)}:{place.line}:{place.column})"


def _syntax_error(message: str, language: Language, place: Place, *, is_typed: bool = False) -> CodeModeError:
    if language == "typescript":
        return TransformFailed(_located(message, language, place))
    hint = "; if it is TypeScript, use --language typescript" if is_typed else ""
    return CellSyntaxError(_located(f"SyntaxError: {message}", language, place) + hint)


def _denied(what: str, language: Language, place: Place) -> ModuleAccessDenied:
    message = _located(f"a cell has no modules, so `{what}` is denied", language, place)
    return ModuleAccessDenied(f"{message}; call tools through `tools` and `MCP`, and hand values out with `return`")


def _place_of(answer: dict[str, Json]) -> Place:
    return Place(answer["line"], answer["column"])


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _at_name(source: str, place: Place) -> Place:
    """Mend a place in the first line, where the engine counts the columns of calls and of some others from 0.

    What it names begins with the place, then, or behind it: a place inside of a name is exact.
    """
    line, column = place
    char = _encode(source[: source.find("\n") + 1 or None])[column - 1 : column]
    is_exact = line > 1 or char.isalnum() or char in b"_$" or char >= b"\x80"
    return place if is_exact else Place(line, column + 1)


def _first_word(source: str) -> Place:
    """Return where the author's text begins, behind white space and comments."""
    lead = _BLANK.match(source)
    before = source[: lead.end()] if lead else ""
    return Place(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _in_characters(source: str, places: list[Place]) -> list[Place]:
    """Turn columns in bytes into columns in characters; a place behind the text is its end."""
    lines = source.split("\n")
    found: list[Place] = []
    for line, column in places:
        number = min(line, len(lines))
        whole = _encode(lines[number - 1])
        before = whole if number < line else whole[: column - 1]
        found.append(Place(number, len(before.decode("utf-8", "replace")) + 1))
    return found
