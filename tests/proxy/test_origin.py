"""Whose tape is it? The mark fits one host, command and start, and needs the key."""

from dataclasses import replace

import pytest

from tapeproxy.proxy.origin import is_ours, origin_mark
from tapeproxy.tapes.records import Head

KEY = bytes(range(32))
ARGV = ("python", "agent.py")
HEAD = Head(started_at="2026-01-01T00:00:00Z", argv=ARGV, host=origin_mark(KEY, "here", ARGV, "2026-01-01T00:00:00Z"))


def test_our_own_tape_is_ours() -> None:
    assert is_ours(HEAD, KEY, "here")


@pytest.mark.parametrize(
    "head",
    [
        replace(HEAD, argv=("python", "agent.py", "")),
        replace(HEAD, argv=("pythonagent.py",)),
        replace(HEAD, argv=("rm", "-rf", "/")),
        replace(HEAD, started_at="2026-01-01T00:00:01Z"),
        replace(HEAD, host=""),
        replace(HEAD, host="\u00e9\u4e2d"),
    ],
)
def test_a_changed_one_is_not(head: Head) -> None:
    assert not is_ours(head, KEY, "here")


def test_nor_is_it_elsewhere() -> None:
    assert not is_ours(HEAD, KEY, "there")
    assert not is_ours(HEAD, bytes(32), "here")
