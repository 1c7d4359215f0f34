"""How a failed exchange ended, by the state of its two connections.

mitmproxy's error texts are ambiguous ("server closed connection" is said of a refused CONNECT too), so they are for
people only.
"""

from typing import TYPE_CHECKING

from mitmproxy.connection import ConnectionState

from tapeproxy.addons.h2fixes import reset_of
from tapeproxy.tapes.records import How

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow


def how_it_failed(flow: "HTTPFlow", *, was_reset: bool) -> How:
    """Decide for a flow in its `error` hook. `was_reset`: the upstream's last word was a TCP reset.

    A client that has gone saw nothing of what happened upstream, so that comes first. mitmproxy puts the upstream's
    connection on the flow once it is usable: before that, no TCP, no TLS or no tunnel was to be had.
    """
    reset = reset_of(flow)
    if not flow.client_conn.state & ConnectionState.CAN_READ or (reset is not None and reset.by_client):
        return "client-gone"
    if reset is not None:
        return "reset"
    if flow.server_conn.timestamp_start is None:
        return "connect-error"
    return "reset" if was_reset else "upstream-cut"
