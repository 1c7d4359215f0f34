"""Which connections of the agent's own sockets count, and the hooks on `connect`: TCP and UNIX streams past the proxy.

What passes on a connection is heard by `heard.py`, or served by `servedsockets.py`. Connections to the proxy, within
the run, and to what a replay may reach, are left alone; so are datagrams. TLS that is made in here can't be served: its
bytes are another chance each time.
"""

from __future__ import annotations

import errno
import os
import sys
from _thread import get_ident

from . import egress, hooks, servedsockets, settings, values, watchedsockets
from .addresses import is_loopback, text_of
from .lanes import LANE, current
from .likeness import resemble
from .values import SERVES, error_name, in_tmpdir, name_of, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PENDING = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK, errno.EINTR)
_TLS = "TLS on a socket of the agent's own, which --io cannot serve"


def install() -> None:
    """Watch connections that are made from now on."""
    hooks.on_import("socket", _patch)
    hooks.on_import("ssl", _patch_tls)
    hooks.before_import("trio._socket", watchedsockets.lend)
    hooks.on_import("trio._socket", lambda _module: watchedsockets.take_back())


def _patch(module: Any) -> None:
    cls = module.socket
    connect, connect_ex = cls.connect, cls.connect_ex

    def connecting(self: Any, address: Any, /) -> None:
        _connect(self, address, lambda: connect(self, address))

    def connecting_ex(self: Any, address: Any, /) -> int:
        def really() -> None:
            code = connect_ex(self, address)
            if code:
                raise OSError(code, os.strerror(code))

        try:
            _connect(self, address, really)
        except OSError as error:
            if error.errno is None or error.errno < 0:
                raise
            return error.errno
        return 0

    cls.connect = resemble(connecting, connect)
    cls.connect_ex = resemble(connecting_ex, connect_ex)


def _connect(sock: Any, address: Any, really: Callable[[], Any]) -> None:
    talk = watchedsockets.talk_of(sock)
    if talk is not None:
        talk.connects_again(really)
        return
    name = _name(sock, address)
    if name is None:
        really()
        return
    taped = servedsockets.take(name, (LANE.get(None) or current()).id) if SERVES else None
    # Who was reached while recording was nobody of the run; who was not yet there may have been.
    if (taped is None or taped.get("error")) and _is_of_the_run(address):
        if settings.RECORD:  # so that the program that waits there is run in a replay, and not served
            tell("socket", name, {}, lambda: {"data": {"within": True}})
        really()
        return
    if taped is not None:
        if taped["tls"] or _is_tls(sock):
            refuse(address, _TLS)
        if servedsockets.serves(sock, taped):
            return
    told = {"taped": None if taped is None else taped["n"]} if SERVES else {}
    _tape(sock, address, name, told, really)


def _tape(sock: Any, address: Any, name: str, told: dict[str, Any], really: Callable[[], Any]) -> None:
    """Connect, and hear what passes. A non-blocking socket says later whether that went well."""
    from . import heard, refusals

    talk = heard.Talk(sock, name, (LANE.get(None) or current()).id, told)
    try:
        _quietly(really)
    except refusals.RefusedError:  # the guard has said so
        raise
    except OSError as error:
        if error.errno in _PENDING and sock.gettimeout() == 0:
            talk.hear(address)
        else:
            talk.failed(error)
        raise
    talk.hear(address)
    talk.begin()


def _quietly(call: Callable[[], Any]) -> Any:
    """Call something that the tape tells of, and that needs no other mention."""
    me = get_ident()
    egress.taping.add(me)
    try:
        return call()
    finally:
        egress.taping.discard(me)


def _name(sock: Any, address: Any) -> str | None:
    """The name of a connection on the tape; None for those that are left alone."""
    try:
        import _socket

        if sock.type != _socket.SOCK_STREAM or _is_plumbing():
            return None
        if sock.family in (_socket.AF_INET, _socket.AF_INET6):
            return _name_of_port(text_of(address[0]), int(address[1]))
        if sock.family == getattr(_socket, "AF_UNIX", None):
            return _name_of_path(address)
    except (TypeError, ValueError, LookupError, AttributeError):  # no address: the real call says so
        pass
    return None


def _name_of_port(host: str, port: int) -> str | None:
    if egress.watch is not None and egress.watch.is_live(host, port):
        return None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _name_of_path(address: Any) -> str | None:
    path = values.absolute(address)
    if path is None or "\0" in path or in_tmpdir(path):
        return None
    return "unix:" + name_of(path)


def _is_of_the_run(address: Any) -> bool:
    from . import ports

    if isinstance(address, tuple):
        return is_loopback(text_of(address[0])) and ports.is_served_by_the_run(int(address[1]))
    path = os.fsdecode(address)
    return any(map(ports.is_path_served_by_the_run, (path, values.absolute(path) or path)))


def _is_plumbing() -> bool:
    frame: Any = sys._getframe(4)
    return (frame.f_globals.get("__name__") or "").partition(".")[0] == "multiprocessing"


# --- TLS ---


def _is_tls(sock: Any) -> bool:
    module = sys.modules.get("ssl")
    return module is not None and isinstance(sock, module.SSLSocket)


def _patch_tls(module: Any) -> None:
    create = module.SSLSocket.__dict__["_create"].__func__

    def creating(cls: Any, sock: Any, *args: Any, **kwargs: Any) -> Any:
        talk = watchedsockets.talk_of(sock)
        if talk is not None:
            talk.begins_tls()
        return create(cls, sock, *args, **kwargs)

    module.SSLSocket._create = classmethod(resemble(creating, create))


def refuse(address: Any, why: str) -> None:
    """End a connection that can't be served, as a violation. Raises RefusedError."""
    from . import channel, refusals
    from .callers import calling_line

    place = address if isinstance(address, str) else f"{address[0]}:{address[1]}"
    channel.emit("violation", what="connect", address=f"{place} ({why})", where=calling_line()[0])
    raise refusals.refusal("connect", place)


def tell_bypass(sock: Any, address: Any) -> None:
    """Say, in a recording, that a connection is not on the tape after all."""
    if egress.watch is not None:
        egress.watch.judge(egress.watch.reach, "connect", int(sock.family), address)


def tell_failure(name: str, lane: str, error: OSError, told: dict[str, Any], pending: bool) -> None:
    """Tell of a connection that came to nothing. `pending`: that was to be seen later than at `connect`."""
    timed_out = error.errno is None
    code = "ETIMEDOUT" if timed_out else error_name(error)
    data = {word: True for word, holds in (("timeout", timed_out), ("pending", pending)) if holds}
    tell("socket", name, told, lambda: {"error": code, "data": data}, lane)
