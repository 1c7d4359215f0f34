import base64
import json
import zlib
from dataclasses import replace
from typing import Any

import agentruns
import pytest
from awsframes import frame
from difftapes import Ask, get, records, run, say, streamed
from searchcases import ASKS as SEARCHED
from searchcases import SEARCHES

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.records import Clock, Edge, Frame, Lane, Note, Value
from tapeproxy.web.details import details
from tapeproxy.web.overview import MARKS, TICKS, WORDS, labels, outline, ranks
from tapeproxy.web.searching import find

ASKS = (
    say("m", "What is it?", answer="A thing."),
    streamed("m/t0", "And then?", "This", " and", " that."),
    get("m/t0", "a?b=c", '{"x": 1}', status=503),
    get(None, "d", "\u00e9t\u00e9"),
)


def column(document: dict[str, Any], name: str) -> list[Any]:
    return list(document["rows"][name])


def test_an_outline_has_a_row_for_each_exchange_and_parses_no_body() -> None:
    made = outline(run(*ASKS, names={"m/t0": "worker"}), None, "t")
    assert column(made, "number") == [1, 2, 3, 4]
    assert [made["lanes"][at]["id"] for at in column(made, "lane")] == ["m", "m/t0", "m/t0", ""]
    assert column(made, "status") == [200, 200, 503, 200]
    hosts = [made["rows"]["hosts"][at] for at in column(made, "host")]
    assert hosts == ["api.openai.com", "api.openai.com", "service.test", "service.test"]
    assert column(made, "path")[2] == "/a"
    assert column(made, "chunks")[1] == 5
    assert [len(ticks) for ticks in column(made, "ticks")] == [1, 5, 1, 1]
    assert {lane["id"]: lane["name"] for lane in made["lanes"]} == {"": None, "m": None, "m/t0": "worker"}
    assert {lane["id"]: lane["parent"] for lane in made["lanes"]}["m/t0"] == [one["id"] for one in made["lanes"]].index(
        "m"
    )
    assert made["tape"]["recording"]


def test_columns_are_of_one_length_and_hold_microseconds() -> None:
    tape = run(*ASKS)
    rows = outline(tape, None, "t")["rows"]
    assert {len(values) for name, values in rows.items() if name != "hosts"} == {4}
    assert rows["at"] == [one.request.t // 1000 for one in tape.exchanges]


def test_only_some_exchanges() -> None:
    made = outline(run(*ASKS), None, "t", only={4, 2})
    assert column(made, "number") == [2, 4]
    assert len(made["lanes"]) == 3, "the lanes are all there: rows refer to them by their place"


def test_a_long_stream_has_no_more_ticks_than_can_be_seen() -> None:
    tape = run(streamed("m", "?", *["x"] * 2000))
    (ticks,) = column(outline(tape, None, "t"), "ticks")
    assert TICKS / 2 < len(ticks) <= TICKS


def test_labels_tell_of_calls_of_models() -> None:
    found = labels(run(*ASKS).exchanges)
    assert found["number"] == [1, 2]
    assert found["words"] == ["What is it?", "And then?"]
    assert found["said"] == ["A thing.", "This and that."]


def test_labels_tell_of_messages_of_mcp() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look", "arguments": {"q": "x"}}}
    failed = {"jsonrpc": "2.0", "id": 1, "error": {"message": "blind"}}
    asks = (Ask("m", "https://tools.test/mcp", message, json.dumps(failed).encode()), get("m", "x"))
    found = labels(run(*asks).exchanges)
    assert [found[name] for name in ("number", "mcp", "words", "said", "error", "dialect")] == [
        *([1], ["tools/call look"], ['{"q":"x"}'], ["blind"], ["blind"], [None])
    ]


def test_words_are_few() -> None:
    (said,) = labels(run(say("m", "?", answer="word " * 1000)).exchanges)["said"]
    assert len(said) == WORDS
    assert said.endswith("…")


def test_ranks_are_in_causal_order() -> None:
    tape = run(*ASKS)
    causality = Causality.of(tape)
    assert ranks(causality)["number"] == list(causality.order())
    assert ranks(causality)["rank"] == sorted(causality.rank(number) for number in (1, 2, 3, 4))


def read(*more: Any) -> Tape:
    head = agentruns.HEAD.__class__(
        **{name: getattr(agentruns.HEAD, name) for name in ("by", "started_at", "argv")}, rules={"edges": 1}
    )
    return assemble(TapeDecoder("t").feed(agentruns.tape_bytes(records(ASKS, first=more), head)))


def test_edges_join_lanes_of_the_page() -> None:
    made = outline(
        read(
            Lane(t=1, id="m/t0", what="thread", origin=("m", 1, 0)),
            Edge(t=2, what="queue", on="q", lane="m", n=0, asked=1, out=True),
            Edge(t=3, what="queue", on="q", lane="m/t0", n=0, asked=0),
            Edge(t=3, what="queue", on="q", lane="m/gone", n=0, asked=0),
            Edge(t=4, what="join", on="m/t0", lane="m", n=1, asked=1),
        ),
        None,
        "t",
    )
    ids = [lane["id"] for lane in made["lanes"]]
    assert [[what, ids[a], n, ids[b], k] for what, a, n, b, k in made["edges"]] == [
        ["start", "m", 1, "m/t0", 0],
        ["queue", "m", 1, "m/t0", 0],
        ["join", "m/t0", None, "m", 1],
    ]


def test_marks_are_readings_and_notes() -> None:
    made = outline(
        read(
            Note(t=1_000_000, what="bypass", text="a tunnel"),
            Value(t=2_000_000, lane="m", n=0, what="tool", name="look", content=b"1", length=1, digest="ab"),
            Clock(t=3_000_000, lane="m", n=0, ns=5),
            Clock(t=3_000_000, lane="elsewhere", n=0, ns=5),
        ),
        None,
        "t",
    )
    lane = [one["id"] for one in made["lanes"]].index("m")
    assert made["marks"] == [[None, 1000, "note", "a tunnel"], [lane, 2000, "tool", "look"], [lane, 3000, "clock", ""]]


def test_readings_that_get_no_mark_are_counted() -> None:
    tape = read(Note(t=1, what="bypass", text="a tunnel"))
    tape.clocks += [Clock(t=at, lane="m", n=0, ns=at) for at in range(MARKS + 4)]
    made = outline(tape, None, "t")
    assert (len(made["marks"]), made["unmarked"]) == (MARKS, 5)
    assert outline(run(*ASKS), None, "t")["unmarked"] == 0


def test_details_have_the_stream_as_text_and_the_clock() -> None:
    tape = run(*ASKS)
    found = details(tape.exchanges[1], Causality.of(tape))
    assert [piece["text"].startswith("data: ") for piece in found["response"]["pieces"]] == [True] * 5
    assert found["clock"]["m/t0"] == 1


def test_a_character_that_is_cut_by_a_chunk_comes_with_its_last_byte() -> None:
    tape = run(streamed("m", "?"))
    exchange = tape.exchanges[0]
    exchange.chunks[:] = [type(exchange.chunks[0])(1, b"\xc3"), type(exchange.chunks[0])(2, b"\xa9.")]
    assert [piece["text"] for piece in details(exchange)["response"]["pieces"]] == ["", "é."]


def test_a_chunk_that_is_no_text_leaves_the_others_theirs() -> None:
    exchange = run(Ask(None, "https://service.test/d", stream=(b"a", b"\xff" * 600))).exchanges[0]
    first, second = details(exchange)["response"]["pieces"]
    assert first["text"] == "a"
    assert second["size"] == 600
    assert base64.b64decode(second["b64"]) == b"\xff" * 512


def test_a_packed_stream_has_its_text_and_words_chunk_by_chunk() -> None:
    plain = streamed(None, "?", "This", " that.")
    zipper = zlib.compressobj(wbits=31)
    packed = tuple(zipper.compress(piece) + zipper.flush(zlib.Z_SYNC_FLUSH) for piece in plain.stream)
    headers = (*plain.headers, (b"Content-Encoding", b"gzip"))
    exchange = run(replace(plain, stream=packed, headers=headers)).exchanges[0]
    found = details(exchange)["response"]["pieces"]
    assert [piece["text"].encode() for piece in found] == list(plain.stream)
    assert [piece.get("said") for piece in found] == ["This", " that.", None, None]


def test_an_event_stream_of_aws_has_its_messages_where_they_end() -> None:
    inner = json.dumps({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}})
    one = frame(json.dumps({"bytes": base64.b64encode(inner.encode()).decode()}).encode())
    body = one + frame(b'{"x": 1}', {":event-type": "metadata"}) + frame(b"", {})
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude/invoke-with-response-stream"
    asked = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}
    headers = ((b"Content-Type", b"application/vnd.amazon.eventstream"),)
    exchange = run(Ask(None, url, asked, headers=headers, stream=(body[:50], body[50:]))).exchanges[0]
    first, second = details(exchange)["response"]["pieces"]
    assert first["events"] == []
    assert second["events"] == [
        {"name": "chunk", "data": inner},
        {"name": "metadata", "data": '{"x": 1}'},
        {"name": "", "data": ""},
    ]
    assert (first.get("said"), second["said"]) == (None, "Hi")


@pytest.mark.parametrize(("text", "numbers"), SEARCHES)
def test_search_looks_where_people_would_say_that_it_is_said(text: str, numbers: list[int]) -> None:
    assert find(run(*SEARCHED), text) == numbers


def test_search_looks_into_what_passed_on_a_websocket() -> None:
    tape = run(get("m", "x"))
    tape.exchanges[0].frames.append(Frame(t=1, of=1, n=0, to="server", type="text", data=b'{"said": "\\u00fcber"}'))
    assert find(tape, "\u00fcber") == [1]
