"""Frames read as they go by: whole, byte by byte, cut short; compressed; and what is none."""

import contextlib
import os
import tracemalloc
import zlib
from itertools import batched

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.records import Headers, Side
from tapeproxy.tapes.wsframes import FrameReader, Piece, UnreadableError, accept_token, frames_of

type Said = tuple[str | bytes, int, bool]

DEFLATE: Headers = ((b"Sec-WebSocket-Extensions", b"permessage-deflate; client_max_window_bits=12"),)
MESSAGES = st.lists(
    st.tuples(st.one_of(st.text(max_size=300), st.binary(max_size=300)), st.integers(1, 4), st.booleans()), max_size=6
)


def read(data: bytes, step: int, to: Side = "server", response: Headers = ()) -> list[Piece]:
    reader = FrameReader(to, response)
    return [piece for part in batched(data, step) for piece in reader.feed(bytes(part))]


def joined(pieces: list[Piece]) -> list[tuple[str, bytes]]:
    """Whole messages, with what is no message at its place."""
    out: list[tuple[str, bytes]] = []
    held = b""
    for piece in pieces:
        if piece.type not in ("text", "binary"):
            out.append((piece.type, piece.data))
            continue
        held += piece.data
        if piece.open is None:
            out.append((piece.type, held))
            held = b""
    assert not held
    return out


@pytest.mark.parametrize("response", [(), DEFLATE], ids=["plain", "deflate"])
@pytest.mark.parametrize("to", ["server", "client"])
@given(messages=MESSAGES, step=st.integers(1, 5000))
def test_what_is_written_is_read(
    to: Side, response: Headers, messages: list[tuple[str | bytes, int, bool]], step: int
) -> None:
    other: Side = "client" if to == "server" else "server"
    frames = frames_of(other, response)
    data, expected = b"", list[tuple[str, bytes]]()
    for content, count, pinged in messages:
        size = -(-len(content) // count) or 1
        parts = [content[at : at + size] for at in range(0, len(content), size)] or [content]
        for at, part in enumerate(parts):
            data += frames.send_data(part, at == len(parts) - 1)
            if pinged:  # also between two frames of a compressed message
                data += frames.ping(b"p")
                if at < len(parts) - 1:
                    expected.append(("ping", b"p"))
        whole = content.encode() if isinstance(content, str) else content
        expected.append(("text" if isinstance(content, str) else "binary", whole))
        expected += [("ping", b"p")] if pinged else []
    data += frames.close(1000, "bye")
    expected.append(("close", b"bye"))
    assert joined(read(data, step, to, response)) == expected


def test_frames_are_told_from_pieces_of_one() -> None:
    frames = frames_of("server", ())
    data = bytes(frames.send_data("zwölf", False) + frames.send_data(" und", True))
    assert read(data, len(data), "client") == [Piece("text", "zwölf".encode(), "message"), Piece("text", b" und")]
    pieces = read(data, 5, "client")
    assert [piece.open for piece in pieces if piece.open != "frame"] == ["message", None]
    assert b"".join(piece.data for piece in pieces) == "zwölf und".encode()
    assert all(piece.data.decode() is not None for piece in pieces), "no piece ends within a character"


def test_a_bomb_is_given_out_in_pieces() -> None:
    frames = frames_of("server", DEFLATE)
    data = bytes(frames.send_data(bytes(4 << 20), True))
    assert len(data) < 10_000
    pieces = read(data, len(data), "client", DEFLATE)
    assert max(len(piece.data) for piece in pieces) <= 1 << 18
    assert sum(len(piece.data) for piece in pieces) == 4 << 20


@pytest.mark.parametrize(
    ("data", "to", "response", "what"),
    [
        (b"\x83\x00", "client", (), "opcode"),
        (b"\xf1\x01a", "client", (), r"\w"),
        (b"\x81\x02\xff\xff", "client", (), "utf-8"),
        (b"\x81\x01a", "server", (), "unmasked"),
        (b"\x81\x81abcda", "client", (), "masked"),
        (b"\x80\x01a", "client", (), "CONTINUATION"),
        (b"\x88\x01a", "client", (), "1 byte"),
        (b"\x88\x02\x03\xee", "client", (), "local-only"),
        (b"\x89\x7e\x00\x80" + bytes(128), "client", (), "125"),
        (
            b"\x81\x01a",
            "client",
            ((b"Sec-WebSocket-Extensions", b"permessage-bzip2"),),
            "the extension 'permessage-bzip2'",
        ),
        (
            b"\x81\x01a",
            "client",
            ((b"Sec-WebSocket-Extensions", b"permessage-deflate; server_max_window_bits=x"),),
            "param",
        ),
        (b"\xc1\x03abc", "client", DEFLATE, r"\w"),
    ],
)
def test_what_cannot_be_read_is_said(data: bytes, to: Side, response: Headers, what: str) -> None:
    with pytest.raises(UnreadableError, match=what):
        read(data, len(data), to, response)


@given(st.binary(max_size=200), st.sampled_from(["server", "client"]), st.sampled_from([(), DEFLATE]))
def test_garbage_gives_pieces_or_a_named_error(data: bytes, to: Side, response: Headers) -> None:
    with contextlib.suppress(UnreadableError):
        assert sum(len(piece.data) for piece in read(data, 7, to, response)) < 1 << 20


def test_what_inflates_a_thousandfold_is_never_in_memory_whole() -> None:
    size = 32 << 20
    deflate = zlib.compressobj(9, zlib.DEFLATED, -12)
    small = (deflate.compress(bytes(size)) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4]
    data = b"\xc2\x7e" + len(small).to_bytes(2, "big") + small
    reader = FrameReader("client", DEFLATE)
    tracemalloc.start()
    try:
        assert sum(len(piece.data) for piece in reader.feed(data)) == size
        assert tracemalloc.get_traced_memory()[1] < size  # of which there would be four copies
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("step", [3, 1000])
def test_what_comes_after_a_close_says_nothing(step: int) -> None:
    frames = frames_of("server", ())
    data = bytes(frames.close()) + os.urandom(50)
    assert read(data, step, "client") == [Piece("close", b"", code=None)]


def test_the_answer_to_a_key_is_the_rfc_s() -> None:
    assert accept_token(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
