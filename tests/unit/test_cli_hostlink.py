"""The front end's end of a host's pipes, with a host that says back what it was told."""

import json
import os
import select
import signal

import pytest

from codemode.cli import hostlink
from codemode.core.errors import Internal, RuntimeUnavailable
from codemode.render.report import report_of_error
from codemode.supervisor.spawn import spawn
from tests.requirements import requirement
from tests.support.processes import PATIENCE_S


@requirement("host:front-end:ctrl-c")
@pytest.mark.parametrize("at", [0, 3])
def test_a_ctrl_c_before_the_request_is_whole_aborts_after_it(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come between any two writes, and a pipe may take a part at a time."""
    host, heard, write, written = spawn(["/bin/cat"], {}), [], os.write, []

    def write_a_part(fd: int, data: memoryview) -> int:
        if len(written) == at:
            written.append(0)
            signal.raise_signal(signal.SIGINT)
        written.append(write(fd, data[:7]))
        return written[-1]

    conversation = hostlink._Conversation(host, heard.append, heard.append)
    monkeypatch.setattr(hostlink, "_ABORT_S", PATIENCE_S)
    with monkeypatch.context() as patched:
        patched.setattr(hostlink.os, "write", write_a_part)
        answer = conversation.hold({"progress": {"event": "asked"}})
    os.kill(host.pid, signal.SIGKILL)
    os.waitpid(host.pid, 0)

    assert (heard, answer) == ([{"event": "asked"}], {"abort": True})


def test_a_host_that_ends_without_an_answer_is_told_with_its_last_words() -> None:
    host, told = spawn(["/bin/sh", "-c", "echo Traceback: it hurts >&2; exit 1"], {}), []
    with pytest.raises(Internal, match="exited with status 1 before it answered; its last words: Traceback: it hurts"):
        hostlink._Conversation(host, print, told.append).hold({})

    assert "".join(told) == "Traceback: it hurts\n"


@requirement("host:front-end:died")
def test_a_host_that_code_of_others_ends_is_no_fault_of_ours() -> None:
    """What is known is said: its status, and which calls were open."""
    calls = [
        {"progress": {"event": "call_started", "call_id": number, "method": method, "tool_id": tool}}
        for number, method, tool in ((1, "call", "a"), (2, "call", "b"), (3, "search", None), (4, "call", "a"))
    ]
    lines = "\\n".join(map(json.dumps, [*calls, {"progress": {"event": "call_settled", "call_id": 2}}]))
    for program, said, has_called in (
        ("exit 3", "exited with status 3 before it answered; a tool, a hook or a plugin in Python", False),
        (f"printf '{lines}\\n'; exit 0", "status 0 before it answered, while a ran and may have taken effect", True),
    ):
        host = spawn(["/bin/sh", "-c", program], {})
        with pytest.raises(RuntimeUnavailable, match=said) as caught:
            hostlink._Conversation(host, lambda _: None, print).hold({})
        assert caught.value.dispatched is has_called
        assert bool(report_of_error(caught.value).advice) is not has_called


def test_what_a_host_says_just_before_its_answer_is_not_lost() -> None:
    """The answer is read together with a line before it; the words come in between."""
    lines = """{"progress": {"event": "heard"}}\\n{"result": 2}\\n"""
    program = f"read request; printf '{lines}'; read go; echo late >&2; read end"
    host, told = spawn(["/bin/sh", "-c", program], {}), []
    conversation = hostlink._Conversation(host, lambda _: speak(), told.append)

    def speak() -> None:
        conversation._send({})
        assert select.select([host.stderr], [], [], PATIENCE_S)[0]

    assert conversation.hold({}) == {"result": 2}
    assert "".join(told) == "late\n"
    os.waitpid(host.pid, 0)
