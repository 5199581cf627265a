"""Options as data: a command's options are the fields of a tuple, shared ones are written once.

typer reads a function's signature; `takes` builds that signature from a `NamedTuple`, so that a
command gets one value instead of a dozen arguments, and so that the limit flags come from the
one table of limits.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from codemode.cli.status import ExitStatus
from codemode.core.errors import InvalidInput
from codemode.core.limits import LIMITS, Limit

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal

Options = TypeVar("Options", bound=tuple[Any, ...])  # a NamedTuple
LimitFlags = Mapping[str, int]

Manifest = Annotated[
    str | None,
    typer.Option("-m", "--manifest", metavar="FILE", help="The manifest; by default the nearest codemode.toml upward."),
]
Session = Annotated[str, typer.Option(metavar="NAME", help="The session that groups the runs.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing on stderr but errors.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Tell each step on stderr.")]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="List the tools of MCP servers anew instead of from the cache.")
]


def takes(kind: type[Options]) -> Callable[[Callable[["Terminal", Options], ExitStatus]], Callable[..., ExitStatus]]:
    """Turn a function of the terminal and one tuple of options into a function for typer.

    A field named `limits` stands for all the limit flags and gets `{"timeout_ms": 500}` with
    what was given. `--quiet` and `--verbose` are options of every command, among its fields or not.
    A file or run of no name is refused: it is a script's variable that is not set, and `--replay` without
    a file would call real tools.

    Contract: cli:quiet:errors-only, cli:usage:no-name
    """
    hints = get_type_hints(kind, include_extras=True)
    defaults: Mapping[str, Any] = getattr(kind, "_field_defaults", {})
    own = [
        _parameter(name, hint, defaults.get(name, inspect.Parameter.empty))
        for name, hint in hints.items()
        if name != "limits"
    ]
    flags = [_limit_flag(limit) for limit in LIMITS] if "limits" in hints else []
    spoken = [_parameter(name, kind_, False) for name, kind_ in _SPEECH.items() if name not in hints]

    named = {name: shown for name, hint in hints.items() if (shown := _name_of(hint))}

    def decorate(function: Callable[["Terminal", Options], ExitStatus]) -> Callable[..., ExitStatus]:
        def command(ctx: typer.Context, **given: Any) -> ExitStatus:
            fields = {name: given.pop(name) for name in hints if name != "limits"}
            for name, shown in named.items():
                refuse_no_name(shown, fields[name])
            ctx.obj.speak(*(given.pop(name) if name in given else fields[name] for name in _SPEECH))
            if flags:
                fields["limits"] = {name: value for name, value in given.items() if value is not None}
            return function(ctx.obj, kind(**fields))

        context = inspect.Parameter("ctx", _KEYWORD, annotation=typer.Context)
        command.__signature__ = inspect.Signature([context, *own, *flags, *spoken])  # type: ignore[attr-defined]
        command.__doc__ = function.__doc__
        command.__name__ = function.__name__
        return command

    return decorate


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SPEECH = {"quiet": Quiet, "verbose": Verbose}


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, _KEYWORD, annotation=hint, default=default)


def _name_of(hint: Any) -> str:
    """Return what an option or argument that names one file or run is called on the command line, else ""."""
    about: Any = next(iter(getattr(hint, "__metadata__", ())), None)
    if getattr(about, "metavar", None) not in ("FILE", "RUN"):
        return ""
    names = (about.default, *(about.param_decls or ()))  # typer takes the first name for a default
    return str(next((each for each in names if str(each).startswith("--")), about.metavar))


def refuse_no_name(shown: str, value: object) -> None:
    """Refuse the empty text where a file or run is to be named.

    Raises:
        InvalidInput: It is the empty text.
    """
    if value == "":
        raise InvalidInput(f"{shown} is given without a name; name one, or leave it out")


def say_clamped(terminal: "Terminal", given: LimitFlags) -> None:
    """Say on stderr which limit flags were out of range and what holds instead, one line for each.

    Contract: cli:run:clamped
    """
    for limit in LIMITS:
        found = given.get(limit.name)
        if found is not None and not limit.low <= found <= limit.high:
            bound, used = ("least", limit.low) if found < limit.low else ("most", limit.high)
            terminal.note(f"{_flag_of(limit)} {found} is out of range: {used}, the {bound} there is, is used")


def _flag_of(limit: Limit) -> str:
    return "--" + limit.name.replace("_", "-")


def _limit_flag(limit: Limit) -> inspect.Parameter:
    flag = _flag_of(limit)
    words = f"{limit.why[0].upper()}{limit.why[1:]}; {limit.low:,} to {limit.high:,}."
    option = typer.Option(flag, metavar="N", help=words)
    return _parameter(limit.name, Annotated[int | None, option], None)


def examples(*commands: str) -> str:
    """Return the epilog of a command's help: what one would type."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])
