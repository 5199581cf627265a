"""How large a request is, in bytes and tokens, and what code mode saves of it.

Tokens are counted offline with o200k by `bpe-openai` where that is installed; otherwise they are
estimated from the bytes, and whoever shows the figure says so.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from codemode.core.types import Json

ESTIMATE = "estimate"
_BYTES_PER_TOKEN = 4.1  # measured over tool definitions in compact JSON with o200k


class Size(NamedTuple):
    """The size of a JSON value: UTF-8 bytes of its compact text, and tokens by `counter`."""

    bytes: int
    tokens: int
    counter: str  # "o200k", or "estimate" when no tokenizer is installed


class Comparison(NamedTuple):
    """The tools of the same catalog, offered as `exec` and `wait` and offered directly."""

    surface: Size
    direct: Size
    direct_count: int

    @property
    def saved_share(self) -> float:
        """The share of the direct request's tokens that code mode saves; negative if it costs."""
        return 1 - self.surface.tokens / self.direct.tokens if self.direct.tokens else 0.0

    def to_json(self) -> dict[str, Json]:
        """Return `{"surface", "direct", "saved": {"bytes", "tokens", "share"}, "counter"}`."""
        return {
            "surface": {"tools": 2, "bytes": self.surface.bytes, "tokens": self.surface.tokens},
            "direct": {"tools": self.direct_count, "bytes": self.direct.bytes, "tokens": self.direct.tokens},
            "saved": {
                "bytes": self.direct.bytes - self.surface.bytes,
                "tokens": self.direct.tokens - self.surface.tokens,
                "share": round(self.saved_share, 4),
            },
            "counter": self.surface.counter,
        }


def measure(value: Json) -> Size:
    """Return the size of a JSON value."""
    text = json_text(value)
    size = len(text.encode())
    count = _tokenizer()
    if count is None:
        return Size(size, round(size / _BYTES_PER_TOKEN), ESTIMATE)
    return Size(size, count(text), "o200k")


def json_text(value: Json) -> str:
    """Return the compact JSON text of a value, as it goes over the wire."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pretty_text(value: Json) -> str:
    """Return JSON text for reading, as every dump prints it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


@cache
def _tokenizer() -> Callable[[str], int] | None:
    """Return a function that counts o200k tokens, or None where no tokenizer is installed."""
    try:
        # Optional and large: only whoever wants exact figures installs it.
        import bpe_openai
    except ImportError:
        return None
    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))
