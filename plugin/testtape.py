"""The tape of a test, whether it is replayed or recorded: opened, led to, let go, judged. Knows nothing of pytest."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tapeproxy.plugin.freshtapes import fresh, nothing, put_beside, settle
from tapeproxy.plugin.modes import deed_of, is_expired
from tapeproxy.plugin.options import TapeOptions
from tapeproxy.plugin.programs import ANEW, FROZEN, UPDATE_IT, record_it
from tapeproxy.plugin.testprograms import TestPrograms, unasked
from tapeproxy.proxy.inprocess.environments import RunEnvironment
from tapeproxy.proxy.inprocess.replays import Replay, TapeDriftError, TapeViolationError
from tapeproxy.proxy.inprocess.tapes import load_again
from tapeproxy.proxy.owntape import OwnTape
from tapeproxy.proxy.recorded import can_record
from tapeproxy.proxy.tapefile import is_locked
from tapeproxy.proxy.testplaces import SUFFIX
from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.outcomes import broke_off
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.plugin.programs import ProgramRun
    from tapeproxy.proxy.inprocess.recordings import Record
    from tapeproxy.proxy.inprocess.updates import Update


class Mark(NamedTuple):
    """How far a tape is at a moment: violations and drifts, the numbers of what was answered, programs."""

    violations: int
    drifts: int
    answered: frozenset[int]
    programs: int


class UnusedAnswersError(TapeproxyError):
    """In the mode `verify`: the test did not ask for all that is on its tape."""


class TestTape:
    """What a test gets as `tape`."""

    __test__ = False  # for pytest, which looks at the name

    def __init__(self, path: Path, options: TapeOptions) -> None:
        """Open the tape, or a recording. Raises what reading a tape raises."""
        self.path = path
        self.options = options
        self.expired = False
        self.missing = not path.exists()
        self._programs = TestPrograms(path, options)
        self._drifts_told = 0
        self._failure_told = False
        self._begun = datetime.now(UTC).isoformat()
        self._record: Record | None = None
        self._replay: Replay | None = None
        self._update: Update | None = None
        tape = None if self.missing else self._load()
        self.updated: list[tuple[Path, str]] = []
        """The tapes that were made anew in part, and how they differ, in lines."""
        # Where there is neither tape nor recorder, of nothing: a client that can't record would try again and again.
        recorder = not (self.missing or self.expired) or can_record()
        deed = deed_of(options.mode, exists=not self.missing, expired=self.expired, recorder=recorder)
        if deed == "record":
            self._begin_recording()
        elif deed == "update":
            self._begin_updating()
        else:
            self._replay = Replay(
                path,
                rules=options.rules,
                allow=options.allow,
                block_network=options.block_network,
                match=options.match,
            )
            self._replay.own = OwnTape() if self.missing or not is_locked(path) else None
            self._replay.open(tape or nothing())

    def _load(self) -> Tape | None:
        if self.options.mode in ("all", "rewrite"):  # what is there may be anything
            return None
        tape = load_again(self.path)
        self.expired = is_expired(tape.head.started_at, self.options.max_age, datetime.now(UTC))
        return tape

    # --- for tests ---------------------------------------------------------------------------------------------

    @property
    def recording(self) -> bool:
        """Whether the world is asked."""
        return self._record is not None

    @property
    def updating(self) -> bool:
        """Whether the world is asked for what is not on the tape, and for nothing else."""
        return self._update is not None

    @property
    def violations(self) -> list[Violation]:
        """What was asked that is not on the tape."""
        if self._update is not None:
            return self._update.violations
        return [] if self._replay is None else self._replay.violations

    @property
    def drifts(self) -> list[Drift]:
        """Where the test came another way to what is on the tape."""
        return [] if self._replay is None else self._replay.drifts

    @property
    def environment(self) -> RunEnvironment:
        """What the environment was when the tape was recorded; while it is, what it is."""
        return RunEnvironment.here(self._begun) if self._replay is None else self._replay.environment

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The taped exchanges whose answers were given; none while it is recorded."""
        return [] if self._replay is None else self._replay.exchanges

    @property
    def unused(self) -> Sequence[Exchange]:
        """Those that nobody asked for."""
        return [] if self._replay is None else self._replay.unused

    @property
    def trace_hash(self) -> str:
        """The trace hash of the answers that were given; empty while it is recorded."""
        return "" if self._replay is None else self._replay.trace_hash

    @property
    def old_programs(self) -> Sequence[Path]:
        """The tapes of programs that were replayed though they are older than they may be."""
        return self._programs.expired

    @property
    def programs(self) -> Sequence[Mapping[str, Any]]:
        """The reports of the programs that were replayed."""
        return self._programs.reports

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> "ProgramRun":
        """Run a program on a tape of its own: TEST.run1 and so on. `environment` is added; `timeout` in seconds.

        Raises ProgramError where it did what is not on its tape; what the program itself exits with is for the test to
        judge. Raises subprocess.TimeoutExpired, and NoTapeError in a mode that does not record.
        """
        return self._programs.run(argv, cwd=cwd, environment=environment, timeout=timeout)

    # --- for the plugin ----------------------------------------------------------------------------------------

    def resume(self, root: str, whose: str, tell: Callable[[str, Violation], object]) -> None:
        """Lead the interpreter's clients to the tape; the test's own flow is the lane `root`.

        `tell` is called with `whose` and a violation when a thread of the test asks for something after its end.
        """
        if self._replay is not None:
            self._replay.latecomers.tell = tell
            self._replay.resume(root, whose)
        elif self._record is not None:
            self._record.resume(root)

    def suspend(self) -> None:
        """Let them go."""
        if self._replay is not None:
            self._replay.suspend()
        elif self._record is not None:
            self._record.suspend()

    def close(self, *, keep: bool) -> None:
        """End it; `keep`: what was recorded takes its place. Raises TapeWriteError where that is not whole."""
        keep = keep or self.options.mode == "rewrite"
        if self._replay is not None:
            self._replay.close()
        self.updated += self._programs.close(keep=keep)
        if self._update is not None:
            self._update.finish()
            self._settle_update(self._update, keep=keep)
        elif self._record is not None and self._record.opened:
            recorded = self._record.finish()
            settle(self._record.path, self.path if keep and recorded.exchanges else None)

    def check(self, since: int, cause: BaseException | None) -> None:
        """Raise TapeViolationError for the violations after the first `since`, TapeDriftError for new drifts."""
        __tracebackhide__ = True
        if self._replay is not None:
            self._replay.look_around()
        drifts, self._drifts_told = self.drifts[self._drifts_told :], len(self.drifts)
        if new := self.violations[since:]:
            raise TapeViolationError(self.path, new, fix=self._advice()) from cause
        if drifts and self.options.on_drift == "fail":
            raise TapeDriftError(self.path, drifts, fix=self._if_meant(ANEW)) from cause
        if self._record is not None and self._record.failure is not None and not self._failure_told:
            self._failure_told = True
            raise self._record.failure from cause

    def check_unused(self) -> None:
        """Raise UnusedAnswersError, in the mode that asks for it."""
        __tracebackhide__ = True
        if self.options.mode == "verify" and (left := [*self._left_over()]):
            raise UnusedAnswersError("\n".join(left), where=str(self.path), fix=self._if_meant(UPDATE_IT))

    def _left_over(self) -> Iterator[str]:
        """What of its tapes the test did not ask for or say, and its programs."""
        if self.unused:
            yield unasked([one.number for one in self.unused])
        if self._replay is not None:
            yield from (one.to_text() for one in self._replay.unsaid())
        yield from self._programs.left_over()

    def mark(self) -> "Mark":
        """How far it is now."""
        answered = frozenset(one.number for one in self.exchanges)
        return Mark(len(self.violations), len(self.drifts), answered, len(self.programs))

    def facts(self, since: "Mark") -> dict[str, Any]:
        """What a replay has to say of what came after a mark, for JSON."""
        from tapeproxy.tapes.usage import usage_of, waited_ns

        answered = [one for one in self.exchanges if one.number not in since.answered]
        return {
            "tape": str(self.path),
            "exchanges": len(answered) + len(self.unused),
            "violations": [found.to_json() for found in self.violations[since.violations :]],
            "drifts": [found.to_json() for found in self.drifts[since.drifts :]],
            "notes": [] if self._replay is None else list(self._replay.notes),
            "answered": [one.number for one in answered],
            "unused": [one.number for one in self.unused],
            "trace": self.trace_hash,
            "waited_ns": waited_ns(answered),
            "usage": [one.to_json() for one in usage_of(answered)],
            "programs": self.programs[since.programs :],
        }

    def leave(self, stem: Path) -> list[Path]:
        """Leave the tapes of what was done, of the test and of its programs, as STEM.tape.jsonl.gz and so on."""
        left = [*self._programs.leave(stem)]
        if self._replay is not None and self._replay.own is not None and not self._replay.own.empty:
            left.insert(0, stem.with_name(f"{stem.name}{SUFFIX}"))
            self._replay.write_own(left[0])
        return left

    def _advice(self) -> str:
        if self.missing:
            return f"there is no such tape yet: {record_it(self.options.mode)}"
        if self._replay is not None and broke_off(self._replay.tape.seal):
            return f"the tape was interrupted and may end before this; {ANEW}"
        return self._if_meant(UPDATE_IT)

    def _if_meant(self, advice: str) -> str:
        return FROZEN if self.options.frozen else advice

    def _begin_updating(self) -> None:
        from tapeproxy.proxy.inprocess.updates import Update

        options = self.options
        self._record = self._update = Update(
            fresh(self.path),
            self.path,
            keep="all" if options.mode == "new" or options.shared else "asked",
            hosts=options.hosts,
            upstream_ca=options.upstream_ca,
            rules=options.rules,
        )
        self._record.open()

    def _settle_update(self, update: "Update", *, keep: bool) -> None:
        """Put the new tape beside the old one, or into its place; or away."""
        if keep and update.changed and not update.violations:
            if self.options.mode == "update":
                told = put_beside(update.path, self.path, accept=self.options.accept)
                self.updated.append((self.path, told))
            else:
                self.updated.append((self.path, f"{update.forked.live} added"))
                settle(update.path, self.path)
        settle(update.path, None)

    def _begin_recording(self) -> None:
        from tapeproxy.proxy.inprocess.recordings import Record

        if self.options.mode == "rewrite":
            self.path.unlink(missing_ok=True)
        options = self.options
        self._record = Record(
            fresh(self.path),
            force=True,
            hosts=options.hosts,
            upstream_ca=options.upstream_ca,
            rules=options.rules,
        )
        if options.mode == "once":
            self._record.open_late()
        else:
            self._record.open()
