"""A listener that nothing under test may reach, and system calls that this kernel is to refuse, for tests of guards."""

import contextlib
import ctypes
import os
import socket
import struct
import sys
from dataclasses import dataclass, field

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own means")


@dataclass
class Trap:
    """A TCP and a UDP socket on one loopback port. What was sent waits in the kernel until it is asked for.

    `host` is 127.0.0.1 or ::1. Raises OSError where there is none such.
    """

    host: str = "127.0.0.1"
    tcp: socket.socket = field(init=False)
    udp: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self.tcp = socket.create_server((self.host, 0), family=family, backlog=64)
        self.udp = socket.socket(family, socket.SOCK_DGRAM)
        self.udp.bind(self.tcp.getsockname())
        self.tcp.setblocking(False)
        self.udp.setblocking(False)

    @property
    def port(self) -> int:
        """The port of both."""
        port: int = self.tcp.getsockname()[1]
        return port

    def caught(self) -> int:
        """How many connections and datagrams came since the last time."""
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self.tcp.accept()[0].close()
                count += 1
        with contextlib.suppress(BlockingIOError):
            while True:
                self.udp.recv(100)
                count += 1
        return count

    def close(self) -> None:
        """Give the port back."""
        self.tcp.close()
        self.udp.close()


CALLS = {
    "x86_64": {"unshare": 272, "landlock_create_ruleset": 444, "seccomp": 317},
    "aarch64": {"unshare": 97, "landlock_create_ruleset": 444, "seccomp": 277},
}


def deny(errors: dict[str, int]) -> None:
    """From now on this process's kernel refuses these calls with these errors, as a container's does; 0: returns 0."""
    numbers = CALLS.get(os.uname().machine)
    if numbers is None:
        raise OSError(f"no call numbers for {os.uname().machine}")
    rows = [(0x20, 0, 0, 0)]
    for name, error in errors.items():
        rows += [(0x15, 0, 1, numbers[name]), (0x06, 0, 0, 0x0005_0000 | error)]
    program = b"".join(struct.pack("=HBBI", *row) for row in [*rows, (0x06, 0, 0, 0x7FFF_0000)])
    room = ctypes.create_string_buffer(program, len(program))
    libc = ctypes.CDLL(None, use_errno=True)
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(room))
    if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(ctypes.c_long(numbers["seccomp"]), 1, 0, described):
        raise OSError(ctypes.get_errno(), "seccomp")
