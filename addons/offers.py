"""Overlooks offers to go on in HTTP/2 without TLS, for the server. Knows flows; mitmproxy speaks no such HTTP/2.

mitmproxy's own addon does this once a request is whole. The head of one that is streamed has left by then.
"""

from typing import TYPE_CHECKING

from tapeproxy.addons.failures import Failures

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

_OFFER = ("upgrade", "connection", "http2-settings")


class Offers:
    """Addon, behind those that tape: takes the offer out of the head of a request that is streamed."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures

    def requestheaders(self, flow: "HTTPFlow") -> None:
        with self._failures:
            headers = flow.request.headers
            if not flow.request.stream or headers.get("upgrade", "").lower() != "h2c":
                return
            for name in _OFFER:
                headers.pop(name, None)

    def request_grows(self, flow: "HTTPFlow") -> None:
        self.requestheaders(flow)
