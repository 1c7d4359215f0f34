"""One recording from beginning to end: tape, wire and environment opened, closed and sealed in the right order.

Knows the order; mitmproxy is the wire's business, the child the supervisor's.
"""

import contextlib
import platform
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tapeproxy
from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, child_environment, upstream_of
from tapeproxy.proxy.commands import check_command
from tapeproxy.proxy.mitm import RecordWire, WireOptions
from tapeproxy.proxy.origin import origin_mark
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.supervisor import Outcome, StopSignal, held_signals, run_child
from tapeproxy.proxy.tapefile import TapeWriter, read_entries, started_at
from tapeproxy.tapes.identity import VERSION
from tapeproxy.tapes.records import Exit, Head, Note, Record, Request
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.secretvars import secret_names, secret_values
from tapeproxy.tapes.trace import TraceHasher

LINGER = 2.0
"""Seconds that exchanges under way when the agent has exited are given to end by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """What to record, where to. `environment` is the user's; `hosts` are --map rules; `timeout` in seconds."""

    tape: Path
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    force: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    upstream_ca: Path | None = None
    client_certs: Path | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a recording ended. `untaped`: what passed by and how often; `failure`: why the tape is not whole."""

    path: Path
    size: int
    exchanges: int
    duration_ns: int
    untaped: Mapping[tuple[str, str], int]
    outcome: Outcome | None = None
    failure: str | None = None


class Recording:
    """An open recording: programs that run with `environment` are taped."""

    def __init__(self, settings: RecordSettings, tape: TapeWriter, wire: RecordWire, run_id: str) -> None:
        self.tape = tape
        self.run_id = run_id
        self._settings = settings
        self._wire = wire
        self.environment: dict[str, str] = {}

    @property
    def port(self) -> int:
        """The wire's port."""
        return self._wire.port

    async def finish(self, outcome: Outcome | None) -> Recorded:
        """End the wire, then the tape. `outcome` is None where there was no child of ours."""
        await self._wire.drain(LINGER)
        await self._wire.stop()
        duration = self.tape.now()
        failure = self._note_failures()
        if outcome is not None:
            duration = outcome.duration_ns
            self.tape.add(Exit(t=self.tape.now(), code=outcome.code, signal=outcome.signal, duration=duration))
        self.tape.commit()
        exchanges, trace = _summarise(self.tape) if self.tape.failure is None else (0, "")
        self.tape.seal(trace=trace, outcome=_word(outcome))
        failure = str(self.tape.failure) if self.tape.failure is not None else failure
        size = self.tape.path.stat().st_size if self.tape.path.exists() else 0
        untaped = dict(self._wire.untaped)
        return Recorded(self.tape.path, size, exchanges, duration, untaped, outcome, failure)

    async def discard(self) -> None:
        """End the wire and leave no tape behind: nothing was run."""
        await self._wire.stop()
        self.tape.discard()

    def _note_failures(self) -> str | None:
        failures = self._wire.failures
        if not failures.count:
            return None
        text = f"{failures.count} times something could not be taped; first: {failures.first}"
        self.tape.add(Note(t=self.tape.now(), what="recorder-failure", text=text))
        return text


class _LateTape:
    """The tape as the wire sees it: nobody can reach the wire before the tape is there."""

    tape: TapeWriter

    def now(self) -> int:
        return self.tape.now()

    def add(self, record: Record) -> int:
        return self.tape.add(record)

    def commit(self) -> None:
        self.tape.commit()


@contextlib.asynccontextmanager
async def recording(settings: RecordSettings) -> AsyncIterator[Recording]:
    """Open a recording; whoever opened it calls `finish` or `discard`. An exception leaves the tape interrupted.

    Raises TapeWriteError, PortInUseError, CaError, UsageError, and then leaves nothing behind.
    """
    ca = CertificateAuthority.open()
    key = load_key()
    environment = settings.environment
    redactor = Redactor(key, secret_values(environment))
    run_id = secrets.token_hex(8)
    late = _LateTape()
    wire = RecordWire(_wire_options(settings, ca), late, redactor, RunProcesses(run_id).owns_port)
    await wire.start()
    try:
        # Last, so that a port in use leaves no tape, and replaces none.
        late.tape = tape = TapeWriter(settings.tape, _head(settings, redactor, key), force=settings.force)
    except BaseException:
        await wire.stop()
        raise
    session = Recording(settings, tape, wire, run_id)
    bundle = ca.bundle(upstream_of(environment).ca_file)
    child = ChildSettings(f"http://{settings.host}:{wire.port}", bundle, ca.certificate, run_id)
    session.environment = child_environment(environment, child)
    try:
        yield session
    finally:
        await wire.stop()


async def record(settings: RecordSettings) -> Recorded:
    """Run the agent and tape it. Raises what `recording` raises, and the supervisor's errors, leaving no tape."""
    check_command(settings.argv, settings.environment)
    with held_signals():
        async with recording(settings) as session:
            try:
                outcome = await run_child(
                    settings.argv, session.environment, stop=StopSignal(), timeout=settings.timeout
                )
            except Exception:
                await session.discard()
                raise
            return await session.finish(outcome)


def _wire_options(settings: RecordSettings, ca: CertificateAuthority) -> WireOptions:
    world = upstream_of(settings.environment)
    trusted = settings.upstream_ca or world.ca_file
    return WireOptions(
        confdir=ca.directory,
        host=settings.host,
        port=settings.port,
        hosts=settings.hosts,
        upstream=world.proxy,
        no_proxy=world.no_proxy,
        # A mapped host may be the fake provider, whose certificate is from our own authority.
        upstream_ca=ca.bundle(trusted) if settings.hosts else trusted,
        client_certs=settings.client_certs,
    )


def _head(settings: RecordSettings, redactor: Redactor, key: bytes) -> Head:
    environment = settings.environment
    argv = tuple(redactor.text(word) for word in settings.argv)
    begun = started_at()
    return Head(
        by=f"tapeproxy {tapeproxy.__version__}",
        started_at=begun,
        argv=argv,
        cwd=redactor.text(settings.cwd),
        host=origin_mark(key, socket.gethostname(), argv, begun),
        platform=f"{sys.platform}-{platform.machine()}",
        python=platform.python_version(),
        tz=environment.get("TZ"),
        lang=environment.get("LC_ALL") or environment.get("LANG"),
        secrets=secret_names(environment),
        rules={"matching": VERSION, "redaction": 1},
    )


def _summarise(tape: TapeWriter) -> tuple[int, str]:
    """Read the tape back: its number of exchanges and its trace hash. That it can be read is the point, too."""
    hasher = TraceHasher()
    exchanges = 0
    for entry in read_entries(tape.path):
        exchanges += isinstance(entry.record, Request)
        hasher.feed(entry.index, entry.record)
    return exchanges, hasher.hexdigest()


def _word(outcome: Outcome | None) -> str:
    if outcome is None:
        return "stopped"
    if outcome.stopped_by is not None:
        return outcome.stopped_by
    return "exited" if outcome.signal is None else "killed"
