"""Leads what comes by a front to the URL behind it, before it is taped. Knows flows; where fronts lead it is told."""

from typing import TYPE_CHECKING

from tapeproxy.addons.failures import Failures
from tapeproxy.tapes.fronts import Fronted, Fronts
from tapeproxy.tapes.identity import parse_target

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow, Request

_LED = "tapeproxy.led"


class FrontIn:
    """Addon, before those that tape: the request is one to the server behind the front from here on.

    `fronts` may be opened later. Who asks for a front through the proxy is led there too: clients that take both would
    have their requests taped twice.
    """

    def __init__(self, fronts: Fronts, failures: Failures) -> None:
        self.fronts = fronts
        self._failures = failures

    def requestheaders(self, flow: "HTTPFlow") -> None:
        if not self.fronts.open:
            return
        with self._failures:
            if (led := self._led(flow)) is not None:
                flow.metadata[_LED] = led
                _lead(flow.request, led)

    def _led(self, flow: "HTTPFlow") -> Fronted | None:
        request = flow.request
        if request.scheme != "http":
            return None
        sockname = flow.client_conn.sockname
        address = (request.host_header or "").encode("latin-1", "replace")
        if request.port in self.fronts.open:
            led = self.fronts.led(b"http://%b:%d" % (request.host.encode("latin-1", "replace"), request.port))
            if led is not None:
                return self.fronts.at(request.port, request.data.path, address or b"127.0.0.1:%d" % request.port)
        # By another name of this machine, as a container has it.
        return self.fronts.at(sockname[1], request.data.path, address) if sockname is not None else None


class FrontOut:
    """Addon, behind those that tape: redirects to what is behind the front lead to the front."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures

    def responseheaders(self, flow: "HTTPFlow") -> None:
        with self._failures:
            led: Fronted | None = flow.metadata.get(_LED)
            if led is not None and flow.response is not None:
                flow.response.headers.fields = led.back(flow.response.headers.fields)


def _lead(request: "Request", led: Fronted) -> None:
    target = parse_target(led.base)
    # The properties of the same names would rewrite more than that.
    request.data.scheme = target.scheme.encode()
    request.data.host = target.host
    request.data.port = target.port
    request.data.path = led.path
    request.headers.fields = led.there(request.headers.fields)
    if request.data.authority:
        request.data.authority = led.authority
