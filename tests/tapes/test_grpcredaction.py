"""Compressed messages of gRPC: whole, in pieces of any size, and cut."""

import gzip
import zlib

import pytest

from tapeproxy.tapes.duplex import split_messages
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redaction import Redactor

KEY = bytes(range(32))
SECRET = b"sk-proj-" + b"AbCdEf0123456789xyzXYZabcd"
REDACTOR = Redactor(KEY)
TOKEN = REDACTOR.content(SECRET)
CODERS = {b"gzip": lambda data: gzip.compress(data, mtime=0), b"deflate": zlib.compress}
UNDO = {b"gzip": gzip.decompress, b"deflate": zlib.decompress}


def message(data: bytes, flag: int = 0) -> bytes:
    return bytes([flag]) + len(data).to_bytes(4) + data


def headers(coding: bytes, kind: bytes = b"application/grpc+proto") -> Headers:
    return (b"content-type", kind), (b"grpc-encoding", coding)


def body(coding: bytes) -> bytes:
    """A message without a secret, one with it, a plain one with it, and an empty one."""
    code = CODERS[coding]
    with_it = b"\x0a\x22" + SECRET + b"\xff"
    return b"".join(
        (
            message(code(b"nothing" * 9), 1),
            message(code(with_it), 1),
            message(with_it),
            message(b""),
            message(code(b""), 1),
        )
    )


def said(data: bytes, coding: bytes) -> list[bytes]:
    found, rest = split_messages(data)
    assert rest == b""
    return [UNDO[coding](one[5:]) if one[0] else one[5:] for one in found]


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_secret_is_found_in_pieces_of_any_size(coding: bytes, size: int) -> None:
    whole = body(coding)
    stream = REDACTOR.stream(headers(coding))
    out = [
        *(one for at in range(0, len(whole), size) for one in stream.feed(at, whole[at : at + size])),
        *stream.finish(),
    ]
    assert [t for t, _ in out] == sorted(t for t, _ in out)
    clean = b"".join(data for _, data in out)
    with_it = b"\x0a\x22" + TOKEN + b"\xff"
    assert said(clean, coding) == [b"nothing" * 9, with_it, with_it, b"", b""]
    assert clean == REDACTOR.body(headers(coding), whole), "a request in a replay is redacted alike"


def test_pieces_stay_as_they_came_where_nothing_is_found() -> None:
    one, two = (message(gzip.compress(text), 1) for text in (b"first", b"second" * 9))
    stream = REDACTOR.stream(headers(b"gzip"))
    assert stream.feed(1, one + two[:3]) == []
    assert stream.feed(2, two[3:9]) == []
    assert stream.feed(3, two[9:]) == [(1, one + two[:3]), (2, two[3:9]), (3, two[9:])]
    assert stream.feed(4, one) == [(4, one)]
    assert stream.finish() == []


@pytest.mark.parametrize(
    "data",
    [b"", b"\1", message(gzip.compress(b"abc"), 1)[:-2], message(b"no gzip", 1), message(b"x") + b"\0\0"],
    ids=[
        "nothing",
        "a flag",
        "cut",
        "no gzip",
        "half a head",
    ],  # gzip writes the time: workers would not agree on names
)
def test_what_is_cut_or_cannot_be_undone_stays(data: bytes) -> None:
    stream = REDACTOR.stream(headers(b"gzip"))
    assert b"".join(piece for _, piece in (*stream.feed(0, data), *stream.finish())) == data


@pytest.mark.parametrize("given", [headers(b"identity"), headers(b"gzip", b"text/plain")])
def test_other_bodies_are_not_read_as_such(given: Headers) -> None:
    stream = REDACTOR.stream(given)
    pieces = (*stream.feed(0, message(SECRET)), *stream.finish())
    assert b"".join(piece for _, piece in pieces) == message(TOKEN)


def test_a_message_that_is_too_long_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapeproxy.tapes.grpcredaction._WHOLE", 100)
    data = message(bytes(1000), 1)
    stream = REDACTOR.stream(headers(b"gzip"))
    assert stream.feed(1, data[:90]) == []
    assert stream.feed(2, data[90:200]) == [(1, data[:90]), (2, data[90:200])]
    assert stream.feed(3, data[200:]) == [(3, data[200:])]


def test_boundaries_that_never_meet_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapeproxy.tapes.grpcredaction._MOST", 100)
    one = message(b"x" * 60)
    stream = REDACTOR.stream(headers(b"gzip"))
    assert stream.feed(1, one + one[:9]) == []
    assert stream.feed(2, one[9:] + one[:9]) == [(2, one * 2)]
    assert stream.finish() == [(2, one[:9])]
