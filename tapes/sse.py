"""Server-sent events and JSON lines, parsed as they come; knows framing, not what an event means.

The WHATWG rules (HTML standard, "Parsing an event stream"): lines end in LF, CR or CRLF; a leading BOM is dropped;
a blank line gives an event out, if it has data; the last id stays until another comes.
"""

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r"


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `id` is the last one seen on the stream, `retry` (ms) the one given with this event, if any."""

    data: str
    name: str = "message"
    id: str = ""
    retry: int | None = None


class Lines:
    """Bytes in, whole lines out, without their ends. LF ends a line; `any_end`: so do CR and CRLF."""

    def __init__(self, *, any_end: bool = False) -> None:
        self._any_end = any_end
        self._rest: list[bytes] = []
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; give the lines that they complete."""
        if not data:
            return []
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]  # the second half of a CRLF whose line was given out already
        self._after_cr = self._any_end and data.endswith(b"\r")
        lines = _LINE_END.split(data) if self._any_end else data.split(b"\n")
        self._rest.append(lines[0])
        if len(lines) == 1:
            return []
        lines[0] = b"".join(self._rest)
        self._rest = [lines.pop()]
        return lines

    def finish(self) -> bytes:
        """What came after the last line end."""
        return b"".join(self._rest)


class EventParser:
    """Bytes in, events out."""

    def __init__(self) -> None:
        self._lines = Lines(any_end=True)
        self._first = True
        self._data: list[str] = []
        self._name = ""
        self._retry: int | None = None
        self._id = ""

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes; give the events that they complete."""
        return [event for line in self._lines.feed(data) if (event := self._take(line)) is not None]

    def finish(self) -> Event | None:
        """The event that the stream ended in. A browser drops it; some servers leave out the last blank line."""
        return self._take(self._lines.finish()) or self._dispatch()

    def _take(self, line: bytes) -> Event | None:
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        self._set(name, value.removeprefix(" "))
        return None

    def _set(self, name: str, value: str) -> None:
        """Take one field. A comment has the empty name; unknown fields are skipped."""
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._name = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit() and len(value) < 16:
                self._retry = int(value)

    def _dispatch(self) -> Event | None:
        data, name, retry = self._data, self._name, self._retry
        self._data, self._name, self._retry = [], "", None
        return Event("\n".join(data), name or "message", self._id, retry) if data else None


def parse_events(body: bytes) -> list[Event]:
    """All events of a body, the one that it ends in included."""
    parser = EventParser()
    events = parser.feed(body)
    last = parser.finish()
    return events if last is None else [*events, last]


def split_json_lines(body: bytes) -> list[bytes]:
    """The lines of an NDJSON body that are not blank, the last one even when it was cut."""
    lines = Lines()
    return [line for line in (*lines.feed(body), lines.finish()) if line.strip(_BLANK)]
