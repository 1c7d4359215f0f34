import pytest
from blake3 import blake3

from tapeproxy.tapes import chain
from tapeproxy.tapes.chain import START, close_line, link, open_line


def test_a_line_is_the_object_with_its_hash_at_the_end() -> None:
    line, digest = close_line(START, b'{"k":"x"}')
    expected = blake3(bytes(32) + b'{"k":"x"').hexdigest()
    assert line == b'{"k":"x","h":"' + expected.encode() + b'"}\n'
    assert digest.hex() == expected


def test_open_line_undoes_close_line() -> None:
    line, digest = close_line(b"p" * 32, b'{"k":"x"}')
    assert open_line(line[:-1]) == (b'{"k":"x"', digest.hex().encode())


def test_each_link_depends_on_the_one_before() -> None:
    assert link(START, b"a") != link(link(START, b"b"), b"a") != link(START, b"b")


HASH = b"0" * 64


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b',"h":"' + HASH + b'"}',  # no content at all
        b'{"a":1,"h":"' + HASH[1:] + b'"}',
        b'{"a":1,"h":"' + HASH + b'"} ',
        b'{"a":1,"h":"' + HASH + b'"}\r',
        b'{"a":1, "h":"' + HASH + b'"}',
        b'{"a":1,"H":"' + HASH + b'"}',
        b'{"a":1,"h": "' + HASH[1:] + b'"}',
        b'{"h":"' + HASH + b'","a":1}',
    ],
)
def test_a_line_that_does_not_end_in_its_hash_is_none(line: bytes) -> None:
    assert open_line(line) is None


def test_a_line_longer_than_readers_take_is_not_made() -> None:
    with pytest.raises(ValueError, match="longer"):
        close_line(START, bytes(chain.MAX_LINE - 70))
