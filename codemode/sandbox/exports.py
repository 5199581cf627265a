"""The exports of the guest engine as Python functions of 32-bit numbers.

Which there are and how many arguments each takes is written here, because their calls go
unchecked (`sandbox/wasm.py`, which makes them).
"""

from collections.abc import Callable
from typing import Any, NoReturn

SLOT_WORDS = 4  # an argument or result has 16 bytes
Bound = Callable[..., int]  # an export of an instance, ready to be called

# name → number of 32-bit arguments; each export used returns one 32-bit value or nothing
EXPORTS = {
    "_initialize": 0,
    "qjs_init": 0,
    "qjs_eval": 4,
    "qjs_call": 4,
    "qjs_new_string": 2,
    "qjs_get_string_len": 2,
    "qjs_free_cstring": 1,
    "qjs_free_value": 1,
    "qjs_get_value_ptr": 1,
    "qjs_get_prop_uint32": 2,
    "qjs_get_undefined": 0,
    "qjs_is_exception": 1,
    "qjs_is_function": 1,
    "qjs_is_uncatchable_error": 1,
    "qjs_get_exception": 0,
    "qjs_promise_state": 1,
    "qjs_promise_result": 1,
    "qjs_execute_pending_job": 0,
    "qjs_run_gc": 0,
    "qjs_get_allocated_size": 0,
    "qjs_set_memory_limit": 1,
    "qjs_set_max_stack_size": 1,
    "qjs_set_interrupt_handler": 1,
    "qjs_set_promise_rejection_handler": 1,
    "qjs_get_runtime_ptr": 0,
    "qjs_get_context_ptr": 0,
    "qjs_set_runtime_and_context": 2,
    "malloc": 1,
    "calloc": 2,
    "free": 1,
    "pack": 2,  # this and the next: of `guest/difference.wat`
    "unpack": 2,
}


class Exports:
    """The exports of an instance as functions of 32-bit numbers, each bound when it is first used.

    A function returns a 32-bit number, 0 where it has no result, and raises `TrapError` if the code traps.
    """

    def __init__(self, bind: Callable[[str], Bound]) -> None:
        """Begin with none; `bind` makes one that `EXPORTS` knows."""
        self._bind = bind

    def __getattr__(self, name: str) -> Bound:
        if name not in EXPORTS:
            raise AttributeError(name)
        bound = self._bind(name)
        setattr(self, name, bound)
        return bound

    def forget(self) -> None:
        """Let go of all: each holds the instance."""
        self.__dict__.clear()


# One shape for each number of arguments: a loop over them would cost as much as the call.
# `run` makes the call; argument n and the result are in `words`, at n * SLOT_WORDS and 0.
_Run = Callable[[], int | None]
_Fail = Callable[[int | None], NoReturn]


def _without_arguments(run: _Run, words: Any, trap: Any, fail: _Fail) -> Bound:
    def bound() -> int:
        error = run()
        if error or trap[0]:
            fail(error)
        return words[0]  # type: ignore[no-any-return]

    return bound


def _with_one(run: _Run, words: Any, trap: Any, fail: _Fail) -> Bound:
    def bound(first: int) -> int:
        words[0] = first
        error = run()
        if error or trap[0]:
            fail(error)
        return words[0]  # type: ignore[no-any-return]

    return bound


def _with_two(run: _Run, words: Any, trap: Any, fail: _Fail) -> Bound:
    def bound(first: int, second: int) -> int:
        words[0], words[SLOT_WORDS] = first, second
        error = run()
        if error or trap[0]:
            fail(error)
        return words[0]  # type: ignore[no-any-return]

    return bound


def _with_four(run: _Run, words: Any, trap: Any, fail: _Fail) -> Bound:
    def bound(first: int, second: int, third: int, fourth: int) -> int:
        words[0], words[SLOT_WORDS], words[2 * SLOT_WORDS], words[3 * SLOT_WORDS] = first, second, third, fourth
        error = run()
        if error or trap[0]:
            fail(error)
        return words[0]  # type: ignore[no-any-return]

    return bound


SHAPES = {0: _without_arguments, 1: _with_one, 2: _with_two, 4: _with_four}
