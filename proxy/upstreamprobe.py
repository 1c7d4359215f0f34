"""Whether the user's proxy to the world can be connected: better heard before the agent runs than from its calls."""

import socket
from collections.abc import Mapping

from tapeproxy.proxy.childenv import upstream_of

_PATIENCE = 1.0
"""Seconds; the agent waits for it."""


def unreachable(given: str | None, environment: Mapping[str, str]) -> str | None:
    """What is wrong with the proxy of `--upstream-proxy`, or else that of the environment; None: it can be connected.

    Nothing is sent. Raises UsageError for what is no proxy's URL.
    """
    from tapeproxy.addons.upstream import parse_upstream

    url = None if given == "none" else given or upstream_of(environment).proxy
    if url is None:
        return None
    upstream = parse_upstream(url)
    try:
        socket.create_connection((upstream.host, upstream.port), _PATIENCE).close()
    except OSError as error:
        reason = "it does not answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        place = upstream.spec.partition("://")[2]
        return f"the upstream proxy {place} cannot be reached: {reason}; calls through it will fail"
    return None
