import gzip
import subprocess
import sys
import zlib
from collections.abc import Callable

import backports.zstd
import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.codings import Decoded, decode, decode_chunks, looks_like_text

TEXT = b'{"answer": "forty-two", "numbers": [' + b", ".join(b"%d" % n for n in range(30000)) + b"]}"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": raw_deflate,
    "br": brotli.compress,
    "zstd": backports.zstd.compress,
}


def says(coding: str, content_type: str = "application/json") -> tuple[tuple[bytes, bytes], ...]:
    headers = [(b"Content-Type", content_type.encode())] if content_type else []
    return (*headers, (b"Content-Encoding", coding.split()[-1].encode())) if coding else tuple(headers)


@pytest.mark.parametrize("coding", PACK)
def test_what_a_coding_packed_comes_back(coding: str) -> None:
    name = coding.split()[-1]
    assert decode(PACK[coding](TEXT), says(coding)) == Decoded(TEXT, (name,))


def flushed(coding: str, pieces: list[bytes]) -> list[bytes]:
    """The pieces as a server packs a stream: each can be read once it is there."""
    if coding == "br":
        brotler = brotli.Compressor()
        return [*(brotler.process(piece) + brotler.flush() for piece in pieces), brotler.finish()]
    if coding == "zstd":
        packer = backports.zstd.ZstdCompressor()
        packed = [packer.compress(piece, packer.FLUSH_BLOCK) for piece in pieces]
        return [*packed, packer.flush(packer.FLUSH_FRAME)]
    zipper = zlib.compressobj(wbits={"gzip": 31, "deflate": 15, "raw deflate": -15}[coding])
    return [*(zipper.compress(piece) + zipper.flush(zlib.Z_SYNC_FLUSH) for piece in pieces), zipper.flush()]


PIECES = [b"data: one\n\n", b"data: " + bytes(range(32, 127)) * 50, b"\n\n"]


@pytest.mark.parametrize("coding", PACK)
def test_what_each_chunk_of_a_packed_stream_brings_is_told(coding: str) -> None:
    packed = flushed(coding, PIECES)
    decoded, plain = decode_chunks(packed, says(coding))
    assert plain == [*PIECES, b""]
    assert decoded == decode(b"".join(packed), says(coding))
    cut = [packed[0], packed[1][:2], packed[1][2:], *packed[2:]]
    assert decode_chunks(cut, says(coding))[1][0] == PIECES[0]


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("harm", ["cut", "damaged", "followed by junk", "over the limit", "packed twice", "plain"])
def test_the_chunks_of_a_body_bring_what_it_decodes_to(coding: str, harm: str) -> None:
    packed, headers, limit = flushed(coding, PIECES), says(coding), 1 << 20
    match harm:
        case "cut":
            packed = packed[:2]
        case "damaged":
            packed[1] = packed[1][:-40] + b"\xff" * 40
        case "followed by junk":
            packed += [b"junk", b"more"]
        case "over the limit":
            limit = 300
        case "packed twice":
            packed, headers = flushed("gzip", packed), says(f"x {coding.split()[-1]}, gzip")
        case _:
            packed = PIECES
    decoded, plain = decode_chunks(packed, headers, limit)
    assert decoded == decode(b"".join(packed), headers, limit)
    assert b"".join(plain) == decoded.data
    assert len(plain) == len(packed)


@pytest.mark.parametrize("coding", PACK)
def test_a_decoded_body_that_kept_its_header_is_taken_as_it_is(coding: str) -> None:
    result = decode(TEXT, says(coding))
    assert (result.data, result.coding, result.whole) == (TEXT, (), True)
    assert result.note == f"content-encoding says {coding.split()[-1]}, but the body is not"


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("text", [b"x", b"(", b"data: {}\n\n", b"Pax", b"\xc3\xa9t\xc3\xa9", b"hello " * 500])
def test_no_text_is_mistaken_for_a_compressed_body(coding: str, text: bytes) -> None:
    assert decode(text, says(coding)).data == text


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize(
    "content_type", ["", "application/json", "text/event-stream; charset=utf-8", "application/problem+json"]
)
def test_a_compressed_text_whose_header_is_gone_is_found_by_its_magic(coding: str, content_type: str) -> None:
    result = decode(PACK[coding](TEXT), says("", content_type))
    assert (result.data, result.coding, result.whole) == (TEXT, (coding,), True)
    assert "no content-encoding" in result.note


def test_a_text_that_only_begins_like_gzip_is_left_as_it_is() -> None:
    body = b"\x1f\x8b\x08 and then no more of it"
    assert decode(body, says("", "text/plain")) == Decoded(
        body, whole=False, note="the compressed body is damaged near byte 0"
    )


@pytest.mark.parametrize("content_type", ["application/gzip", "application/octet-stream", "application/x-tar"])
def test_a_download_that_is_a_gzip_file_stays_one(content_type: str) -> None:
    body = gzip.compress(TEXT)
    assert decode(body, says("", content_type)) == Decoded(body)


@pytest.mark.parametrize("coding", PACK)
def test_a_cut_body_decodes_as_far_as_it_goes(coding: str) -> None:
    packed = PACK[coding](TEXT)
    cuts = [decode(packed[:cut], says(coding)) for cut in (10, 100, len(packed) // 2, len(packed) - 9)]
    assert all(not result.whole and TEXT.startswith(result.data) for result in cuts)
    assert len(cuts[-1].data) > 100_000
    assert cuts[-1].note == "the compressed body was cut"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_a_stream_that_was_flushed_reads_up_to_the_flush(coding: str) -> None:
    if coding == "zstd":
        zstd = backports.zstd.ZstdCompressor()
        packed = zstd.compress(b"data: 1\n\n", zstd.FLUSH_BLOCK)
    else:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31 if coding == "gzip" else 15)
        packed = packer.compress(b"data: 1\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    result = decode(packed, says(coding))
    assert (result.data, result.whole) == (b"data: 1\n\n", False)


def test_damage_keeps_what_came_before_it() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[3000:3010] = b"\xff" * 10
    result = decode(bytes(packed), says("gzip"))
    assert result.note.startswith("the compressed body is damaged near byte")
    assert len(result.data) > 3000
    assert TEXT.startswith(result.data[:2000])
    assert not result.whole


@pytest.mark.parametrize(
    ("after", "whole", "note"),
    [
        (gzip.compress(TEXT), True, ""),
        (b"\0" * 700, True, ""),
        (b"junk", False, "bytes that are not compressed follow the compressed body"),
    ],
    ids=["a second member", "padding", "junk"],
)
def test_what_follows_a_gzip_member(after: bytes, whole: bool, note: str) -> None:
    result = decode(gzip.compress(TEXT) + after, says("gzip"))
    assert (result.whole, result.note) == (whole, note)
    assert result.data == TEXT * (2 if after.startswith(b"\x1f") else 1)


@pytest.mark.parametrize("coding", PACK)
def test_a_bomb_stops_at_the_limit(coding: str) -> None:
    result = decode(PACK[coding](bytes(20_000_000)), says(coding), limit=100_000)
    assert (len(result.data), result.whole) == (100_000, False)
    assert result.note == "cut at 100000 bytes: the body decodes to more"


@pytest.mark.parametrize("coding", PACK)
def test_a_body_of_exactly_the_limit_is_whole(coding: str) -> None:
    assert decode(PACK[coding](bytes(100_000)), says(coding), limit=100_000).whole


def test_stacked_codings_are_undone_in_the_reverse_order() -> None:
    body = brotli.compress(gzip.compress(TEXT))
    assert decode(body, ((b"content-encoding", b"gzip"), (b"content-encoding", b"br"))) == Decoded(TEXT, ("br", "gzip"))
    assert decode(body, ((b"content-encoding", b"GZIP, br"),)) == Decoded(TEXT, ("br", "gzip"))


def test_a_long_list_of_codings_is_not_followed() -> None:
    result = decode(b"x", ((b"content-encoding", b", ".join([b"gzip"] * 50)),))
    assert (result.data, result.whole) == (b"x", False)


@pytest.mark.parametrize("name", ["identity", "", "none", "utf-8"])
def test_names_that_mean_no_coding(name: str) -> None:
    assert decode(TEXT, ((b"content-encoding", name.encode()),)) == Decoded(TEXT)


def test_an_unknown_coding_is_said() -> None:
    result = decode(b"\xff\x00\x01", ((b"content-encoding", b"lzw"),))
    assert result == Decoded(b"\xff\x00\x01", whole=False, note="the coding 'lzw' is not known")


def test_no_body_is_whole_whatever_it_claims() -> None:
    assert decode(b"", says("gzip")) == Decoded(b"")


WITHOUT = """
import sys, zlib
for name in {absent!r}:
    sys.modules[name] = None
from tapeproxy.tapes.codings import decode
body = bytes.fromhex({body!r})
print(decode(body, ((b"content-encoding", b"{coding}"),), limit=50))
"""
ZSTD_MODULES = ["compression.zstd", "backports.zstd", "zstandard"]


@pytest.mark.parametrize(
    ("coding", "absent", "body", "expected"),
    [
        ("zstd", ZSTD_MODULES[:2], PACK["zstd"](b"data"), Decoded(b"data", ("zstd",))),
        (
            "zstd",
            ZSTD_MODULES[:2],
            PACK["zstd"](bytes(10_000_000)),
            Decoded(bytes(50), ("zstd",), whole=False, note="cut at 50 bytes: the body decodes to more"),
        ),
        (
            "zstd",
            ZSTD_MODULES,
            PACK["zstd"](b"data"),
            Decoded(
                PACK["zstd"](b"data"),
                whole=False,
                note="zstd cannot be undone here: install backports.zstd or zstandard",
            ),
        ),
        (
            "br",
            ["brotli"],
            PACK["br"](b"data"),
            Decoded(PACK["br"](b"data"), whole=False, note="br cannot be undone here: install brotli 1.2 or newer"),
        ),
        ("br", ["brotli"], b"data", Decoded(b"data", note="content-encoding says br, but the body is not")),
    ],
)
def test_what_is_done_without_the_optional_modules(
    coding: str, absent: list[str], body: bytes, expected: Decoded
) -> None:
    script = WITHOUT.format(absent=absent, body=body.hex(), coding=coding)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(expected)


@given(st.binary(max_size=600), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "x"]))
def test_garbage_never_raises(body: bytes, coding: str) -> None:
    for start in (b"", b"\x1f\x8b\x08\0", b"\x78\x9c", b"\x28\xb5\x2f\xfd"):
        decode(start + body, ((b"content-encoding", coding.encode()),), limit=1000)


@given(st.binary(max_size=3000), st.sampled_from(sorted(PACK)))
def test_round_trip(data: bytes, coding: str) -> None:
    assert decode(PACK[coding](data), says(coding)).data == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\r\n\ttext", True),
        ("é…".encode()[:-1], True),
        (b"\xff\xfe", False),
        (b"nul\0", False),
        (b"\x1b[31m", True),
    ],
)
def test_what_looks_like_text(data: bytes, text: bool) -> None:
    assert looks_like_text(data) is (text and b"\x1b" not in data)
