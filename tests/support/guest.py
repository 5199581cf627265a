"""One worker in this process: what a cell does, without pipes or a host around it."""

import json
from pathlib import Path
from typing import Any

from codemode.core.protocol import Deliver, Resume, Start, TakeSnapshot, parse_turn
from codemode.core.types import Json, TurnEnd
from codemode.sandbox.worker import Worker, build_engine

TOOLS = [
    {"id": "client:app:add", "name": "add", "description": "Add numbers.", "source": "client", "sourceName": "app"},
    {"id": "client:app:get-user", "name": "get-user", "description": "", "source": "client", "sourceName": "app"},
]
SCOPE = {"tools": TOOLS, "names": {"add": "client:app:add", "get_user": "client:app:get-user"}}


class Guest:
    """Starts cells and plays the host for them; one cell at a time."""

    def __init__(self, cache: Path) -> None:
        self.worker = Worker(build_engine(cache))
        self.last_id = 0
        self.memory = 64 << 20

    def start(self, source: str, language: str = "javascript", **limits: Any) -> TurnEnd:
        """Run the first turn of a cell."""
        scope = {"mcp": None, "files": [], "namespaces": []} | SCOPE | limits.pop("scope", {})
        text = json.dumps({name: json.dumps(value) for name, value in scope.items()})
        given = {
            "budget_ms": 5000.0,
            "memory": 64 << 20,
            "output": 65536,
            "calls": 16,
            "seed": 7,
            "keep": False,
            "base": b"",
        } | limits
        self.last_id = 0
        self.memory = given["memory"]
        return self._end(
            Start(
                source, language, given["budget_ms"], given["memory"], given["output"], given["calls"],
                given["seed"], text, text.encode(), given["keep"], given["base"],
            )
        )  # fmt: skip

    def deliver(self, *settlements: tuple[int, bool, Json]) -> TurnEnd:
        """Deliver `(id, ok, value)` rows to the live cell."""
        return self._end(Deliver(5000.0, json.dumps(settlements).encode()))

    def snapshot(self) -> bytes:
        """Suspend the cell."""
        return self.worker.answer(TakeSnapshot(256 << 20))[1]

    def resume(self, snapshot: bytes, *settlements: tuple[int, bool, Json]) -> TurnEnd:
        """Restore a cell and deliver to it."""
        return self._end(Resume(5000.0, self.memory, snapshot, json.dumps(settlements).encode()))

    def value(self, source: str, language: str = "javascript", **limits: Any) -> Json:
        """Return the value of a cell that completes in one turn."""
        end = self.start(source, language, **limits)
        assert end.state == "completed", end
        return end.value

    def failure(self, source: str, language: str = "javascript", **limits: Any) -> str:
        """Return `code: error` of a cell that fails in its first turn."""
        end = self.start(source, language, **limits)
        assert end.failure is not None, end
        return f"{end.failure.code}: {end.failure.error}"

    def _end(self, request: Start | Deliver | Resume) -> TurnEnd:
        header, rows = self.worker.answer(request)
        end = parse_turn(json.loads(json.dumps(header)), rows, self.last_id)
        if end.calls:
            self.last_id = end.calls[-1].id
        return end


def rejection(message: str, tool_id: str | None = "client:app:add") -> dict[str, Json]:
    """Return what a failed call delivers."""
    return {"name": "Error", "message": message, "code": "nested_tool_failed", "toolId": tool_id}
