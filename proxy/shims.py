"""The shims of a replay: what they are told, and what becomes of what they report."""

import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shimming import (
    IoMode,
    IoSettings,
    ShimSettings,
    epoch_ns,
    hash_seed_for,
    make_tmpdir,
    new_seed,
    shim_environment,
    write_reads,
)
from tapeproxy.proxy.sidecar import Line, Sidecars
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.iovalues import ValueCheck
    from tapeproxy.proxy.tracing import TraceLines

CLOCK_READS = "clock reads of the lane"
"""Where a drift differs that is a lane's reading on past its end on the tape."""
_PAST_END = "clock-past-end"


class Shims:
    """The shims of one replay of one tape.

    A refused connection is a violation; a clock read past the end of the tape is a drift; a changed environment
    variable and every other note are collected in `notes`. Where there is a `trace`, every read is told and put there.
    """

    def __init__(
        self,
        tape: Tape,
        replayer: Replayer,
        redactor: Redactor,
        *,
        trace: "TraceLines | None" = None,
        io: IoMode | None = None,
    ) -> None:
        self.notes: list[str] = []
        self.trace = trace
        self._tape = tape
        self._io: IoMode = io or ("verify" if tape.head.io else "live")
        self._values = None if self._io == "live" else _value_check(tape, redactor, replayer)
        self._replayer = replayer
        self._redactor = redactor
        self._folder = Path(tempfile.mkdtemp(prefix="tapeproxy-replay-"))
        self._sidecars = Sidecars(self._folder)
        # A secret that is absent has a placeholder, and another key is what a replay is for.
        self._digests = {env.name: env.digest for env in tape.envs if env.name not in tape.head.secrets}
        self._tmpdir = Path(make_tmpdir(tape.head.tmpdir))
        self._found = set(self._tmpdir.iterdir())

    def variables(self, parent: Mapping[str, str], proxy: str) -> dict[str, str]:
        """The variables for the agent's processes."""
        head = self._tape.head
        epoch = epoch_ns(head.started_at)
        reads = self._folder / "reads"
        write_reads(self._tape, reads)
        settings = ShimSettings(
            mode="replay",
            seed=head.seed or new_seed(),
            hash_seed=head.hash_seed or hash_seed_for(parent),
            tmpdir=str(self._tmpdir),
            origin_ns=epoch + (head.origin or 0),
            sidecar=self._folder,
            proxy=proxy,
            reads=reads,
            strict=True,
            trace=self.trace is not None,
            io=self._io_settings(),
        )
        return shim_environment(parent, settings)

    def _io_settings(self) -> IoSettings | None:
        if self._io == "live":
            return None
        from tapeproxy.proxy.iovalues import write_values

        values, overlay = self._folder / "values", self._folder / "overlay"
        write_values(self._tape, values)
        if self._io == "virtual":
            overlay.mkdir(mode=0o700)
        return IoSettings(mode=self._io, base=str(Path.cwd()), values=values, overlay=overlay)

    def drain(self) -> None:
        """Take what the shims have written since the last time."""
        for line in self._sidecars.drain():
            self._take(line)

    def close(self, *, sweep: bool = False) -> None:
        """Remove what was made for the shims; `sweep`: and whatever the agent has put into its TMPDIR.

        What has come through pipes is compared now, as all of it has come.
        """
        if self._values is not None:
            self._values.finish()
        self._sidecars.close()
        with contextlib.suppress(OSError):  # the agent may have removed it, or shut us out
            for path in set(self._tmpdir.iterdir()) - self._found if sweep else ():
                _remove(path)
        with contextlib.suppress(OSError):
            self._tmpdir.rmdir()

    def _take(self, line: Line) -> None:
        text = self._redactor.text
        match line:
            case {"k": "site" | "read" | "hello"} if self.trace is not None:
                self.trace.take(line, text)
            case {"k": "value"}:
                if self._values is not None:
                    self._values.take(line)
            case {"k": "violation", "address": address}:
                where = text(str(line.get("where", "")))
                what = f"the agent tried to reach {text(str(address))} past the proxy, and was refused"
                self._replayer.violate(Violation("egress", f"{line.get('what', 'connect')} at {where}", what))
            case {"k": "note", "what": what, "data": {"grade": "violation"}} if (
                what == _PAST_END and not self._replayer.injected
            ):
                self._replayer.drift(_past_end(line, text(str(line.get("text", what)))))
            case {"k": "note", "what": what}:
                self.notes.append(text(f"{what}: {line.get('text', '')}"))
            case {"k": "env", "name": str(name)} if name in self._digests:
                if line.get("digest") != self._digests[name]:
                    self.notes.append(f"the environment variable {name} is not what it was")
            case _:
                pass


def _remove(path: Path) -> None:
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _past_end(line: Line, text: str) -> Drift:
    """A lane that reads the clock more often than on the tape. The number of its request is not known here."""
    from tapeproxy.tapes.differences import Difference

    match line.get("data"):
        case {"lane": str(lane), "reads": int(reads), "taped": int(taped)}:
            found = Difference(CLOCK_READS, str(taped), "more")
            return Drift(f"lane {lane}", text, (found,), LaneTag(lane, -1, reads))
        case _:
            return Drift("lane ?", text)


def _value_check(tape: Tape, redactor: Redactor, replayer: Replayer) -> "ValueCheck":
    from tapeproxy.proxy.iovalues import ValueCheck  # a replay without --io starts without it

    return ValueCheck(tape, redactor, replayer.drift)
