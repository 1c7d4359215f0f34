"""Which processes belong to a run and which ports they listen on. Knows /proc; starts and ends nothing.

A process is of the run when its environment carries the run's marker: the marker is inherited, stays in
`/proc/PID/environ` for life and survives re-parenting (daemons, `nohup`, a dead launcher). A descendant of a given
root process counts too, whatever became of its environment. What has neither, a daemon that cleared its environment
or wrote over it (`setproctitle`), is not found.

A port belongs to the run when such a process holds the listening socket: the kernel gives the socket's inode,
`/proc/PID/fd` its holders. Elsewhere than on Linux nothing is known: `available` is false and `reason` says so.
"""

import contextlib
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tapeproxy.proxy.sockdiag import dump

RUN_VARIABLE = "TAPEPROXY_RUN"


class RunProcesses:
    """The processes of one run, looked up afresh at each call. Never counts the calling process."""

    def __init__(self, run_id: str, *, root: int | None = None) -> None:
        """`run_id` is the marker's value; `root` is a process that counts, and its descendants with it."""
        self.run_id = run_id
        self._marker = f"\0{RUN_VARIABLE}={run_id}\0".encode()
        self._root = root
        self._owned: set[tuple[int, int]] = set()

    @property
    def available(self) -> bool:
        """Whether this system can tell."""
        return not self.reason

    @property
    def reason(self) -> str:
        """Why nothing is known here; empty where it is."""
        if sys.platform != "linux":
            return f"which processes belong to a run can only be seen on Linux, not on {sys.platform}"
        if not Path("/proc/self/environ").exists():
            return "/proc is not mounted, so it cannot be seen which processes belong to a run"
        return ""

    def pids(self) -> list[int]:
        """Every live process of the run, in ascending order; empty where `available` is false."""
        if not self.available:
            return []
        everyone = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - twice as fast
        found = {pid for pid in everyone if self._marker in b"\0" + _read(f"/proc/{pid}/environ")}
        if self._root is not None:
            found |= descendants(self._root, dict(_parents(everyone)))
        return sorted(found - {os.getpid()})

    def owns_port(self, port: int) -> bool:
        """Whether a process of the run listens on `port`, on a loopback or wildcard address.

        A yes is remembered for as long as the same socket listens; a no is worked out anew each time.
        """
        if not self.available:
            return False
        inodes = listening(port)
        if any((port, inode) in self._owned for inode in inodes):
            return True
        if not inodes:
            return False
        held = {inode for pid in self.pids() for inode in _sockets(pid)} & inodes
        self._owned.update((port, inode) for inode in held)
        return bool(held)

    def owner(self, port: int) -> int | None:
        """The process that holds a connection whose own end is at `port` of this machine; None where nobody knows.

        Processes of the run are looked at first, for there are fewer of them.
        """
        if not self.available or not (inodes := connected(port)):
            return None
        ours = self.pids()
        others = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - as above
        return next((pid for pid in (*ours, *others) if pid != os.getpid() and inodes & {*_sockets(pid)}), None)


def descendants(root: int, parents: dict[int, int]) -> set[int]:
    """`root` and everything below it, from a map of process to parent; empty when `root` isn't in it."""
    found = {root} & parents.keys()
    fresh = found
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found = found | fresh
    return found


def _parents(pids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Each live process with its parent, from /proc/PID/stat (proc(5)). A zombie is not live."""
    for pid in pids:
        # The second field is the program's name in parentheses and may itself hold spaces and parentheses.
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, 2)
        if len(fields) == 3 and fields[0] not in (b"Z", b"X"):
            yield pid, int(fields[1])


def _sockets(pid: int) -> Iterator[int]:
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 - thousands of descriptors may be looked through
            with contextlib.suppress(OSError):
                target = os.readlink(f"{folder}/{name}")  # noqa: PTH115 - as above
                if target.startswith("socket:["):
                    yield int(target[8:-1])


def _read(path: str) -> bytes:
    """A file under /proc, or nothing when it's gone or not ours to read: processes come and go while we look."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - hundreds of files a call
            return file.read()
    except OSError:
        return b""


# --- listening sockets ---

_TCP_ESTABLISHED = 1
_TCP_LISTEN = 10

_LOOPBACK_V6 = bytes(15) + b"\x01"
_MAPPED_V4 = bytes(10) + b"\xff\xff"


def listens(pid: int, port: int) -> bool:
    """Whether a process itself listens on a port, on a loopback or wildcard address (Linux; elsewhere False)."""
    inodes = listening(port) if sys.platform == "linux" else set[int]()
    return bool(inodes) and not inodes.isdisjoint(_sockets(pid))


def listening(port: int) -> set[int]:
    """The inodes of the TCP sockets that listen on `port` on a loopback or wildcard address (Linux)."""
    try:
        return listening_by_netlink(port)
    except OSError:  # the kernel has no sock_diag, or a sandbox forbids it
        return listeners(_read("/proc/net/tcp"), port) | listeners(_read("/proc/net/tcp6"), port)


def connected(port: int) -> set[int]:
    """The inodes of the TCP connections whose own end is at `port` of a loopback address (Linux)."""
    state = _TCP_ESTABLISHED
    try:
        return listening_by_netlink(port, state)
    except OSError:
        return listeners(_read("/proc/net/tcp"), port, state) | listeners(_read("/proc/net/tcp6"), port, state)


def listeners(table: bytes, port: int, state: int = _TCP_LISTEN) -> set[int]:
    """What `listening` says, from the text of /proc/net/tcp or tcp6 (proc(5)).

    Reading that text makes the kernel walk its whole table of connections, which takes milliseconds.
    """
    suffix = b":%04X" % port
    rows = [line.split(None, 10) for line in table.splitlines()[1:]]
    return {
        int(row[9])
        for row in rows
        if len(row) > 9
        and int(row[3], 16) == state
        and row[1].endswith(suffix)
        and _is_local(_address(row[1][: -len(suffix)]))
    }


def listening_by_netlink(port: int, state: int = _TCP_LISTEN) -> set[int]:
    """What `listening` says, asked of the kernel directly. Raises OSError where that can't be had."""
    return {found.inode for found in dump(socket.IPPROTO_TCP, state, port) if _is_local(found.address)}


def _address(printed: bytes) -> bytes:
    # /proc/net/tcp prints each 32-bit word of the address in the machine's own byte order.
    words = bytes.fromhex(printed.decode())
    if sys.byteorder == "big":
        return words
    return b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))


def _is_local(address: bytes) -> bool:
    plain = address.removeprefix(_MAPPED_V4)
    return not any(plain) or plain == _LOOPBACK_V6 or (len(plain) == 4 and plain[0] == 127)
