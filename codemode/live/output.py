"""What a run has put out so far, counted anew on the host.

The guest counts too, but its count is only a courtesy: here the bytes of each item's JSON and
of the value's are added up over the whole life of a run, and nothing beyond the limit passes.
"""

from bisect import bisect_right
from collections.abc import Iterable

from codemode.core.errors import OutputLimit, RuntimeUnavailable
from codemode.core.jsontext import build_encoder
from codemode.core.types import Json, OutputItem, TurnEnd

_encode = build_encoder(ascii_only=False)
_ITEM_BYTES = len('{"type":"text","text":},')  # around the JSON of an item's text; a json item has one more


class Output:
    """Outputs of a run: `fresh` since its last result, `used` and `left_out` in bytes since its start."""

    def __init__(self, max_bytes: int) -> None:
        """Begin with nothing; a run that goes on sets what an earlier process counted."""
        self.fresh: list[OutputItem] = []
        self.used = 0
        self.left_out = 0
        self._max = max_bytes

    def admit(self, end: TurnEnd) -> None:
        """Take over the outputs of a turn, and count its value.

        Raises:
            OutputLimit: They do not fit; `fresh` holds the part that does. Not raised for a turn
                that has failed for another reason.
            RuntimeUnavailable: The worker let through what is no JSON.

        Contract: output:limit:cumulative, output:limit:prefix, output:limit:says-left-out
        """
        try:
            self._add(end.output)
            if end.state == "completed":
                self._count(_size(end.value))
        except (ValueError, RecursionError) as error:  # NaN, a lone surrogate: the guest's adapter has none
            raise RuntimeUnavailable(f"the sandbox worker sent a value that is not JSON: {error}") from error
        self.left_out = max(self.left_out, end.omitted_bytes)
        if self.left_out and end.state != "failed":
            raise OutputLimit(
                f"outputs and value have more than {self._max} bytes (maxOutputBytes): "
                f"{self.left_out} bytes were left out. Return less, or raise the limit"
            )

    def take(self) -> tuple[OutputItem, ...]:
        """Return what is new since the last result."""
        taken = tuple(self.fresh)
        self.fresh.clear()
        return taken

    def _add(self, items: Iterable[OutputItem]) -> None:
        for item in items:
            size = _ITEM_BYTES + _size(item.value)
            if self._count(size):
                self.fresh.append(item)
            elif item.type == "text" and self.left_out == size:  # the first that does not fit
                self._keep_prefix(item.value)

    def _count(self, size: int) -> bool:
        fits = not self.left_out and self.used + size <= self._max
        if fits:
            self.used += size
        else:
            self.left_out += size
        return fits

    def _keep_prefix(self, text: str) -> None:
        room = self._max - self.used - _ITEM_BYTES
        kept = bisect_right(range(1, len(text) + 1), room, key=lambda length: _size(text[:length]))
        if kept:
            self.fresh.append(OutputItem("text", text[:kept]))
            self.left_out -= _size(text[:kept])
            self.used = self._max


def _size(value: Json) -> int:
    return len(_encode(value).encode())
