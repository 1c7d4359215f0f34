"""The events of a stream are those that the parsers of events find, and each can be changed alone."""

import base64
import json

import pytest
from editsamples import frame
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeproxy.tapes.calls import aws_payloads
from tapeproxy.tapes.eventtexts import read_events
from tapeproxy.tapes.splicing import apply
from tapeproxy.tapes.sse import parse_events, split_json_lines

SSE = ((b"content-type", b"text/event-stream"),)
NDJSON = ((b"content-type", b"application/x-ndjson"),)
JSON = ((b"content-type", b"application/json"),)
AWS = ((b"content-type", b"application/vnd.amazon.eventstream"),)
ENDS = st.sampled_from(["\n", "\r", "\r\n"])
LINES = st.sampled_from(
    ["data: a", "data:b", "data", "data:", "data:  c", "event: x", ": c", "id: 1", "", "", "dat: n"]
)


def texts(body: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> list[bytes]:
    found = read_events(body, headers)
    return [] if found is None else [event.text for event in found.events]


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.booleans(), st.booleans())
def test_the_events_are_those_of_the_parser(lines: list[tuple[str, str]], bom: bool, cut: bool) -> None:
    body = (b"\xef\xbb\xbf" if bom else b"") + "".join(line + end for line, end in lines).encode()
    body = body[:-1] if cut else body
    assert texts(body, SSE) == [event.data.encode() for event in parse_events(body)]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(LINES, ENDS), min_size=1, max_size=12), st.integers(0, 5), st.sampled_from([b"n", b"", b"p\nq"])
)
def test_an_event_gets_another_text(lines: list[tuple[str, str]], number: int, new: bytes) -> None:
    body = "".join(line + end for line, end in lines).encode()
    found = read_events(body, SSE)
    if found is None or number >= len(found.events):
        return
    before = texts(body, SSE)
    assert texts(apply(body, found.edits({number: new})), SSE) == [*before[:number], new, *before[number + 1 :]]
    assert texts(apply(body, found.edits({number: None})), SSE) == [*before[:number], *before[number + 1 :]]


@pytest.mark.parametrize("body", [b'{"a":1}\n{"b":2}\n', b'{"a":1}\r\n\n  \n{"b":2}', b'{"a":1}\n{"b"'])
def test_json_lines(body: bytes) -> None:
    assert texts(body, NDJSON) == split_json_lines(body)
    found = read_events(body, NDJSON)
    assert found is not None
    assert texts(apply(body, found.edits({0: b'{"a":22}'})), NDJSON)[0].strip() == b'{"a":22}'
    assert len(texts(apply(body, found.edits({0: None})), NDJSON)) == len(found.events) - 1


ITEMS = [b'{"a": [1, "]"]}', b'{\n "b": 2\n}', b"{}"]


@pytest.mark.parametrize("between", [b",", b"\n,\r\n"])
@pytest.mark.parametrize("end", [b"]", b"\n]\n", b'\n,{"cut": "}', b""])
def test_items_of_a_list(between: bytes, end: bytes) -> None:
    body = b"[" + between.join(ITEMS) + end
    assert read_events(body, JSON) is None or not body.rstrip().endswith(b"]")
    found = read_events(body, JSON, listed=True)
    if b"cut" in end:
        assert found is None
        return
    assert found is not None and [event.text for event in found.events] == ITEMS
    assert apply(body, found.edits({1: b'{"b":\n3}'})) == body.replace(ITEMS[1], b'{"b":\n3}')
    for gone in ([0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]):
        left = [item for n, item in enumerate(ITEMS) if n not in gone]
        new = apply(body, sorted(found.edits(dict.fromkeys(gone))))
        assert new == b"[" + between.join(left) + end


def test_messages_of_an_aws_event_stream() -> None:
    inner = {"bytes": base64.b64encode(b'{"a":1}').decode(), "p": "x"}
    body = frame(json.dumps(inner).encode()) + frame(b'{"b":2}') + frame(b"")
    assert texts(body, AWS) == list(aws_payloads(body)) == [b'{"a":1}', b'{"b":2}', b""]
    found = read_events(body, AWS)
    assert found is not None
    new = apply(body, found.edits({0: b'{"a":"longer"}', 1: b"{}"}))
    assert list(aws_payloads(new)) == [b'{"a":"longer"}', b"{}", b""]
    assert new.startswith(body[:0]) and b'"p": "x"' in new
    assert new == frame(json.dumps(inner | {"bytes": base64.b64encode(b'{"a":"longer"}').decode()}).encode()) + frame(
        b"{}"
    ) + frame(b"")


@pytest.mark.parametrize(
    ("body", "headers"),
    [(b"{}", ()), (b"hello", ()), (b"", ()), (b"", SSE), (b'{"a":\n1', ()), (b"[1]", ((b"content-type", b"text/x"),))],
)
def test_what_is_no_stream(body: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    assert read_events(body, headers) is None


def test_a_recorder_that_lost_the_content_type() -> None:
    assert texts(b"data: 1\n\n", ()) == [b"1"]
    assert texts(b'{"a":1}\n{"a":2}\n', ()) == [b'{"a":1}', b'{"a":2}']
