"""The tape of what a replay did: gathered while it goes on, written whole when it is over. Holds clock and file.

It is no recording: nothing of it is there if the replay is killed. What the shim would tape is not on it, but for what
the agent's hints tell.
"""

import os
import platform
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import tapeproxy
from tapeproxy.proxy.drafts import drafted
from tapeproxy.proxy.hintvalues import since
from tapeproxy.proxy.origin import origin_mark
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.shimming import epoch_ns
from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.proxy.tapefile import started_at
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.ownrecords import Asked, Event, own_records
from tapeproxy.tapes.records import Exit, Head, Record, Seal, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.rewriting import encoded
from tapeproxy.tapes.violations import Drift, Violation


class OwnTape:
    """Hears what a replay is asked and finds; `write` makes a tape of it."""

    def __init__(self, now: Callable[[], int] = time.monotonic_ns) -> None:
        self._started_at = started_at()
        self._now = now
        self._began = now()
        self._events: list[Event] = []

    @property
    def empty(self) -> bool:
        """Whether nothing was asked and nothing found."""
        return not self._events

    def witness(self, step: Step) -> None:
        """A request was made (`Replayer.witness`)."""
        self._events.append(Asked(self._now() - self._began, step))

    def notice(self, found: Violation | Drift) -> None:
        """Something was found (`Replayer.noticed`): of the request before it, or of something else."""
        last = self._events[-1] if self._events else None
        if isinstance(found, Violation) and isinstance(last, Asked):
            last.refuse(found)
        self._events.append((self._now() - self._began, found))

    def hear(self, value: Value) -> None:
        """A hint of the agent came (`HintCheck.heard`)."""
        value = since(value, epoch_ns(self._started_at))
        self._events.append(replace(value, t=self._now() - self._began))

    def write(
        self, path: Path, tape: Tape, redactor: Redactor, argv: Sequence[str] = (), outcome: Outcome | None = None
    ) -> None:
        """Write it, in place of what is at `path`. `tape`: the one that was replayed. `outcome`: of a program of ours.

        Raises TapeWriteError.
        """
        t = self._now() - self._began
        argv = redactor.argv(tuple(argv))
        records: list[Record] = [
            self._head(tape, redactor, argv),
            *own_records(self._events, lambda number: tape.exchanges[number - 1]),
        ]
        ended = "stopped"
        if outcome is not None:
            records.append(Exit(t=t, code=outcome.code, signal=outcome.signal, duration=outcome.duration_ns))
            ended = outcome.stopped_by or ("exited" if outcome.signal is None else "killed")
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path, force=True) as file:
            file.writelines(encoded(records, Seal(t=t, records=0, trace="", outcome=ended)))

    def _head(self, tape: Tape, redactor: Redactor, argv: tuple[str, ...]) -> Head:
        of = {"trace": None if tape.seal is None else tape.seal.trace, "started_at": tape.head.started_at}
        return Head(
            must=("like",),
            window=WINDOW,
            by=f"tapeproxy {tapeproxy.__version__}",
            started_at=self._started_at,
            argv=argv,
            cwd=redactor.text(os.getcwd()),  # noqa: PTH109 - as text
            host=origin_mark(load_key(), socket.gethostname(), argv, self._started_at),
            platform=platform.platform(),
            python=platform.python_version(),
            secrets=tape.head.secrets,
            rules=tape.head.rules,
            extra={"replay_of": of},
        )
