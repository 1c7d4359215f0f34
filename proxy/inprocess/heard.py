"""What the shim in this interpreter tells: for a recorder, which tapes it, and for a replay, which judges it."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from tapeproxy.proxy.pastends import PAST_END, PastEnd
from tapeproxy.tapes.troubles import Troubles, sentence
from tapeproxy.tapes.violations import Drift

type Line = dict[str, Any]


class Heard:
    """Lines in the order in which they were told, from whatever thread, until a recorder takes them."""

    def __init__(self) -> None:
        self.processes: list[Line] = []
        self.pids: set[int] = set()
        self._lines = deque[Line]()
        self.take = self._lines.append

    def drain(self) -> Iterator[Line]:
        """Take those that have come since the last call."""
        while self._lines:
            yield self._lines.popleft()

    def close(self) -> None:
        """Nothing is kept."""


class Judged:
    """What counts against a replay: reads past the end of the tape, and what the shim could not do."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self.notes: list[str] = []
        self._redact = redact
        self._troubles = Troubles()
        self._found: list[Drift] = []
        self._past: dict[str, PastEnd] = {}

    def take(self, line: Line) -> None:
        """Take note of a line, from whatever thread."""
        match line:
            case {"k": "note", "what": what} if what == PAST_END:
                found = PastEnd.read(line, self._redact)
                if found is not None:
                    self._past.setdefault(found.id, found)
            case {"k": "end", "lane": str(lane), "reads": int(reads)} if lane in self._past:
                self._past[lane].reads = reads
            case {"k": "note", "what": str(what)}:
                text = self._redact(str(line.get("text", "")))
                said = self._troubles.take(line | {"text": text}) if sentence(line) is not None else None
                if said is not None:
                    self._found.append(Drift("the shim", said))
                elif sentence(line) is None:
                    self.notes.append(f"{what}: {text}")
            case _:
                pass

    def drifts(self) -> Iterator[Drift]:
        """The drifts that have not been given out yet."""
        found, self._found = self._found, []
        yield from found
        past, self._past = self._past, {}
        for one in past.values():
            if one.soft:
                self.notes.append(one.to_text())
            else:
                yield one.to_drift()
