"""Bodies too large to be held: what stands for them is the same however they are cut, and another for another body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.largebodies import first_difference, is_stand_in, stand_in
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.tokens import make_token, mask_tokens, open_token

KEY = bytes(32)
TOKEN = make_token(KEY, b"a secret that is rather long")
PARTS = ((b"Content-Type", b'multipart/form-data; boundary="--aa--aa"'),)
WORDS = st.sampled_from(
    [TOKEN, TOKEN[:9], TOKEN[:-1], b"tp", b"tpx", b"tpxaaz", b"----aa--aa", b"--aa", b"-", b"", b"x"]
)


def pieces(data: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted(place % (len(data) + 1) for place in places)
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("headers", [(), PARTS])
@given(words=st.lists(WORDS, max_size=8), places=st.lists(st.integers(0, 200), max_size=6))
def test_it_makes_no_difference_how_a_body_is_cut(headers: Headers, words: list[bytes], places: list[int]) -> None:
    data = b"".join(words)
    assert stand_in(headers, pieces(data, places)) == stand_in(headers, [data])
    at = open_token(data)
    assert mask_tokens(data[:at]) + mask_tokens(data[at:]) == mask_tokens(data)


def test_secrets_and_boundaries_make_no_difference_and_all_else_does() -> None:
    def of(secret: bytes, boundary: bytes, word: bytes) -> bytes:
        headers = ((b"content-type", b"multipart/form-data; boundary=" + boundary),)
        return stand_in(headers, [b"--%b\r\n\r\n%b %b\r\n--%b--" % (boundary, make_token(KEY, secret), word, boundary)])

    one = of(b"secret", b"abc", b"word")
    assert one == of(b"a longer secret than the other", b"longer-boundary", b"word")
    assert one != of(b"secret", b"abc", b"words")
    assert is_stand_in(one)
    assert not is_stand_in(one + b"0")


@given(st.binary(max_size=40), st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_where_two_bodies_part(one: bytes, other: bytes, places: list[int]) -> None:
    found = first_difference(pieces(one, places), pieces(other, places[:1]))
    if found is None:
        assert one == other
        return
    at, a, b = found
    assert one[:at] == other[:at]
    assert a != b
    assert (a[:1], b[:1]) == (one[at : at + 1], other[at : at + 1])
