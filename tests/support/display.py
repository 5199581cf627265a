"""A small terminal in memory: what a person would see of the bytes that a program wrote."""

import re

_SEQUENCE = re.compile(
    rb"\x1b\[(?P<params>[0-9;?<>=]*)(?P<final>[@-~])|\x1b\](?:[^\x07\x1b]|\x1b[^\\])*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[78=>]"
)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-9;?<>=]*|\][^\x07]*|[()])?\Z")
_BLANK = (" ", "")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",)}


class Display:
    """Lines of characters, each with its style, and a cursor.

    A style is a text of words: `bold`, `dim`, `italic`, `underline`, `reverse`, `f6` for the colour 6
    of the terminal's palette in front, `on8` for the colour 8 behind. `above` holds the lines that were
    scrolled away; `asked` counts how often the program asked where the cursor is; `colours` are the
    styles that it ever set.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.above: list[str] = []
        self.asked = 0
        self.colours: set[str] = set()
        self._style = ""
        self._grid = [[_BLANK] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._saved = (0, 0)
        self._wraps = False  # the last column was written: the next character goes to the next line
        self._pending = b""

    @property
    def place(self) -> tuple[int, int]:
        """Row and column of the cursor, from 1."""
        return self._row + 1, self._column + 1

    def lines(self) -> list[str]:
        """Return what is visible, without the blank lines at its end."""
        lines = [_text(row) for row in self._grid]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def cells(self) -> list[list[tuple[str, str]]]:
        """Return what is visible, line by line, as characters with their styles."""
        return [list(row) for row in self._grid[: len(self.lines())]]

    def text(self) -> str:
        """Return everything that can be seen, also by scrolling back."""
        return "\n".join([*self.above, *self.lines()])

    def feed(self, data: bytes) -> None:
        """Take what a program wrote; half a sequence or half a character waits for its rest."""
        data = self._pending + data
        unfinished = _UNFINISHED.search(data)
        end = unfinished.start() if unfinished else len(data) - _half_character(data)
        self._pending = data[end:]
        at = 0
        while at < end:
            found = _SEQUENCE.match(data, at)
            if found:
                self._control(found)
                at = found.end()
                continue
            stop = next((stop for stop in range(at, end) if data[stop] < 32), end)
            if stop == at:
                self._move(data[at])
                at += 1
            else:
                for character in data[at:stop].decode("utf-8", "replace"):
                    self._put(character)
                at = stop

    def _put(self, character: str) -> None:
        if self._wraps:
            self._column = 0
            self._line_feed()
        self._grid[self._row][self._column] = (character, self._style)
        self._wraps = self._column == self.columns - 1
        self._column = min(self._column + 1, self.columns - 1)

    def _move(self, code: int) -> None:
        self._wraps = False
        if code == 10:
            self._line_feed()
        elif code == 13:
            self._column = 0
        elif code == 8:
            self._column = max(self._column - 1, 0)

    def _line_feed(self) -> None:
        if self._row < self.rows - 1:
            self._row += 1
            return
        self.above.append(_text(self._grid.pop(0)))
        self._grid.append([_BLANK] * self.columns)

    def _control(self, found: "re.Match[bytes]") -> None:
        final = found["final"]
        if final is None or found["params"].startswith((b"?", b"<", b">", b"=")):
            return
        numbers = [int(number or 0) for number in found["params"].split(b";")]
        self._wraps = False
        if final == b"m":
            self.colours.add(found["params"].decode())
            self._style = _restyled(self._style, numbers)
        elif final == b"n":
            self.asked += 1
        elif final in b"ABCDGHf":
            self._go(final, numbers)
        elif final in b"JK":
            self._erase(final, numbers[0])

    def _go(self, final: bytes, numbers: list[int]) -> None:
        count = numbers[0] or 1
        if final in b"Hf":
            self._row, self._column = count - 1, (numbers[1:] or [1])[0] - 1
        elif final == b"G":
            self._column = count - 1
        elif final in b"AB":
            self._row += count if final == b"B" else -count
        else:
            self._column += count if final == b"C" else -count
        self._row = min(max(self._row, 0), self.rows - 1)
        self._column = min(max(self._column, 0), self.columns - 1)

    def _erase(self, final: bytes, how: int) -> None:
        line = self._grid[self._row]
        if how == 0:
            line[self._column :] = [_BLANK] * (self.columns - self._column)
        else:
            line[:] = [_BLANK] * self.columns
        if final == b"J":
            rows = range(self._row + 1, self.rows) if how == 0 else range(self.rows)
            for row in rows:
                self._grid[row] = [_BLANK] * self.columns


def _text(row: list[tuple[str, str]]) -> str:
    return "".join(character for character, _ in row).rstrip()


def _restyled(style: str, numbers: list[int]) -> str:
    """Return a style after the numbers of a sequence that sets one; only the palette's sixteen colours are known."""
    words = set(style.split())
    for number in numbers:
        tens, colour = divmod(number, 10)
        if number == 0:
            words.clear()
        elif number in _ON:
            words.add(_ON[number])
        elif number in _OFF:
            words.difference_update(_OFF[number])
        elif number in (38, 48):
            break
        elif tens in (3, 4, 9, 10):
            layer = "f" if tens in (3, 9) else "on"
            words = {word for word in words if not word.removeprefix(layer).isdigit()}
            if colour < 8:  # 39 and 49 are the terminal's own
                words.add(f"{layer}{colour + 8 * (tens >= 9)}")
    return " ".join(sorted(words))


def _half_character(data: bytes) -> int:
    """Return how many bytes at the end are the beginning of a character."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < length else 0
        if byte < 0x80:
            return 0
    return 0
