"""Answers to DNS questions that lead to addresses of our choice. Pure: bytes to bytes (RFC 1035), names to addresses.

An address that a program was given says which name it asked for: each name has one of its own from 198.18.0.0/15, which
is for tests of networks and leads nowhere (RFC 2544).
"""

import ipaddress
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from blake3 import blake3

A = 1
_IN = 1
_POOL = ipaddress.ip_network("198.18.0.0/15")
_HEAD = struct.Struct(">HHHHHH")
_RESPONSE, _RECURSION = 0x8000, 0x0080
_KEPT = 0x7900
"""Of the question's flags: the kind of question, and that recursion is wanted."""
_NO_ERROR, _SERVER_FAILURE, _NO_NAME = 0, 2, 3
_SECONDS = 60


class Question(NamedTuple):
    """`name` in small letters, without the dot at its end; `kind` a record type (`A`); `raw` as it was asked."""

    id: int
    flags: int
    name: str
    kind: int
    raw: bytes


def parse_question(data: bytes) -> Question | None:
    """Read a datagram with one question of the class IN; None where it is none."""
    if len(data) < _HEAD.size:
        return None
    number, flags, questions, *_ = _HEAD.unpack_from(data)
    labels: list[bytes] = []
    at = _HEAD.size
    while at < len(data) and (length := data[at]):
        if length > 63:
            return None
        labels.append(data[at + 1 : at + 1 + length])
        at += 1 + length
    if questions != 1 or flags & _RESPONSE or at + 5 > len(data):
        return None
    kind, of = struct.unpack_from(">HH", data, at + 1)
    if of != _IN:
        return None
    name = b".".join(labels).decode("latin-1").lower()
    return Question(number, flags, name, kind, data[_HEAD.size : at + 5])


def address_answer(question: Question, address: str) -> bytes:
    """The name is known; `address` is its only one, and there is nothing but that."""
    if question.kind != A:
        return _answer(question, _NO_ERROR)
    packed = ipaddress.IPv4Address(address).packed
    # 0xC00C: the name that stands behind the head.
    return _answer(question, _NO_ERROR, struct.pack(">HHHIH", 0xC00C, A, _IN, _SECONDS, 4) + packed)


def unknown_answer(question: Question) -> bytes:
    """There is no such name."""
    return _answer(question, _NO_NAME)


def failed_answer(question: Question) -> bytes:
    """Nobody could be asked."""
    return _answer(question, _SERVER_FAILURE)


def _answer(question: Question, code: int, record: bytes = b"") -> bytes:
    flags = _RESPONSE | _RECURSION | question.flags & _KEPT | code
    return _HEAD.pack(question.id, flags, 1, int(bool(record)), 0, 0) + question.raw + record


@dataclass(slots=True)
class Names:
    """Which name has which address. The same in each run, as far as two names don't want the same one."""

    _names: dict[str, str] = field(default_factory=dict[str, str])
    _addresses: dict[str, str] = field(default_factory=dict[str, str])

    def address(self, name: str) -> str:
        """The address of a name, from here on."""
        if name not in self._addresses:
            wanted = int.from_bytes(blake3(name.encode()).digest(4), "big")
            size = _POOL.num_addresses - 2  # neither the network's own address nor that of all
            while (address := str(_POOL[1 + wanted % size])) in self._names:
                wanted += 1
            self._names[address], self._addresses[name] = name, address
        return self._addresses[name]

    def name(self, address: str) -> str | None:
        """Who has this address; None: nobody was given it."""
        return self._names.get(address)
