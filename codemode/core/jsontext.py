"""JSON text from JSON values, by encoders that are made once.

`json.JSONEncoder.encode` builds its C encoder anew for every text, which costs more than
encoding a small one; each nested call encodes three.
"""

from collections.abc import Callable
from json import JSONEncoder, encoder
from typing import Any

from codemode.core.types import Json


def build_encoder(*, ascii_only: bool, allow_nan: bool = False) -> Callable[[Json], str]:
    """Return a function from a JSON value without cycles to its compact text.

    Args:
        ascii_only: Escape every character beyond ASCII.
        allow_nan: Write `NaN` and infinities rather than raise `ValueError`.
    """
    made = JSONEncoder(ensure_ascii=ascii_only, allow_nan=allow_nan, check_circular=False, separators=(",", ":"))
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:  # another Python than CPython
        return made.encode
    quote = encoder.encode_basestring_ascii if ascii_only else encoder.encode_basestring
    encode = make(None, made.default, quote, None, ":", ",", False, False, allow_nan)

    def to_text(value: Json) -> str:
        chunks: Any = encode(value, 0)
        return "".join(chunks)

    return to_text
