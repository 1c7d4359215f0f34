"""A replay from beginning to end: the tape loaded, the server up, the agent run, the verdict. No mitmproxy.

A `Wire` is what replays of one tape can share; a `Replaying` is what belongs to one of them.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, child_environment
from tapeproxy.proxy.guard import Guard, GuardPlan
from tapeproxy.proxy.lockorder import keeps_order
from tapeproxy.proxy.origin import is_ours
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shimming import IoMode
from tapeproxy.proxy.shims import Shims
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.proxy.supervisor import Outcome, Stdio, StopSignal, end_leftovers, held_signals, run_child
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.tapeserver import Serving, TapeServer
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.machine import Facts, facts_of
from tapeproxy.tapes.reading import PLAIN, Reading, taped_reading
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import RedactionRules
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.secretvars import is_secret_name, secret_values
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.tapes.trace import join_parts, part_of
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.tracing import TraceLines
    from tapeproxy.tapes.faults import Fault, Faults, Injected
    from tapeproxy.tapes.provenance import Provenance

VIOLATION, DRIFT, TIMEOUT = 3, 4, 124
"""Exit codes of a replay that went wrong (docs/CLI.md)."""
_MOST_PLACEHOLDERS = 256
_SILENT = Stdio(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)
_YEARS = (2001, 2048)
_SILENCE = 0.2
"""Seconds that the connections of a run may take to end after its processes have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What to replay and how. `argv` empty: the taped command. `speed`: None at once, 1.0 as recorded.

    `proxy`: the URL of a proxy that has accepted the connections and hands them over; empty: listen on `port`.
    `max_violations`: the run is stopped at so many. `timeout` in seconds. `threads`: keep the tape's order of locks;
    None: if it has one.
    `rules` are added to the tape's own, which
    `taped_rules` False leaves out.
    `call_sites`: the agent runs silently, and the shim tells of every read, also if the tape was recorded without it.
    """

    tape: Path
    environment: Mapping[str, str]
    argv: tuple[str, ...] = ()
    speed: float | None = None
    port: int = 0
    proxy: str = ""
    timeout: float | None = None
    max_violations: int = 20
    on_drift: Literal["fail", "report"] = "fail"
    guard: GuardPlan = field(default_factory=lambda: GuardPlan(Guard.NONE))
    match: Literal["lane", "any"] = "lane"
    shim: bool = True
    threads: bool | None = None
    rules: tuple[Rule, ...] = ()
    taped_rules: bool = True
    faults: "tuple[Fault, ...]" = ()
    call_sites: bool = False
    io: IoMode | None = None
    ask: Ask = ask_environment


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay ended. `exit_code` is what the command exits with; times in nanoseconds."""

    exit_code: int
    outcome: Outcome | None
    served: int
    live: int
    exchanges: int
    taped_ns: int
    took_ns: int
    violations: list[Violation] = field(default_factory=list[Violation])
    drifts: list[Drift] = field(default_factory=list[Drift])
    unused: Sequence[Exchange] = field(default=(), repr=False)  # asyncio takes reprs of results
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    injected: "list[Injected]" = field(default_factory=list)
    answered: Sequence[Exchange] = field(default=(), repr=False)
    provenance: "tuple[Provenance, ...]" = ()
    rules: Mapping[str, bool] = field(default_factory=dict[str, bool])
    reading: Reading = field(default=PLAIN, repr=False)

    def trace(self) -> str:
        """The trace hash of the answers that were given out: the one in the tape's seal, where all were."""
        return join_parts(part_of(exchange, self.reading) for exchange in self.answered)

    def to_json(self, trace: str | None = None) -> dict[str, Any]:
        """The report of `--report`; `trace`: what `trace()` gives, where it is known already."""
        return {
            "exit_code": self.exit_code,
            "agent_exit_code": None if self.outcome is None else self.outcome.exit_code,
            "stopped_by": None if self.outcome is None else self.outcome.stopped_by,
            "exchanges": self.exchanges,
            "served": self.served,
            "live": self.live,
            "taped_ns": self.taped_ns,
            "took_ns": self.took_ns,
            "violations": [violation.to_json() for violation in self.violations],
            "drifts": [drift.to_json() for drift in self.drifts],
            "unused": [exchange.number for exchange in self.unused],
            "trace": trace or self.trace(),
            "refused_certificate": dict(self.refusals),
            "notes": self.notes,
            "injected": [one.to_json() for one in self.injected],
            "provenance": [found.to_json() for found in self.provenance],
            "rules": [{"rule": rule, "matched": matched} for rule, matched in self.rules.items()],
        }


class Wire:
    """A tape that is loaded and served. Replays run on it one after the other, each as if it were the only one."""

    def __init__(self, settings: ReplaySettings, tape: Tape, ending: Ending) -> None:
        tape.head, self.notes = _with_seed(tape.head)
        self.settings = settings
        self.tape = tape
        self.ending = ending
        self.port = 0
        self.address = ""
        """Where the agent finds the proxy: HOST:PORT."""
        self._threads = keeps_order(tape, settings.threads, settings.tape)
        self._ca = CertificateAuthority.open()
        self._redactor = _redactor(tape, settings)
        self._began = _began(tape)
        self._server: TapeServer | None = None

    @classmethod
    def open(cls, settings: ReplaySettings) -> Self:
        """Load the tape.

        Raises TapeFormatError, LockedTapeError, CaError, and UsageError where it has not what the settings ask for.
        """
        wire = cls(settings, *load(settings.tape, settings.ask))
        if settings.io not in (None, "live") and not (
            wire.tape.head.io and wire.tape.head.seed is not None and settings.shim
        ):
            raise UsageError(
                f"--io {settings.io} needs a tape with what the agent read, and the shim",
                where=str(settings.tape),
                fix="record with --io, and replay without --no-shim",
            )
        return wire

    async def begin(
        self, noticed: Callable[[Violation | Drift], None], witness: Callable[[Step], None] | None = None
    ) -> "Replaying":
        """Begin a replay, and serve it; the one before it must have ended. See Replayer for what is called when.

        Raises TapeFormatError, PortInUseError, CaError and UsageError.
        """
        run = RunProcesses(os.urandom(8).hex())
        by_lane = self.settings.match == "lane"
        try:
            replayer = Replayer(
                self.tape,
                self._redactor,
                run.owns_port,
                noticed,
                by_lane=by_lane,
                witness=witness,
                faults=_faults(self.settings),
                rules=self.settings.rules,
                taped_rules=self.settings.taped_rules,
                here=_facts_here(self.tape, self.settings),
            )
        except ValueError as error:
            raise TapeFormatError(str(error), place=Place(str(self.settings.tape))) from None
        server = await self._serve(replayer, lambda host, port: is_loopback(host) and run.owns_port(port))
        session = Replaying(self, server, run)
        session.environment = self._environment(run)
        traced = self.settings.call_sites
        if self.settings.shim and (self.tape.head.seed is not None or traced):
            trace = _trace() if traced else None
            session.shims = Shims(
                self.tape,
                replayer,
                self._redactor,
                Strangers(run),
                trace=trace,
                io=self.settings.io,
                threads=self._threads,
            )
            replayer.untagged = session.shims.untagged
            replayer.keeps_order = self.settings.speed is None
            session.environment |= session.shims.variables(self.settings.environment, self.address)
            server.before_request = session.shims.drain
        return session

    def command(self) -> tuple[str, ...]:
        """What is to be run. Raises UsageError when the tape's own command is not to be, or there is none."""
        return self.settings.argv or _taped_argv(self.tape, self.settings.tape)

    async def stop(self) -> None:
        """Stop serving."""
        if self._server is not None:
            await self._server.stop()

    async def _serve(self, replayer: Replayer, is_inside: Callable[[str, int], bool]) -> TapeServer:
        if self._server is not None:
            self._server.renew(replayer, is_inside)
            return self._server
        server = TapeServer(
            replayer,
            lambda host: self._ca.server_context(host, self._began),
            is_inside,
            Serving(port=self.settings.port, speed=self.settings.speed),
        )
        if self.settings.proxy:
            server.serve_others()
            self.address = self.settings.proxy.rpartition("@")[2].rpartition("/")[2]
            self.port = int(self.address.rpartition(":")[2])
        else:
            self.port = await server.start()
            self.address = f"127.0.0.1:{self.port}"
        self._server = server
        return server

    def _environment(self, run: RunProcesses) -> dict[str, str]:
        """What the agent gets, but for its shim."""
        parent = self.settings.environment
        child = ChildSettings(
            self.settings.proxy or f"http://{self.address}",
            self._ca.bundle(),
            self._ca.certificate,
            run.run_id,
            {name: placeholder(name) for name in _placeholders(self.tape)},
        )
        return child_environment(parent, child) | self.settings.guard.variables(parent)


class Replaying:
    """An open replay: programs that run with `environment` hear the tape."""

    def __init__(self, wire: Wire, server: TapeServer, run: RunProcesses) -> None:
        self.wire = wire
        self.tape = wire.tape
        self.ending = wire.ending
        self.port = wire.port
        self.processes = run
        self.environment: dict[str, str] = {}
        self.shims: Shims | None = None
        self.server = server
        self._replayer = server.replayer
        self._refusals = server.refusals
        self._leftovers: list[str] = []
        self._refused = wire.settings.guard.count_refused()

    async def run(self, stop: StopSignal, stdio: Stdio | None = None) -> Outcome:
        """Run the agent to its end. Raises what `Wire.command` raises and the supervisor's errors."""
        settings = self.wire.settings
        return await run_child(
            self.wire.command(),
            self.environment,
            stop=stop,
            timeout=settings.timeout,
            confine=settings.guard.confinement(self.port),
            stdio=_SILENT if settings.call_sites else stdio,
        )

    async def end(self) -> None:
        """End the replay and keep the wire for another: no process of it is left, nor what it put into its TMPDIR."""
        try:
            if ended := await end_leftovers(self.processes):
                self._leftovers = [f"processes that outlived the agent were ended: {ended}"]
            await self.server.fall_silent(_SILENCE)
        finally:
            self._close(sweep=True)

    async def stop(self) -> None:
        """End the replay and the wire; processes that the agent left behind live on."""
        await self.wire.stop()
        self._close(sweep=False)

    def _close(self, *, sweep: bool) -> None:
        """Hear what the shims have still to say, and remove what was made for them."""
        if self.shims is not None:
            self.shims.finish(sweep=sweep)
        if refused := self.wire.settings.guard.count_refused() - self._refused:
            self._replayer.violate(_unseen(refused))
        for fault in [] if self._replayer.faults is None else self._replayer.faults.never():
            # A test of an agent's error handling that met no error proves nothing.
            self._replayer.drift(Drift(fault, "no request got this fault"))

    def verdict(self, settings: ReplaySettings, outcome: Outcome | None, took_ns: int) -> Replayed:
        """What came of it."""
        replayer = self._replayer
        # A server of the run may or may not have been up when it was asked: its exchanges are compared, not counted.
        return Replayed(
            exit_code=_exit_code(replayer, settings, outcome),
            outcome=outcome,
            served=replayer.served,
            live=replayer.live,
            exchanges=len(self.tape.exchanges),
            taped_ns=self.tape.duration,
            took_ns=took_ns,
            violations=replayer.violations,
            drifts=replayer.drifts,
            unused=replayer.index.unused(),
            refusals=dict(self._refusals),
            notes=[
                *self.wire.notes,
                *([] if self.shims is None else self.shims.notes()),
                *replayer.soft_notes(),
                *self._leftovers,
            ],
            injected=[] if replayer.faults is None else replayer.faults.injected,
            answered=replayer.index.used(),
            rules={str(rule): rule in replayer.reading.rules.used for rule in replayer.reading.rules.rules},
            reading=taped_reading(self.tape.head),
        )


async def open_replay(settings: ReplaySettings, noticed: Callable[[Violation | Drift], None]) -> Replaying:
    """Load the tape and serve it until `stop`. `noticed` hears of violations as they happen.

    Raises TapeFormatError, PortInUseError, CaError, UsageError.
    """
    wire = Wire.open(settings)
    try:
        return await wire.begin(noticed)
    except BaseException:
        await wire.stop()
        raise


async def replay(
    settings: ReplaySettings,
    noticed: Callable[[Violation | Drift], None],
    started: Callable[[Replaying], None],
) -> Replayed:
    """Run the agent against the tape. `started` is called when the tape is loaded and served, before the agent is.

    Raises what `open_replay` raises and the supervisor's errors.
    """
    stop = StopSignal()
    with held_signals():
        session = await open_replay(settings, stopping_at(settings.max_violations, stop, noticed))
        try:
            session.wire.command()  # an error about the command comes alone
            started(session)
            outcome = await session.run(stop)
        finally:
            await session.stop()
    return session.verdict(settings, outcome, outcome.duration_ns)


def _with_seed(head: Head) -> tuple[Head, list[str]]:
    """The head with its seed out of the box, if it is sealed; and a note where a scrubbed tape has none for us."""
    if head.scrubbed is None or head.seed is not None or head.origin is None:
        return head, []
    why = "was left out when it was scrubbed"
    if head.sealed_seed is not None:
        from tapeproxy.proxy.seedbox import opened

        head, why = opened(head, load_key()), "was sealed with another key"
    lost = f"the tape's seed {why}: the agent's clock and randomness are its own, not the tape's"
    return head, [] if head.seed is not None else [lost]


def _redactor(tape: Tape, settings: ReplaySettings) -> Redactor:
    """Redacts as the recording did: what stands for an absent secret may be encoded, as the secret was."""
    try:
        rules = RedactionRules.from_json(tape.head.rules)
    except ValueError as error:
        raise TapeFormatError(str(error), place=Place(str(settings.tape))) from None
    absent = (name for name in _placeholders(tape) if not settings.environment.get(name))
    secrets = (*secret_values(settings.environment), *map(placeholder, absent))
    if tape.head.scrubbed is None:
        return Redactor(load_key(), secrets, rules)
    from tapeproxy.tapes.blanks import ScrubbedRedactor, blanks_of

    return ScrubbedRedactor(load_key(), secrets, rules, blanks_of(tape))


def _placeholders(tape: Tape) -> Iterator[str]:
    """The variables that get a placeholder. A tape may come from a stranger: only such as usually hold a secret."""
    return filter(is_secret_name, tape.head.secrets[:_MOST_PLACEHOLDERS])


def _unseen(times: int) -> Violation:
    """Attempts that the shim did not see, or it would have refused them itself and named the line."""
    often = "once" if times == 1 else f"{times} times"
    what = f"a program of the run tried to reach the network past the proxy, {often}, and was refused"
    return Violation("egress", "a program without the shim (curl, Node, Go, python -I …)", what)


def _faults(settings: ReplaySettings) -> "Faults | None":
    if not settings.faults:
        return None
    from tapeproxy.tapes.faults import Faults

    return Faults(settings.faults)


def _facts_here(tape: Tape, settings: ReplaySettings) -> Facts:
    """The facts of this machine, as far as they stand in the tape's requests."""
    wanted = facts_of(tape.head, tape.notes, whole=tape.seal is not None)
    if not wanted:
        return {}
    from tapeproxy.proxy.machine import machine_facts

    tmpdir = tape.head.tmpdir if settings.shim and tape.head.seed is not None else None
    return machine_facts(settings.environment, str(Path.cwd()), tmpdir, wanted=wanted)


def stopping_at(
    most: int, stop: StopSignal, noticed: Callable[[Violation | Drift], None]
) -> Callable[[Violation | Drift], None]:
    """`noticed`, which also has the run stopped at the `most`-th violation."""
    left = most

    def notice(found: Violation | Drift) -> None:
        nonlocal left
        noticed(found)
        left -= isinstance(found, Violation)
        if left <= 0:
            stop.request("violations")

    return notice


def _trace() -> "TraceLines":
    from tapeproxy.proxy.tracing import TraceLines

    return TraceLines()


def _taped_argv(tape: Tape, path: Path) -> tuple[str, ...]:
    """The command on the tape at `path`, if the tape is this machine's own. Raises UsageError."""
    import shlex

    head, again = tape.head, f"tapeproxy replay {shlex.quote(str(path))}"
    if not head.argv:
        raise UsageError("the tape holds no command to run", where=str(path), fix=f"give one: {again} -- COMMAND")
    if not is_ours(head, load_key(), socket.gethostname()):
        raise UsageError(
            "the tape was recorded elsewhere, so its command is not run unasked",
            where=str(path),
            fix=f"to run it: {again} -- {shlex.join(head.argv)}",
        )
    return head.argv


def _exit_code(replayer: Replayer, settings: ReplaySettings, outcome: Outcome | None) -> int:
    if replayer.violations:
        return VIOLATION
    if replayer.drifts and settings.on_drift == "fail":
        return DRIFT
    if outcome is None:
        return 0
    return TIMEOUT if outcome.stopped_by == "timeout" else outcome.exit_code


def _began(tape: Tape) -> datetime:
    try:
        began = datetime.fromisoformat(tape.head.started_at)
    except ValueError:
        return datetime.now(UTC)
    # Certificates can't be made for just any time, and a tape may say anything.
    if not _YEARS[0] <= began.year <= _YEARS[1]:
        return datetime.now(UTC)
    return began if began.tzinfo else began.replace(tzinfo=UTC)
