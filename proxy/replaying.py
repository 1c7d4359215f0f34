"""A replay from beginning to end: the tape loaded, the server up, the agent run, the verdict. No mitmproxy.

A `Wire` is what replays of one tape can share; a `Replaying` is what belongs to one of them.
"""

import asyncio
import gc
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Self

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.guard import Guard
from tapeproxy.proxy.led import NOBODY, Led, search_domains
from tapeproxy.proxy.lockorder import keeps_order
from tapeproxy.proxy.openreplay import Replaying as Replaying
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.replayed import Replayed, ReplaySettings
from tapeproxy.proxy.replayenv import ReplayEnvironment
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shimming import skipping_environment
from tapeproxy.proxy.shims import Shims
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.proxy.supervisor import StopSignal, held_signals
from tapeproxy.proxy.tapedrun import began_at, facts_here, taped_argv, taped_redactor, with_seed
from tapeproxy.proxy.tapefile import is_big, load, read_entries
from tapeproxy.proxy.tapeserver import Serving, TapeServer
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.fronts import Front, Fronts, parse_fronts
from tapeproxy.tapes.hints import absent_lanes, nowhere
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.lanes import has_node
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.loading import Loading
    from tapeproxy.proxy.tracing import TraceLines
    from tapeproxy.tapes.faults import Faults

NOT_LED = (
    "recorded with --local, whose replay needs a network namespace: here, clients that do not take the proxy are "
    "refused"
)


class Wire:
    """A tape that is loaded and served. Replays run on it one after the other, each as if it were the only one."""

    def __init__(self, settings: ReplaySettings, tape: Tape, ending: Ending | None) -> None:
        tape.head, self.notes = with_seed(tape.head)
        self.settings = settings
        self.tape = tape
        self.ending = ending
        """How the file ends; None while it is read."""
        self.loading: Loading | None = None
        self.port = 0
        self.address = ""
        """Where the agent finds the proxy: HOST:PORT."""
        self._threads = keeps_order(tape, settings.threads, settings.tape)
        self._ca = CertificateAuthority.open()
        self._redactor = taped_redactor(tape, settings)
        self._began = began_at(tape)
        served = settings.shim and tape.head.seed is not None and settings.tools == "tape"
        self._absent = absent_lanes(tape) if served else nowhere
        self._server: TapeServer | None = None
        self.fronts = Fronts()

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
        # A tape is a hundred thousand objects that stay: to look through them for garbage takes a tenth of a second.
        gc.freeze()
        return wire

    @classmethod
    def open_early(cls, settings: ReplaySettings) -> Self:
        """Open the tape; one that is big is read on by `Replaying.read_on` where that can't be noticed.

        Raises what `open` raises.
        """
        if (loading := begin_loading(settings)) is None:
            return cls.open(settings)
        wire = cls(settings, loading.tape, None)
        wire.loading = loading
        return wire

    async def begin(
        self, noticed: Callable[[Violation | Drift], None], witness: Callable[[Step], None] | None = None
    ) -> "Replaying":
        """Begin a replay, and serve it; the one before it must have ended. See Replayer for what is called when.

        Raises TapeFormatError, PortInUseError, CaError and UsageError.
        """
        run = RunProcesses(os.urandom(8).hex())
        match = self.settings.match
        try:
            replayer = Replayer(
                self.tape,
                self._redactor,
                run.owns_port,
                noticed,
                by_lane=match != "any",
                by_position_not_by_content=match == "position-not-content",
                witness=witness,
                faults=_faults(self.settings),
                rules=self.settings.rules,
                taped_rules=self.settings.taped_rules,
                here=facts_here(self.tape, self.settings),
                absent=self._absent,
                known=None if self.loading is None else 0,
            )
        except ValueError as error:
            raise TapeFormatError(str(error), place=Place(str(self.settings.tape))) from None
        server = await self._serve(replayer, lambda host, port: is_loopback(host) and run.owns_port(port))
        replayer.fronts = self.fronts
        session = Replaying(self, server, run)
        here = ReplayEnvironment(self.tape, self.settings, self._ca, self.address, self.fronts, self._leads)
        session.environment = here.variables(run.run_id)
        traced = self.settings.call_sites
        if self.settings.shim and (self.tape.head.seed is not None or traced):
            trace = _trace() if traced else None
            session.shims = Shims(
                self.tape,
                replayer,
                self._redactor,
                Strangers(run, node=has_node(self.tape.head)),
                trace=trace,
                io=self.settings.io,
                threads=self._threads,
                edges=self.settings.edges,
                tools=self.settings.tools,
            )
            replayer.untagged = session.shims.untagged
            replayer.serving = session.shims.serving
            replayer.keeps_order = self.settings.speed is None
            session.environment |= session.shims.variables(self.settings.environment, self.address)
            server.before_request = session.shims.drain
        elif self.settings.shim and self.tape.head.imported is not None:
            session.environment |= skipping_environment(session.environment)
        return session

    def command(self) -> tuple[str, ...]:
        """What is to be run. Raises UsageError when the tape's own command is not to be, or there is none."""
        return self.settings.argv or taped_argv(self.tape, self.settings.tape)

    async def stop(self) -> None:
        """Stop serving."""
        gc.unfreeze()
        if self._server is not None:
            await self._server.stop()

    async def _serve(self, replayer: Replayer, is_inside: Callable[[str, int], bool]) -> TapeServer:
        if self._server is not None:
            self._server.renew(replayer, is_inside)
            return self._server
        server = TapeServer(
            replayer,
            lambda host, http2: self._ca.server_context(host, self._began, http2=http2),
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
            self._server = server  # from here on `stop` has it to stop
            self.fronts = Fronts({await server.open_front(one.port): one for one in self._wanted_fronts()})
            await self._lead(server)
        self._server = server
        return server

    @property
    def _leads(self) -> bool:
        """Whether all connections of the run are led here; only in a namespace of its own they can be."""
        return self.tape.head.led and self.settings.guard.level is Guard.NAMESPACE

    async def _lead(self, server: TapeServer) -> None:
        """Lead the run's connections here, as in the recording. Raises UsageError."""
        if not self.tape.head.led:
            return
        if not self._leads:
            self.notes = [*self.notes, NOT_LED]
            return
        asked = [parse_target(exchange.request.url) for exchange in self.tape.exchanges if not exchange.request.inside]
        hosts = {target.host for target in asked}
        here = {target.port for target in asked if is_loopback(target.host)} | set(_tunnelled(self.tape))
        nobody = {note.data.get("host") for note in self.tape.notes if note.what == NOBODY}
        domains = search_domains()

        async def exists(name: str) -> bool:
            # A name that nobody asked for is led here as well, so that what is asked of it can be told.
            return name in hosts or (name not in nobody and not any(name.endswith(f".{one}") for one in domains))

        ours = {self.port, *self.fronts.open}
        await server.open_led(Led(exists), here - ours)

    def _wanted_fronts(self) -> tuple[Front, ...]:
        if self.settings.fronts is not None:
            return self.settings.fronts
        try:
            return parse_fronts(self.tape.head.reverse)
        except UsageError as error:
            raise TapeFormatError(f"its 'reverse' says: {error.what}", place=Place(str(self.settings.tape))) from None


def _tunnelled(tape: Tape) -> Iterator[int]:
    """The ports of loopback to which something went that was no HTTP, of servers outside of the run."""
    for note in tape.notes:
        host, port = note.data.get("host"), note.data.get("port")
        if note.what == "tunnel-untaped" and isinstance(host, str) and is_loopback(host) and type(port) is int:
            yield port & 0xFFFF


async def open_replay(settings: ReplaySettings, noticed: Callable[[Violation | Drift], None]) -> Replaying:
    """Load the tape and serve it until `stop`. `noticed` hears of violations as they happen.

    Raises TapeFormatError, PortInUseError, CaError, UsageError.
    """
    return await _begin(Wire.open(settings), noticed)


async def _begin(
    wire: Wire, noticed: Callable[[Violation | Drift], None], witness: Callable[[Step], None] | None = None
) -> Replaying:
    try:
        return await wire.begin(noticed, witness)
    except BaseException:
        await wire.stop()
        raise


async def replay(
    settings: ReplaySettings,
    noticed: Callable[[Violation | Drift], None],
    started: Callable[[Replaying], None],
    witness: Callable[[Step], None] | None = None,
) -> Replayed:
    """Run the agent against the tape. `started` is called when the tape is loaded and served, before the agent is.

    A big tape may be read while it is served: then `started` is called once more, when its end is known. Raises what
    `open_replay` raises and the supervisor's errors.
    """
    stop = StopSignal()
    with held_signals():
        wire = Wire.open_early(settings)
        session = await _begin(wire, stopping_at(settings.max_violations, stop, noticed), witness)
        try:
            session.wire.command()  # an error about the command comes alone
            started(session)
            reading = asyncio.create_task(_reading(session, stop))
            try:
                outcome = await session.run(stop)
            except BaseException:
                reading.cancel()
                raise
            await reading
            if wire.loading is not None:
                started(session)
        finally:
            await session.stop()
    return session.verdict(settings, outcome, outcome.duration_ns)


async def _reading(session: Replaying, stop: StopSignal) -> None:
    """Read on; what is wrong with the tape ends the run."""
    try:
        await session.read_on()
    except BaseException:
        stop.request("tape")
        raise


def begin_loading(settings: ReplaySettings) -> "Loading | None":
    """Open a big tape to be read while it is served; None where all of it has to be known before the agent starts.

    That is so for the shim, which needs every reading of the clock, and for faults, which count requests.
    """
    path = settings.tape
    if not is_big(path) or settings.faults or settings.io not in (None, "live") or settings.call_sites:
        return None
    head = next(read_entries(path)).record
    assert isinstance(head, Head)
    if head.scrubbed is not None or (settings.shim and head.seed is not None):
        return None
    from tapeproxy.proxy.loading import Loading

    return Loading(path)


def _faults(settings: ReplaySettings) -> "Faults | None":
    if not settings.faults:
        return None
    from tapeproxy.tapes.faults import Faults

    return Faults(settings.faults)


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
