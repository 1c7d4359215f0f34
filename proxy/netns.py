"""A network namespace for this very process. Knows how to get into one; not who should, nor what else could be done.

In a namespace of its own a process has one interface, a loopback that nobody else is on: what it starts, in any
language, can reach what it started and nothing else (network_namespaces(7)). Ports, /proc/net and abstract UNIX
sockets are the namespace's own; files, processes and path-named UNIX sockets stay shared, and a socket that was
open before stays where it was opened.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_UNKNOWN = 255
_TCP_LISTEN, _UDP_UNCONNECTED = 10, 7
"""States, of tcp_states.h; UDP borrows them."""
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


def enter() -> str:
    """Move this process into a network namespace with a working loopback; return why that can't be, or nothing.

    Root keeps its rights. Anybody else gets a user namespace around it, in which only their own user and group are
    known: files of others seem to be nobody's, and `sudo` does not work. Where it is refused nothing has changed.
    To be called before the process has a second thread, as namespaces belong to threads.
    """
    if sys.platform != "linux":
        return f"{sys.platform} has none"
    try:
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - a count, not paths
        if threads > 1:
            return f"this process already has {threads} threads"
        return _enter()
    except OSError as error:
        return _wording(error.errno or 0)


def listening_ports() -> frozenset[int]:
    """The ports at which somebody in this process's namespace waits, over TCP or UDP; none where it can't be seen."""
    import socket

    from tapeproxy.proxy.sockdiag import dump

    try:
        waiting = [*dump(socket.IPPROTO_TCP, _TCP_LISTEN), *dump(socket.IPPROTO_UDP, _UDP_UNCONNECTED)]
    except (OSError, AttributeError):  # a sandbox without netlink, or not Linux
        return ports_in_tables()
    return frozenset(found.port for found in waiting)


def ports_in_tables() -> frozenset[int]:
    """What `listening_ports` says, from the tables in /proc/net; none where they can't be read."""
    ports: set[int] = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        waiting = _TCP_LISTEN if table.startswith("tcp") else _UDP_UNCONNECTED
        try:
            rows = Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        ports.update(int(row.split()[1].rpartition(":")[2], 16) for row in rows if int(row.split()[3], 16) == waiting)
    return frozenset(ports)


def count_refused() -> int:
    """How often somebody in this process's namespace has tried to send what no route leads to, over IPv4 or IPv6.

    In a namespace that `enter` made, that is every attempt to reach another machine, whatever the program. Only ever
    grows; 0 where the kernel does not say.
    """
    try:
        ipv4 = [line.split() for line in Path("/proc/self/net/snmp").read_text().splitlines() if line[:3] == "Ip:"]
        ipv6 = Path("/proc/self/net/snmp6").read_text() if Path("/proc/self/net/snmp6").exists() else ""
    except OSError:
        return 0
    counters = dict(zip(*ipv4, strict=False)) if len(ipv4) == 2 else {}
    found = [counters.get("OutNoRoutes", "0")]
    found += [words[1] for line in ipv6.splitlines() if (words := line.split())[:1] == ["Ip6OutNoRoutes"]]
    return sum(map(int, found))


def attempt(step: Callable[[], object]) -> int:
    """Take a step that can't be undone, in a forked process; return its errno, 0 if it worked, 255 if unknown."""
    pid = os.fork()
    if pid == 0:
        code = _UNKNOWN
        try:
            step()
            code = 0
        except OSError as error:
            code = error.errno or _UNKNOWN
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else _UNKNOWN


def _enter() -> str:
    """Go in as root, else as a user. Raises OSError, with nothing changed."""
    try:
        _enter_as_root()
    except PermissionError:
        # A user namespace may be granted and then turn out to be worth nothing (Ubuntu), and there is no way back.
        if refused := attempt(_enter_as_user):
            return _wording(refused)
        _enter_as_user()
    return ""


def _enter_as_root() -> None:
    outside = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.unshare(os.CLONE_NEWNET)
        try:
            _raise_loopback()
        except OSError:
            os.setns(outside, os.CLONE_NEWNET)
            raise
    finally:
        os.close(outside)


def _enter_as_user() -> None:
    user, group = os.geteuid(), os.getegid()
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
    # Without a say over others' groups, a group may be mapped once setgroups(2) is given up (user_namespaces(7)).
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _raise_loopback()


def _raise_loopback() -> None:
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", _IFF_UP | _IFF_RUNNING)  # struct ifreq, netdevice(7)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def _wording(number: int) -> str:
    """What the kernel said, and the usual cause where there is one."""
    import errno

    said = os.strerror(number).lower() if number not in (0, _UNKNOWN) else "refused"
    try:
        restricted = _APPARMOR.read_text().strip() == "1"
    except OSError:
        restricted = False
    if number in (errno.EPERM, errno.EACCES) and restricted:
        return f"{said}, by kernel.apparmor_restrict_unprivileged_userns"
    if number == errno.ENOSPC:
        return "their number is limited, by user.max_user_namespaces or user.max_net_namespaces"
    return said
