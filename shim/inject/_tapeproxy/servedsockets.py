"""Connections from the tape: the agent's own socket, with one end of a socket pair behind it that is fed what is taped.

A piece comes when the agent has taken the one before and has sent as much as it had sent then. What it sends goes
nowhere, and is told for the launcher to compare. An agent that waits although it has sent less gets the piece at once
where that is certain, and otherwise after `_PATIENCE` seconds; that is told too.
"""

from __future__ import annotations

import errno
import os
import sys
from _thread import allocate_lock, get_ident
from collections import deque

from . import pipes, sockets, tapedvalues, threads, watchedsockets
from .values import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PATIENCE = 10.0
_ROOM = 1 << 20
_start = threads._start_new_thread  # a thread of ours has no lane
_taped: dict[tuple[str, str], deque[dict[str, Any]]] | None = None
_passed: dict[tuple[str, int], list[dict[str, Any]]] = {}


def take(name: str, lane: str) -> dict[str, Any] | None:
    """The lane's next connection with this name. Each comes once; a failure stands for further attempts, too."""
    if _taped is None:
        _load()
    assert _taped is not None
    waiting = _taped.get((lane, name))
    if not waiting:
        return None
    found = waiting[0]
    if len(waiting) > 1 or not found.get("error"):
        waiting.popleft()
    passed = _passed.get((lane, found["n"]), ())
    found["tls"] = any((value.get("data") or {}).get("tls") for value in (found, *passed))
    return found


def _load() -> None:
    global _taped
    taped: dict[tuple[str, str], deque[dict[str, Any]]] = {}
    for value in tapedvalues.load():
        if value["what"] == "socket" and not (value.get("data") or {}).get("within"):
            taped.setdefault((value["lane"], value["name"]), deque()).append(value)
        elif value["what"] in ("received", "sent"):
            _passed.setdefault((value["lane"], value["data"].get("of", -1)), []).append(value)
    _taped = taped


def serves(sock: Any, taped: dict[str, Any]) -> bool:
    """Put a taped connection behind a socket; False where the tape has not all that came. Raises the taped error."""
    if taped.get("error"):
        error = _error_of(taped)
        if (taped.get("data") or {}).get("pending") and sock.gettimeout() == 0:
            watchedsockets.watch(sock, Served(sock, taped, deque(), deque(), error))
            raise BlockingIOError(errno.EINPROGRESS, os.strerror(errno.EINPROGRESS))
        raise error
    passed = _passed.get((taped["lane"], taped["n"]), [])
    pieces = deque((_Piece(value) for value in passed if value["what"] == "received"))
    if not all(piece.is_whole for piece in pieces):
        return False
    errors = deque([value for value in passed if value["what"] == "sent" and value.get("error")])
    watchedsockets.watch(sock, Served(sock, taped, pieces, errors))
    return True


def _error_of(value: dict[str, Any]) -> OSError:
    if (value.get("data") or {}).get("timeout"):
        from _socket import timeout

        return timeout("timed out")
    number = getattr(errno, value["error"], errno.EIO)
    return OSError(number, os.strerror(number))


class _Piece:
    """What came at once, and how much had been sent before."""

    __slots__ = ("after", "content", "error", "is_whole")

    def __init__(self, value: dict[str, Any]) -> None:
        self.after = int(value["data"].get("after", 0))
        self.error = _error_of(value) if value.get("error") else None
        content = None if self.error else tapedvalues.content_of(value)
        self.content = content or b""
        self.is_whole = self.error is not None or content is not None


class Served:
    """One connection from the tape."""

    def __init__(
        self,
        sock: Any,
        taped: dict[str, Any],
        pieces: deque[_Piece],
        errors: deque[dict[str, Any]],
        failure: OSError | None = None,
    ) -> None:
        self._failure = failure  # there is no connection, which is still to be seen
        self._taped = taped
        self._pieces = pieces
        self._errors = errors
        self._peer = _put_behind(sock)
        self._lock = allocate_lock()
        self._pending = memoryview(b"")  # of the piece that is on its way
        self._untaken = 0  # bytes that the agent has not received yet
        self._sent = self._skipped = 0
        self._tell = pipes.Stream(taped["name"], taped["lane"], taped["n"], "sent")
        self._error = failure
        self._users = {get_ident()}
        self._options: dict[tuple[int, int], Any] = {}
        self._is_guarded = False
        self._feed()
        if failure is not None:
            self._shut()  # it can be written to and read from, as one that has failed

    def awaits(self, sock: Any) -> None:
        """Somebody is about to receive. Raises what is next on the tape, or what says that there is no more."""
        self._users.add(get_ident())
        if self._untaken or self._pending:
            return
        if self._error is not None:
            raise self._error
        if sock.gettimeout() is not None or not self._is_alone():
            return
        if self._pieces and self._is_gated():
            self._release()
        elif not self._pieces and self._peer is not None and not self._has_ended():
            self._tell_amiss("received", "more")
            why = f"tapeproxy: the tape has no more of {self._taped['name']}"
            raise ConnectionResetError(errno.ECONNRESET, why)

    def hears(self, content: Any) -> None:
        """The agent has taken this."""
        if content:
            with self._lock:
                self._untaken -= len(content)
            self._feed()
        elif self._error is not None:
            raise self._error

    def hears_error(self, error: OSError) -> None:
        """The agent was given an error."""

    def says(self, data: Any, really: Callable[[], Any]) -> int:
        """The agent sends."""
        del really
        if bytes(data[:2]) == b"\x16\x03" and bytes(data[5:6]) == b"\x01":
            self.begins_tls()
        self._users.add(get_ident())
        if self._failure is not None:
            raise self._failure
        if self._errors and self._sent + self._skipped >= self._errors[0]["data"].get("after", 0):
            raise _error_of(self._errors.popleft())
        if data:
            with self._lock:
                self._sent += len(data)
            self._tell(data, taped=self._taped["n"])
            self._feed()
            self._guard()
        return len(data)

    def ends(self) -> None:
        """Nothing more is sent."""
        if self._failure is not None:
            return
        self._tell(b"", taped=self._taped["n"])
        if self._pieces and self._is_gated():
            self._skip()

    def closes(self) -> None:
        """The socket is closed."""
        with self._lock:
            self._pieces.clear()
        self.ends()
        self._shut()

    def begins_tls(self) -> None:
        """What the agent wants to do now can't be served. Raises RefusedError."""
        sockets.refuse(self._taped["name"], sockets._TLS)

    def connects_again(self, really: Callable[[], Any]) -> None:
        """Somebody asks by `connect` whether there is a connection."""
        del really
        raise self._failure or OSError(errno.EISCONN, os.strerror(errno.EISCONN))

    def option(self, level: int, option: int, size: Any, really: Callable[..., Any]) -> Any:
        """An option: those of TCP are what was set, as there is no TCP behind it."""
        from _socket import SO_ERROR, SOL_SOCKET

        if self._failure is not None and (level, option) == (SOL_SOCKET, SO_ERROR):
            return self._failure.errno
        if level == SOL_SOCKET:
            return really(level, option, *size)
        return self._options.get((level, option), bytes(size[0]) if size else 0)

    def set_option(self, level: int, option: int, value: Any, really: Callable[..., Any]) -> None:
        """Set an option."""
        from _socket import SOL_SOCKET

        if level == SOL_SOCKET:
            try:
                really(level, option, *value)
            except OSError:  # one that a socket pair does not have
                pass
        else:
            self._options[level, option] = value[0]

    def address(self, side: str, really: Callable[[], Any]) -> Any:
        """The taped address of the peer, or the own one."""
        taped = (self._taped.get("data") or {}).get(side)
        return really() if taped is None else tuple(taped) if isinstance(taped, list) else taped

    # --- feeding ---

    def _feed(self) -> None:
        """Give what may be given now."""
        with self._lock:
            while self._peer is not None:
                if self._pending:
                    try:
                        count = self._peer.send(self._pending)
                    except BlockingIOError:  # the rest when the agent has taken some
                        return
                    except OSError:  # the agent has shut its side
                        return
                    self._pending = self._pending[count:]
                    self._untaken += count
                elif self._untaken or not self._pieces or self._is_gated():
                    return
                else:
                    self._begin(self._pieces.popleft())

    def _begin(self, piece: _Piece) -> None:
        if piece.content:
            self._pending = memoryview(piece.content)
            return
        self._error = piece.error
        self._shut()  # the agent's side can be read now

    def _shut(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.close()

    def _has_ended(self) -> bool:
        return self._peer is None

    # --- an agent that waits in vain ---

    def _is_gated(self) -> bool:
        return bool(self._pieces) and self._pieces[0].after > self._sent + self._skipped

    def _is_alone(self) -> bool:
        """Whether only the main thread has to do with this connection, so that nobody else will send."""
        threading = sys.modules.get("threading")
        return self._users == {get_ident()} and (threading is None or threading.main_thread().ident == get_ident())

    def _release(self) -> None:
        self._tell_amiss("sent", "less")
        self._skip()

    def _skip(self) -> None:
        with self._lock:
            if self._is_gated():
                self._skipped = self._pieces[0].after - self._sent
        self._feed()

    def _tell_amiss(self, what: str, how: str) -> None:
        n = self._taped["n"]
        gate = self._pieces[0].after if self._pieces else None
        data = {"of": n, "amiss": how, "sent": self._sent + self._skipped, "expected": gate}
        emit(what, self._taped["name"], self._taped["lane"], data=data, taped=n)

    def _guard(self) -> None:
        """See to it that an agent that has sent a part, and waits where it can't be seen, doesn't wait for ever."""
        if self._is_gated() and not self._is_guarded:
            self._is_guarded = True
            _start(self._wait, ())

    def _wait(self) -> None:
        lock, before = allocate_lock(), -1
        lock.acquire()
        while self._is_gated():
            if before == self._sent:
                self._release()
                break
            before = self._sent
            lock.acquire(timeout=_PATIENCE)
        self._is_guarded = False


def _put_behind(sock: Any) -> Any:
    """Make a socket one end of a pair, under its own descriptor; returns the other end."""
    import _socket

    near, far = _socket.socketpair()
    far.setblocking(False)
    try:
        far.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _ROOM)
    except OSError:
        pass
    fd = sock.fileno()
    os.dup2(near.fileno(), fd, inheritable=os.get_inheritable(fd))
    near.close()
    os.set_blocking(fd, sock.gettimeout() is None)
    return far
