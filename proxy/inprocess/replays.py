"""A replay within this interpreter: `with replay(path) as run`. No mitmproxy, no port, no environment for clients.

Knows the order of opening and closing; `redirects` knows the clients, `proxy.replayer` what a request gets.
"""

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from tapeproxy.proxy.inprocess.background import Background
from tapeproxy.proxy.inprocess.children import FORKED, Reports
from tapeproxy.proxy.inprocess.clamp import ROOT, Clamp, ClampSettings, enter, is_shimmed
from tapeproxy.proxy.inprocess.environments import RunEnvironment
from tapeproxy.proxy.inprocess.heard import Judged
from tapeproxy.proxy.inprocess.redirects import lead, let_go
from tapeproxy.proxy.inprocess.routes import Origin, Pipe
from tapeproxy.proxy.inprocess.tapeline import DirectTransport, TapeLine
from tapeproxy.proxy.inprocess.tapes import load_again
from tapeproxy.proxy.inprocess.words import Matching, OnDrift, check_words, rules_of
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shimming import epoch_ns, reads_of
from tapeproxy.proxy.tapedrun import facts_here, placeholders, taped_redactor, with_seed
from tapeproxy.proxy.tapeserver import Serving, TapeServer
from tapeproxy.tapes.errors import Place, TapeFormatError, TapeproxyError, UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.hosts import is_loopback, split_authority
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.positions import is_within
from tapeproxy.tapes.recordfields import Json
from tapeproxy.tapes.tokens import placeholder
from tapeproxy.tapes.trace import join_parts, part_of
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.conversation import Unsaid
    from tapeproxy.proxy.owntape import OwnTape

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_INBOX = memoryview(bytearray(1 << 18))
"""What connections read into: all of them on the background's loop, one after the other."""
_NO_ROOM = memoryview(b"")
"""For what TLS would decrypt."""
_SHOWN = 3
_ANEW = "if the change is meant, record the tape anew"


def _listed(found: Sequence[Violation | Drift]) -> str:
    more = len(found) - _SHOWN
    return "\n".join(one.to_text() for one in found[:_SHOWN]) + (f"\nand {more} more" if more > 0 else "")


class TapeViolationError(TapeproxyError):
    """The code in a replay did what is not on the tape. `violations` has each of them."""

    exit_code = 3

    def __init__(self, tape: Path, violations: Sequence[Violation], *, fix: str = "") -> None:
        self.violations = list(violations)
        super().__init__(_listed(self.violations), where=str(tape), fix=fix or _ANEW)


class TapeDriftError(TapeproxyError):
    """All that was asked is on the tape, but the code in a replay came another way to it. `drifts` has where."""

    exit_code = 4

    def __init__(self, tape: Path, drifts: Sequence[Drift], *, fix: str = "") -> None:
        self.drifts = list(drifts)
        super().__init__(_listed(self.drifts), where=str(tape), fix=fix or _ANEW)


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
        self.tape: Tape
        self.own: OwnTape | None = None
        """Hears what is asked, if it is set before the replay is opened."""
        self._speed = speed
        self._match = match
        self._on_drift = on_drift
        self._clamp: Clamp | None = None
        self._judged: Judged
        self.children = Reports()
        check_words(match=match, on_drift=on_drift)
        self._rules = rules_of(rules)
        self._allow = frozenset(map(_place, allow))
        self._block = block_network
        self._server: TapeServer
        self._replayer: Replayer
        self._authorities: frozenset[str]
        self._proxies = frozenset[tuple[str, int]]()
        self._placeholders: list[str] = []
        self._closed = True
        self._looped = False
        self._lock = threading.RLock()

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
        self._authorities = frozenset(_authorities(tape))
        self._server = _server(self._replayer, self._speed)
        self._judged = Judged(self._replayer.redactor.text)
        if clamped:
            self._clamp = Clamp(_clamp_settings(tape, self._judged.take))

    def resume(self, root: str = ROOT) -> None:
        """Lead this interpreter's clients here, on the tape's clock; the flow that calls is the lane `root`.

        Raises UsageError where the clock is another tape's.
        """
        self._proxies = frozenset(_place(os.environ[name]) for name in _PROXIES if os.environ.get(name))
        for name in placeholders(self.tape):
            if not os.environ.get(name):
                os.environ[name] = placeholder(name)
                self._placeholders.append(name)
        self._closed = False
        lead(self)
        enter(self._clamp, root, self.suspend)

    def write_own(self, path: Path) -> None:
        """Write the tape of what was asked. Raises TapeWriteError."""
        assert self.own is not None
        self.own.write(path, self.tape, self._replayer.redactor)

    def suspend(self) -> None:
        """Let them go, and end their connections."""
        if self._clamp is not None:
            self._clamp.leave()
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
        return [*self._judged.notes, *self._replayer.findings.soft_notes()]

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
        if not self._block or self._may_reach(host, port) or Background.is_thread(threading.get_ident()):
            return ""
        where = f"{host}:{port}" if port else host
        what = f"the code wanted to {kind} {where} past the clients that hear the tape, and was refused"
        found = Violation("egress", f"{kind} {where}, at {_calling_line()}", what)
        if found not in self.violations:
            self._replayer.violate(found)
        return what

    def _may_reach(self, host: str, port: int) -> bool:
        return any(host == name and port in (0, number) for name, number in self._allow)

    def _notice(self, found: Violation | Drift) -> None:
        if self.own is not None:
            self.own.notice(found)
        if isinstance(found, Violation):
            self.violations.append(found)
        else:
            self.drifts.append(found)


replay = Replay


def _clamp_settings(tape: Tape, take: Callable[[dict[str, Any]], object]) -> ClampSettings:
    head = tape.head
    assert head.seed is not None
    lines: dict[str, list[Json]] = {}
    first: list[Json] = []
    for line in reads_of(tape):
        first = first or [line]
        lines.setdefault(line["lane"], []).append(line)
    return ClampSettings(
        mode="replay",
        seed=head.seed,
        origin_ns=epoch_ns(head.started_at) + (head.origin or 0),
        take=take,
        reads=lambda lane: first + lines.get(lane, []),
    )


def _authorities(tape: Tape) -> Iterable[str]:
    """HOST:PORT of everyone on the tape, in small letters."""
    for exchange in tape.exchanges:
        try:
            target = parse_target(exchange.request.url)
        except ValueError:
            continue
        yield f"{target.host.lower()}:{target.port}"


def _place(text: str) -> tuple[str, int]:
    """The host and port of HOST:PORT, also within a URL. Raises UsageError."""
    scheme, _, rest = text.rpartition("://")
    authority = rest.partition("/")[0].rpartition("@")[2]
    if ":" not in authority.rpartition("]")[2]:
        authority += ":443" if scheme == "https" else ":80"
    found = split_authority(authority.encode("latin-1", "replace"))
    if found is None:
        raise UsageError(f"{text!r} is not HOST:PORT")
    return found[0].lower(), found[1]


def _server(replayer: Replayer, speed: float | None) -> TapeServer:
    """A tape server that listens nowhere, on the background's loop."""
    server = TapeServer(
        replayer, _no_tls, lambda _host, _port: False, Serving(speed=speed), inbox=_INBOX, room=_NO_ROOM
    )
    server.loop = Background.get().loop
    return server


def _no_tls(host: str, _: bool) -> NoReturn:
    raise AssertionError(f"TLS within a process, with {host}")


def _calling_line() -> str:
    """The innermost line that is neither ours nor of the standard library or an installed package."""
    frame: FrameType | None = sys._getframe(2)
    last = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if "tapeproxy" not in frame.f_globals.get("__name__", "") and not file.startswith("<"):
            last = last or f"{file}:{frame.f_lineno}"
            if "site-packages" not in file and not file.startswith((sys.base_prefix, sys.prefix)):
                return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return last
