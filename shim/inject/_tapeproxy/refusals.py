"""What a refused connection raises in a replay. Knows the errors' shape; loaded at the first one."""

from __future__ import annotations

import errno
from _socket import EAI_NONAME, gaierror


class RefusedError(ConnectionRefusedError):
    """A replay may not reach this: to the agent, a closed port."""


class RefusedLookupError(RefusedError, gaierror):
    """A replay may not ask for this name: to the agent, an unknown host."""


def refusal(kind: str, address: str) -> RefusedError:
    """The error for a connection, datagram or look-up that leaves the run."""
    if kind == "lookup":
        return RefusedLookupError(
            EAI_NONAME, f"tapeproxy: a replay may not look up {address}; if it has to, --allow {address}:PORT"
        )
    return RefusedError(errno.ECONNREFUSED, f"tapeproxy: a replay may not reach {address}; if it has to, --allow it")
