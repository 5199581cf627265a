"""The states of the living VM, one after each cell, as snapshots: what `:undo` and `:redo` move through. Pure."""

from typing import NamedTuple

MAX_STATES = 100  # that `:undo` can go back; nobody undoes more
MAX_BYTES = 128_000_000  # of all their snapshots together; the oldest are let go beyond it


class State(NamedTuple):
    """The VM as a cell left it: its snapshot (None: there is no VM yet), that cell's number, what is declared.

    `began_s` is when this VM began, on a clock of seconds; `cells` counts those that ran in it.
    """

    snapshot: bytes | None = None
    number: int = 0
    names: frozenset[str] = frozenset()
    began_s: float = 0.0
    cells: int = 0

    @property
    def size(self) -> int:
        """Bytes of its snapshot."""
        return len(self.snapshot or b"")

    def then(self, snapshot: bytes, number: int, names: tuple[str, ...], now_s: float) -> "State":
        """Return the state after one more cell."""
        began_s = self.began_s if self.cells else now_s
        return State(snapshot, number, self.names | set(names), began_s, self.cells + 1)


class States:
    """Where the session is among its states, and the way there; `has_let_go` says that the oldest are no longer kept.

    Contract: repl:undo:state, repl:redo:state, repl:undo:bounded
    """

    def __init__(self) -> None:
        """Begin without a VM."""
        self.current = State()
        self.has_let_go = False
        self._past: list[State] = []
        self._future: list[State] = []

    @property
    def undone(self) -> frozenset[int]:
        """The numbers of the cells whose effects are undone."""
        return frozenset(state.number for state in self._future)

    def push(self, state: State) -> None:
        """Go on to a new state; what was undone cannot come back."""
        self._past.append(self.current)
        self.current = state
        self._future.clear()
        self._let_go()

    def undo(self) -> State | None:
        """Go back one state and return the one that was left; None where there is no earlier one."""
        if not self._past:
            return None
        left = self.current
        self._future.append(left)
        self.current = self._past.pop()
        return left

    def redo(self) -> State | None:
        """Go forward again and return the state that is current now; None where nothing was undone."""
        if not self._future:
            return None
        self._past.append(self.current)
        self.current = self._future.pop()
        return self.current

    def _let_go(self) -> None:
        total = sum(state.size for state in self._past)
        while self._past and (len(self._past) > MAX_STATES or total > MAX_BYTES):
            total -= self._past.pop(0).size
            self.has_let_go = True
