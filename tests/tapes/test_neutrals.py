"""Answers with values made neutral: JSON, streams, compressed bodies, JSON inside strings."""

import gzip
import json
from collections.abc import Iterable
from typing import Any

import agentruns
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.exchanges import Exchange, Tape, assemble
from tapeproxy.tapes.neutrals import Value
from tapeproxy.tapes.neutraltapes import Key, NeutralTape, Source
from tapeproxy.tapes.records import Head, Headers

SSE: Headers = ((b"Content-Type", b"text/event-stream"),)
CHAT = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def answered(
    chunks: Iterable[bytes], headers: Headers = (agentruns.JSON_TYPE,), url: str = "http://x.test/", asked: Any = None
) -> Exchange:
    method = "POST" if asked else "GET"
    records = agentruns.exchange(1, url, method=method, asked=asked, headers=headers, chunks=chunks)
    decoder = TapeDecoder("t")
    tape = assemble([*decoder.feed(agentruns.tape_bytes(records))])
    return tape.exchanges[0]


def body(exchange: Exchange) -> Any:
    return json.loads(exchange.response_body)


def keeping(exchange: Exchange, *paths: str, text: str = "") -> Exchange:
    kept = frozenset(Key(Source("exchange", exchange.number), path) for path in paths)
    (made,) = NeutralTape(Tape(Head(), [exchange]), text).keeping(kept).exchanges
    return made


def values(exchange: Exchange) -> list[Value]:
    return [one.value for one in NeutralTape(Tape(Head(), [exchange])).values.values()]


def paths(exchange: Exchange) -> list[str]:
    return [value.path for value in values(exchange)]


DATA = {"a": [1, {"b c": "x"}, None, True], "d": {"e": 2.5, "f": "", "g": 0, "h": False}, "i": [], "j": {}}


def test_the_values_of_json_are_its_leaves_that_are_something() -> None:
    exchange = answered([json.dumps(DATA).encode()])
    assert paths(exchange) == ["$.a[0]", '$.a[1]["b c"]', "$.a[3]", "$.d.e"]
    assert body(keeping(exchange)) == {
        "a": [0, {"b c": ""}, None, False],
        "d": {"e": 0.0, "f": "", "g": 0, "h": False},
        "i": [],
        "j": {},
    }
    assert body(keeping(exchange, "$.d.e", "$.a[3]")) == body(keeping(exchange)) | {
        "a": [0, {"b c": ""}, None, True],
        "d": {"e": 2.5, "f": "", "g": 0, "h": False},
    }


def test_with_all_of_them_it_is_the_exchange_itself() -> None:
    exchange = answered([b'{"a" :  1, "b": 12345678901234567890123}'])
    assert keeping(exchange, "$.a", "$.b") is exchange
    assert keeping(exchange, "$.b").response_body == b'{"a":0,"b":12345678901234567890123}'


def test_json_in_a_string_is_looked_into() -> None:
    exchange = answered([json.dumps({"args": json.dumps({"city": "Paris", "days": 3})}).encode()])
    assert paths(exchange) == ["$.args:$.city", "$.args:$.days"]
    assert json.loads(body(keeping(exchange, "$.args:$.city"))["args"]) == {"city": "Paris", "days": 0}


def test_of_a_model_s_answer_the_protocol_stays() -> None:
    message = {
        "role": "assistant",
        "content": "18 degrees",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"id": "7"}'}}],
    }
    answer = {"id": "r", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}
    exchange = answered([json.dumps(answer).encode()], url=CHAT, asked=ASKED)
    assert paths(exchange) == [
        "$.choices[0].message.content",
        "$.choices[0].message.tool_calls[0].function.name",
        "$.choices[0].message.tool_calls[0].function.arguments:$.id",
    ]
    neutral = body(keeping(exchange, text="OK."))
    assert neutral["id"] == "r"
    assert neutral["choices"][0]["message"]["content"] == "OK."
    assert json.loads(neutral["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == {"id": ""}


def streamed() -> Exchange:
    deltas: list[Any] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "18 "}}]},
        {"choices": [{"index": 0, "delta": {"content": "degrees"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"ci'}}]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": 'ty": 1}'}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 4}},
    ]
    return answered(agentruns.sse(*deltas), SSE, CHAT, ASKED | {"stream": True})


def test_of_a_model_s_stream_the_pieces_of_a_text_are_one_value() -> None:
    exchange = streamed()
    found = values(exchange)
    assert [(value.path, value.value) for value in found] == [
        ("$events[*].choices[0].delta.content", "18 degrees"),
        ("$events[*].choices[0].delta.tool_calls[0].function.arguments", '{"city": 1}'),
        ("$events[*].usage.prompt_tokens", 4),
    ]
    for text in ("", "OK."):
        neutral = keeping(exchange, found[2].path, text=text)
        call = read_call(neutral)
        assert call is not None
        assert call.answer is not None
        assert (call.answer.text, call.tokens_in) == (text, 4)
        assert b'"arguments":"{}"' in neutral.response_body
        assert len(neutral.chunks) == len(exchange.chunks)
        assert neutral.chunks[4:] == exchange.chunks[4:], "what is kept is kept to the byte"


def test_events_of_others_have_values_of_their_own() -> None:
    exchange = answered([b'data: {"a": "x"}\n\nda', b'ta: {"a": "y"}\n\n: hi\n\n'], SSE)
    assert paths(exchange) == ["$events[0].a", "$events[1].a"]
    kept = keeping(exchange, "$events[1].a")
    assert [chunk.data for chunk in kept.chunks] == [b'data: {"a":""}\n\nda', b'ta: {"a": "y"}\n\n: hi\n\n']


def test_json_lines() -> None:
    exchange = answered([b'{"a": 1}\n{"a"', b": 2}\n"])
    assert paths(exchange) == ["$events[0].a", "$events[1].a"]
    assert keeping(exchange, "$events[0].a").response_body == b'{"a": 1}\n{"a":0}\n'


def test_compressed_bodies_are_compressed_again() -> None:
    packed = gzip.compress(b'{"a": "x", "b": "y"}')
    exchange = answered([packed[:9], packed[9:]], (agentruns.JSON_TYPE, (b"Content-Encoding", b"gzip")))
    kept = keeping(exchange, "$.b")
    assert gzip.decompress(kept.response_body) == b'{"a":"","b":"y"}'
    assert len(kept.chunks) == 2


@pytest.mark.parametrize(
    ("chunks", "headers", "found"),
    [
        ([b"plain"], ((b"Content-Type", b"text/plain"),), ["body"]),
        ([b"\xff\x00"], (), ["body"]),
        ([b'"one"'], (agentruns.JSON_TYPE,), ["$"]),
        ([b"null"], (agentruns.JSON_TYPE,), []),
        ([], (), []),
        ([gzip.compress(b"cut")[:10]], ((b"Content-Encoding", b"gzip"),), []),
        ([b"\0\0\0"], ((b"Content-Type", b"application/vnd.amazon.eventstream"),), []),
    ],
)
def test_other_bodies(chunks: list[bytes], headers: Headers, found: list[str]) -> None:
    exchange = answered(chunks, headers)
    assert paths(exchange) == found
    if found == ["body"]:
        assert keeping(exchange).response_body == b""
        assert keeping(exchange, "body") is exchange
    if found == ["$"]:
        assert keeping(exchange).response_body == b'""'


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.data())
def test_what_is_kept_is_what_it_was_and_nothing_else_is_left(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value).encode()
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(text) - 1, 1)), max_size=3)))
    exchange = answered([text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)])
    found = values(exchange)
    kept = data.draw(st.sets(st.sampled_from(found), max_size=4)) if found else set[Value]()
    again = values(keeping(exchange, *(one.path for one in kept)))
    assert {(one.path, json.dumps(one.value)) for one in again} == {(one.path, json.dumps(one.value)) for one in kept}
