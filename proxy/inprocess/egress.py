"""Refuses what connects or asks DNS past the clients that are led to the tape: an audit hook that asks the route.

An audit hook stays for the life of the process; without an open route it lets everything through.
"""

import errno
import socket
import sys
from collections.abc import Mapping
from typing import Any

from tapeproxy.proxy.inprocess import routes
from tapeproxy.proxy.inprocess.flows import begins, outlived
from tapeproxy.tapes.hosts import is_loopback

_LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
_CONNECTS: Mapping[str, str] = {"socket.connect": "connect", "socket.sendto": "send to", "socket.sendmsg": "send to"}
_STARTS = {"_thread.start_new_thread", "_thread.start_joinable_thread"}
_watching = False


def watch() -> None:
    """Begin to watch, once for this process."""
    global _watching
    if not _watching:
        _watching = True
        sys.addaudithook(_hook)


def _hook(
    event: str, args: tuple[Any, ...], connects: Any = _CONNECTS, lookups: Any = _LOOKUPS, starts: Any = _STARTS
) -> None:
    # At every audited event of the interpreter: one look-up, and out. At its end this module's own names are gone.
    if event in connects:
        _connects(connects[event], *args)
    elif event in lookups:
        _looks_up(args[0])
    elif event in starts:
        begins(getattr(args[0], "__self__", None))


def _connects(kind: str, sock: socket.socket, address: Any = None) -> None:
    route = routes.asked()
    if route is None or address is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    host, port = _text(address[0]), int(address[1])
    here = _is_here(host) and not (outlived() and route.takes(host, port))
    if not here and (why := route.reaches_out(kind, host, port)):
        raise ConnectionRefusedError(errno.ECONNREFUSED, why)


def _looks_up(name: Any) -> None:
    route = routes.asked()
    host = _text(name)
    if route is None or _is_here(host) or _is_number(host):
        return
    if why := route.reaches_out("look up", host, 0):
        raise socket.gaierror(socket.EAI_FAIL, why)


def _is_here(host: str) -> bool:
    return host in ("", "0.0.0.0", "::") or is_loopback(host) or host == socket.gethostname().lower()


def _is_number(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except (OSError, ValueError):
            continue
        return True
    return False


def _text(host: Any) -> str:
    text = host.decode("latin-1") if isinstance(host, bytes | bytearray) else host or ""
    return str(text).lower().rstrip(".")
