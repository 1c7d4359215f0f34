import base64
from hashlib import sha256

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.signature import MOST, Statement, fingerprint, message, parse, render

HASHES = st.text("0123456789abcdef", min_size=64, max_size=64)
STATEMENTS = st.builds(
    Statement,
    file=HASHES,
    head=HASHES,
    last=HASHES,
    records=st.integers(0, 2**63 - 1),
    signed_at=st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    key=HASHES,
)
STATEMENT = Statement("0" * 64, "1" * 64, "2" * 64, 7, "2026-01-02T03:04:05.000006Z", "a" * 64)
LINE = render(STATEMENT.content(), bytes(range(64)))


@given(STATEMENTS, st.binary(min_size=64, max_size=64))
def test_round_trip(statement: Statement, value: bytes) -> None:
    read = parse(render(statement.content(), value), "s")
    assert (read.statement, read.value, read.message) == (statement, value, message(statement.content()))


def test_it_is_one_line_of_json_whose_beginning_is_signed() -> None:
    assert LINE.count(b"\n") == 1
    fields = orjson.loads(LINE)
    assert list(fields) == ["tape_signature", "file", "head", "last", "records", "signed_at", "key", "signature"]
    assert parse(LINE, "s").message == b"tapeproxy tape signature 1\n" + LINE.split(b',"signature"')[0]


def test_fields_that_come_later_are_read_past_and_signed() -> None:
    content = STATEMENT.content() + b',"more":[1]'
    assert parse(render(content, bytes(64)), "s").message == message(content)


CUTS = [LINE[:end] for end in range(len(LINE))]
FLIPS = [LINE[:at] + bytes([LINE[at] ^ 1 << bit]) + LINE[at + 1 :] for at in range(len(LINE)) for bit in range(8)]


def test_every_cut_is_refused() -> None:
    for data in CUTS:
        with pytest.raises(TapeFormatError, match="s: this is not a tape's signature, or it was changed"):
            parse(data, "s")


def test_every_flipped_bit_is_refused_or_in_what_is_signed_or_in_the_signature() -> None:
    honest = parse(LINE, "s")
    for data in FLIPS:
        try:
            read = parse(data, "s")
        except TapeFormatError:
            continue
        assert (read.message, read.value) != (honest.message, honest.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"tape_signature":1', b'"tape_signature":2', "has format 2; this version reads format 1"),
        (b'"tape_signature":1', b'"tape_signature":0', "lacks a field"),
        (b'"tape_signature":1', b'"tape_signature":true', "lacks a field"),
        (b'"records":7', b'"records":"7"', "lacks a field"),
        (b'"records":7', b'"records":true', "lacks a field"),
        (b'"key"', b'"kex"', "lacks a field"),
        (b'"' + b"2" * 64, b'"' + b"G" * 64, "lacks a field"),
        (b'"signed_at":"', b'"signed_at":0,"x":"', "lacks a field"),
        (b"{", b"[", "is not a tape's signature"),
        (b"\n", b"\r\n", "is not a tape's signature"),
        (b"\n", b"\n\n", "is not a tape's signature"),
        (b'"signature":"0', b'"signature":"', "is not a tape's signature"),
        (b'"signature":"000102030405060708090a', b'"signature":"000102030405060708090A', "is not a tape's signature"),
        (b'"file"', b"file", "is not a tape's signature"),
        (b'"records"', b'"x":"' + b"x" * MOST + b'","records"', "is not a tape's signature"),
    ],
)
def test_what_is_none(old: bytes, new: bytes, said: str) -> None:
    assert old in LINE
    with pytest.raises(TapeFormatError, match=said):
        parse(LINE.replace(old, new, 1), "s")


@given(st.binary(max_size=300))
def test_garbage_is_refused_by_name(data: bytes) -> None:
    for one in (data, LINE[:-2] + data + LINE[-2:] if data else b""):
        with pytest.raises(TapeFormatError):
            parse(one, "s")


def test_a_fingerprint_is_that_of_openssh() -> None:
    # RFC 8709: the blob of a public key is string "ssh-ed25519", string key.
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(range(32))
    assert fingerprint(bytes(range(32))) == "SHA256:" + base64.b64encode(sha256(blob).digest()).decode().rstrip("=")
