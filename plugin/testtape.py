"""The tape of a test, whether it is replayed or recorded: opened, led to, let go, judged. Knows nothing of pytest."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tapeproxy.plugin.modes import Mode, deed_of, is_expired
from tapeproxy.plugin.programs import (
    ANEW,
    FROZEN,
    UPDATE_IT,
    ProgramError,
    record_program,
    replay_program,
    update_program,
    wire_words,
)
from tapeproxy.proxy.inprocess.environments import RunEnvironment
from tapeproxy.proxy.inprocess.replays import Replay, TapeDriftError, TapeViolationError
from tapeproxy.proxy.inprocess.tapes import load_again
from tapeproxy.proxy.owntape import OwnTape
from tapeproxy.proxy.recorded import can_record
from tapeproxy.proxy.tapefile import is_locked
from tapeproxy.proxy.testplaces import SUFFIX, program_path
from tapeproxy.tapes.errors import NoTapeError, Place, TapeproxyError, UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redactionrules import DEFAULT
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.plugin.programs import ProgramRun
    from tapeproxy.proxy.inprocess.recordings import Record
    from tapeproxy.proxy.inprocess.updates import Update


_RECORD_IT = "record it with --tape-mode=once, and commit it"
_NO_RECORDER = "recording it needs mitmproxy: pip install '.[record]' (in a clone of tapeproxy)"


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeOptions:
    """What the marker, `tape_config` and the command line say. `hosts` and `upstream_ca` are for recording alone.

    `accept`: an updated tape takes the old one's place at once. `shared`: other tests have it, too, and may not
    run now, so that an update leaves on it what nobody asks for. `frozen`: `mode` never records it.
    """

    mode: Mode
    rules: Iterable[str] = ()
    allow: Iterable[str] = ()
    block_network: bool = True
    match: Literal["lane", "any"] = "lane"
    on_drift: Literal["fail", "report"] = "fail"
    max_age: timedelta | None = None
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    upstream_ca: str | None = None
    accept: bool = False
    shared: bool = False
    frozen: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError: a wrong word would let pass what it should fail."""
        for name, known in (("match", ("lane", "any")), ("on_drift", ("fail", "report"))):
            if getattr(self, name) not in known:
                raise UsageError(f"{name} is {' or '.join(known)}, not {getattr(self, name)!r}")


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
        self._missing = not path.exists()
        self._programs = 0
        self._drifts_told = 0
        self._failure_told = False
        self._begun = datetime.now(UTC).isoformat()
        self.programs: list[Mapping[str, Any]] = []
        """The reports of the programs that were replayed."""
        self._owns: dict[int, Path] = {}
        self._made: tempfile.TemporaryDirectory[str] | None = None
        self._recorded: dict[Path, Path] = {}
        self._changed: dict[Path, Path] = {}
        self._record: Record | None = None
        self._replay: Replay | None = None
        self._update: Update | None = None
        tape = None if self._missing else self._load()
        self.updated: list[tuple[Path, str]] = []
        """The tapes that were made anew in part, and how they differ, in lines."""
        deed = deed_of(options.mode, exists=not self._missing, expired=self.expired)
        if deed == "record" and options.mode == "once" and self._missing and not can_record():
            deed = "replay"  # of nothing: a test that asks fails at once, where a client would try again and again
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
            self._replay.own = OwnTape() if self._missing or not is_locked(path) else None
            self._replay.open(tape or _nothing())

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
        self._programs += 1
        path = program_path(self.path, self._programs)
        options = {"cwd": cwd, "environment": environment, "timeout": timeout}
        deed = deed_of(self.options.mode, exists=path.exists(), expired=False)
        if deed == "update" and self.options.mode == "update":
            fresh = self._fresh(path)
            self._changed[fresh] = path
            wire = wire_words(self.options.hosts, self.options.upstream_ca)
            return update_program(path, fresh, argv, wire, self.options.rules, **options)
        if deed == "record":
            fresh = self._fresh(path)
            self._recorded[fresh] = path
            return record_program(fresh, argv, self.options.hosts, self.options.upstream_ca, **options)
        if not path.exists():
            raise NoTapeError("there is no such tape yet", place=Place(str(path)), fix=_RECORD_IT)
        own = self._owns[self._programs] = self._folder() / f"{self._programs}{SUFFIX}"
        try:
            done = replay_program(path, argv, self.options.rules, own, **options)
        except ProgramError as error:
            self.programs.append(error.report)
            if self.options.frozen:
                raise ProgramError(path, error.what, error.report, fix=FROZEN) from None
            raise
        self.programs.append(done.report)
        return done

    # --- for the plugin ----------------------------------------------------------------------------------------

    def resume(self, root: str) -> None:
        """Lead the interpreter's clients to the tape; the test's own flow is the lane `root`."""
        if self._replay is not None:
            self._replay.resume(root)
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
        if self._made is not None:
            self._made.cleanup()
        if self._replay is not None:
            self._replay.close()
        for fresh, path in self._recorded.items():
            _settle(fresh, path if keep else None)
        for fresh, path in self._changed.items():
            if keep and fresh.exists():
                self._show(fresh, path)
            _settle(fresh, None)
        if self._update is not None:
            self._update.finish()
            self._settle_update(self._update, keep=keep)
        elif self._record is not None and self._record.opened:
            recorded = self._record.finish()
            _settle(self._record.path, self.path if keep and recorded.exchanges else None)

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
        if self.options.mode == "verify" and self.unused:
            listed = ", ".join(f"exchange {one.number}" for one in self.unused[:5])
            raise UnusedAnswersError(
                f"{len(self.unused)} answers were not asked for: {listed}",
                where=str(self.path),
                fix=self._if_meant(UPDATE_IT),
            )

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
        left: list[Path] = []
        if self._replay is not None and self._replay.own is not None and not self._replay.own.empty:
            left.append(stem.with_name(f"{stem.name}{SUFFIX}"))
            self._replay.write_own(left[-1])
        for number, own in self._owns.items():
            if own.exists():
                left.append(program_path(stem.with_name(f"{stem.name}{SUFFIX}"), number))
                shutil.copyfile(own, left[-1])
        return left

    def _advice(self) -> str:
        if self._missing:
            record_it = _RECORD_IT if self.options.mode != "once" else _NO_RECORDER
            return f"there is no such tape yet: {record_it}"
        if self._replay is not None and self._replay.tape.seal is None:
            return f"the tape was interrupted and may end before this; {ANEW}"
        return self._if_meant(UPDATE_IT)

    def _if_meant(self, advice: str) -> str:
        return FROZEN if self.options.frozen else advice

    def _folder(self) -> Path:
        """Where the tapes are of what programs did, until the test is over."""
        self._made = self._made or tempfile.TemporaryDirectory(prefix="tapeproxy-")
        return Path(self._made.name)

    def _begin_updating(self) -> None:
        from tapeproxy.proxy.inprocess.updates import Update

        options = self.options
        self._record = self._update = Update(
            self._fresh(self.path),
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
                self._show(update.path, self.path)
            else:
                self.updated.append((self.path, f"{update.forked.live} added"))
                _settle(update.path, self.path)
        _settle(update.path, None)

    def _show(self, fresh: Path, path: Path) -> None:
        """Say how a new tape differs, and leave it beside the old one, unless it is accepted already."""
        from tapeproxy.plugin.changes import change_lines
        from tapeproxy.proxy.pending import new_beside, replace_tape
        from tapeproxy.proxy.tapefile import load
        from tapeproxy.tapes.tapediff import diff_tapes

        diff = diff_tapes(load(path)[0], load(fresh)[0])
        said = ", ".join(f"{number} {kind}" for kind, number in diff.counts().items() if number)
        self.updated.append((path, "\n".join((said, *change_lines(diff)))))
        new = new_beside(path)
        fresh.replace(new)
        if self.options.accept:
            replace_tape(path, new, keep=False)

    @staticmethod
    def _fresh(path: Path) -> Path:
        """Where it is until the test has passed: a failing test must leave no tape to be replayed for ever."""
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.with_name(f".{os.getpid()}.{path.name}")

    def _begin_recording(self) -> None:
        from tapeproxy.proxy.inprocess.recordings import Record

        if self.options.mode == "rewrite":
            self.path.unlink(missing_ok=True)
        options = self.options
        self._record = Record(
            self._fresh(self.path),
            force=True,
            hosts=options.hosts,
            upstream_ca=options.upstream_ca,
            rules=options.rules,
        )
        if options.mode == "once":
            self._record.open_late()
        else:
            self._record.open()


def _nothing() -> Tape:
    """The tape of a test that has none: what is asked there is redacted as a recording of today would do."""
    return Tape(Head(started_at=datetime.now(UTC).isoformat(), rules=DEFAULT.to_json()), [])


def _settle(fresh: Path, path: Path | None) -> None:
    """Put a new tape into its place, or remove it."""
    if path is None:
        fresh.unlink(missing_ok=True)
    elif fresh.exists():
        fresh.replace(path)
