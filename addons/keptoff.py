"""Refuses, in a fork, hosts that its tape's recording let pass by (`--no-tape`). Which, it is told.

Whoever kept a host off the parent does not want it on the child: its TLS is not opened, nor are its requests taped.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mitmproxy.http import Response

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import PASSED, url_of
from tapeproxy.tapes.violations import REASON, STATUS, Violation

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

_MOST_REFUSED = 1 << 20
"""Bytes of a body that is taken in before its request is refused; who sends more is cut off."""
_FOUND = "tapeproxy.kept-off"


class KeptOff:
    """Addon, before those that tape. `refused`: the violation of a request line to this host and port, if it is one."""

    def __init__(self, refused: Callable[[str, int, bytes], Violation | None], failures: Failures) -> None:
        self._refused = refused
        self._failures = failures

    def http_connect(self, flow: "HTTPFlow") -> None:
        with self._failures:
            host, port = flow.request.host, flow.request.port
            found = self._refused(host, port, b"CONNECT %b:%d" % (host.encode("latin-1", "replace"), port))
            if found is not None:
                _answer(flow, found)

    def requestheaders(self, flow: "HTTPFlow") -> None:
        with self._failures:
            request = flow.request
            if PASSED in flow.metadata:
                return
            found = self._refused(request.host, request.port, request.data.method + b" " + url_of(request))
            if found is None:
                return
            flow.metadata[PASSED] = True
            flow.metadata[_FOUND] = found
            # Only a request that is whole can be answered.
            length = request.headers.get("content-length", "0")
            if request.is_http2 or "transfer-encoding" in request.headers or _is_large(length):
                flow.kill()  # type: ignore[no-untyped-call]  # mitmproxy's

    def request(self, flow: "HTTPFlow") -> None:
        with self._failures:
            found: Violation | None = flow.metadata.get(_FOUND)
            if found is not None:
                _answer(flow, found)


def _is_large(length: str) -> bool:
    return not (length.isdigit() and int(length) <= _MOST_REFUSED)


def _answer(flow: "HTTPFlow", found: Violation) -> None:
    headers, content = found.parts()
    flow.response = Response.make(STATUS, content, headers)
    flow.response.data.reason = REASON
