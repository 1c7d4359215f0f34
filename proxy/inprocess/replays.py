"""A replay within this interpreter: `with replay(path) as run`. No mitmproxy, no port, no environment for clients.

Knows the order of opening and closing; `redirects` knows the clients, `proxy.replayer` what a request gets. Long, for
what a context is to its caller and what it is to the clients that it leads share all of its state.
"""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from tapeproxy.proxy.inprocess.background import Background
from tapeproxy.proxy.inprocess.children import FORKED, Reports
from tapeproxy.proxy.inprocess.clamp import ROOT, Clamp, enter, is_shimmed
from tapeproxy.proxy.inprocess.environments import RunEnvironment
from tapeproxy.proxy.inprocess.failures import TapeDriftError as TapeDriftError
from tapeproxy.proxy.inprocess.failures import TapeViolationError as TapeViolationError
from tapeproxy.proxy.inprocess.flows import Gone, outlived
from tapeproxy.proxy.inprocess.heard import Judged
from tapeproxy.proxy.inprocess.latecomers import Latecomers, is_led
from tapeproxy.proxy.inprocess.redirects import lead, let_go
from tapeproxy.proxy.inprocess.routes import Origin, Pipe
from tapeproxy.proxy.inprocess.serving import authorities, calling_line, clamp_settings, place, server_of, skip_settings
from tapeproxy.proxy.inprocess.tapeline import DirectTransport, TapeLine
from tapeproxy.proxy.inprocess.tapes import load_again
from tapeproxy.proxy.inprocess.words import Matching, OnDrift, check_words, rules_of
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.tapedrun import facts_here, placeholders, taped_redactor, with_seed
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.outcomes import gaps
from tapeproxy.tapes.positions import is_within
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.tapes.trace import join_parts, part_of
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.conversation import Unsaid
    from tapeproxy.proxy.owntape import OwnTape

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


class Replay:
    """An open replay, as a context manager, plain or async; it is entered once.

    While it is open every HTTP client of this interpreter hears the tape, also one that was made before. Leaving it
    raises TapeViolationError where anything was asked that is not on the tape, whatever the code made of the answer.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        speed: float | None = None,
        rules: Iterable[str] = (),
        allow: Iterable[str] = (),
        block_network: bool = True,
        match: Matching = "lane",
        on_drift: OnDrift = "fail",
    ) -> None:
        """`speed`: None for answers at once, 1.0 as recorded. `rules` as in tapeproxy.toml, added to the tape's own.

        `allow`: HOST:PORT that may be connected to; without `block_network` everything may that is no HTTP of a client
        that is led to the tape. `match`: whether each lane has its own answers, where the tape has lanes. `on_drift`:
        whether another way to a request is an error, or only in `drifts`.
        """
        self.path = Path(path)
        self.violations: list[Violation] = []
        self.drifts: list[Drift] = []
        self.latecomers = Latecomers()
        self.tape: Tape
        self.own: OwnTape | None = None
        """Hears what is asked, if it is set before the replay is opened."""
        self._speed = speed
        self._match = match
        self._on_drift = on_drift
        self._clamp: Clamp | None = None
        self._skipping: Clamp | None = None
        self._judged: Judged
        self.children = Reports()
        check_words(match=match, on_drift=on_drift)
        self._rules = rules_of(rules)
        self._allow = frozenset(map(place, allow))
        self._block = block_network
        self._server: TapeServer
        self._replayer: Replayer
        self._authorities: frozenset[str]
        self._proxies = frozenset[tuple[str, int]]()
        self._placeholders: list[str] = []
        self._closed = True
        self._looped = False
        self._lock = threading.RLock()
        self._whose = ""

    # --- what came of it ---------------------------------------------------------------------------------------

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """The taped exchanges whose answers were given, in the order of the tape."""
        return self._replayer.index.used()

    @property
    def unused(self) -> Sequence[Exchange]:
        """Those that nobody asked for."""
        return self._replayer.index.unused()

    @property
    def late(self) -> Sequence[Violation]:
        """What threads and tasks asked that go on when the context is over; each was refused, and warned of."""
        return self.latecomers.found

    @property
    def environment(self) -> RunEnvironment:
        """What the environment of the recorded run was."""
        return RunEnvironment.of(self.tape)

    @property
    def trace_hash(self) -> str:
        """The trace hash of the answers that were given: that in the tape's seal, where all were."""
        reading = self._replayer.reading
        return join_parts(part_of(exchange, reading) for exchange in self.exchanges)

    # --- the context -------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Raises TapeFormatError, NoTapeError and LockedTapeError."""
        self.open(load_again(self.path))
        self.resume()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.suspend()
        self.close()
        # An error of the code itself is mostly what it made of the violation; what ends the process goes first.
        if self.violations and (error is None or isinstance(error, Exception)):
            raise TapeViolationError(self.path, self.violations) from error
        if self.drifts and self._on_drift == "fail" and (error is None or isinstance(error, Exception)):
            raise TapeDriftError(self.path, self.drifts) from error

    def open(self, tape: Tape) -> None:
        """Get ready to serve this tape; `resume` begins. Raises TapeFormatError."""
        settings = ReplaySettings(tape=self.path, environment=dict(os.environ), shim=False, rules=self._rules)
        tape.head, _ = with_seed(tape.head, within=True)
        self.tape = tape
        clamped = is_within(tape.head) and tape.head.seed is not None and not is_shimmed()
        try:
            self._replayer = Replayer(
                tape,
                taped_redactor(tape, settings),
                lambda _: False,
                self._notice,
                by_lane=clamped and self._match == "lane",  # else nobody says which lane asks
                rules=self._rules,
                here=facts_here(tape, settings),
                witness=None if self.own is None else self.own.witness,
            )
        except ValueError as error:
            raise TapeFormatError(str(error), place=Place(str(self.path))) from None
        self._authorities = frozenset(authorities(tape))
        self._server = server_of(self._replayer, self._speed)
        self._judged = Judged(self._replayer.redactor.text)
        if clamped:
            self._clamp = Clamp(clamp_settings(tape, self._judged.take))
        elif tape.head.imported is not None and not is_shimmed():
            self._skipping = Clamp(skip_settings())

    def resume(self, root: str = ROOT, whose: str = "") -> None:
        """Lead this interpreter's clients here, on the tape's clock; the flow that calls is the lane `root`.

        `whose`: what is said of flows that outlive the context. Raises UsageError where the clock is another tape's.
        """
        self._whose = whose or str(self.path)
        self._proxies = frozenset(place(os.environ[name]) for name in _PROXIES if os.environ.get(name))
        for name in placeholders(self.tape):
            if not os.environ.get(name):
                os.environ[name] = placeholder(name)
                self._placeholders.append(name)
        self._closed = False
        lead(self)
        enter(self._clamp, root, self.suspend)
        if self._skipping is not None:
            with contextlib.suppress(UsageError):  # the clock is somebody else's: sleeps are slept
                self._skipping.enter(root)

    def write_own(self, path: Path) -> None:
        """Write the tape of what was asked. Raises TapeWriteError."""
        assert self.own is not None
        self.own.write(path, self.tape, self._replayer.redactor)

    def suspend(self) -> None:
        """Let them go, and end their connections."""
        for clamp in filter(None, (self._clamp, self._skipping)):
            clamp.leave(Gone(self, self._whose))
        self.look_around()
        with self._lock:
            self._closed = True
        let_go(self)
        for name in self._placeholders:
            if os.environ.get(name) == placeholder(name):
                del os.environ[name]
        self._placeholders.clear()
        if self._looped:
            Background.get().run(self._disconnect())
        with self._lock:
            for connection in list(self._server.connections):
                connection.abort()

    def look_around(self) -> None:
        """Take note of what lanes and children did that no request of this process has shown."""
        for drift in self._judged.drifts():
            self._replayer.drift(drift)
        for what in self.children.heard():
            self._replayer.violate(Violation("egress", what, FORKED))

    def unsaid(self) -> "Sequence[Unsaid]":
        """The WebSockets on which the code has said less than on the tape."""
        return self._replayer.unsaid()

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing and is no drift."""
        return [*gaps(self.tape.notes), *self._judged.notes, *self._replayer.findings.soft_notes()]

    def close(self) -> None:
        """Serve no more; the findings stay."""
        self.children.forget()

    async def __aenter__(self) -> Self:
        from anyio import to_thread

        self.open(await to_thread.run_sync(load_again, self.path))
        self.resume()  # here, for this flow is the one that has the tape's clock
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    # --- a route (`routes.Route`) ------------------------------------------------------------------------------

    def takes(self, host: str, port: int) -> bool:
        """All but what is on this machine and not on the tape: a server that a test itself has started stays live."""
        if (host.lower(), port) in self._proxies:
            return True
        if (host.lower(), port) in self._allow:
            return False
        return not is_loopback(host) or f"{host.lower()}:{port}" in self._authorities

    def serve(self, far: socket.socket, origin: Origin, near: Pipe, direct: bool) -> TapeLine | None:
        """Answer what comes on `far` from the tape: in the thread of the client, unless answers take their time."""
        far.setblocking(False)
        with self._lock:
            if (gone := outlived()) is not None:
                far.close()
                raise ConnectionRefusedError(self.latecomers.refuse(gone, f"ask {origin.url}"))
            if self._closed:
                far.close()
                raise BrokenPipeError("the replay that this connection belongs to is over")
            line = TapeLine(self._server, origin, near, self._lock)
            if direct and self._speed is None:
                line.connection_made(cast(asyncio.Transport, DirectTransport(far, line, self._lock)))
                return line
            self._looped = True
            Background.get().submit(self._accept(far, line))
            return None

    async def _accept(self, far: socket.socket, line: TapeLine) -> None:
        if self._closed:
            far.close()
            return
        await self._server.loop.connect_accepted_socket(lambda: line, far)

    async def _disconnect(self) -> None:
        """Return when every connection is gone, so that no client takes it for a good one."""
        for connection in list(self._server.connections):
            connection.abort()
        while self._server.connections:
            await asyncio.sleep(0)

    @property
    def lets_children(self) -> bool:
        """As this process itself."""
        return not self._block

    def refuses(self, what: str) -> None:
        """A violation."""
        said = "a program that the code has started asked for it, and was refused: tape.run gives it a tape of its own"
        self._replayer.violate(Violation("egress", what, said))

    def reaches_out(self, kind: str, host: str, port: int) -> str:
        """A violation, and why."""
        allowed = any(host == name and port in (0, number) for name, number in self._allow)
        if allowed or Background.is_thread(threading.get_ident()):
            return ""
        where = f"{host}:{port}" if port else host
        if (gone := outlived()) is not None:
            return self.latecomers.refuse(gone, f"{kind} {where}") if self._block or is_led() else ""
        if not self._block:
            return ""
        what = f"the code wanted to {kind} {where} past the clients that hear the tape, and was refused"
        found = Violation("egress", f"{kind} {where}, at {calling_line()}", what)
        if found not in self.violations:
            self._replayer.violate(found)
        return what

    def _notice(self, found: Violation | Drift) -> None:
        if self.own is not None:
            self.own.notice(found)
        if isinstance(found, Violation):
            self.violations.append(found)
        else:
            self.drifts.append(found)


replay = Replay
