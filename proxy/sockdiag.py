"""The sockets of this network namespace in a certain state, asked of the kernel over netlink: sock_diag(7).

Knows Linux and nothing else. The tables in /proc/net say the same, but to print them the kernel walks all of its
connections, which takes milliseconds.
"""

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_NLMSG_ERROR = 2
_NLMSG_DONE = 3

# nlmsghdr, then the start of inet_diag_req_v2: family, protocol, extensions, padding, states, source port.
_QUESTION = struct.Struct("=IHHIIBBBBI2s46x")
_HEADER = struct.Struct("=IHHII")
# inet_diag_msg: family .. source port and destination port, source address, then on to the inode.
_ANSWER = struct.Struct(">4xH2x16s"), struct.Struct("=68xI")


class Found(NamedTuple):
    """A socket: its own port and address (4 or 16 bytes), and its inode."""

    port: int
    address: bytes
    inode: int


def dump(protocol: int, state: int, port: int = 0) -> Iterator[Found]:
    """Yield the sockets of a protocol (IPPROTO_TCP) in a state (10: listening), IPv4 and then IPv6; of `port` if given.

    Raises OSError where that can't be had: the kernel has no sock_diag, or a sandbox forbids it.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(1)
        for family, width in ((socket.AF_INET, 4), (socket.AF_INET6, 16)):
            head = (_QUESTION.size, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
            netlink.send(_QUESTION.pack(*head, family, protocol, 0, 0, 1 << state, port.to_bytes(2, "big")))
            done = False
            while not done:
                answers, done = parse_netlink(netlink.recv(1 << 16))
                yield from (found._replace(address=found.address[:width]) for found in answers)


def parse_netlink(data: bytes) -> tuple[list[Found], bool]:
    """One datagram of a dump: its sockets, with 16 bytes of address each, and whether that was all.

    Raises OSError when the kernel reports an error or the datagram is cut short.
    """
    answers: list[Found] = []
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind = _HEADER.unpack_from(data, at)[:2]
        body = data[at + _HEADER.size : at + length]
        if kind == _NLMSG_DONE:
            return answers, True
        if kind == _NLMSG_ERROR or length < _HEADER.size + _ANSWER[1].size or len(body) < _ANSWER[1].size:
            raise OSError("sock_diag gave an error")
        answers.append(Found(*_ANSWER[0].unpack_from(body), *_ANSWER[1].unpack_from(body)))
        at += (length + 3) & ~3
    return answers, False
