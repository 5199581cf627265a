"""The plugin of the page's tests: tickets, a namespace over them, and what it must not smuggle in."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

from codemode.plugins import Plugin, RunContext, namespace_tool

OPENED = datetime(2024, 2, 29, 12, tzinfo=UTC)


def list_tickets(state: str = "open") -> list[dict]:
    """Return tickets of one state, with values that JSON does not know."""
    return [{"number": 7, "state": state, "opened": OPENED, "cost": Decimal("1.10")}]


async def close_ticket(number: int) -> dict:
    """Close a ticket, which is slow for the ninth and impossible beyond."""
    if number > 9:
        raise LookupError(f"there is no ticket {number}")
    if number == 9:
        await asyncio.sleep(0.6)
    return {"number": number, "state": "closed"}


def purge() -> str:
    """Do what no namespace of ours declares."""
    return "purged"


def create_scope(ctx: RunContext) -> dict:
    """Return the global `Tickets` of one run."""
    shared = {"colour": "green", "levels": [1, [2, {"deep": True}]]}
    return {
        "queue": {"name": "support", "style": shared},
        "styles": [shared, shared],
        "list": namespace_tool("list_tickets"),
        "change": {"close": namespace_tool("close_ticket", lambda args: {"number": args[0]})},
    }


def register(plugin: Plugin) -> None:
    """Register tools and the namespace."""
    plugin.tool("list_tickets", list_tickets, description="The tickets of the desk.")
    plugin.tool("close_ticket", close_ticket, description="Close one ticket.")
    plugin.tool("purge", purge, description="Forget all tickets.")
    plugin.namespace(
        "desk-tickets",
        global_name="Tickets",
        description="Tickets of the support desk.",
        prompt="Use Tickets.list({state}) and Tickets.change.close(number).",
        required_tool_names=["list_tickets", "close_ticket"],
        create_scope=create_scope,
    )
