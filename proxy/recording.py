"""One recording from beginning to end: tape, wire and environment opened, closed and sealed in the right order.

Knows the order; mitmproxy is the wire's business, the child the supervisor's.
"""

import asyncio
import contextlib
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, check_keys, child_environment, upstream_of
from tapeproxy.proxy.commands import check_command
from tapeproxy.proxy.followed import FollowedTape, Lost, unheard
from tapeproxy.proxy.led import LED_VARIABLE, NOBODY, Led
from tapeproxy.proxy.machine import machine_facts
from tapeproxy.proxy.newtapes import open_tape
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.recorded import Recorded, RecordSettings
from tapeproxy.proxy.recordwire import RecordWire
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.roots import agents_bundle, system_roots
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.proxy.supervisor import Outcome, StopSignal, held_signals, run_child
from tapeproxy.proxy.tapefile import TapeWriter, read_entries
from tapeproxy.proxy.unlocking import Ask, ask_with
from tapeproxy.proxy.wireoptions import WireOptions
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.fronts import Fronts
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.machine import NOTE, Facts, Noticed, usable
from tapeproxy.tapes.outcomes import FAILURE
from tapeproxy.tapes.records import End, Exit, Note, Request, Response
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.secretvars import secret_values
from tapeproxy.tapes.trace import TraceHasher

if TYPE_CHECKING:
    from tapeproxy.addons.failures import Failures
    from tapeproxy.proxy.outside import Outside

PROXY_REFUSED = "the upstream proxy refused: 407 Proxy Authentication Required"
LINGER = 2.0
"""Seconds that exchanges under way when the agent has exited are given to end by themselves."""


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
        self.fronts = Fronts()
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
        self._followed.end_servers()
        duration = self.tape.now()
        failure = self._note_failures()
        if outcome is not None:
            duration = outcome.duration_ns
            self.tape.add(Exit(t=self.tape.now(), code=outcome.code, signal=outcome.signal, duration=duration))
        self.tape.commit()
        self.tape.check_place()
        exchanges, trace, failed = 0, "", dict[tuple[str, str, str], int]()
        lanes: dict[str, str] = {}
        messages: str | None = None
        uploads: str | None = None
        if self.tape.failure is None:
            try:
                noticed = Noticed(self._facts())
                # In a thread: a wire that many runs share has others to serve meanwhile.
                exchanges, traced, failed = await asyncio.to_thread(
                    _summarise, self.tape.path, noticed, ask_with(self._settings.secret)
                )
                trace, lanes = traced.hexdigest(), traced.lanes()
                messages, uploads = traced.messages(), traced.uploads()
                self._note_facts(noticed.facts())
            except (TapeFormatError, ValueError) as error:
                # Neither the seal nor the agent's exit code is lost for that.
                failure = f"the tape cannot be read back: {error}"
        self.tape.seal(trace=trace, outcome=_word(outcome), lanes=lanes, messages=messages, uploads=uploads)
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
            calls=followed.calls,
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
        self.tape.add(Note(t=self.tape.now(), what=FAILURE, text=text))
        return text


class OwnRecording(Recording):
    """One with a wire of its own, which may end before the tape does, and begin anew."""

    def __init__(
        self, tape: "FollowedTape", wire: RecordWire, environment: dict[str, str], settings: RecordSettings
    ) -> None:
        super().__init__(tape, wire, environment, settings)
        self._own = wire

    async def pause(self) -> None:
        """End the wire, so that another recording of this process may have one."""
        await self._own.drain(LINGER)
        await self._own.stop()

    async def go_on(self) -> None:
        """Have a wire again, on another port. Raises WireError."""
        await self._own.start()


@contextlib.asynccontextmanager
async def recording(settings: RecordSettings, lost: Lost = unheard) -> AsyncIterator[OwnRecording]:
    """Open a recording; whoever opened it calls `finish` or `discard`. An exception leaves the tape interrupted.

    `lost` is told at once when the tape stops being whole. Raises TapeWriteError, PortInUseError, CaError, UsageError,
    and then leaves nothing behind.
    """
    check_keys(settings.environment)
    ca = CertificateAuthority.open()
    key = load_key()
    redactor = Redactor(key, _secrets(settings), settings.redaction)
    run_id = secrets.token_hex(8)
    bundle = agents_bundle(ca, upstream_of(settings.environment), passing=bool(settings.no_tape))
    store = ca.truststore(bundle) if settings.java else None
    run = RunProcesses(run_id)
    tape = FollowedTape(redactor, Strangers(run), lost)
    wire = RecordWire(wire_options(settings, ca), tape, redactor, run.owns_port, tape.untagged)
    await wire.start()
    wire.failures.at_first = lambda error: lost(f"something could not be taped: {error}")
    try:
        fronts = await wire.open_fronts(settings.fronts)
        led: dict[str, str] = {}
        if settings.outside is not None:
            led = await _lead(wire, settings, settings.outside, fronts, lambda name: _note_nobody(tape, redactor, name))
        # Last, so that a port in use leaves no tape, and replaces none.
        environment = open_tape(settings, tape, f"{settings.host}:{wire.port}", key, redactor)
    except BaseException:
        await wire.stop()
        raise
    child = ChildSettings(f"http://{settings.host}:{wire.port}", bundle, ca.certificate, run_id, truststore=store)
    try:
        environment = child_environment(settings.environment, child) | environment | fronts.variables() | led
        session = OwnRecording(tape, wire, environment, settings)
        session.fronts = fronts
        yield session
    finally:
        await wire.stop()


def _note_nobody(tape: FollowedTape, redactor: Redactor, name: str) -> None:
    """Put on the tape that a name was asked for and there is none."""
    text = "a name was looked up that there is not"
    tape.add(Note(t=tape.now(), what=NOBODY, text=text, data={"host": redactor.text(name)}))
    tape.commit()


async def _lead(
    wire: RecordWire, settings: RecordSettings, outside: "Outside", fronts: Fronts, nobody: Callable[[str], None]
) -> dict[str, str]:
    """Lead all connections to the wire; returns what the child has to know. Raises UsageError.

    `nobody` hears of each name that there is not.
    """
    from tapeproxy.addons.upstream import bypasses

    options = wire_options(settings, CertificateAuthority.open())
    told: set[str] = set()

    async def exists(name: str) -> bool:
        if name in options.hosts or any(rule.rpartition(":")[0] == name for rule in options.hosts):
            return True
        if options.upstream is not None and not bypasses(name, 443, options.no_proxy):
            return True  # names are the upstream proxy's to look up
        try:
            await outside.resolve(name)
        except socket.gaierror as error:
            if error.errno not in (socket.EAI_NONAME, socket.EAI_NODATA):
                raise
            if name not in told:
                told.add(name)
                nobody(name)
            return False
        return True

    await wire.open_led(Led(exists), outside.ports - {wire.port, *fronts.open})
    return {LED_VARIABLE: "1"}


async def record(settings: RecordSettings, lost: Lost = unheard) -> Recorded:
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


def _secrets(settings: RecordSettings) -> tuple[str, ...]:
    """The values that must not stand on the tape."""
    given = {"": settings.upstream_proxy} if settings.upstream_proxy else {}
    return secret_values({**settings.environment, **given})


def wire_options(settings: RecordSettings, ca: CertificateAuthority) -> WireOptions:
    """How the wire of a recording listens, and whom it trusts."""
    world = upstream_of(settings.environment)
    return WireOptions(
        confdir=ca.directory,
        host=settings.host,
        port=settings.port,
        hosts=settings.hosts,
        upstream=None if settings.upstream_proxy == "none" else settings.upstream_proxy or world.proxy,
        no_proxy=world.no_proxy,
        upstream_ca=settings.upstream_ca,
        # A mapped host may be the fake provider, whose certificate is from our own authority.
        roots=(*world.named, *filter(None, [system_roots()]), *([ca.certificate] if settings.hosts else [])),
        client_certs=settings.client_certs,
        host_certs=settings.host_certs,
        no_tape=settings.no_tape,
    )


def _summarise(path: Path, noticed: Noticed, ask: Ask) -> tuple[int, TraceHasher, dict[tuple[str, str, str], int]]:
    """Read the tape back: number of exchanges, their trace, what failed. That it can be read is the point, too."""
    hasher = TraceHasher()
    exchanges = 0
    hosts: dict[int, str] = {}
    failed: Counter[tuple[str, str, str]] = Counter()
    for entry in read_entries(path, ask=ask):
        hasher.feed(entry.index, entry.record)
        match entry.record:
            case Request(url=url, body=body, headers=headers):
                exchanges += 1
                noticed.look(url)
                assert isinstance(body, bytes)  # the decoder resolves references
                noticed.look(decode(body, headers).data)
                hosts[entry.index] = parse_target(url).authority
            case Response(of=of, status=407):  # no server's answer, but a proxy's on the way to it
                failed[hosts[of], "connect-error", PROXY_REFUSED] += 1
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
