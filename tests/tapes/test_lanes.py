"""The lane header: what is read, what is refused, and that it never stays among the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.lanes import LaneTag, has_node, is_floating, keeps_apart, parse_tag, split_tag
from tapeproxy.tapes.records import Head


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        (b"p0#1@2", LaneTag("p0", 1, 2)),
        (b"p0/t1/a2:x@y#999999999999999@0", LaneTag("p0/t1/a2:x@y", 999999999999999, 0)),
        (b"p0#1@2~3.1", LaneTag("p0", 1, 2, 3, 1)),
        (b"p0#1@2~3", None),
        (b"p0#1@2~", None),
        (b"p0#1@2 ", None),
        (b"p 0#1@2", None),
        (b"p0#1", None),
        (b"p0@1#2", None),
        (b"#1@2", None),
        (b"p0#-1@2", None),
        (b"p0#+1@2", None),
        (b"p0#1@9999999999999999", None),
        ("p\u00e9#1@2".encode(), None),
        (b"p" * 201 + b"#1@2", None),
        (b"p0#\xd9\xa1@2", None),
        (b"", None),
    ],
)
def test_a_tag(value: bytes, tag: LaneTag | None) -> None:
    assert parse_tag(value) == tag


@given(st.binary())
def test_any_bytes_are_a_tag_or_none(value: bytes) -> None:
    tag = parse_tag(value)
    assert tag is None or f"{tag.lane}#".encode() == value[: len(tag.lane) + 1]


def test_the_first_of_several_counts_and_all_are_taken_out() -> None:
    headers = ((b"a", b"1"), (b"X-Tapeproxy-Lane", b"p0#1@2"), (b"x-tapeproxy-lane", b"p9#9@9"), (b"A", b"2"))
    assert split_tag(headers) == (LaneTag("p0", 1, 2), ((b"a", b"1"), (b"A", b"2")))
    assert split_tag(headers[:1]) == (None, headers[:1])


@pytest.mark.parametrize(
    ("lane", "floats"),
    [
        *[("m", False), ("m/t0/a1", False), ("?p5/t0", True), ("", True), ("m/i:json", True)],
        *[("m/js", True), ("m/p0/js/a3.1", True), ("m/js/p0", True)],
    ],
)
def test_nobody_knows_what_some_lanes_learned(lane: str, floats: bool) -> None:
    assert is_floating(lane) is floats


def test_tapes_from_before_had_no_shim_in_node() -> None:
    assert has_node(Head(rules={"node": 1}))
    assert keeps_apart(Head(rules={"apart": 1}))
    assert not has_node(Head(rules={"edges": 1}))
    assert not keeps_apart(Head(rules={"edges": 1}))
