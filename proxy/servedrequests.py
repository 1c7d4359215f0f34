"""Which request of the run a server of the run has read: the shim knows its connection, the wire the connection's use.

A shim tells of a request as `@PORT#N`, the N-th on the connection from that port of the wire. On the tape it is
`LANE#n`, the same in every run.
"""

from collections import deque

from tapeproxy.proxy.sidecar import Line
from tapeproxy.tapes.lanes import ANSWER, SERVE

_MOST = 4096
"""Requests that are remembered: a server tells of one soon after it has read it."""


class ServedRequests:
    """The requests that the wire has passed on to servers of the run, and what their shims tell before it did."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._waiting: dict[str, list[Line]] = {}
        self._order: deque[str] = deque()

    def learn(self, port: int, number: int, request: str) -> list[Line]:
        """From this port `request` (LANE#n) is passed on, as the number-th. Returns the lines that waited for that."""
        token = f"@{port}#{number}"
        self._known[token] = request
        self._order.append(token)
        if len(self._order) > _MOST:
            self._known.pop(self._order.popleft(), None)
        return [line | {"on": request} for line in self._waiting.pop(token, [])]

    def resolve(self, line: Line) -> Line | None:
        """The line as it goes on the tape; None: not yet, or never, where the client is none of the run's."""
        token = line.get("on")
        if line.get("what") not in (SERVE, ANSWER) or not isinstance(token, str) or not token.startswith("@"):
            return line
        request = self._known.get(token)
        if request is not None:
            return line | {"on": request}
        if len(self._waiting) < _MOST:
            self._waiting.setdefault(token, []).append(line)
        return None
