"""The commands for typer: each is loaded when it is asked for, and its help is painted on a terminal."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from codemode.cli.overview import ROOMS, overview, paint


class PaintedCommand(TyperCommand):
    """A command whose help has headings that one sees, and whose refusals say whose they are."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; what typer's parser refuses has no context by itself."""
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if getattr(error, "ctx", self) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def get_help(self, ctx: Any) -> str:
        """Return the help, painted where stdout is a terminal."""
        return _painted(super().get_help(ctx), ctx)


class PaintedGroup(TyperGroup):
    """A group of commands whose help has headings that one sees."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, painted where stdout is a terminal."""
        return _painted(super().get_help(ctx), ctx)


class LazyGroup(TyperGroup):
    """All commands of `codemode`, by the names of the overview; a room is loaded for the first command of it.

    Contract: cli:start:one-room
    """

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer names it
        """Return the names, in the order of the overview."""
        return list(ROOMS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # typer names it
        """Return a command, built now if this is its first use; None if there is none of this name."""
        if cmd_name not in self.commands and cmd_name in ROOMS:
            self.commands[cmd_name] = _build(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is asked for; for an unknown name all must be there to find the nearest."""
        if args and args[0] not in ROOMS:
            for name in ROOMS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: Any) -> str:
        """Return the overview, painted where stdout is a terminal."""
        return _painted(overview(), ctx)


def _build(name: str) -> Any:
    """Load the room of a command and let typer read its signature."""
    room = import_module(f"codemode.cli.{ROOMS[name]}")
    if hasattr(room, "app"):
        return typer.main.get_command(room.app)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    function, epilog = next(entry for entry in room.COMMANDS if entry[0].__name__.replace("_", "-") == name)
    alone.command(name, epilog=epilog, cls=PaintedCommand)(function)
    return typer.main.get_command(alone)


def _painted(page: str, ctx: Any) -> str:
    terminal = ctx.obj
    return paint(page, terminal.coloured) if terminal.styled_out else page
