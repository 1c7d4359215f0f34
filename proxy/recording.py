"""One recording from beginning to end: tape, wire and environment opened, closed and sealed in the right order.

Knows the order; mitmproxy is the wire's business, the child the supervisor's.
"""

import asyncio
import contextlib
import dataclasses
import platform
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import tapeproxy
from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, child_environment, upstream_of
from tapeproxy.proxy.commands import check_command
from tapeproxy.proxy.iovalues import ValueReader
from tapeproxy.proxy.machine import machine_facts
from tapeproxy.proxy.mitm import RecordWire, WireOptions
from tapeproxy.proxy.origin import origin_mark
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.shimming import (
    IoSettings,
    ShimSettings,
    epoch_ns,
    hash_seed_for,
    make_tmpdir,
    new_seed,
    shim_environment,
)
from tapeproxy.proxy.sidecar import Line, Sidecars, make_folder, to_record
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.proxy.supervisor import Outcome, StopSignal, held_signals, run_child
from tapeproxy.proxy.tapefile import TapeWriter, read_entries, started_at
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.machine import NOTE, Facts, Noticed, usable
from tapeproxy.tapes.positions import CLOCK_RULES
from tapeproxy.tapes.reading import VERSION
from tapeproxy.tapes.records import End, Exit, Head, Json, Note, Record, Request
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import DEFAULT, RedactionRules
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.secretvars import secret_names, secret_values
from tapeproxy.tapes.trace import TraceHasher
from tapeproxy.tapes.troubles import Troubles

if TYPE_CHECKING:
    from tapeproxy.addons.failures import Failures

LINGER = 2.0
"""Seconds that exchanges under way when the agent has exited are given to end by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """What to record, where to. `environment` is the user's; `hosts` are --map rules; `timeout` in seconds.

    `rules` say by what a replay will tell requests apart.
    `strict` ends the run when the tape can't be written any more, or something could not be taped. `fsync` has the disk
    confirm all that is acknowledged.
    """

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
    shim: bool = True
    io: bool = False
    threads: bool = False
    rules: tuple[Rule, ...] = ()
    redaction: RedactionRules = DEFAULT
    strict: bool = False
    fsync: bool = False


type Lost = Callable[[str], None]
"""Told once, at the moment when a tape stops being whole, and why. Must not raise."""


def _unheard(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a recording ended. `untaped`: what passed by, as (what, where) and how often; `failure`: why the tape is not
    whole; `failed`: exchanges that did not end `complete`, as (host, how, error) and how often; `values`: what the
    agent read past the wire, counted; `troubles`: where the agent was not wholly in the shim's hands, as sentences and
    how often.
    """

    path: Path
    size: int
    exchanges: int
    duration_ns: int
    untaped: Mapping[tuple[str, str], int]
    outcome: Outcome | None = None
    failure: str | None = None
    failed: Mapping[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])
    values: int = 0
    troubles: Mapping[str, int] = field(default_factory=dict[str, int])


class TapingWire(Protocol):
    """What a recording needs of the wire that feeds it: a whole one, or its part of one that many share."""

    @property
    def port(self) -> int: ...

    @property
    def failures(self) -> "Failures": ...

    @property
    def untaped(self) -> Counter[tuple[str, str]]: ...

    async def drain(self, timeout: float) -> None:
        """Give exchanges under way `timeout` seconds, then disconnect everyone."""

    async def stop(self) -> None:
        """End the wire; again does nothing."""


class Recording:
    """An open recording: programs that run with `environment` are taped."""

    def __init__(
        self, tape: "FollowedTape", wire: TapingWire, environment: dict[str, str], settings: RecordSettings
    ) -> None:
        self.environment = environment
        self._followed = tape
        self._wire = wire
        self._settings = settings

    @property
    def tape(self) -> TapeWriter:
        return self._followed.writer

    @property
    def port(self) -> int:
        """The wire's port."""
        return self._wire.port

    async def finish(self, outcome: Outcome | None) -> Recorded:
        """End the wire, then the tape. `outcome` is None where there was no child of ours."""
        await self._wire.drain(LINGER)
        await self._wire.stop()
        self._followed.drain()
        duration = self.tape.now()
        failure = self._note_failures()
        if outcome is not None:
            duration = outcome.duration_ns
            self.tape.add(Exit(t=self.tape.now(), code=outcome.code, signal=outcome.signal, duration=duration))
        self.tape.commit()
        self.tape.check_place()
        exchanges, trace, failed = 0, "", dict[tuple[str, str, str], int]()
        lanes: dict[str, str] = {}
        if self.tape.failure is None:
            try:
                noticed = Noticed(self._facts())
                # In a thread: a wire that many runs share has others to serve meanwhile.
                exchanges, traced, failed = await asyncio.to_thread(_summarise, self.tape.path, noticed)
                trace, lanes = traced.hexdigest(), traced.lanes()
                self._note_facts(noticed.facts())
            except (TapeFormatError, ValueError) as error:
                # Neither the seal nor the agent's exit code is lost for that.
                failure = f"the tape cannot be read back: {error}"
        self.tape.seal(trace=trace, outcome=_word(outcome), lanes=lanes)
        failure = str(self.tape.failure) if self.tape.failure is not None else failure
        size = self.tape.path.stat().st_size if self.tape.path.exists() else 0
        untaped = dict(self._wire.untaped + self._followed.bypasses)
        self._followed.close()
        followed = self._followed
        return Recorded(
            self.tape.path,
            size,
            exchanges,
            duration,
            untaped,
            outcome,
            failure,
            failed,
            values=followed.values,
            troubles=dict(followed.troubles.seen),
        )

    async def discard(self) -> None:
        """End the wire and leave no tape behind: nothing was run."""
        await self._wire.stop()
        self._followed.close()
        self.tape.discard()

    def _facts(self) -> Facts:
        """The facts of this machine, as far as they may stand on a tape."""
        tmpdir = self.environment.get("TMPDIR")
        facts = machine_facts(self._settings.environment, self._settings.cwd, tmpdir, pythons=self._followed.pythons())
        return usable({name: map(self._followed.redact, texts) for name, texts in facts.items()})

    def _note_facts(self, facts: dict[str, list[str]]) -> None:
        if facts:
            text = f"requests hold facts of the machine: {', '.join(facts)}"
            self.tape.add(Note(t=self.tape.now(), what=NOTE, text=text, data=facts))

    def _note_failures(self) -> str | None:
        failures = self._wire.failures
        if not failures.count:
            return None
        text = f"{failures.count} times something could not be taped; first: {failures.first}"
        self.tape.add(Note(t=self.tape.now(), what="recorder-failure", text=text))
        return text


class FollowedTape:
    """The tape as the wire sees it, with the shims' sidecar files followed.

    Before a request is taped, so is everything that the shims have written until then: a request never stands on a
    tape before the clock reading that it was made from. Nobody can reach the wire before `writer` is there.
    """

    writer: TapeWriter

    def __init__(self, redactor: Redactor, strangers: Strangers, lost: Lost = _unheard) -> None:
        self.lost = lost
        self.troubles = Troubles()
        self._strangers = strangers
        self.bypasses: Counter[tuple[str, str]] = Counter()
        self.values = 0
        self._redactor = redactor
        self._sidecars: Sidecars | None = None
        self._epoch = 0
        self._tmpdir: Path | None = None
        self._values: ValueReader | None = None

    def create(self, settings: RecordSettings, head: Head) -> None:
        """Make the file. Raises TapeExistsError, TapeWriteError."""
        self.writer = TapeWriter(
            settings.tape, head, force=settings.force, fsync=settings.fsync, failed=lambda error: self.lost(str(error))
        )

    def follow(self, folder: Path, epoch: int, tmpdir: str, seed: str) -> None:
        """Follow the sidecar files in `folder`. `epoch`: the tape's start in nanoseconds since 1970."""
        self._sidecars, self._epoch, self._tmpdir = Sidecars(folder), epoch, Path(tmpdir)
        self._values = ValueReader(self._redactor, bytes.fromhex(seed))

    def pythons(self) -> list[str]:
        """The versions of the run's interpreters, as far as the shim said."""
        lines = [] if self._sidecars is None else self._sidecars.processes
        return list(dict.fromkeys(str(line.get("python", "")) for line in lines))

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
        if self._sidecars is not None:
            self.drain()
            line = self._strangers.meet(port, self._sidecars.pids)
            if line is not None:
                self._take(line)

    def _take(self, line: Line) -> None:
        self.troubles.take(line | {"text": self._redactor.text(str(line.get("text", "")))})
        record = self._record(line)
        if record is not None:
            self.writer.add(record)
        if line["k"] == "bypass" and line.get("what") != "lookup":
            self.bypasses["bypass", self._redactor.text(str(line.get("address")))] += 1

    def _record(self, line: Line) -> Record | None:
        if line["k"] == "value" and self._values is not None:
            self.values += 1
            return self._values.read(line, self.writer.now())
        return to_record(line, self.writer.now(), self._epoch, self._redactor)

    def close(self) -> None:
        """Remove the sidecar files, and the run's TMPDIR if the agent left nothing in it."""
        if self._sidecars is not None:
            self._sidecars.close()
        if self._tmpdir is not None:
            with contextlib.suppress(OSError):
                self._tmpdir.rmdir()


@contextlib.asynccontextmanager
async def recording(settings: RecordSettings, lost: Lost = _unheard) -> AsyncIterator[Recording]:
    """Open a recording; whoever opened it calls `finish` or `discard`. An exception leaves the tape interrupted.

    `lost` is told at once when the tape stops being whole. Raises TapeWriteError, PortInUseError, CaError, UsageError,
    and then leaves nothing behind.
    """
    ca = CertificateAuthority.open()
    key = load_key()
    redactor = Redactor(key, secret_values(settings.environment), settings.redaction)
    run_id = secrets.token_hex(8)
    bundle = ca.bundle(upstream_of(settings.environment).ca_file)
    run = RunProcesses(run_id)
    tape = FollowedTape(redactor, Strangers(run), lost)
    wire = RecordWire(wire_options(settings, ca), tape, redactor, run.owns_port, tape.untagged)
    await wire.start()
    wire.failures.at_first = lambda error: lost(f"something could not be taped: {error}")
    try:
        # Last, so that a port in use leaves no tape, and replaces none.
        environment = open_tape(settings, tape, f"{settings.host}:{wire.port}", key, redactor)
    except BaseException:
        await wire.stop()
        raise
    child = ChildSettings(f"http://{settings.host}:{wire.port}", bundle, ca.certificate, run_id)
    try:
        yield Recording(tape, wire, child_environment(settings.environment, child) | environment, settings)
    finally:
        await wire.stop()


def open_tape(
    settings: RecordSettings, tape: FollowedTape, proxy: str, key: bytes, redactor: Redactor
) -> dict[str, str]:
    """Create the tape, and what the shim needs; returns the shim's variables (none without a shim).

    `proxy` is the wire's HOST:PORT. Raises TapeWriteError.
    """
    head = _head(settings, redactor, key)
    if not settings.shim:
        tape.create(settings, head)
        return {}
    epoch = epoch_ns(head.started_at)
    head = dataclasses.replace(
        head,
        seed=new_seed(),
        origin=time.time_ns() - time.monotonic_ns() - epoch,
        hash_seed=hash_seed_for(settings.environment),
        tmpdir=make_tmpdir(),
        io=settings.io,
        rules=head.rules | {"clock": CLOCK_RULES},
        threads=settings.threads,
    )
    assert head.seed and head.hash_seed and head.tmpdir and head.origin is not None
    try:
        tape.create(settings, head)
        try:
            folder = make_folder(settings.tape, head.seed)
        except BaseException:
            tape.writer.discard()
            raise
    except BaseException:
        Path(head.tmpdir).rmdir()
        raise
    tape.follow(folder, epoch, head.tmpdir, head.seed)
    shim = ShimSettings(
        mode="record",
        seed=head.seed,
        hash_seed=head.hash_seed,
        tmpdir=head.tmpdir,
        origin_ns=head.origin + epoch,
        sidecar=folder.absolute(),
        proxy=proxy,
        io=IoSettings(mode="record", base=settings.cwd) if settings.io else None,
        threads="1" if settings.threads else "",
    )
    return shim_environment(settings.environment, shim)


async def record(settings: RecordSettings, lost: Lost = _unheard) -> Recorded:
    """Run the agent and tape it. Raises what `recording` raises, and the supervisor's errors, leaving no tape.

    `lost` is told at once when the tape stops being whole.
    """
    check_command(settings.argv, settings.environment)
    stop = StopSignal()

    def lose(why: str) -> None:
        lost(why)
        if settings.strict:
            stop.request("tape")

    with held_signals():
        async with recording(settings, lose) as session:
            try:
                outcome = await run_child(settings.argv, session.environment, stop=stop, timeout=settings.timeout)
            except Exception:
                await session.discard()
                raise
            return await session.finish(outcome)


def wire_options(settings: RecordSettings, ca: CertificateAuthority) -> WireOptions:
    """How the wire of a recording listens, and whom it trusts."""
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
    argv = redactor.argv(settings.argv)
    begun = started_at()
    return Head(
        must=("like",),
        window=WINDOW,
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
        rules={"matching": VERSION} | settings.redaction.to_json() | _rules(settings.rules, redactor),
    )


def _rules(rules: tuple[Rule, ...], redactor: Redactor) -> Json:
    return {"user": [redactor.text(str(rule)) for rule in rules]} if rules else {}


def _summarise(path: Path, noticed: Noticed) -> tuple[int, TraceHasher, dict[tuple[str, str, str], int]]:
    """Read the tape back: number of exchanges, their trace, what failed. That it can be read is the point, too."""
    hasher = TraceHasher()
    exchanges = 0
    hosts: dict[int, str] = {}
    failed: Counter[tuple[str, str, str]] = Counter()
    for entry in read_entries(path):
        hasher.feed(entry.index, entry.record)
        match entry.record:
            case Request(url=url, body=body, headers=headers):
                exchanges += 1
                noticed.look(url)
                assert isinstance(body, bytes)  # the decoder resolves references
                noticed.look(decode(body, headers).data)
                hosts[entry.index] = parse_target(url).authority
            case End(of=of, how=how, error=error):
                host = hosts.pop(of)
                if how != "complete":
                    failed[host, how, error or ""] += 1
            case _:
                pass
    failed.update((host, "unfinished", "") for host in hosts.values())
    return exchanges, hasher, dict(failed)


def _word(outcome: Outcome | None) -> str:
    if outcome is None:
        return "stopped"
    if outcome.stopped_by is not None:
        return outcome.stopped_by
    return "exited" if outcome.signal is None else "killed"
