"""DNS answers: questions read whole and broken, and names that have one address each."""

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.dnsanswers import Names, address_answer, failed_answer, parse_question, unknown_answer

AAAA, HTTPS = 28, 65


def asked(name: str, kind: int = 1, of: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 0xABCD, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, of)


def test_an_address_is_given_to_who_asks_for_one_and_nothing_to_others() -> None:
    question = parse_question(asked("Api.Example.com"))
    assert question is not None
    assert (question.name, question.kind) == ("api.example.com", 1)
    said = address_answer(question, "198.18.0.7")
    number, flags, *counts = struct.unpack_from(">HHHHHH", said)
    assert (number, flags, counts) == (0xABCD, 0x8180, [1, 1, 0, 0])
    assert said.startswith(asked("Api.Example.com")[12:], 12), "the question, as it was asked"
    assert said.endswith(bytes([0, 4, 198, 18, 0, 7]))
    for kind in (AAAA, HTTPS):
        other = parse_question(asked("api.example.com", kind))
        assert other is not None
        assert struct.unpack_from(">HHHHHH", address_answer(other, "198.18.0.7"))[1:4] == (0x8180, 1, 0)
    assert unknown_answer(question)[3] & 0xF == 3
    assert failed_answer(question)[3] & 0xF == 2


@pytest.mark.parametrize("data", [b"", b"x" * 12, asked("a.b", of=3), b"\0\0\x80" + asked("a.b")[3:]])
def test_what_is_no_question_is_none(data: bytes) -> None:
    assert parse_question(data) is None


@given(st.binary(max_size=80), st.integers(0, 40))
def test_no_datagram_does_harm(data: bytes, cut: int) -> None:
    for tried in (data, asked("api.example.com")[:cut], asked("api.example.com")[:cut] + data):
        question = parse_question(tried)
        assert question is None or address_answer(question, "198.18.0.1")


def test_each_name_has_an_address_of_its_own_and_the_same_in_every_run() -> None:
    names, again = Names(), Names()
    wanted = [f"host{n}.example.com" for n in range(2000)]
    addresses = [names.address(name) for name in wanted]
    assert len({*addresses}) == len(wanted)
    assert [names.name(address) for address in addresses] == wanted
    assert names.name("198.19.255.255") is None
    assert again.address(wanted[0]) == addresses[0] == names.address(wanted[0])
    assert all(ipaddress.ip_address(address) in ipaddress.ip_network("198.18.0.0/15") for address in addresses)
