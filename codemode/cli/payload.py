"""`debug-payload`: the request that a model would get of this manifest, and what code mode saves of it.

What the command needs beyond its options is imported inside it: help must come at once.
"""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from codemode.cli.completion import complete_words
from codemode.cli.options import JsonFlag, Manifest, Refresh, examples, takes
from codemode.cli.status import ExitStatus

if TYPE_CHECKING:
    from codemode.cli.terminal import Terminal


class PayloadOptions(NamedTuple):
    """Options of `codemode debug-payload`."""

    provider: Annotated[
        str,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="openai, openai-responses, anthropic or gemini.",
            autocompletion=complete_words("openai", "openai-responses", "anthropic", "gemini"),
        ),
    ] = "openai"
    level: Annotated[
        str | None,
        typer.Option(
            "--level",
            metavar="LEVEL",
            help="summary, tools or full-redacted; tools when left out.",
            autocompletion=complete_words("summary", "tools", "full-redacted"),
        ),
    ] = None
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model that the request names.")] = None
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="What the user says in it.")] = "Hello!"
    agent: Annotated[str, typer.Option(metavar="ID", help="The agent whose settings hold.")] = "main"
    direct: Annotated[bool, typer.Option("--direct", help="Compare with exposing the same tools directly.")] = False
    raw: Annotated[bool, typer.Option("--raw", help="As a raw model call.")] = False
    disable_tools: Annotated[bool, typer.Option("--disable-tools", help="As a request with tools disabled.")] = False
    no_model_tools: Annotated[
        bool, typer.Option("--no-model-tools", help="As for a model that does not support tools.")
    ] = False
    manifest: Manifest = None
    refresh: Refresh = False
    json: JsonFlag = False


@takes(PayloadOptions)
def debug_payload(terminal: "Terminal", options: PayloadOptions) -> ExitStatus:
    """Show the exact request that a model would get: with code mode on, it offers exec and wait.

    With --json the request body itself is printed, redacted.
    """
    from codemode.cli.listing import load_toolbox
    from codemode.cli.requests import Asked, show_comparison, show_request
    from codemode.config import ModelRequest
    from codemode.payload.dump import parse_level
    from codemode.payload.providers import parse_provider

    terminal.json = options.json
    provider = parse_provider(options.provider)
    level = parse_level(options.level) if options.level else None
    box = load_toolbox(terminal, options.manifest, refresh=options.refresh, agent=options.agent)
    if options.direct:
        show_comparison(terminal, box, provider)
    else:
        gate = ModelRequest(not options.no_model_tools, options.disable_tools, options.raw)
        show_request(terminal, box, Asked(provider, level, options.model or provider.model, options.prompt, gate))
    return ExitStatus.OK


COMMANDS = (
    (
        debug_payload,
        examples(
            "codemode debug-payload",
            "codemode debug-payload --provider anthropic --json",
            "codemode debug-payload --provider gemini --level full-redacted",
            "codemode debug-payload --direct",
        ),
    ),
)
