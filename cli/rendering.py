"""Text for a terminal: tables, colours, durations, sizes; knows columns and escapes, not what is shown.

Everything from a tape is untrusted: `printable` and `block` show control characters, ANSI escapes and characters that
turn the writing direction instead of sending them. A table does so with all its cells.
"""

import os
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Literal

import click

from tapeproxy.tapes.invisible import HOSTILE, HOSTILE_IN_BLOCK, escape

_GAP = "  "


_WIDEST = 500


def printable(text: str) -> str:
    r"""`text` on one line that is safe to print: what would act on the terminal shows as `\x1b`, `\n`, `\u202e`."""
    return HOSTILE.sub(escape, text)


def block(text: str, indent: str = "") -> str:
    """`text` with its lines kept and indented, otherwise as `printable`."""
    safe = HOSTILE_IN_BLOCK.sub(escape, text.replace("\r\n", "\n"))
    return "\n".join(indent + line if line else "" for line in safe.split("\n"))


def echo(text: str = "", *, err: bool = False) -> None:
    """Print `text`, to standard error with `err`; what the encoding there doesn't have shows as an escape."""
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=err)


def duration(ns: int) -> str:
    """Nanoseconds for people: `0.4 ms`, `412 ms`, `1.24 s`, `2m03s`, `1h02m`."""
    seconds = ns / 1e9
    if seconds < 0.9995:
        ms = seconds * 1000
        return f"{ms:.1f} ms" if ms < 9.95 else f"{ms:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def size(n: int) -> str:
    """Bytes for people, in powers of a thousand: `512 B`, `1.4 kB`, `20 MB`."""
    if n < 1000:
        return f"{n} B"
    power = 1 if n < 999_500 else 2 if n < 999_500_000 else 3
    value, unit = n / 1000**power, ("kB", "MB", "GB")[power - 1]
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def moment(stamp: str) -> str:
    """An RFC 3339 time as local time to the second; what is none, as it is."""
    try:
        return f"{datetime.fromisoformat(stamp).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return stamp


def count(n: int, noun: str) -> str:
    """`1 exchange`, `2 exchanges`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


@dataclass(frozen=True, slots=True)
class Screen:
    """Where the text goes: columns (None: as many as it takes) and whether there is colour."""

    width: int | None = None
    colour: bool = False

    def paint(self, text: str, colour: str | None = None, *, bold: bool = False) -> str:
        """`text` in a colour of click's, where there is colour."""
        return click.style(text, fg=colour, bold=bold or None) if self.colour else text


def screen_of(stream: IO[str]) -> Screen:
    """The screen behind `stream`: a pipe or file has no width and no colour; NO_COLOR (no-color.org) is honoured."""
    if not stream.isatty():
        return Screen()
    import shutil  # takes 3 ms

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return Screen(max(20, shutil.get_terminal_size().columns), not plain)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `least`: it may shrink to that width (0: never), losing its `cut` side.

    `rank`: on a screen too narrow for all, columns of the highest rank go first; 0 stays.
    """

    title: str
    right: bool = False
    least: int = 0
    cut: Literal["start", "end"] = "end"
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a column; any text."""

    text: str
    colour: str | None = None


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], screen: Screen) -> list[str]:
    """The lines of a table, its titles first, fitted to the screen. Columns without any text are left out."""
    texts = [[printable(cell.text) for cell in row] for row in rows]
    shown = [at for at in range(len(columns)) if any(row[at] for row in texts)]
    natural = {at: max(cells(columns[at].title), *(cells(row[at]) for row in texts)) for at in shown}
    widths = _fit(columns, natural, screen.width)
    lines = [screen.paint(_line([_pad(columns[at].title, columns[at], w) for at, w in widths.items()]), bold=True)]
    for row, text in zip(rows, texts, strict=True):
        padded = (_paint(_pad(text[at], columns[at], w), text[at], row[at].colour, screen) for at, w in widths.items())
        lines.append(_line(list(padded)))
    return lines


def cells(text: str) -> int:
    """How many terminal columns `text` takes, near enough: wide East Asian and emoji two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(char: str) -> int:
    if char in "\u200c\u200d\ufe0f" or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fit(columns: Sequence[Column], natural: dict[int, int], width: int | None) -> dict[int, int]:
    """The width of each column that is shown: shrink first, then leave out."""
    # Also where there is no terminal a cell has an end: every row is as wide as the widest.
    widest = _WIDEST if width is None else width
    widths = {at: min(w, widest) for at, w in natural.items()}
    while width is not None and (excess := sum(widths.values()) + len(_GAP) * (len(widths) - 1) - width) > 0:
        slack = {at: w - columns[at].least for at, w in widths.items() if 0 < columns[at].least < w}
        if sum(slack.values()) >= excess:
            # The widest gives way first, a column at a time, so that no two end up very different.
            for _ in range(excess):
                at = max((at for at in slack if widths[at] > columns[at].least), key=lambda at: widths[at])
                widths[at] -= 1
            return widths
        droppable = [at for at in widths if columns[at].rank]
        if not droppable:
            return {at: min(w, columns[at].least or w) for at, w in widths.items()}
        del widths[max(droppable, key=lambda at: columns[at].rank)]
    return widths


def _pad(text: str, column: Column, width: int) -> str:
    text = clip(text, width, column.cut)
    space = " " * (width - cells(text))
    return space + text if column.right else text + space


def clip(text: str, width: int, cut: Literal["start", "end"] = "end") -> str:
    """`text` in at most `width` columns, with an ellipsis where it was cut."""
    if cells(text) <= width:
        return text
    kept: list[str] = []
    room = width - 1
    for char in text if cut == "end" else reversed(text):
        room -= _cells_of(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + "…" if cut == "end" else "…" + "".join(reversed(kept))


def _paint(padded: str, text: str, colour: str | None, screen: Screen) -> str:
    return screen.paint(padded, colour) if colour and text else padded


def _line(padded: list[str]) -> str:
    return _GAP.join(padded).rstrip()
