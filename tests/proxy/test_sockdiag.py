"""Netlink's answers, and that they agree with the tables on real sockets."""

import socket
import struct

import pytest
from traps import linux

from tapeproxy.proxy.netns import listening_ports, ports_in_tables
from tapeproxy.proxy.sockdiag import Found, dump, parse_netlink


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body


ADDRESS = bytes(range(16))
SOCKET = message(20, struct.pack("=4x2s2s16s16s12x16xI", b"\x1f\x90", b"", ADDRESS, b"", 4711))
FOUND = Found(8080, ADDRESS, 4711)
DONE = message(3, bytes(4))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (DONE, ([], True)),
        (SOCKET, ([FOUND], False)),
        (SOCKET + SOCKET + DONE, ([FOUND] * 2, True)),
        (b"", ([], False)),
    ],
)
def test_netlink_datagrams(data: bytes, expected: tuple[list[tuple[bytes, int]], bool]) -> None:
    assert parse_netlink(data) == expected


def test_a_netlink_datagram_cut_short_or_an_error_is_an_oserror() -> None:
    for cut in range(16, len(SOCKET)):
        with pytest.raises(OSError, match="sock_diag"):
            parse_netlink(SOCKET[:cut])
    with pytest.raises(OSError, match="sock_diag"):
        parse_netlink(message(2, struct.pack("=i", -2)))
    with pytest.raises(OSError, match="sock_diag"):
        parse_netlink(bytes(64))


@linux
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_port_that_waits_is_found_both_ways(kind: int, family: int, host: str) -> None:
    with socket.socket(family, kind) as waiting:
        try:
            waiting.bind((host, 0))
        except OSError:
            pytest.skip("no IPv6 on this machine")
        if kind == socket.SOCK_STREAM:
            waiting.listen()
        port = waiting.getsockname()[1]
        assert port in listening_ports()
        assert port in ports_in_tables()
    assert port not in listening_ports()


@linux
def test_a_dump_can_be_of_one_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)):
        port = server.getsockname()[1]
        try:
            found = [*dump(socket.IPPROTO_TCP, 10, port)]
        except OSError:
            pytest.skip("this kernel or sandbox has no sock_diag")
        assert [(one.port, socket.inet_ntoa(one.address)) for one in found] == [(port, "127.0.0.1")]
