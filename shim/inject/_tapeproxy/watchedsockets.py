"""Sockets that are watched: real ones, of a class that asks their talk about all that is sent and received.

Knows `socket.socket`'s methods; only sockets that `watch` was called for have any of this, and all others cost nothing.
"""

from __future__ import annotations

import sys

from .likeness import resemble

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    Socket = socket.socket
else:
    Socket = object

_talks: Any = None  # socket -> its talk, weakly
_classes: dict[type, type] = {}


def talk_of(sock: Any) -> Any:
    """The talk of a socket; None where it is not watched."""
    return None if _talks is None else _talks.get(sock)


def watch(sock: Any, talk: Any) -> None:
    """Have a talk asked about a socket from now on."""
    global _talks
    if _talks is None:
        from weakref import WeakKeyDictionary

        _talks = WeakKeyDictionary()
    cls = type(sock)
    if not isinstance(sock, Watched):
        if cls not in _classes:
            names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
            _classes[cls] = type(cls.__name__, (Watched, cls), {"__slots__": (), **names})
        sock.__class__ = _classes[cls]
    _talks[sock] = talk


def forget(sock: Any) -> None:
    """Ask no more."""
    if _talks is not None:
        _talks.pop(sock, None)


_LENT = ("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into", "send", "sendmsg")


def lend() -> None:
    """Before trio is imported, which keeps methods of the class: give it such as call those of the object."""
    from socket import socket

    for name in _LENT:
        setattr(socket, name, resemble(_of_the_object(name), getattr(socket, name)))


def take_back() -> None:
    """Leave the class as it was."""
    from socket import socket

    for name in _LENT:
        if name in socket.__dict__:
            delattr(socket, name)


def _of_the_object(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(type(self), name)(self, *args, **kwargs)

    return method


class Watched(Socket):
    """The methods of a watched socket."""

    __slots__ = ()

    def recv(self, bufsize: Any, flags: Any = 0, /) -> Any:
        return _received(self, flags, lambda: super(Watched, self).recv(bufsize, flags), lambda got: got)

    def recv_into(self, buffer: Any, nbytes: Any = 0, flags: Any = 0) -> Any:
        really = super().recv_into
        return _received(self, flags, lambda: really(buffer, nbytes, flags), lambda count: _first(buffer, count))

    def recvfrom(self, bufsize: Any, flags: Any = 0, /) -> Any:
        return _received(self, flags, lambda: super(Watched, self).recvfrom(bufsize, flags), lambda got: got[0])

    def recvfrom_into(self, buffer: Any, nbytes: Any = 0, flags: Any = 0) -> Any:
        really = super().recvfrom_into
        return _received(self, flags, lambda: really(buffer, nbytes, flags), lambda got: _first(buffer, got[0]))

    def recvmsg(self, bufsize: Any, ancbufsize: Any = 0, flags: Any = 0, /) -> Any:
        really = super().recvmsg
        return _received(self, flags, lambda: really(bufsize, ancbufsize, flags), lambda got: got[0])

    def recvmsg_into(self, buffers: Any, ancbufsize: Any = 0, flags: Any = 0, /) -> Any:
        really, rooms = super().recvmsg_into, list(buffers)
        whole = lambda got: b"".join([bytes(memoryview(room).cast("B")) for room in rooms])[: got[0]]  # noqa: E731
        return _received(self, flags, lambda: really(rooms, ancbufsize, flags), whole)

    def send(self, data: Any, flags: Any = 0, /) -> Any:
        return _sent(self, data, lambda: super(Watched, self).send(data, flags))

    def sendall(self, data: Any, flags: Any = 0, /) -> Any:
        _sent(self, data, lambda: super(Watched, self).sendall(data, flags))

    def sendmsg(self, buffers: Any, ancdata: Any = (), flags: Any = 0, address: Any = None, /) -> Any:
        really, pieces = super().sendmsg, list(buffers)
        whole = b"".join([bytes(memoryview(piece).cast("B")) for piece in pieces])
        return _sent(self, whole, lambda: really(pieces, ancdata, flags))

    def sendfile(self, file: Any, offset: Any = 0, count: Any = None) -> Any:
        return self._sendfile_use_send(file, offset, count)  # type: ignore[attr-defined]  # doesn't go past us

    def shutdown(self, how: Any, /) -> None:
        super().shutdown(how)
        talk = talk_of(self)
        if talk is not None and how:
            talk.ends()

    def getsockopt(self, level: Any, option: Any, *size: Any) -> Any:
        talk, really = talk_of(self), super().getsockopt
        return really(level, option, *size) if talk is None else talk.option(level, option, size, really)

    def setsockopt(self, level: Any, option: Any, *value: Any) -> None:
        talk, really = talk_of(self), super().setsockopt
        really(level, option, *value) if talk is None else talk.set_option(level, option, value, really)

    def getpeername(self) -> Any:
        talk, really = talk_of(self), super().getpeername
        return really() if talk is None else talk.address("peer", really)

    def getsockname(self) -> Any:
        talk, really = talk_of(self), super().getsockname
        return really() if talk is None else talk.address("sock", really)

    def dup(self) -> Any:
        other, talk = super().dup(), talk_of(self)
        if talk is not None:
            watch(other, talk)
        return other

    def detach(self) -> int:
        forget(self)
        return int(super().detach())

    def _real_close(self, *args: Any) -> None:
        talk = talk_of(self)
        if talk is not None:
            forget(self)
            talk.closes()
        super()._real_close(*args)  # type: ignore[misc]  # socket.py's own


def _received(sock: Any, flags: int, read: Callable[[], Any], content: Callable[[Any], Any]) -> Any:
    talk = talk_of(sock)
    if talk is None or flags & _peek():
        return read()
    talk.awaits(sock)
    try:
        got = read()
    except OSError as error:
        talk.hears_error(error)
        raise
    talk.hears(content(got))
    return got


def _sent(sock: Any, data: Any, really: Callable[[], Any]) -> Any:
    talk = talk_of(sock)
    return really() if talk is None else talk.says(memoryview(data).cast("B"), really)


def _peek() -> int:
    return int(getattr(sys.modules["_socket"], "MSG_PEEK", 0))


def _first(buffer: Any, count: int) -> Any:
    return memoryview(buffer).cast("B")[:count]
