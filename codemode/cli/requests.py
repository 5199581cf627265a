"""Model requests as `debug-payload` shows them: built as for sending, then dumped without secrets."""

from typing import NamedTuple

from codemode.cli.show import show_table, show_value
from codemode.cli.terminal import Terminal
from codemode.composition import Toolbox
from codemode.config import Activation, ModelRequest, decide_activation
from codemode.core.types import Json, VisibleTool
from codemode.payload.closed import offered_tools
from codemode.payload.dump import PROMPT_WARNING, Level, dump_body
from codemode.payload.messages import ChatRequest, UserMessage
from codemode.payload.providers import Provider, build_direct_tools, build_payload
from codemode.payload.sizes import ESTIMATE, Comparison, Size, measure
from codemode.render.words import counted, size
from codemode.surface import build_surface


class Asked(NamedTuple):
    """What to show: whose request, how much of it (None: the level of the form), and what is in it."""

    provider: Provider
    level: Level | None
    model: str
    prompt: str
    gate: ModelRequest


def show_request(terminal: Terminal, box: Toolbox, asked: Asked) -> None:
    """Show the request of a catalog: exec and wait where code mode is active, else its tools as they are.

    With `--json` it is the body itself, or what an explicit level leaves of it.

    Contract: cli:payload:body, cli:payload:levels, cli:payload:gate
    """
    activation = _activation(box, asked.gate)
    tools = _surface(box) if activation.active else _direct(box, asked)
    request = ChatRequest(asked.model, (UserMessage(asked.prompt),), tools)
    body = build_payload(asked.provider, request, activation.active)
    if terminal.json:
        level: Level = "summary" if asked.level == "summary" else "full-redacted"
        shown = dump_body(body, level, box.redactor) if asked.level else box.redactor.value(body)
        terminal.write_json(shown)
        return
    level = asked.level or "tools"
    show_value(terminal, dump_body(body, level, box.redactor))
    terminal.note(activation.reason)
    terminal.note(f"{asked.provider.name}: {counted(len(offered_tools(body)), 'tool')}, {_size(measure(body))}")
    if level == "full-redacted":
        terminal.note(f"warning: {PROMPT_WARNING}")


def show_comparison(terminal: Terminal, box: Toolbox, provider: Provider) -> None:
    """Show how large the tools of a request are with code mode and with direct exposure.

    Contract: cli:payload:direct
    """
    surface, direct = _surface(box), build_direct_tools(box.catalog.tools, provider)
    comparison = Comparison(_tools_size(provider, surface), _tools_size(provider, direct), len(direct))
    if terminal.json:
        terminal.write_json(comparison.to_json())
        return
    saved = comparison.to_json()["saved"]
    less = "saved" if saved["bytes"] >= 0 else "added"  # a few small tools are smaller than exec and wait
    rows = [
        ("code mode", str(len(surface)), f"{comparison.surface.bytes:,}", f"{comparison.surface.tokens:,}"),
        ("direct", f"{len(direct):,}", f"{comparison.direct.bytes:,}", f"{comparison.direct.tokens:,}"),
        (less, "", f"{abs(saved['bytes']):,}", f"{abs(saved['tokens']):,} ({abs(saved['share']):.1%})"),
    ]
    show_table(terminal, (provider.name, "tools", "bytes", "tokens"), rows)
    if comparison.surface.counter == ESTIMATE:
        terminal.note("tokens are an estimate from bytes; install bpe-openai to count them")


def _activation(box: Toolbox, gate: ModelRequest) -> Activation:
    return decide_activation(box.config.enabled, gate, box.manifest.allow, box.catalog.size)


def _surface(box: Toolbox) -> tuple[VisibleTool, ...]:
    catalog = box.catalog
    return build_surface(catalog.sources, catalog.scope, box.config.languages, box.config.limits)


def _direct(box: Toolbox, asked: Asked) -> tuple[VisibleTool, ...]:
    """Return the tools as they were, or none for a request that is to have none."""
    gate = asked.gate
    offers = gate.supports_tools and not gate.tools_disabled and not gate.raw
    return build_direct_tools(box.catalog.tools, asked.provider) if offers else ()


def _tools_size(provider: Provider, tools: tuple[VisibleTool, ...]) -> Size:
    body: Json = provider.build_body(ChatRequest(provider.model, (), tools))
    return measure(body.get("tools", []))


def _size(measured: Size) -> str:
    label = " (estimate)" if measured.counter == ESTIMATE else f" ({measured.counter})"
    return f"{size(measured.bytes)}, {counted(measured.tokens, 'token')}{label}"
