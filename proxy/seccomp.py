"""A filter for system calls that open sockets, as a value. Knows numbers and classic BPF; installs nothing.

It closes what Landlock leaves open: of the internet only TCP sockets can be made, and of other families only those
that stay within the kernel (UNIX, netlink, the kernel's ciphers). UDP, raw packets, MPTCP, SCTP, vsock (which leads
to a virtual machine's host) and the rest are refused with what a kernel without them would say, so that programs
fall back or fail as they are made to. Two ways around are closed with it: TCP fast open by sendto(2), which connects
without connect(2), and io_uring, which opens sockets without socket(2).

Format: seccomp(2), linux/seccomp.h, linux/filter.h. Both machines are little-endian; arguments are compared by
their low words, which is all that the kernel reads of them.
"""

import errno
import struct
from dataclasses import dataclass

ALLOW = 0x7FFF_0000
KILL = 0x8000_0000
_ERRNO = 0x0005_0000

_UNIX, _INET, _INET6, _NETLINK, _ALG = 1, 2, 10, 16, 38
_STREAM, _TYPE_MASK = 1, 0xF
_TCP = 6
_FASTOPEN = 0x2000_0000
_IO_URING_SETUP = 425

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16


@dataclass(frozen=True, slots=True)
class Machine:
    """What an instruction set calls itself and its calls. `twin` is the 32-bit one that the same kernel runs.

    A twin gets no sockets at all: some of its calls hide the family behind a pointer, which BPF can't follow.
    """

    audit: int
    socket: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    twin: int
    twin_sockets: tuple[int, ...]
    highest: int = 0
    """Numbers from here on are another numbering of the same machine (x32); 0: there is none."""


MACHINES = {
    "x86_64": Machine(0xC000_003E, 41, 44, 46, 307, 0x4000_0003, (102, 359), 0x4000_0000),
    "aarch64": Machine(0xC000_00B7, 198, 206, 211, 269, 0x4000_0028, (281,)),
}

type _Jump = int | str
type _Step = tuple[int, int, _Jump, _Jump] | str
"""An instruction: code, operand, and where to go on yes and on no, a label or 0 for the next; or a label's name."""


def socket_filter(machine: Machine) -> bytes:
    """The filter for one machine, as an array of `struct sock_filter`."""
    return _assemble(
        [
            (_LOAD, _MACHINE, 0, 0),
            (_EQUAL, machine.audit, 0, "other machine"),
            (_LOAD, _NUMBER, 0, 0),
            *([(_AT_LEAST, machine.highest, "unknown", 0)] if machine.highest else []),
            (_EQUAL, machine.socket, "socket", 0),
            (_EQUAL, machine.sendto, "flags fourth", 0),
            (_EQUAL, machine.sendmsg, "flags third", 0),
            (_EQUAL, machine.sendmmsg, "flags fourth", 0),
            (_EQUAL, _IO_URING_SETUP, "unknown", "fine"),
            *_socket_checks(),
            "flags third",
            (_LOAD, _ARGUMENTS + 8 * 2, 0, 0),
            (_ANY_BIT, _FASTOPEN, "no option", "fine"),
            "flags fourth",
            (_LOAD, _ARGUMENTS + 8 * 3, 0, 0),
            (_ANY_BIT, _FASTOPEN, "no option", "fine"),
            "other machine",
            (_EQUAL, machine.twin, 0, "kill"),
            (_LOAD, _NUMBER, 0, 0),
            (_EQUAL, _IO_URING_SETUP, "unknown", 0),
            *((_EQUAL, number, "no access", 0) for number in machine.twin_sockets),
            "fine",
            (_RETURN, ALLOW, 0, 0),
            "kill",
            (_RETURN, KILL, 0, 0),
            "unknown",
            (_RETURN, _ERRNO | errno.ENOSYS, 0, 0),
            "no option",
            (_RETURN, _ERRNO | errno.EOPNOTSUPP, 0, 0),
            "no access",
            (_RETURN, _ERRNO | errno.EACCES, 0, 0),
            "no family",
            (_RETURN, _ERRNO | errno.EAFNOSUPPORT, 0, 0),
            "no protocol",
            (_RETURN, _ERRNO | errno.EPROTONOSUPPORT, 0, 0),
        ]
    )


def _socket_checks() -> list[_Step]:
    family, kind, protocol = (_ARGUMENTS + 8 * n for n in range(3))
    return [
        "socket",
        (_LOAD, family, 0, 0),
        *((_EQUAL, harmless, "fine", 0) for harmless in (_UNIX, _NETLINK, _ALG)),
        (_EQUAL, _INET, "internet", 0),
        (_EQUAL, _INET6, 0, "no family"),
        "internet",
        (_LOAD, kind, 0, 0),
        (_AND, _TYPE_MASK, 0, 0),
        (_EQUAL, _STREAM, 0, "no access"),
        (_LOAD, protocol, 0, 0),
        (_EQUAL, 0, "fine", 0),
        (_EQUAL, _TCP, "fine", "no protocol"),
    ]


def _assemble(steps: list[_Step]) -> bytes:
    labels: dict[str, int] = {}
    instructions: list[tuple[int, int, _Jump, _Jump]] = []
    for step in steps:
        if isinstance(step, str):
            labels[step] = len(instructions)
        else:
            instructions.append(step)

    def distance(at: int, target: _Jump) -> int:
        return labels[target] - at - 1 if isinstance(target, str) else target

    return b"".join(
        struct.pack("=HBBI", code, distance(at, yes), distance(at, no), operand)
        for at, (code, operand, yes, no) in enumerate(instructions)
    )
