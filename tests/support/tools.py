"""Tools, contexts and executors for tests that need some."""

from codemode.core.types import Json, RunContext, ToolSpec


async def give_back(given: dict[str, Json], context: RunContext) -> Json:
    """Return the input."""
    return given


def make_tool(id_: str = "client:app:echo", invoke=give_back, **fields) -> ToolSpec:
    """Return a tool that gives its input back, unless told otherwise."""
    source, owner, name = id_.split(":", 2)
    given = {"description": f"{name} of {owner}", "parameters": {"type": "object"}} | fields
    return ToolSpec(id=id_, name=name, source=source, owner=owner, invoke=invoke, **given)


def make_context(**fields) -> RunContext:
    """Return the context of the first nested call of a run."""
    given = {
        "agent_id": "main",
        "session_key": "default",
        "session_id": "s-1",
        "run_id": "cm_1",
        "agent_run_id": "ar-1",
        "call_id": "1",
    }
    return RunContext(**(given | fields))
