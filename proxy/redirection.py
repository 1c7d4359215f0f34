"""Leads all that leaves a network namespace to a port of its own loopback. Knows netlink, and no programs for it.

Two things: a route by which every address there is leads to loopback (RTN_LOCAL), so that no connection is without a
way; and rules of nf_tables in the path of what is sent, which turn TCP to a port and remember where it was meant to go
(SO_ORIGINAL_DST). Made for a namespace that `netns.enter` has made: it has both as long as it lives.

Sources: rtnetlink(7), linux/rtnetlink.h, linux/netfilter/nf_tables.h, linux/netfilter/nfnetlink.h.
"""

import ipaddress
import os
import socket
import struct
from collections.abc import Iterable

_NETLINK_ROUTE, _NETLINK_NETFILTER = 0, 12
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_ERROR = 2
_NEWROUTE = 24
_TABLE_LOCAL, _PROTO_STATIC, _SCOPE_HOST, _LOCAL = 255, 4, 254, 2
_OIF, _PREFSRC = 4, 7

_BATCH_BEGIN, _BATCH_END, _NFTABLES = 0x10, 0x11, 10
_NEWTABLE, _NEWCHAIN, _NEWRULE = 0, 3, 6
_OUTPUT, _DSTNAT = 3, -100
_NESTED = 0x8000
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_L4PROTO = 16
_REGISTER = 1
_EQUAL, _UNEQUAL = 0, 1
_NAME = b"tapeproxy\0"
_DNS = 53

_ORIGINAL_DST = 80
_SOL_IPV6 = 41

type Place = tuple[str, int]
type Expression = tuple[str, bytes]


def redirect(port: int, names_port: int, loopback: Iterable[int]) -> None:
    """Lead all TCP to `port` of 127.0.0.1 and ::1, and what is asked of name servers to `names_port` (UDP).

    TCP within loopback stays, but for the ports `loopback`. Raises OSError where the kernel has not what it takes.
    """
    ports = tuple(loopback)
    for family, source, at, width in ((socket.AF_INET, "127.0.0.1", 16, 4), (socket.AF_INET6, "::1", 24, 16)):
        try:
            _route(family, source)
            _rules(
                family,
                at,
                ipaddress.ip_address(source).packed[:1] if width == 4 else bytes(15) + b"\1",
                port,
                names_port,
                ports,
            )
        except OSError:
            if family == socket.AF_INET:
                raise  # without IPv6 there is nothing to lead


def original(connection: socket.socket) -> Place:
    """Where a connection that was led here was meant to go. Raises OSError for one that was not led."""
    if connection.family == socket.AF_INET:
        found = connection.getsockopt(socket.SOL_IP, _ORIGINAL_DST, 16)
        return socket.inet_ntop(socket.AF_INET, found[4:8]), int.from_bytes(found[2:4], "big")
    found = connection.getsockopt(_SOL_IPV6, _ORIGINAL_DST, 28)
    return socket.inet_ntop(socket.AF_INET6, found[8:24]), int.from_bytes(found[2:4], "big")


# --- the route ---


def _route(family: int, source: str) -> None:
    head = struct.pack("=BBBBBBBBI", family, 0, 0, 0, _TABLE_LOCAL, _PROTO_STATIC, _SCOPE_HOST, _LOCAL, 0)
    loopback = struct.pack("=I", socket.if_nametoindex("lo"))
    body = head + _attribute(_OIF, loopback) + _attribute(_PREFSRC, ipaddress.ip_address(source).packed)
    _tell(_NETLINK_ROUTE, [_message(_NEWROUTE, _REQUEST | _ACK | _CREATE, 1, body)], 1)


# --- the rules ---


def _rules(family: int, at: int, loopback: bytes, port: int, names_port: int, ports: tuple[int, ...]) -> None:
    """`loopback`: what addresses of loopback begin with, at byte `at` of the IP header."""
    away = [_load(_NETWORK_HEADER, at, len(loopback)), _compare(_UNEQUAL, loopback)]
    within = [_load(_NETWORK_HEADER, at, len(loopback)), _compare(_EQUAL, loopback)]
    rules = [
        [*_of(socket.IPPROTO_UDP), *_to(_DNS), *_turn(names_port)],
        [*_of(socket.IPPROTO_TCP), *away, *_turn(port)],
        *([*_of(socket.IPPROTO_TCP), *within, *_to(one), *_turn(port)] for one in ports),
    ]
    nat = _attribute(1, _big(_OUTPUT)) + _attribute(2, struct.pack(">i", _DSTNAT))
    chain = _attribute(1, _NAME) + _attribute(3, _NAME) + _attribute(4 | _NESTED, nat) + _attribute(7, b"nat\0")
    told = [(_NEWTABLE, _CREATE, _attribute(1, _NAME)), (_NEWCHAIN, _CREATE, chain)]
    for rule in rules:
        elements = b"".join(_attribute(1 | _NESTED, _expression(*one)) for one in rule)
        body = _attribute(1, _NAME) + _attribute(2, _NAME) + _attribute(4 | _NESTED, elements)
        told.append((_NEWRULE, _CREATE | _APPEND, body))
    batch = [_message(_BATCH_BEGIN, _REQUEST, 0, struct.pack(">BBH", 0, 0, _NFTABLES))]
    for number, (kind, flags, body) in enumerate(told, 1):
        head = struct.pack(">BBH", family, 0, 0)
        batch.append(_message(_NFTABLES << 8 | kind, _REQUEST | _ACK | flags, number, head + body))
    batch.append(_message(_BATCH_END, _REQUEST, 0, struct.pack(">BBH", 0, 0, _NFTABLES)))
    _tell(_NETLINK_NETFILTER, batch, len(told))


def _of(protocol: int) -> list[Expression]:
    asked = _attribute(2, _big(_L4PROTO)) + _attribute(1, _big(_REGISTER))
    return [("meta", asked), _compare(_EQUAL, bytes([protocol]))]


def _to(port: int) -> list[Expression]:
    return [_load(_TRANSPORT_HEADER, 2, 2), _compare(_EQUAL, struct.pack(">H", port))]


def _turn(port: int) -> list[Expression]:
    given = _attribute(1, _big(_REGISTER)) + _attribute(2 | _NESTED, _attribute(1, struct.pack(">H", port)))
    return [("immediate", given), ("redir", _attribute(1, _big(_REGISTER)))]


def _load(header: int, at: int, length: int) -> Expression:
    values = (_REGISTER, header, at, length)
    return "payload", b"".join(_attribute(number, _big(value)) for number, value in enumerate(values, 1))


def _compare(how: int, value: bytes) -> Expression:
    given = _attribute(3 | _NESTED, _attribute(1, value))
    return "cmp", _attribute(1, _big(_REGISTER)) + _attribute(2, _big(how)) + given


def _expression(name: str, data: bytes) -> bytes:
    return _attribute(1, name.encode() + b"\0") + _attribute(2 | _NESTED, data)


# --- netlink ---


def _big(value: int) -> bytes:
    return struct.pack(">I", value)


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def _message(kind: int, flags: int, number: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body


def _tell(protocol: int, messages: list[bytes], answers: int) -> None:
    """Send messages in one go and hear what became of each. Raises OSError for the first that the kernel refused."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as netlink:
        netlink.settimeout(5)
        netlink.send(b"".join(messages))
        while answers > 0:
            heard = netlink.recv(1 << 16)
            while heard:
                length, kind = struct.unpack_from("=IH", heard)
                if kind == _ERROR:
                    answers -= 1
                    if number := -struct.unpack_from("=i", heard, 16)[0]:
                        raise OSError(number, os.strerror(number).lower())
                heard = heard[(length + 3) & ~3 :]
