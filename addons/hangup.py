"""How a failed exchange ends for the client: as it would without a proxy, never with a page of mitmproxy's own.

A 502 of mitmproxy's would change the class of an SDK's error and satisfy a readiness probe that waits for any answer.
"""

from typing import TYPE_CHECKING

from tapeproxy.addons.endings import how_it_failed
from tapeproxy.addons.failures import Failures
from tapeproxy.addons.h2fixes import reset_of
from tapeproxy.addons.sockets import Resets, reset_on_close

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow


class HangUp:
    """Addon: closes the client's connection when the upstream failed; with a reset when it did."""

    def __init__(self, resets: Resets, failures: Failures) -> None:
        self._resets = resets
        self._failures = failures

    def error(self, flow: "HTTPFlow") -> None:
        with self._failures:
            how = how_it_failed(flow, was_reset=self._resets.was_reset(flow.server_conn))
            if how == "client-gone" or reset_of(flow) is not None:  # a stream alone: mitmproxy says so
                return
            if how == "reset":
                reset_on_close(flow.client_conn)
            if flow.killable:
                # A killed flow's client is disconnected without an answer (HttpStream.check_killed).
                flow.kill()  # type: ignore[no-untyped-call]  # mitmproxy's
