"""The tapes of a folder, for the page: opened when they are looked at, followed while they are recorded."""

import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tapeproxy.proxy.growing import GrowingTape
from tapeproxy.proxy.tapefile import is_being_written, is_locked, load, read_pieces
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.proxy.viewlist import Reader, about
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.errors import Place, TapeFormatError, TapeproxyError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.web.library import About, Listed, Looked, NotThereError

_ENDINGS = (".jsonl.gz", ".jsonl.gz.enc")
_OPEN = 4
"""Tapes that are kept in memory."""
type _Mark = tuple[int, int, int]


class ShownTape:
    """A tape that is looked at, from any thread: one at a time."""

    def __init__(self, path: Path, ask: Ask) -> None:
        self.path = path
        self.identity: str = secrets.token_hex(8)
        self._lock = threading.RLock()
        self._ordering = threading.Lock()
        self._ask = ask
        self._growing: GrowingTape | None = None
        self._whole: Looked | None = None
        self._mark: _Mark | None = None
        self._causality: tuple[Tape, int, Causality] | None = None
        self._serial = 1
        self._base = 1
        """The first number of what is there now: who knows an older one has to be told everything."""
        self._changed: dict[int, int] = {}
        """Of each exchange that came or grew while we looked, when that was."""
        self._kept: dict[str, str] = {}
        self._making = threading.Lock()

    def look(self) -> Looked:
        with self._lock:
            try:
                return self._look()
            except TapeproxyError:
                self._forget()
                raise
            except OSError as error:
                self._forget()
                why = f"the tape cannot be read: {(error.strerror or str(error)).lower()}"
                raise TapeFormatError(why, place=Place(str(self.path))) from None

    def since(self, serial: int) -> tuple[int, frozenset[int] | None, Looked]:
        with self._lock:
            looked = self.look()
            if serial < self._base:
                return self._serial, None, looked
            return self._serial, frozenset(number for number, at in self._changed.items() if at > serial), looked

    def kept(self, what: str, make: Callable[[Looked], str]) -> str:
        looked = self.look()
        if looked.ending is None:
            return make(looked)
        with self._making:  # who asks for the same meanwhile gets it as soon as it is there
            known = self._kept.get(what) if looked is self._whole else None
            if known is None:
                known = make(looked)
                with self._lock:
                    if looked is self._whole:
                        self._kept[what] = known
            return known

    def causality(self) -> Causality:
        with self._ordering:
            with self._lock:
                looked = self.look()
                if looked.ending is None:  # it may grow meanwhile
                    return self._ordered(looked.tape)
            # It takes as long as reading the tape: who wants to see that need not wait.
            return self._ordered(looked.tape)

    def _ordered(self, tape: Tape) -> Causality:
        known, found = len(tape.exchanges) + len(tape.edges), self._causality
        if found is None or found[0] is not tape or found[1] != known:
            found = self._causality = (tape, known, Causality.of(tape))
        return found[2]

    def file(self) -> Iterator[bytes] | None:
        return None if is_locked(self.path) else read_pieces(self.path)

    def _look(self) -> Looked:
        mark = _mark(self.path.stat())
        if self._whole is not None and mark == self._mark:
            return self._whole
        if self._whole is not None:  # it was written anew
            self._forget()
        writing = is_being_written(self.path)  # before the rest is read: what comes after it is the last
        if self._growing is None and writing and not is_locked(self.path):
            self._growing = GrowingTape(self.path)
        if self._growing is not None:
            self._advance(self._growing)
            if self._growing.ending is None and writing:
                return Looked(self._growing.tape, None)
            # It has ended, with a seal or without. From here on it is read as any other.
            self._forget()
        tape, ending = load(self.path, self._ask)
        self._whole, self._mark = Looked(tape, ending), mark
        return self._whole

    def _advance(self, growing: GrowingTape) -> None:
        changed = growing.advance()
        if changed:
            self._serial += 1
            self._changed |= dict.fromkeys(changed, self._serial)

    def _forget(self) -> None:
        self._growing = self._whole = self._mark = self._causality = None
        self._changed.clear()
        self._kept = {}
        self._serial += 1
        self._base = self._serial


class TapeFolder:
    """The tapes of a folder, or one tape alone, by their names: nothing else can be opened."""

    def __init__(self, place: Path, ask: Ask = ask_environment) -> None:
        self.place = place
        self._ask = ask
        self._open: OrderedDict[str, ShownTape] = OrderedDict()
        self._abouts: dict[str, tuple[_Mark, bool, About]] = {}
        self._lock = threading.Lock()
        self._reading = threading.Lock()

    def paths(self) -> dict[str, Path]:
        """By name, in no order."""
        if self.place.is_file():
            return {self.place.name: self.place}
        try:
            found = [path for path in self.place.iterdir() if path.name.endswith(_ENDINGS) and path.is_file()]
            inside = self.place.resolve()
            return {path.name: path for path in found if path.resolve().parent == inside}
        except OSError:
            return {}

    def path(self, name: str) -> Path:
        """Where a tape of the list is. Raises NotThereError."""
        try:
            return self.paths()[name]
        except KeyError:
            raise NotThereError(name) from None

    def listed(self) -> Sequence[Listed]:
        rows = []
        for name, path in self.paths().items():
            try:
                status = path.stat()
            except OSError:  # deleted meanwhile
                continue
            rows.append(Listed(name, status.st_mtime, status.st_size, is_being_written(path)))
        return sorted(rows, key=lambda row: (-row.written, row.name))

    def about(self, name: str) -> About:
        path = self.path(name)
        try:
            mark = _mark(path.stat())
        except OSError:
            raise NotThereError(name) from None
        with self._reading:  # a folder has many tapes, and to read them takes all of a processor
            writing = is_being_written(path)
            known = self._abouts.get(name)
            if known is None or known[:2] != (mark, writing):
                told = about(path, self._opened(name), writing=writing)
                known = self._abouts[name] = (mark, writing, told)
            return known[2]

    def _opened(self, name: str) -> Reader:
        """How to read a tape for the list: one that is open, or is being opened, is not read once more."""
        with self._lock:
            shown = self._open.get(name)
        return Reader(self._ask, None if shown is None else lambda: shown.look().tape)

    def open(self, name: str) -> ShownTape:
        path = self.path(name)
        with self._lock:
            shown = self._open.pop(name, None) or ShownTape(path, self._ask)
            self._open[name] = shown
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            return shown


def _mark(status: os.stat_result) -> _Mark:
    return status.st_ino, status.st_mtime_ns, status.st_size
