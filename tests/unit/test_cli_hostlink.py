"""The front end's end of a host's pipes, with a host that says back what it was told."""

import os
import select
import signal

import pytest

from codemode.cli import hostlink
from codemode.core.errors import Internal
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
    with monkeypatch.context() as patched:
        patched.setattr(hostlink.os, "write", write_a_part)
        answer = conversation.hold({"progress": "what is asked for"})
    os.kill(host.pid, signal.SIGKILL)
    os.waitpid(host.pid, 0)

    assert (heard, answer) == (["what is asked for"], {"abort": True})


def test_a_host_that_ends_without_an_answer_is_told_with_its_last_words() -> None:
    host, told = spawn(["/bin/sh", "-c", "echo it hurts >&2; exit 3"], {}), []
    with pytest.raises(Internal, match="exited with status 3 before it answered; its last words: it hurts"):
        hostlink._Conversation(host, print, told.append).hold({})

    assert "".join(told) == "it hurts\n"


def test_what_a_host_says_just_before_its_answer_is_not_lost() -> None:
    """The answer is read together with a line before it; the words come in between."""
    program = """read request; printf '{"progress": 1}\\n{"result": 2}\\n'; read go; echo late >&2; read end"""
    host, told = spawn(["/bin/sh", "-c", program], {}), []
    conversation = hostlink._Conversation(host, lambda _: speak(), told.append)

    def speak() -> None:
        conversation._send({})
        assert select.select([host.stderr], [], [], PATIENCE_S)[0]

    assert conversation.hold({}) == {"result": 2}
    assert "".join(told) == "late\n"
    os.waitpid(host.pid, 0)
