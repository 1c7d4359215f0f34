"""Whose a port of the shared loopback is. Knows /proc; used in a replay that has no loopback of its own.

A listener is of the run when its process carries the run's marker in its environment, as in the launcher's own
`proxy/processes.py`, which this can't import.
"""

from __future__ import annotations

import os
from os import environ, listdir, readlink

from . import clock

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would take longer to load than all of this
    from collections.abc import Iterable, Iterator

_LISTENING = {"tcp": b"0A", "tcp6": b"0A", "udp": b"07", "udp6": b"07"}
"""The tables of /proc/net and the state that means somebody waits there (proc(5))."""
_known: set[int] = set()
_strangers: dict[int, int] = {}  # when a port was seen to be a stranger's
_LOOK_AGAIN = 10**9  # ns that this holds: the tables are long on a busy machine


def is_anybody_at(port: int) -> bool:
    """Whether somebody on our loopback waits at a port."""
    return bool(_listeners(port))


def is_of_the_run(port: int) -> bool:
    """Whether a process of the run waits at a port, or nobody does: then nobody is reached, and that's for all to see.

    Where it can't be seen (no /proc) the answer is yes. A yes about a process is remembered.
    """
    if port in _known:
        return True
    sockets = _listeners(port)
    if not sockets:
        return True
    if _is_held_by_the_run(sockets):
        _known.add(port)
        return True
    return False


def is_served_by_the_run(port: int) -> bool:
    """Whether a process of the run waits at a TCP port. Where it can't be seen the answer is no."""
    if port in _known:
        return True
    now = clock.REAL.perf_counter_ns()
    if now - _strangers.get(port, -_LOOK_AGAIN) < _LOOK_AGAIN:
        return False
    sockets = _listeners(port, ("tcp", "tcp6"))
    if not sockets:
        return False
    if _is_held_by_the_run(sockets):
        _known.add(port)
        return True
    _strangers[port] = now
    return False


def is_path_served_by_the_run(path: str) -> bool:
    """The same of the path of a UNIX socket."""
    rows = [row.split(None, 7) for row in _read("/proc/net/unix").splitlines()[1:]]
    name = os.fsencode(path)
    sockets = {b"socket:[" + row[6] + b"]" for row in rows if len(row) == 8 and row[7] == name}
    return bool(sockets) and _is_held_by_the_run(sockets)


def _is_held_by_the_run(sockets: set[bytes]) -> bool:
    return any(sockets & _sockets_of(pid) for pid in _run())


def _listeners(port: int, tables: Iterable[str] = _LISTENING) -> set[bytes]:
    suffix = b":%04X" % port
    found = set()
    for table in tables:
        state = _LISTENING[table]
        for row in _read("/proc/net/" + table).splitlines()[1:]:
            fields = row.split(None, 10)
            if len(fields) > 9 and fields[3] == state and fields[1].endswith(suffix):
                found.add(b"socket:[" + fields[9] + b"]")
    return found


def _run() -> Iterator[str]:
    """The processes of the run; this one first, marked or not."""
    yield "self"
    run = environ.get("TAPEPROXY_RUN", "")
    marker = f"\0TAPEPROXY_RUN={run}\0".encode()
    for name in listdir("/proc"):
        if name.isdigit() and run and marker in b"\0" + _read(f"/proc/{name}/environ"):
            yield name


def _sockets_of(pid: str) -> set[bytes]:
    folder = f"/proc/{pid}/fd"
    found: set[bytes] = set()
    try:
        names = listdir(folder)
    except OSError:  # it has ended, or is another user's
        return found
    for name in names:
        try:
            found.add(readlink(f"{folder}/{name}").encode())
        except OSError:
            continue
    return found


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
