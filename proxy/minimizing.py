"""What of a tape does a failure need? The search of `minimize` from its settings to the new tape.

Knows the order of things and files; `proxy/trials.py` makes the trials, `tapes/minimized.py` says what the tape holds.
"""

import asyncio
import dataclasses
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tapeproxy
from tapeproxy.proxy.checks import Check
from tapeproxy.proxy.drafts import drafted
from tapeproxy.proxy.origin import origin_mark
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replaying import Wire
from tapeproxy.proxy.supervisor import StopSignal, held_signals
from tapeproxy.proxy.tapedrun import taped_redactor
from tapeproxy.proxy.tapefile import is_locked, load, read_entries
from tapeproxy.proxy.trials import EnoughError, Probed, Trial, Trials, TrialSettings, outputs_in, serves_reads
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.minimized import minimized_records
from tapeproxy.tapes.neutraltapes import Named, NeutralTape, key_json
from tapeproxy.tapes.records import Exit, Head, Json, Seal
from tapeproxy.tapes.rewriting import encoded
from tapeproxy.tapes.violations import Drift, Violation

_WAIT = 0.05
_STOPPED = "it was stopped"
_LISTED = 1000
"""Values that the new tape's head lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimizeSettings:
    """What to minimize. `check` None: the failure is the agent's exit code, and where it has one its traceback's end.

    `jobs` agents run at the same time, `most` probes are made (None: as many as it takes). `text` is what a model says
    in a neutral answer. `replay` says how the agent is run; its `match` is ours.
    """

    replay: ReplaySettings
    output: Path
    check: Check | None = None
    jobs: int = 1
    most: int | None = None
    text: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Minimized:
    """What came of it. `kept` of `values` are needed. `stopped`: by what the search ended early (empty: it did not).

    `interrupted`: that was a signal. `reads`: some of the values were read from files, which a replay serves with --io.

    `differences`: what a replay of the new tape, which compares, finds other than on it, in words.

    `exchanges` are on the new tape, `of` were on the old one; `failure` says in words what the probes looked for.
    """

    path: Path
    kept: tuple[Named, ...]
    values: int
    exchanges: int
    of: int
    probes: int
    took_ns: int
    failure: str
    stopped: str = ""
    interrupted: bool = False
    reads: bool = False
    differences: tuple[str, ...] = ()

    def to_json(self) -> Json:
        return {
            "tape": str(self.path),
            "kept": [value.to_json() for value in self.kept],
            "values": self.values,
            "exchanges": self.exchanges,
            "of_exchanges": self.of,
            "probes": self.probes,
            "took_ns": self.took_ns,
            "failure": self.failure,
            "stopped": self.stopped or None,
            "differences": list(self.differences),
        }


def minimize_tape(settings: MinimizeSettings, told: Callable[[Probed], None]) -> Minimized:
    """Search, and write the tape. Ctrl-C ends the search, and the best so far is written.

    Raises TapeFormatError, TapeWriteError, CheckError, the supervisor's errors, and UsageError where there is nothing
    to search for. Agents run beside each other, which the signals of one process are no match for: so the event loop is
    in a thread, and signals are this one's.
    """
    if is_locked(settings.replay.tape):
        fix = "decrypt it first, and encrypt the small tape"
        raise UsageError(
            "the tape is encrypted, and the small one would not be", where=str(settings.replay.tape), fix=fix
        )
    if settings.output.exists() and not settings.force:
        with drafted(settings.output):  # an error now, and not in half an hour
            pass
    stop = threading.Event()
    done: list[Minimized | BaseException] = []

    def run() -> None:
        try:
            done.append(asyncio.run(_minimize(settings, told, stop)))
        except BaseException as error:
            done.append(error)

    with held_signals() as signals:
        thread = threading.Thread(target=run, name="minimize")
        thread.start()
        while thread.is_alive():
            thread.join(_WAIT)
            if signals:
                stop.set()
    (result,) = done
    if isinstance(result, BaseException):
        raise result
    return result


async def _minimize(settings: MinimizeSettings, told: Callable[[Probed], None], stop: threading.Event) -> Minimized:
    begun = time.monotonic_ns()
    tape, ending = load(settings.replay.tape, settings.replay.ask)
    values = NeutralTape(tape, settings.text, reads=serves_reads(tape))

    def write(trial: Trial, path: Path) -> None:
        _write(settings, values, trial, path)

    with tempfile.TemporaryDirectory(prefix="tapeproxy-minimize-") as folder:
        how = TrialSettings(
            replay=settings.replay,
            folder=Path(folder),
            write=write,
            check=settings.check,
            jobs=settings.jobs,
            most=settings.most,
        )
        trials = Trials(how, tape, ending, values, told)
        try:
            why = await _watched(trials, stop)
        finally:
            await trials.close()
        if trials.best is None:
            raise UsageError("stopped before anything was known")
        write(trials.best, settings.output)
        differences = () if why == _STOPPED else await _differences(settings, trials.best)
    return Minimized(
        path=settings.output,
        kept=tuple(value for key, value in values.values.items() if key in trials.best.kept),
        values=len(values.values),
        exchanges=len({step.exchange for step in trials.best.steps}),
        of=len(tape.exchanges),
        probes=trials.made,
        took_ns=time.monotonic_ns() - begun,
        failure=trials.sought,
        stopped=why,
        interrupted=why == _STOPPED,
        reads=serves_reads(tape),
        differences=differences,
    )


async def _watched(trials: Trials, stop: threading.Event) -> str:
    """Search until it is over, or somebody wants it to be; returns why it ended early."""
    search = asyncio.ensure_future(trials.search())
    while not search.done() and not stop.is_set():
        await asyncio.wait([search], timeout=_WAIT)
    search.cancel()
    await asyncio.wait([search])
    try:
        await search
    except asyncio.CancelledError:
        return _STOPPED
    except EnoughError:
        return f"{trials.made} probes were made"
    return ""


async def _differences(settings: MinimizeSettings, best: Trial) -> tuple[str, ...]:
    """Replay the new tape as anybody would, and say what is not as on it: there should be nothing."""
    found: list[Violation | Drift] = []
    io = "tape" if serves_reads(best.tape) else settings.replay.io
    wire = Wire.open(dataclasses.replace(settings.replay, tape=settings.output, io=io))
    try:
        session = await wire.begin(found.append)
        with outputs_in(best.folder) as stdio:
            try:
                outcome = await session.run(StopSignal(), stdio)
            finally:
                await session.end()
    finally:
        await wire.stop()
    texts = [f"{one.what}: {one.request}" for one in found]
    if outcome.exit_code != best.outcome.exit_code:
        texts.append(f"it ends with {outcome.exit_code}, not {best.outcome.exit_code}")
    return tuple(texts)


def _write(settings: MinimizeSettings, values: NeutralTape, trial: Trial, path: Path) -> None:
    """Write the tape of a trial. Raises TapeWriteError."""
    source = settings.replay
    (last,) = deque(read_entries(source.tape, ask=source.ask), maxlen=1)
    seal = last.record if isinstance(last.record, Seal) else Seal(t=0, records=0, trace="", outcome="", file="")
    head = _head(settings, values, trial, seal, last.hash.hex())
    outcome = trial.outcome
    ended = Exit(t=seal.t or trial.tape.ended, code=outcome.code, signal=outcome.signal, duration=outcome.duration_ns)
    records = (entry.record for entry in read_entries(source.tape, ask=source.ask))
    kept = minimized_records(records, head, trial.tape, trial.steps, ended, trial.hints)
    word = outcome.stopped_by or ("exited" if outcome.signal is None else "killed")
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path, force=settings.force) as file:
        file.writelines(encoded(kept, dataclasses.replace(seal, outcome=word, extra={})))


def _head(settings: MinimizeSettings, values: NeutralTape, trial: Trial, seal: Seal, last: str) -> Head:
    """The head says what the tape was made of, what is left of it, and what stands for the rest."""
    old, argv = trial.tape.head, settings.replay.argv
    redactor = taped_redactor(trial.tape, settings.replay)
    name = redactor.text(settings.replay.tape.name)
    kept = sorted(trial.kept)
    head = dataclasses.replace(
        old,
        by=f"tapeproxy {tapeproxy.__version__}",
        must=("like",),
        window=WINDOW,
        parent={"name": name, "trace": seal.trace, "last": last},
        edit={
            "minimized": {
                "values": len(values.values),
                "kept": [*map(key_json, kept[:_LISTED])],
                "neutral": {"string": "", "number": 0, "boolean": False, "text": redactor.text(settings.text)},
            }
        },
    )
    if not argv:
        return head
    argv = redactor.argv(argv)
    mark = origin_mark(load_key(), socket.gethostname(), argv, head.started_at)
    return dataclasses.replace(head, argv=argv, host=mark)
