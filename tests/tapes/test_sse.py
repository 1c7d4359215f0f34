from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.sse import Event, EventParser, Lines, parse_events, split_json_lines

CASES: dict[str, tuple[bytes, list[Event]]] = {
    "one event": (b"data: hello\n\n", [Event("hello")]),
    "named": (b"event: delta\ndata: {}\n\n", [Event("{}", "delta")]),
    "many data lines": (b"data: a\ndata:b\ndata\ndata:  c\n\n", [Event("a\nb\n\n c")]),
    "CRLF": (b"event: e\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", [Event("1", "e"), Event("2")]),
    "CR": (b"data: 1\rdata: 2\r\rdata: 3\r\r", [Event("1\n2"), Event("3")]),
    "mixed ends": (b"data: 1\r\ndata: 2\rdata: 3\n\r\ndata: 4\n\r", [Event("1\n2\n3"), Event("4")]),
    "comments": (b": OPENROUTER PROCESSING\n\n:\ndata: x\n: between\ndata: y\n\n", [Event("x\ny")]),
    "BOM": (b"\xef\xbb\xbfdata: x\n\ndata: \xef\xbb\xbfy\n\n", [Event("x"), Event("\ufeffy")]),
    "the id stays": (
        b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        [Event("a", id="7"), Event("b", id="7"), Event("c")],
    ),
    "an id with NUL is ignored": (b"id: 1\nid: 2\0\ndata: x\n\n", [Event("x", id="1")]),
    "an id without data counts": (b"id: 9\n\ndata: x\n\n", [Event("x", id="9")]),
    "retry": (b"retry: 1500\ndata: x\n\nretry: 1x\nretry: \xd9\xa1\ndata: y\n\n", [Event("x", retry=1500), Event("y")]),
    "no data, no event": (b"event: ping\n\n\n\ndata: x\n\n", [Event("x")]),
    "empty data is an event": (b"data\n\ndata:\n\n", [Event(""), Event("")]),
    "unknown fields": (b"foo: 1\nDATA: 2\n data: 3\ndata: x\n\n", [Event("x")]),
    "a colon in the value": (b"data:a:b: c\n\n", [Event("a:b: c")]),
    "UTF-8, and what is not": (b"data: \xe2\x82\xac \xff\n\n", [Event("€ \ufffd")]),
    "no blank line at the end": (b"data: 1\n\nevent: e\ndata: 2", [Event("1"), Event("2", "e")]),
    "one line end at the end": (b"data: 1\n\ndata: 2\n", [Event("1"), Event("2")]),
    "nothing": (b"", []),
    "blank lines only": (b"\r\n\n\r", []),
}


def whole(body: bytes) -> Iterable[bytes]:
    return [body]


def byte_by_byte(body: bytes) -> Iterable[bytes]:
    return [body[i : i + 1] for i in range(len(body))]


def with_empty_pieces(body: bytes) -> Iterable[bytes]:
    return [piece for i in range(len(body)) for piece in (b"", body[i : i + 1], b"")]


def run(pieces: Iterable[bytes]) -> list[Event]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    last = parser.finish()
    return events if last is None else [*events, last]


@pytest.mark.parametrize("split", [whole, byte_by_byte, with_empty_pieces])
@pytest.mark.parametrize("case", CASES)
def test_the_standard(case: str, split: Callable[[bytes], Iterable[bytes]]) -> None:
    body, events = CASES[case]
    assert run(split(body)) == events


@pytest.mark.parametrize("case", CASES)
def test_every_truncation_gives_a_prefix_of_the_events_and_at_most_one_cut_event(case: str) -> None:
    body, events = CASES[case]
    for cut in range(len(body)):
        given = EventParser().feed(body[:cut])
        assert given == events[: len(given)]
        assert len(parse_events(body[:cut])) <= len(given) + 1


def test_an_event_is_given_out_at_its_blank_line_and_not_before() -> None:
    parser = EventParser()
    assert [parser.feed(piece) for piece in (b"data: 1\r", b"\n", b"\r", b"\n")] == [[], [], [Event("1")], []]


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data: x", b":c", b"id: 1", b"event: e", b"\xef\xbb\xbf"])),
    st.data(),
)
def test_where_the_bytes_are_split_does_not_matter(parts: list[bytes], data: st.DataObject) -> None:
    body = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert run(pieces) == run([body]) == run(byte_by_byte(body))


@given(st.binary())
def test_any_bytes_are_parsed(body: bytes) -> None:
    assert run([body]) == run(byte_by_byte(body))


def test_json_lines() -> None:
    body = b'{"a": 1}\n\r\n {"b": 2}\r\n\n{"cut": '
    assert split_json_lines(body) == [b'{"a": 1}', b' {"b": 2}\r', b'{"cut": ']
    assert split_json_lines(b"") == split_json_lines(b"\n \r\n") == []


@given(st.binary())
def test_lines_end_at_lf_however_they_are_fed(body: bytes) -> None:
    lines = Lines()
    fed = [line for piece in byte_by_byte(body) for line in lines.feed(piece)]
    assert [*fed, lines.finish()] == body.split(b"\n")
