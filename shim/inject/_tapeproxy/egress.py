"""Knows which connections of this interpreter leave the run: reports each, and in a replay refuses it.

An audit hook (PEP 578) sees what Python's own `socket` does, whoever uses it, and the line that made it. It does not
see C libraries (curl, gRPC), ctypes or programs that aren't Python: those are contained by the launcher, where the
kernel lets it. uvloop connects in C too, but its methods can be wrapped.
"""

from __future__ import annotations

import os
import sys

from . import channel, hooks, settings
from .addresses import is_loopback, own_names, packed, parse, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes longer to load than all of this
    from collections.abc import Callable
    from socket import socket
    from types import ModuleType
    from typing import Any

KINDS = {
    "socket.connect": "connect",
    "socket.sendto": "send",
    "socket.sendmsg": "send",
    "socket.getaddrinfo": "lookup",
    "socket.gethostbyname": "lookup",
    "socket.gethostbyaddr": "reverse",
}
_PROBE = "tapeproxy.egress"
_DNS = 53
watch: Watch | None = None
"""The rules in force."""
is_taped_name: Callable[[str], bool] | None = None
"""Whether the look-up of a name is on the tape, or goes on it: `lookups` sets it, with --io only."""
taping: set[int] = set()
"""The threads that connect, or look something up, for the tape: recording, that is not reported as missing there."""
_MOST_LINES = 200
"""Lines that one process writes at most: a loop that retries a refusal at once must not fill the disk."""


def install() -> None:
    """Watch this interpreter from now on. Raises RuntimeError where another audit hook forbids it."""
    if not settings.MODE:
        return
    level = os.environ.get("TAPEPROXY_GUARD", "")
    refuses = settings.REPLAY and level != "none"
    global watch
    private = _outside_ports() if level == "namespace" else None
    rules = watch = Watch(settings.PROXY, settings.ALLOW, refuses, private, settings.FRONTS)
    kinds = {**KINDS, _PROBE: "probe"}

    def hook(event: str, args: tuple[Any, ...]) -> None:
        # Called at every audited event of the interpreter: one look-up, and out.
        if event in kinds:
            rules.see(kinds[event], args)

    sys.addaudithook(hook)
    sys.audit(_PROBE)
    del kinds[_PROBE]
    if not rules.works:
        raise RuntimeError("another audit hook keeps ours from being added")
    hooks.on_import("asyncio.base_events", lambda module: _watch_asyncio(rules, module))
    hooks.on_import("uvloop", lambda module: _watch_uvloop(rules, module))


class Watch:
    """The rules of one process and what it has reported.

    `proxy` is HOST:PORT, `allow` a comma-separated list of them. `refuses`: whatever leaves the run fails, else it is
    only reported. `private`: nobody but the run is on our loopback, and these are ports of the one outside.
    `fronts`: further ports of the proxy on loopback.
    """

    __slots__ = (
        "_allow",
        "_busy",
        "_fronts",
        "_lines",
        "_private",
        "_proxy",
        "_refuses",
        "_reported",
        "_resolved",
        "works",
    )

    def __init__(
        self,
        proxy: str,
        allow: str,
        refuses: bool,
        private: frozenset[int] | None,
        fronts: frozenset[int] = frozenset(),
    ) -> None:
        self.works = False
        self._proxy = parse(proxy)
        self._allow = [parse(place) for place in allow.split(",") if place]
        self._refuses = refuses
        self._private = private
        self._fronts = fronts
        self._reported: set[tuple[str, ...]] = set()
        self._lines = 0
        self._resolved: dict[str, set[bytes | None]] = {}
        self._busy: set[int] = set()

    def see(self, kind: str, args: tuple[Any, ...]) -> None:
        """Judge an event by what the interpreter gave the hook. Raises RefusedError."""
        if kind == "lookup":
            self.judge(self.look_up, args[0])
        elif kind == "reverse":
            self.judge(self.look_up_address, args[0])
        elif kind == "probe":
            self.works = True
        else:
            self.judge(self.reach_from, kind, *args)

    def judge(self, check: Callable[..., None], *args: Any, **options: Any) -> None:
        """Call one of the checks. What goes wrong in it harms no agent that is being recorded; a replay it fails."""
        try:
            check(*args, **options)
        except Exception:
            if self._refuses:
                raise

    def look_up(self, name: str | bytes | None) -> None:
        """Judge the look-up of a name. Raises RefusedLookupError."""
        host = text_of(name)
        if packed(host) is None:
            self.look_up_address(host)

    def look_up_address(self, name: str | bytes) -> None:
        """Judge the look-up of the name of an address, for which somebody is asked too. Raises RefusedLookupError."""
        host = text_of(name)
        if not self.knows(host) and _thread() not in self._busy:
            self._leaves("lookup", host)

    def knows(self, host: str) -> bool:
        """Whether the look-up of a name or address leaves the run to nobody, or to whom it may."""
        known = settings.LED or is_loopback(host) or host == self._proxy[0] or host in own_names()
        return known or any(host == place[0] for place in self._allow)

    def reach_from(self, kind: str, sock: socket, address: Any = None) -> None:
        """Judge an address that a socket is to be connected to or to send to. Raises RefusedError."""
        if address is not None:  # a datagram without an address goes where the socket is connected to
            self.reach(kind, int(sock.family), address)

    def reach(self, kind: str, family: int, address: Any) -> None:
        """Judge an address of a family. Raises RefusedError."""
        import _socket

        if family in (_socket.AF_INET, _socket.AF_INET6):
            host, port = text_of(address[0]), address[1]
            led = settings.LED and (kind == "connect" or port == _DNS) and not is_loopback(host)
            if not led and not self._is_within(host, port):
                self._leaves(kind, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        elif family not in [getattr(_socket, name, None) for name in ("AF_UNIX", "AF_NETLINK", "AF_ALG")]:
            self._leaves(kind, f"{address!r} of socket family {family}")

    def _is_within(self, host: str, port: int) -> bool:
        if is_loopback(host):
            if not self._refuses or self._is_ours(port):
                return True
            if self._private is not None:
                return port not in self._private or _is_anybody_at(port)
        elif (host, port) == self._proxy:
            return True
        return self._is_allowed(host, port) or (is_loopback(host) and _may_be_of_the_run(port))

    def is_live(self, host: str, port: int) -> bool:
        """Whether an address is the proxy's, or one that may be reached in a replay."""
        if is_loopback(host) and self._is_ours(port):
            return True
        return (host, port) == self._proxy or self._is_allowed(host, port)

    def _is_ours(self, port: int) -> bool:
        """Whether a port of loopback is the wire's."""
        return port in self._fronts or (port == self._proxy[1] and is_loopback(self._proxy[0]))

    def _is_allowed(self, host: str, port: int) -> bool:
        names = [name for name, number in self._allow if number == port]
        if host in names or (is_loopback(host) and any(map(is_loopback, names))):
            return True
        address = packed(host)
        return address is not None and (
            any(packed(name) == address for name in names) or any(address in self._addresses(name) for name in names)
        )

    def _addresses(self, name: str) -> set[bytes | None]:
        """Every address that an allowed name has had so far; asked for anew each time, as they go round."""
        import _socket

        known = self._resolved.setdefault(name, set())
        me = _thread()
        self._busy.add(me)
        try:
            known.update(packed(str(found[4][0])) for found in _socket.getaddrinfo(name, None))
        except OSError:
            pass
        finally:
            self._busy.discard(me)
        return known

    def _leaves(self, kind: str, address: str) -> None:
        """Something leaves the run. Raises RefusedError, or lets it go."""
        if not self._refuses and _thread() in taping:
            return
        if self._lines < _MOST_LINES:
            self._tell(kind, address)
        if self._refuses:
            from . import refusals

            raise refusals.refusal(kind, address)

    def _tell(self, kind: str, address: str) -> None:
        from .callers import calling_line

        where, is_users = calling_line()
        if not self._refuses:
            # A look-up goes on in a thread, where no line of the user's is to be seen: it was told before.
            key = (kind, address, where) if is_users else (kind, address)
            if key in self._reported:
                return
            self._reported.update((key, (kind, address)))
        channel.emit("violation" if self._refuses else "bypass", what=kind, address=address, where=where)
        self._lines += 1
        if self._lines == _MOST_LINES:
            text = f"after {_MOST_LINES} connections of one process, further ones are not listed"
            channel.emit("note", what="egress", text=text, data=None)


def _thread() -> int:
    import _thread

    return _thread.get_ident()


def _outside_ports() -> frozenset[int]:
    return frozenset(int(port) for port in os.environ.get("TAPEPROXY_OUTSIDE", "").split(",") if port)


def _is_anybody_at(port: int) -> bool:
    from . import ports

    return ports.is_anybody_at(port)


def _may_be_of_the_run(port: int) -> bool:
    from . import ports

    return ports.is_of_the_run(port)


def _watch_asyncio(watch: Watch, module: ModuleType) -> None:
    """Look-ups of event loops run in worker threads: judge them before, where the calling line can be seen."""

    def look_up(host: Any, *_: Any, **__: Any) -> None:
        if is_taped_name is None or not is_taped_name(text_of(host)):
            watch.look_up(host)

    _wrap(watch, module.BaseEventLoop, "getaddrinfo", look_up)


def _watch_uvloop(watch: Watch, module: ModuleType) -> None:
    import _socket

    def reach(host: Any, port: Any) -> None:
        if host is not None and port is not None:
            name = text_of(host)
            watch.look_up(name)
            watch.reach("connect", _socket.AF_INET, (name, int(port)))

    def connection(protocol_factory: Any, host: Any = None, port: Any = None, *_: Any, **__: Any) -> None:
        del protocol_factory
        reach(host, port)

    def datagrams(protocol_factory: Any, local_addr: Any = None, remote_addr: Any = None, *_: Any, **__: Any) -> None:
        del protocol_factory, local_addr
        reach(*(remote_addr or (None, None))[:2])

    _wrap(watch, module.Loop, "getaddrinfo", lambda host, *_, **__: watch.look_up(host))
    _wrap(watch, module.Loop, "create_connection", connection)
    _wrap(watch, module.Loop, "create_datagram_endpoint", datagrams)
    _wrap(watch, module.Loop, "sock_connect", lambda sock, address: watch.reach_from("connect", sock, address))


def _wrap(watch: Watch, owner: type, name: str, check: Callable[..., None]) -> None:
    """Have `check` called with the arguments of a coroutine method, within the caller's own call."""
    import functools

    original = getattr(owner, name)

    async def method(self: Any, *args: Any, **options: Any) -> Any:
        watch.judge(check, *args, **options)
        return await original(self, *args, **options)

    functools.update_wrapper(method, original)
    setattr(owner, name, method)
