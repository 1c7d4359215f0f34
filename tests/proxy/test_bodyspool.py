"""A request's body as it comes: small ones whole, large ones in a file, and the same bytes of both."""

import pytest

from tapeproxy.proxy.bodyspool import BodySpool
from tapeproxy.tapes.largebodies import LARGE, stand_in

_PIECE = 1 << 20


_SIZES = [(0, True), (5, True), (8 << 20, True), ((8 << 20) + 1, False), (LARGE, False)]


@pytest.mark.parametrize(("size", "looked_at"), _SIZES)
def test_a_body_that_is_not_large_comes_back_whole(size: int, looked_at: bool) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    spool = BodySpool(())
    for at in range(0, size, _PIECE):
        spool.take(data[at : at + _PIECE])
    assert spool.size == size
    assert (spool.in_memory is not None) is looked_at
    assert spool.finish() == data


def test_a_large_body_is_read_in_pieces() -> None:
    data = bytes(range(256)) * (LARGE // 256) + b"end"
    spool = BodySpool(((b"content-type", b"text/plain"),))
    for at in range(0, len(data), 100_000):
        spool.take(data[at : at + 100_000])
    body = spool.finish()
    assert not isinstance(body, bytes)
    assert body.size == len(data)
    assert b"".join(body.pieces()) == data
    assert body.stand_in == stand_in((), [data])
