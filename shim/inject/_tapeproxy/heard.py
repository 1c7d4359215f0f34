"""A real connection of the agent's that is told of: what came, how much had been sent by then, and what was sent."""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock

from . import pids, pipes, sockets, watchedsockets
from .values import emit, error_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Talk:
    """One connection. `told`: what its line says in a replay of its partner on the tape."""

    def __init__(self, sock: Any, name: str, lane: str, told: dict[str, Any]) -> None:
        from weakref import ref

        self._sock: Any = ref(sock)
        self._name, self._lane, self._told = name, lane, told
        self._address: Any = None
        self._pid = pids._getpid()
        self._lock = allocate_lock()
        self._handed = 0  # bytes that were given to be sent
        self._begun = self._mute = False
        self._received: Any = None
        self._sent: Any = None

    def hear(self, address: Any) -> None:
        """Watch the socket from now on."""
        self._address = address
        sock = self._sock()
        if sockets._is_tls(sock):
            self.begins_tls()
        else:
            watchedsockets.watch(sock, self)

    def begin(self) -> None:
        """Tell, once, that there is a connection."""
        if self._begun or self._mute:
            return
        self._begun = True
        self._safely(self._tell_begin)

    def _tell_begin(self, **facts: Any) -> None:
        sock = self._sock()
        data = {"family": sock.family.name if hasattr(sock.family, "name") else int(sock.family), **facts}
        for side, call in (("peer", type(sock).getpeername), ("sock", type(sock).getsockname)):
            try:
                data[side] = _plain(call(sock))
            except OSError:
                continue
        n = emit("socket", self._name, self._lane, data=data, **self._told)
        self._received = pipes.Stream(self._name, self._lane, n, "received")
        self._sent = pipes.Stream(self._name, self._lane, n, "sent")

    def failed(self, error: OSError) -> None:
        """There is no connection."""
        if not self._begun:
            self._begun = self._mute = True
            sockets.tell_failure(self._name, self._lane, error, self._told, self._address is not None)

    def connects_again(self, really: Callable[[], Any]) -> None:
        """Somebody asks, by `connect`, whether the connection is there yet."""
        try:
            really()
        except OSError as error:
            if error.errno == errno.EISCONN:
                self.begin()
            elif error.errno not in sockets._PENDING:
                self.failed(error)
            raise
        self.begin()

    def begins_tls(self) -> None:
        """What passes from now on is not for the tape; that it is TLS stands there."""
        if self._mute:
            return
        if not self._begun:
            self._begun = True
            self._safely(self._tell_begin, tls=True)
        elif self._sent is not None:
            self._safely(self._sent, b"", tls=True)
        self._mute = True
        self._safely(sockets.tell_bypass, self._sock(), self._address)

    def awaits(self, sock: Any) -> None:
        """Somebody is about to receive."""

    def hears(self, content: Any) -> None:
        """This came; nothing: the end."""
        self.begin()
        if not self._is_silent():
            self._received(content, after=self._handed)

    def hears_error(self, error: OSError) -> None:
        """Nothing came, and why."""
        self._tell_error("received", error)

    def says(self, data: Any, really: Callable[[], Any]) -> Any:
        """Send, and tell what was."""
        if bytes(data[:2]) == b"\x16\x03" and bytes(data[5:6]) == b"\x01":
            self.begins_tls()  # a ClientHello (RFC 8446, 4.1.2)
        with self._lock:
            self._handed += len(data)
        count = 0
        try:
            got = really()
            count = len(data) if got is None else got
        except OSError as error:
            self._tell_error("sent", error)
            raise
        finally:
            with self._lock:
                self._handed -= len(data) - count
        self.begin()
        if count and not self._is_silent():
            self._sent(data[:count])
        return got

    def ends(self) -> None:
        """Nothing more is sent."""
        if self._begun and not self._is_silent():
            self._sent(b"")

    def closes(self) -> None:
        """The socket is closed."""
        self.ends()

    def option(self, level: int, option: int, size: Any, really: Callable[..., Any]) -> Any:
        """An option; a non-blocking connection says by one of them whether it came about."""
        got = really(level, option, *size)
        import _socket

        if not self._begun and (level, option) == (_socket.SOL_SOCKET, _socket.SO_ERROR) and not size:
            if got:
                self.failed(OSError(got, os.strerror(got)))
            elif self._is_connected():
                self.begin()
        return got

    def set_option(self, level: int, option: int, value: Any, really: Callable[..., Any]) -> None:
        """Set an option."""
        really(level, option, *value)

    def address(self, side: str, really: Callable[[], Any]) -> Any:
        """The address of the peer, or the own one."""
        del side
        return really()

    def _is_connected(self) -> bool:
        try:
            self._sock().getpeername()
        except OSError:
            return False
        return True

    def _is_silent(self) -> bool:
        return self._mute or self._sent is None or pids._getpid() != self._pid

    def _tell_error(self, what: str, error: OSError) -> None:
        # Without a number: a timeout of Python's own.
        if error.errno in (None, *sockets._PENDING) or self._is_silent():
            return
        data = {"of": self._sent._of, "after": self._handed}
        self._safely(emit, what, self._name, self._lane, error=error_name(error), data=data)

    def _safely(self, tell: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        try:
            tell(*args, **kwargs)
        except Exception:  # noqa: S110  # the agent has its connection, whatever we could not tell of it
            pass


def _plain(address: Any) -> Any:
    return list(address) if isinstance(address, tuple) else os.fsdecode(address)
