"""One replay from beginning to end: the tape loaded, the server up, the agent run, the verdict. No mitmproxy."""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, child_environment
from tapeproxy.proxy.guard import Guard, GuardPlan
from tapeproxy.proxy.origin import is_ours
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shims import Shims
from tapeproxy.proxy.supervisor import Outcome, StopSignal, held_signals, run_child
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.tapeserver import Serving, TapeServer
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.secretvars import is_secret_name, secret_values
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.tapes.faults import Fault, Faults, Injected

VIOLATION, DRIFT, TIMEOUT = 3, 4, 124
"""Exit codes of a replay that went wrong (docs/CLI.md)."""
_MOST_PLACEHOLDERS = 256
_YEARS = (2001, 2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What to replay and how. `argv` empty: the taped command. `speed`: None at once, 1.0 as recorded.

    `max_violations`: the run is stopped at so many. `timeout` in seconds.
    """

    tape: Path
    environment: Mapping[str, str]
    argv: tuple[str, ...] = ()
    speed: float | None = None
    port: int = 0
    timeout: float | None = None
    max_violations: int = 20
    on_drift: Literal["fail", "report"] = "fail"
    guard: GuardPlan = field(default_factory=lambda: GuardPlan(Guard.NONE))
    match: Literal["lane", "any"] = "lane"
    shim: bool = True
    faults: "tuple[Fault, ...]" = ()


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
    unused: list[Exchange] = field(default_factory=list[Exchange], repr=False)  # asyncio takes reprs of results
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    injected: "list[Injected]" = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The report of `--report`."""
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
            "refused_certificate": dict(self.refusals),
            "notes": self.notes,
            "injected": [one.to_json() for one in self.injected],
        }


class Replaying:
    """An open replay: programs that run with `environment` hear the tape."""

    def __init__(self, tape: Tape, ending: Ending, server: TapeServer, port: int) -> None:
        self.tape = tape
        self.ending = ending
        self.server = server
        self.port = port
        self.environment: dict[str, str] = {}
        self.shims: Shims | None = None

    async def stop(self) -> None:
        """Stop serving, and hear what the shims have still to say."""
        await self.server.stop()
        if self.shims is not None:
            self.shims.drain()
            self.shims.close()
        replayer = self.server.replayer
        for fault in [] if replayer.faults is None else replayer.faults.never():
            # A test of an agent's error handling that met no error proves nothing.
            replayer.drift(Drift(fault, "no request got this fault"))

    def verdict(self, settings: ReplaySettings, outcome: Outcome | None, took_ns: int) -> Replayed:
        """What came of it."""
        replayer = self.server.replayer
        # A server of the run may or may not have been up when it was asked: its exchanges are compared, not counted.
        unused = [exchange for exchange in replayer.index.unused() if not exchange.request.inside]
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
            unused=unused,
            refusals=dict(self.server.refusals),
            notes=[] if self.shims is None else self.shims.notes,
            injected=[] if replayer.faults is None else replayer.faults.injected,
        )


async def open_replay(settings: ReplaySettings, noticed: Callable[[Violation | Drift], None]) -> Replaying:
    """Load the tape and serve it until `stop`. `noticed` hears of violations as they happen.

    Raises TapeFormatError, PortInUseError, CaError, UsageError.
    """
    tape, ending = load(settings.tape)
    ca = CertificateAuthority.open()
    run = RunProcesses(run_id := os.urandom(8).hex())
    redactor = Redactor(load_key(), secret_values(settings.environment))
    began = _began(tape)
    try:
        replayer = Replayer(
            tape,
            redactor,
            run.owns_port,
            noticed,
            by_lane=settings.match == "lane",
            faults=_faults(settings),
        )
    except ValueError as error:
        raise TapeFormatError(str(error), place=Place(str(settings.tape))) from None
    server = TapeServer(
        replayer,
        lambda host: ca.server_context(host, began),
        lambda host, port: is_loopback(host) and run.owns_port(port),
        Serving(port=settings.port, speed=settings.speed),
    )
    port = await server.start()
    child = ChildSettings(
        f"http://127.0.0.1:{port}",
        ca.bundle(),
        ca.certificate,
        run_id,
        # A tape may come from a stranger: it names variables, and only such as usually hold a secret are set.
        {name: placeholder(name) for name in tape.head.secrets[:_MOST_PLACEHOLDERS] if is_secret_name(name)},
    )
    session = Replaying(tape, ending, server, port)
    session.environment = child_environment(settings.environment, child) | settings.guard.variables(
        settings.environment
    )
    if tape.head.seed is not None and settings.shim:
        session.shims = Shims(tape, server.replayer, redactor)
        session.environment |= session.shims.variables(settings.environment, f"127.0.0.1:{port}")
        server.before_request = session.shims.drain
    return session


async def replay(
    settings: ReplaySettings,
    noticed: Callable[[Violation | Drift], None],
    started: Callable[[Replaying], None],
) -> Replayed:
    """Run the agent against the tape. `started` is called when the tape is loaded and served, before the agent is.

    Raises what `open_replay` raises and the supervisor's errors.
    """
    stop = StopSignal()

    def count(found: Violation | Drift) -> None:
        noticed(found)
        if isinstance(found, Violation) and len(session.server.replayer.violations) >= settings.max_violations:
            stop.request("violations")

    with held_signals():
        session = await open_replay(settings, count)
        try:
            argv = settings.argv or _taped_argv(session.tape, settings.tape)
            started(session)
            outcome = await run_child(
                argv,
                session.environment,
                stop=stop,
                timeout=settings.timeout,
                confine=settings.guard.confinement(session.port),
            )
        finally:
            await session.stop()
    return session.verdict(settings, outcome, outcome.duration_ns)


def _faults(settings: ReplaySettings) -> "Faults | None":
    if not settings.faults:
        return None
    from tapeproxy.tapes.faults import Faults

    return Faults(settings.faults)


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
