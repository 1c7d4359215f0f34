"""Where the HTTP of this interpreter goes: a stack of open routes, and the pipes that lead into the uppermost.

A pipe is a socket of a pair: the client's library gets it in place of a connection, the other end is served by the
route. What was connected before a route was opened, or under another one, does not fit it and is not used.
"""

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tapeproxy.proxy.inprocess.flows import outlived

if TYPE_CHECKING:
    from tapeproxy.proxy.inprocess.children import Reports


class Origin(NamedTuple):
    """Whom a client wants to talk to. `scheme` is http or https."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """HOST:PORT, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """As it begins a URL: without the scheme's own port."""
        return f"{self.scheme}://{self.authority.removesuffix(':443' if self.scheme == 'https' else ':80')}"


class Route(Protocol):
    """What an open context does for the clients of this interpreter."""

    def takes(self, host: str, port: int) -> bool:
        """Whether a connection there is led here; what is not is made as ever."""
        ...

    def serve(self, far: socket.socket, origin: Origin, near: "Pipe", direct: bool) -> "Server | None":
        """Serve the far end of a pipe, from any thread. Raises BrokenPipeError when the route is closed.

        `direct`: all that is sent goes through the pipe's own methods, so what they are given may be taken there.
        """
        ...

    @property
    def lets_children(self) -> bool:
        """Whether processes that are made meanwhile do as they like."""
        ...

    @property
    def children(self) -> "Reports":
        """What those that may not have asked for."""
        ...

    def refuses(self, what: str) -> None:
        """A program that was started meanwhile has asked for something, and was refused."""

    def reaches_out(self, kind: str, host: str, port: int) -> str:
        """Something connects past the clients that are led here: why it may not, or empty. `kind`: connect, lookup."""
        ...


class Server(Protocol):
    """Takes what a client sends, in the client's thread."""

    def feed(self, data: bytes) -> None:
        """The client sent this."""

    def hang_up(self) -> None:
        """The client has closed its end."""


_open: list[Route] = []


def push(route: Route) -> None:
    """Lead all clients there from here on."""
    _open.append(route)


def remove(route: Route) -> None:
    """It takes no more; the one below, if any, does."""
    _open.remove(route)


def top() -> Route | None:
    """The route in force."""
    return _open[-1] if _open else None


def all_open() -> Sequence[Route]:
    """Every open route, the one in force last."""
    return _open


def replace(change: Callable[[Route], Route]) -> None:
    """Put another route in the place of each, in a forked child."""
    _open[:] = [change(route) for route in _open]


def asked() -> Route | None:
    """The route of the code that runs now: the one in force, but who has outlived a replay goes back to that."""
    gone = outlived()
    return top() if gone is None else gone.route


def route_to(host: str, port: int) -> Route | None:
    """The route of the code that runs now if it takes a connection there."""
    route = asked()
    return route if route is not None and route.takes(host, port) else None


def fits(connection: object, host: str, port: int) -> bool:
    """Whether an open connection may be used now: `connection` is its socket, a Pipe where it is one of ours."""
    if outlived() is not None:
        return False
    wanted = route_to(host, port)
    return (connection.route if isinstance(connection, Pipe) else None) is wanted


class Pipe(socket.socket):
    """The client's end. It is served from the first byte sent on, when it is known whether TLS was wanted."""

    route: Route
    origin: Origin
    _far: socket.socket | None
    _server: Server | None

    @classmethod
    def open(cls, route: Route, origin: Origin) -> "Pipe":
        """A pipe into a route."""
        near, far = socket.socketpair()
        pipe = cls(near.family, near.type, near.proto, near.detach())
        pipe.route, pipe.origin, pipe._far = route, origin, far
        pipe._server = None
        return pipe

    def wrap(self) -> None:
        """The client wants TLS: none is spoken within a process, but the origin is another."""
        self.origin = self.origin._replace(scheme="https")

    def begin(self, *, direct: bool = True) -> None:
        """Have the other end served, if it is not yet; not `direct` where an event loop takes the descriptor alone."""
        far, self._far = self._far, None
        if far is not None:
            self._server = self.route.serve(far, self.origin, self, direct)

    def send(self, data: Any, *flags: Any) -> int:
        self.begin()
        if self._server is None:
            return super().send(data, *flags)
        self._server.feed(bytes(data))
        return len(data)

    def sendall(self, data: Any, *flags: Any) -> None:
        self.begin()
        if self._server is None:
            super().sendall(data, *flags)
        else:
            self._server.feed(bytes(data))

    def sendmsg(self, buffers: Any, *more: Any) -> int:
        self.begin()
        if self._server is None:
            return super().sendmsg(buffers, *more)
        data = b"".join(buffers)
        self._server.feed(data)
        return len(data)

    def setsockopt(self, *args: Any) -> None:
        if args[0] == socket.SOL_SOCKET:  # a pair has nothing of TCP or IP
            super().setsockopt(*args)

    def close(self) -> None:
        super().close()
        far, self._far = self._far, None
        if far is not None:
            far.close()
        server, self._server = self._server, None
        if server is not None:
            server.hang_up()

    def __del__(self) -> None:
        # A client that is never closed is the user's affair; that its connection is a pipe of ours is not.
        self.close()
