"""What the host answers where nothing goes as it should; its life among processes is in `tests/e2e/test_host.py`."""

from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codemode import host
from codemode.core.errors import RuntimeUnavailable
from tests.requirements import requirement

REQUEST = {"op": "exec", "input": {"code": "1"}, "session": "default", "noInput": True, "limits": {}}


@pytest.fixture
def request_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A request over an empty manifest and a store of its own."""
    monkeypatch.setenv("CODEMODE_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "codemode.toml").write_text("")
    return REQUEST | {"manifest": str(tmp_path / "codemode.toml")}


async def answer_of(request: dict[str, Any]) -> dict[str, Any]:
    front_end: Any = SimpleNamespace(tell_of_server=lambda *_: None, tell=lambda _: None)
    async with AsyncExitStack() as stack:
        return await host.Errand(stack, front_end, request).answer(None)


def failing_with(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


@requirement("host:result:always", "session:errors:debug")
@pytest.mark.parametrize("debug", ["", "1"])
async def test_a_fault_before_there_is_a_session_is_a_failed_result(
    request_of: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], debug: str
) -> None:
    monkeypatch.setenv("CODEMODE_DEBUG", debug)
    monkeypatch.setattr(host, "open_toolbox", failing_with(NameError("name 'oops' is not defined")))
    result = (await answer_of(request_of))["result"]

    assert (result["status"], result["code"]) == ("failed", "internal_error")
    assert result["error"] == "NameError: name 'oops' is not defined"
    assert ("Traceback" in capsys.readouterr().err) == bool(debug)


@requirement("host:result:always")
async def test_a_result_is_told_where_the_store_cannot_say_any_more_what_happened(
    request_of: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = host.open_store()
    monkeypatch.setattr(store, "events", failing_with(RuntimeUnavailable("the store is damaged")))
    monkeypatch.setattr(host, "open_store", lambda: store)
    answer = await answer_of(request_of)

    assert (answer["result"]["value"], answer["trajectory"]["runs"]) == (1, [])
