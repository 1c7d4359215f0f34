"""Lines of a traced replay are kept small, in order, and nothing in them is believed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.proxy.tracing import TraceLines
from tapeproxy.tapes.flow import Trace
from tapeproxy.tapes.readings import Site

SITE = {"k": "site", "id": "7.0", "what": "uuid.uuid4", "where": ["/app/agent.py:3 in main"], "via": ["openai"]}
HEX = "0c1f9ddd316b414ebd7373877a0386a1"


def read(**fields: Any) -> dict[str, Any]:
    line = {"k": "read", "site": "7.0", "lane": "m", "n": 0, "kind": "uuid", "value": HEX, "ns": None, "off": None}
    return {**line, "clock": 0, "count": 1, **fields}


def taken(*lines: dict[str, Any]) -> TraceLines:
    trace = TraceLines()
    for line in lines:
        trace.take(line, lambda text: text.replace("secret", "[redacted]"))
    return trace


def test_a_read_is_put_together_with_its_place_which_may_be_told_later() -> None:
    trace = taken(read(), SITE, {"k": "hello", "pid": 12})
    (found,) = trace.reads(9, None, None)
    assert found.site == Site("uuid.uuid4", ("/app/agent.py:3 in main",), ("openai",))
    assert (found.values, found.kind, found.lane, found.n, trace.pids) == ((HEX,), "uuid", "m", 0, {12})


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("uuid", HEX, ("uuid", (HEX,))),
        ("uuid", "xyz", ("none", ())),
        ("bytes", "abcd", ("bytes", ("abcd",))),
        ("bytes", "abc", ("none", ())),
        ("int", "-12", ("int", ("-12",))),
        ("int", "1" * 600, ("none", ())),
        ("int", "٣", ("none", ())),
        ("str", "a secret", ("str", ("a [redacted]",))),
        ("list", ["a", 1], ("list", ("a", "1"))),
        ("list", [], ("none", ())),
        ("str", None, ("none", ())),
        ("other", "x", ("none", ())),
    ],
)
def test_values_have_the_form_of_their_kind_or_none(kind: str, value: Any, kept: tuple[str, tuple[str, ...]]) -> None:
    (found,) = taken(SITE, read(kind=kind, value=value)).reads(9, None, None)
    assert (found.kind, found.values) == kept


def test_reads_after_a_request_are_left_out_but_for_those_that_were_counted_before_it() -> None:
    lines = [read(n=0), read(n=1), read(n=1, lane="m/t0"), read(n=2), read(n=0, count=50)]
    trace = taken(SITE, *lines)
    assert [(one.lane, one.n, one.count) for one in trace.reads(2, "m", 1)] == [("m", 0, 1), ("m", 1, 1), ("m", 0, 50)]
    assert len([*trace.reads(2, None, None)]) == 2
    assert len(trace) == 5


def test_the_request_at_which_a_lane_was() -> None:
    trace = taken(SITE, read(n=0), read(n=4, lane="m/t0"), read(n=1))
    assert [trace.requests_at("m", at) for at in range(4)] == [0, 1, 1, 1]
    assert trace.requests_at("m/t9", 0) == 0


values = st.one_of(st.none(), st.integers(), st.text(max_size=40), st.lists(st.text(max_size=3), max_size=3))
names = st.sampled_from(["k", "site", "id", "what", "where", "via", "lane", "n", "kind", "value", "ns", "off", "pid"])
kinds = st.sampled_from(["wall", "int", "uuid", "bytes", "float", "str", "list", "none", "?"])


@given(st.lists(st.tuples(st.dictionaries(names, values), kinds)), st.text(), st.text())
def test_any_line_is_taken_or_ignored(changes: list[tuple[dict[str, Any], str]], taped: str, asked: str) -> None:
    trace = taken(SITE, *({**read(kind=kind), **change, "k": "read"} for change, kind in changes))
    for change, _ in changes:
        trace.take(change, str)
    for source in Trace(trace.reads(99, "m", 3)).sources(taped, asked, "m"):
        assert source.text in asked
