"""A tape as the wire sees it, with the shims' sidecar files followed. Knows what comes first, and what is lost when."""

import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.proxy.iovalues import ValueReader
from tapeproxy.proxy.recorded import Events, RecordSettings
from tapeproxy.proxy.servedrequests import ServedRequests
from tapeproxy.proxy.sidecar import Line, Sidecars, to_record
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.hints import CALLS, HINTS
from tapeproxy.tapes.mcptaping import McpTaping
from tapeproxy.tapes.records import Head, Record, Request
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.troubles import Troubles

if TYPE_CHECKING:
    from tapeproxy.proxy.unlocking import Secret
    from tapeproxy.tapes.encryptedframes import Framer


type Lost = Callable[[str], None]
"""Told once, at the moment when a tape stops being whole, and why. Must not raise."""


def _framer(secret: "Secret | None") -> "Framer | None":
    if secret is None:
        return None
    from tapeproxy.proxy.encrypting import framer

    return framer(secret)


def unheard(_: str) -> None:
    pass


class FollowedTape:
    """The tape as the wire sees it, with the shims' sidecar files followed.

    Before a request is taped, so is everything that the shims have written until then: a request never stands on a
    tape before the clock reading that it was made from. Nobody can reach the wire before `writer` is there.
    """

    writer: TapeWriter

    def __init__(self, redactor: Redactor, strangers: Strangers, lost: Lost = unheard) -> None:
        self.lost = lost
        self.heard: Callable[[Line], None] = lambda _line: None
        """Called with each line of the shims, before it is taped."""
        self.troubles = Troubles()
        self._strangers = strangers
        self.bypasses: Counter[tuple[str, str]] = Counter()
        self.values = 0
        self.calls = 0
        self._redactor = redactor
        self._sidecars: Events | None = None
        self._epoch = 0
        self._tmpdir: Path | None = None
        self._values: ValueReader | None = None
        self._served = ServedRequests()
        self._mcp: McpTaping | None = None

    def create(self, settings: RecordSettings, head: Head) -> None:
        """Make the file. Raises TapeExistsError, TapeWriteError."""
        self.writer = TapeWriter(
            settings.tape,
            head,
            force=settings.force,
            fsync=settings.fsync,
            failed=lambda error: self.lost(str(error)),
            framer=_framer(settings.secret),
        )

    def follow(self, folder: Path, epoch: int, tmpdir: str, seed: str) -> None:
        """Follow the sidecar files in `folder`. `epoch`: the tape's start in nanoseconds since 1970."""
        self._sidecars, self._epoch, self._tmpdir = Sidecars(folder), epoch, Path(tmpdir)
        self._values = ValueReader(self._redactor, bytes.fromhex(seed), epoch)

    def hear(self, events: Events, epoch: int) -> None:
        """Tape what a shim in this very interpreter tells. `epoch` as above."""
        self._sidecars, self._epoch = events, epoch

    def pythons(self) -> list[str]:
        """The versions of the run's interpreters, as far as the shim said."""
        lines = [] if self._sidecars is None else [line for line in self._sidecars.processes if "python" in line]
        return list(dict.fromkeys(str(line["python"]) for line in lines))

    def redact(self, text: str) -> str:
        """`text` without secrets."""
        return self._redactor.text(text)

    def now(self) -> int:
        return self.writer.now()

    def add(self, record: Record) -> int:
        if isinstance(record, Request):
            self.drain()
        return self.writer.add(record)

    def commit(self) -> None:
        self.writer.commit()

    def drain(self) -> None:
        """Tape what the shims have written since the last time."""
        if self._sidecars is None:
            return
        for line in self._sidecars.drain():
            self._take(line)

    def untagged(self, port: int) -> None:
        """A request without a lane came from this port: tape it if a Python made it."""
        if isinstance(self._sidecars, Sidecars):
            self.drain()
            line = self._strangers.meet(port, self._sidecars.pids)
            if line is not None:
                self._take(line)

    def serving(self, port: int, number: int, request: str) -> None:
        """A request of the run was passed on to one of its servers: see ServedRequests."""
        for line in self._served.learn(port, number, request):
            self._take(line)

    def end_servers(self) -> None:
        """The run is over, and so are the MCP servers on stdio whose end nobody told of."""
        if self._mcp is not None:
            self._mcp.finish(self.now())

    def _take(self, line: Line) -> None:
        if line["k"] == "mcp":
            # One sidecar line may be several records, and a request is named by the number of its own.
            self._mcp = self._mcp or McpTaping(self._redactor, self._epoch, self.writer)
            self._mcp.take(line, self.writer.now())
            return
        known = self._served.resolve(line)
        if known is None:
            return
        line = known
        self.heard(line)
        self.troubles.take(line | {"text": self._redactor.text(str(line.get("text", "")))})
        record = self._record(line)
        if record is not None:
            self.writer.add(record)
        if line["k"] == "bypass" and line.get("what") != "lookup":
            self.bypasses["bypass", self._redactor.text(str(line.get("address")))] += 1

    def _record(self, line: Line) -> Record | None:
        if line["k"] == "value" and self._values is not None:
            self.calls += line.get("what") in CALLS
            self.values += line.get("what") not in HINTS
            return self._values.read(line, self.writer.now())
        return to_record(line, self.writer.now(), self._epoch, self._redactor)

    def close(self) -> None:
        """Remove the sidecar files, and the run's TMPDIR if the agent left nothing in it."""
        if self._sidecars is not None:
            self._sidecars.close()
        if self._tmpdir is not None:
            with contextlib.suppress(OSError):
                self._tmpdir.rmdir()
