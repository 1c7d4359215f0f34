"""The tapes of a folder, for the page: opened when they are looked at, followed while they are recorded."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from tapeproxy.proxy.growing import GrowingTape
from tapeproxy.proxy.tapefile import is_being_written, is_locked, load
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.web.library import Listed, Looked

_ENDINGS = (".jsonl.gz", ".jsonl.gz.enc")
_OPEN = 4
"""Tapes that are kept in memory."""


class ShownTape:
    """A tape that is looked at, from any thread: one at a time."""

    def __init__(self, path: Path, ask: Ask) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._ask = ask
        self._growing: GrowingTape | None = None
        self._whole: Looked | None = None
        self._mark: tuple[int, int] | None = None
        self._causality: tuple[Tape, int, Causality] | None = None
        self._serial = 0
        self._changed: dict[int, int] = {}
        """Of each exchange that came or grew while we looked, when that was."""

    def look(self) -> Looked:
        with self._lock:
            status = self.path.stat()
            mark = (status.st_mtime_ns, status.st_size)
            if self._whole is not None and mark == self._mark:
                return self._whole
            writing = is_being_written(self.path)
            if self._growing is None and writing and not is_locked(self.path):
                self._growing = GrowingTape(self.path)
            if self._growing is not None:
                self._advance(self._growing)
                if self._growing.ending is None and writing:
                    return Looked(self._growing.tape, None)
                # It has ended, with a seal or without. From here on it is read as any other.
                self._growing = None
                self._serial += 1
            tape, ending = load(self.path, self._ask)
            self._whole, self._mark = Looked(tape, ending), mark
            return self._whole

    def since(self, serial: int) -> tuple[int, frozenset[int]]:
        with self._lock:
            self.look()
            return self._serial, frozenset(number for number, at in self._changed.items() if at > serial)

    def _advance(self, growing: GrowingTape) -> None:
        changed = growing.advance()
        if changed:
            self._serial += 1
            self._changed |= dict.fromkeys(changed, self._serial)

    def causality(self) -> Causality:
        with self._lock:
            tape = self.look().tape
            known = len(tape.exchanges) + len(tape.edges)
            if self._causality is None or self._causality[0] is not tape or self._causality[1] != known:
                self._causality = (tape, known, Causality.of(tape))
            return self._causality[2]

    def file(self) -> bytes | None:
        return None if is_locked(self.path) else self.path.read_bytes()


class TapeFolder:
    """The tapes of a folder, or one tape alone, by their names: nothing else can be opened."""

    def __init__(self, place: Path, ask: Ask = ask_environment) -> None:
        self.place = place
        self._ask = ask
        self._open: OrderedDict[str, ShownTape] = OrderedDict()
        self._lock = threading.Lock()

    def paths(self) -> dict[str, Path]:
        """By name, in no order."""
        if self.place.is_file():
            return {self.place.name: self.place}
        try:
            found = [path for path in self.place.iterdir() if path.name.endswith(_ENDINGS) and path.is_file()]
        except OSError:
            return {}
        inside = self.place.resolve()
        return {path.name: path for path in found if path.resolve().parent == inside}

    def listed(self) -> Sequence[Listed]:
        rows = []
        for name, path in self.paths().items():
            try:
                status = path.stat()
            except OSError:  # deleted meanwhile
                continue
            rows.append(Listed(name, status.st_mtime, status.st_size, is_being_written(path)))
        return sorted(rows, key=lambda row: (-row.written, row.name))

    def open(self, name: str) -> ShownTape:
        path = self.paths()[name]
        with self._lock:
            shown = self._open.pop(name, None) or ShownTape(path, self._ask)
            self._open[name] = shown
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            return shown
