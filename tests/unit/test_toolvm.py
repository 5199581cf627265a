"""VMs that read hostile text, on the real engine: nothing stays of a question, whatever became of it."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from codemode.core.limits import WORKER_STACK_BYTES
from codemode.sandbox.engine import OutOfMemory, TurnInterrupted, Vm
from codemode.sandbox.image import Image, Workshop, build_image
from codemode.sandbox.toolvm import ToolVm

SCRIPT = b"""
let seen = 0;
globalThis.count = (request) => JSON.stringify([++seen, JSON.parse(request)]);
globalThis.spin = () => { for (;;) seen++; };
globalThis.grow = () => { const kept = []; for (;;) kept.push(new Array(100000).fill(++seen)); };
globalThis.hold = (request) => JSON.stringify("x".repeat(JSON.parse(request)).length);
globalThis.fail = () => { seen++; throw new Error("of ours"); };
"""
NAMES = ("count", "spin", "grow", "hold", "fail")
ROUNDS = 3
Between = Callable[[ToolVm], None]


def soon() -> float:
    return time.monotonic() + 60


def idle(tool: ToolVm) -> None:
    """Do what a worker does between two cells."""
    tool.make_spare()


def at_once(tool: ToolVm) -> None:
    """Let the next question come without a pause."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def image(workshop: Workshop) -> Image:
    return build_image(workshop.machine(), SCRIPT, f"[{','.join(NAMES)}]")


@pytest.fixture
def tool(workshop: Workshop, image: Image) -> ToolVm:
    return ToolVm(workshop.machine(), lambda: image, NAMES)


@pytest.fixture(scope="module")
def worker_thread() -> Iterator[ThreadPoolExecutor]:
    """A thread with the native stack that a worker has."""
    threading.stack_size(WORKER_STACK_BYTES)
    try:
        with ThreadPoolExecutor(1) as thread:
            yield thread
    finally:
        threading.stack_size(0)


@pytest.mark.parametrize("between", [idle, at_once])
def test_each_question_finds_the_script_as_it_was_made(tool: ToolVm, between: Between) -> None:
    for round_number in range(ROUNDS):
        between(tool)
        assert tool.ask("count", {"round": round_number, "text": "ä \ud800"}, soon()) == [
            1,
            {"round": round_number, "text": "ä \ud800"},
        ]


@pytest.mark.parametrize("between", [idle, at_once])
@pytest.mark.parametrize(("name", "error"), [("spin", TurnInterrupted), ("grow", OutOfMemory), ("fail", OutOfMemory)])
def test_a_question_that_fails_leaves_nothing_to_the_next(
    tool: ToolVm, worker_thread: ThreadPoolExecutor, between: Between, name: str, error: type[Exception]
) -> None:
    def ask_in_turn() -> None:
        for _ in range(ROUNDS):
            deadline = time.monotonic() + 0.01 if error is TurnInterrupted else soon()
            with pytest.raises(error):
                tool.ask(name, None, deadline)
            between(tool)
            assert tool.ask("count", 0, soon()) == [1, 0]

    worker_thread.submit(ask_in_turn).result()


def test_the_script_is_loaded_at_the_first_question_and_never_by_a_pause(workshop: Workshop, image: Image) -> None:
    loads: list[Image] = []

    def load() -> Image:
        loads.append(image)
        return image

    tool = ToolVm(workshop.machine(), load, NAMES)
    tool.make_spare()
    assert loads == []
    for _ in range(ROUNDS):
        tool.ask("count", 0, soon())
        tool.make_spare()
    assert loads == [image]


def test_the_polls_go_back_to_the_vm_that_asked(tool: ToolVm, workshop: Workshop, image: Image) -> None:
    """A cell's VM lives while its text is parsed, and its deadline must count afterwards."""
    machine = workshop.machine()
    vm = Vm(machine, image, 64 << 20)
    vm.arm(soon())
    before = machine.running
    tool.ask("count", 0, soon())
    assert machine.running is before
    tool.make_spare()
    assert machine.running is before
    vm.close()


def test_what_a_question_grew_to_is_given_back_at_once(
    tool: ToolVm, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell that asked may need the memory; a small copy is freed when nobody waits."""
    closed: list[int] = []
    close = Vm.close

    def watched(vm: Vm) -> None:
        closed.append(vm.memory_bytes())
        close(vm)

    monkeypatch.setattr(Vm, "close", watched)

    assert tool.ask("hold", 10, soon()) == 10
    assert closed == []
    tool.make_spare()
    assert closed == [len(image.memory)]
    assert tool.ask("hold", 20_000_000, soon()) == 20_000_000
    assert len(closed) == 2
    assert closed[1] > len(image.memory)


@pytest.mark.parametrize("asset", ["acorn.js", "sucrase.js"])
def test_the_parsers_images_are_small(workshop: Workshop, asset: str) -> None:
    """Each question copies one; what no cell needs is left out of the bundles."""
    names = {"acorn.js": "[inspect]", "sucrase.js": "[transform,mapPositions]"}
    made = workshop.image(asset, names[asset])
    assert sum(len(data) for _, data in made.spans) < 1_500_000
