"""Edits of answers: what they change and what they leave, in every dialect and coding; and what does not fit."""

import json
import re
import zlib
from typing import Any

import pytest
from editsamples import ASKED, STREAMS, URLS, answered, streamed
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeproxy.tapes.answeredits import open_draft
from tapeproxy.tapes.answers import flaw, render
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Text, ToolCall
from tapeproxy.tapes.edits import apply, parse_edit
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.eventstreams import messages
from tapeproxy.tapes.exchanges import Exchange

WHOLE_CALLS = ("ollama", "gemini", "gemini list")
"""Where a call comes whole, and its shape stays."""
CODINGS = ["", "gzip", "br", "zstd"]
TEXTS = ["The ", "sea", " is sal", "ty."]
ARGUMENTS = ['{"ci', 'ty": "', 'Rome"}']
NEWS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def plain(exchange: Exchange) -> bytes:
    assert exchange.response is not None
    decoded = decode(exchange.response_body, exchange.response.headers)
    assert decoded.whole
    return decoded.data


def said(exchange: Exchange) -> str:
    call = read_call(exchange)
    assert call is not None and call.answer is not None
    return call.answer.text


def arguments(exchange: Exchange) -> Any:
    call = read_call(exchange)
    assert call is not None and call.answer is not None
    (found,) = [json.loads(part.arguments) for part in call.answer.parts if isinstance(part, ToolCall)]
    return found


def edited(exchange: Exchange, *edits: str) -> Exchange:
    out = apply(exchange, [parse_edit(edit) for edit in edits])
    assert out.response is not None
    length = dict(out.response.headers).get(b"Content-Length")
    assert length is None or int(length) == len(out.response_body)
    assert all(chunk.data for chunk in out.chunks)
    return out


# --- streams -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("kind", STREAMS)
def test_the_model_says_something_else(kind: str, coding: str) -> None:
    exchange = streamed(kind, TEXTS, coding=coding)
    out = edited(exchange, "text Das Meer ist süß: 🐟.")
    assert said(out) == "Das Meer ist süß: 🐟."
    assert read_call(out).stop == read_call(exchange).stop  # type: ignore[union-attr]  # `said` read them
    assert read_call(out).tokens_out == 9  # type: ignore[union-attr]
    assert [chunk.t for chunk in out.chunks] == [chunk.t for chunk in exchange.chunks]
    before, after = (open_draft(one).events for one in (exchange, out))
    assert before is not None and after is not None
    assert len(before.events) == len(after.events)


@pytest.mark.parametrize("kind", STREAMS)
def test_an_edit_changes_only_the_events_that_carry_the_text(kind: str) -> None:
    exchange = streamed(kind, TEXTS, ARGUMENTS)
    out = edited(exchange, "text Something quite different, and longer.")
    pairs = list(zip(exchange.chunks, out.chunks, strict=True))
    changed = [n for n, (old, new) in enumerate(pairs) if old.data != new.data]
    # The deltas, and where the format repeats it, the text as a whole: done, part done, item done, completed.
    copies = 4 if kind == "openai-responses" else 0
    assert len(changed) == len(TEXTS) + copies
    assert arguments(out) == {"city": "Rome"}


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("old", [["a"], ["", "x", "", "y"], ["one ", "two"], ["日本", "語", "のテキスト"]])
@settings(max_examples=12, deadline=None)
@given(new=NEWS)
def test_a_new_text_reassembles_exactly(kind: str, old: list[str], new: str) -> None:
    exchange = streamed(kind, old, ARGUMENTS)
    out = edited(exchange, f"text {new}")
    assert said(out) == new
    assert arguments(out) == {"city": "Rome"}
    assert len(out.chunks) == len(exchange.chunks)
    if kind in ("bedrock", "converse"):
        body = out.response_body
        assert sum(end - start for start, end in messages(body)) == len(body)
        for start, end in messages(body):
            assert zlib.crc32(body[start : end - 4]) == int.from_bytes(body[end - 4 : end], "big")
            assert zlib.crc32(body[start : start + 8]) == int.from_bytes(body[start + 8 : start + 12], "big")


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9), min_size=1, max_size=6),
    new=NEWS,
    cuts=st.lists(st.integers(1, 400), max_size=6),
    data=st.data(),
)
def test_however_the_stream_was_cut_into_chunks(
    texts: list[str], new: str, cuts: list[int], data: st.DataObject
) -> None:
    """The chunks' boundaries need not be those of events; untouched events are the same byte for byte."""
    kind = data.draw(st.sampled_from(STREAMS))
    whole = streamed(kind, texts, ARGUMENTS)
    body, pieces, at = whole.response_body, [], 0
    for cut in cuts:
        pieces.append(body[at : at + cut])
        at += cut
    pieces.append(body[at:])
    chunks = [type(whole.chunks[0])(n, piece) for n, piece in enumerate(pieces) if piece]
    exchange = Exchange(1, 1, whole.request, whole.response, chunks, end=whole.end)
    out = edited(exchange, f"text {new}")
    assert said(out) == new
    assert out.response_body == edited(whole, f"text {new}").response_body
    assert len(out.chunks) <= len(chunks)


def test_a_text_keeps_its_deltas_in_proportion() -> None:
    out = edited(streamed("openai-chat", ["12", "3456", "78"]), "text abcdefghijklmnop")
    deltas = re.findall(rb'"content": "([a-p]+)"', plain(out))
    assert deltas == [b"abcd", b"efghijkl", b"mnop"]


GEMINI_PATHS = ("$.candidates[0].content.parts[0].text", "$.candidates[0].content.parts[1].functionCall.args")
PATHS = {
    "openai-chat": ("$.choices[0].message.content", "$.choices[0].message.tool_calls[0].function.arguments"),
    "anthropic": ("$.content[0].text", "$.content[1].input"),
    "bedrock": ("$.content[0].text", "$.content[1].input"),
    "openai-responses": ("$.output[0].content[0].text", "$.output[1].arguments"),
    "ollama": ("$.message.content", "$.message.tool_calls[0].function.arguments"),
    "gemini": GEMINI_PATHS,
    "gemini list": GEMINI_PATHS,
    "converse": ("$.output.message.content[0].text", "$.output.message.content[1].toolUse.input"),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_a_path_of_the_assembled_answer(kind: str) -> None:
    text, call = PATHS[kind]
    exchange = streamed(kind, TEXTS, ARGUMENTS)
    assert said(edited(exchange, f"{text}=New")) == "New"
    assert said(edited(exchange, f"{text}+= Really.")) == "The sea is salty. Really."
    assert arguments(edited(exchange, f"{call}.city=Oslo")) == {"city": "Oslo"}
    if kind not in WHOLE_CALLS:
        assert arguments(edited(exchange, call + '={"town":["Oslo",1]}')) == {"town": ["Oslo", 1]}
    out = edited(exchange, f"{text}=New", f"{call}.city=Oslo")
    assert (said(out), arguments(out)) == ("New", {"city": "Oslo"})


@pytest.mark.parametrize(
    ("kind", "edit", "found"),
    [
        ("openai-chat", "$.choices[0].finish_reason=length", b'"finish_reason": "length"'),
        ("openai-chat", "$.usage.completion_tokens=100", b'"completion_tokens": 100'),
        ("anthropic", "$.stop_reason=max_tokens", b'"stop_reason": "max_tokens"'),
        ("anthropic", "$.usage.output_tokens=100", b'"output_tokens": 100'),
        ("openai-responses", "$.status=incomplete", b'"status": "incomplete"'),
        ("openai-responses", "$.output[1].name=peek", b'"name": "peek"'),
        ("ollama", "$.eval_count=100", b'"eval_count": 100'),
        ("gemini", "$.candidates[0].finishReason=SAFETY", b'"finishReason": "SAFETY"'),
        ("gemini list", "$.usageMetadata.candidatesTokenCount=100", b'"candidatesTokenCount": 100'),
        ("converse", "$.stopReason=max_tokens", b'"stopReason": "max_tokens"'),
    ],
)
def test_a_value_of_the_assembled_answer_that_comes_whole(kind: str, edit: str, found: bytes) -> None:
    body = plain(edited(streamed(kind, TEXTS, ARGUMENTS), edit))
    assert found in body
    assert b'"output_tokens": 1}' in body or kind != "anthropic"  # what the first event said of it is another value


def test_every_event_that_repeats_a_value_follows() -> None:
    body = plain(edited(streamed("openai-chat", TEXTS), "$.model=m-2"))
    assert body.count(b'"model": "m-2"') == len(TEXTS) + 3
    assert b"m-1" not in body


def test_a_single_event() -> None:
    exchange = streamed("openai-chat", TEXTS)
    out = edited(exchange, "$events[2].choices[0].delta.content=lake")
    assert said(out) == "The lake is salty."
    same = [a.data == b.data for a, b in zip(exchange.chunks, out.chunks, strict=True)]
    assert same.count(False) == 1 and not same[2]


def test_items_of_a_list_are_taken_out_and_added() -> None:
    exchange = streamed("gemini list", TEXTS)
    assert said(edited(exchange, "delete $events[3]", "delete $events[0]")) == "sea is sal"
    added = edited(exchange, '$events+={"candidates":[{"content":{"parts":[{"text":" Yes."}]}}]}')
    assert said(added) == "The sea is salty. Yes."
    assert len(json.loads(plain(added))) == len(TEXTS) + 1


def test_events_are_taken_out_and_added() -> None:
    exchange = streamed("anthropic", TEXTS)
    assert said(edited(exchange, "delete $events[2]")) == "sea is salty."
    assert len(edited(exchange, "delete $events[2]").chunks) == len(exchange.chunks) - 1
    out = edited(exchange, '$events+={"type":"ping"}')
    assert plain(out).endswith(b'event: ping\ndata: {"type":"ping"}\n\n')
    done = edited(streamed("openai-chat", TEXTS), '$events+={"error":{"message":"no"}}')
    assert plain(done).endswith(b'\n\ndata: {"error":{"message":"no"}}\n\ndata: [DONE]\n\n')
    last = edited(streamed("openai-chat", TEXTS), "$events[7]=[FINISHED]")
    assert plain(last).endswith(b"\n\ndata: [FINISHED]\n\n")
    lines = edited(streamed("ollama", TEXTS), '$events+={"done":true}')
    assert plain(lines).endswith(b'\n{"done":true}\n')


def test_an_event_in_several_lines() -> None:
    body = b': hello\r\nid: 1\r\ndata: {"a":\r\ndata:  1}\r\nid: 2\r\n\r\ndata: x\r\n\r\n'
    exchange = answered(body, "text/event-stream")
    assert plain(edited(exchange, "$events[0].a=2")) == (
        b': hello\r\nid: 1\r\ndata: {"a":\ndata:  2}\r\nid: 2\r\n\r\ndata: x\r\n\r\n'
    )
    assert plain(edited(exchange, '$events[1]="a\\nb"')).endswith(b"data: a\ndata: b\r\n\r\n")


# --- plain bodies --------------------------------------------------------------------------------------------------

CHAT = b"""{"id": "c-1", "n": 12345678901234567890123, "f": 1.00,
 "choices": [{"index": 0, "message": {"role": "assistant", "content": "Rome", "tool_calls":
   [{"id": "t1", "function": {"name": "look", "arguments": "{\\"city\\": \\"Rome\\", \\"n\\": 1}"}}]}}]}"""


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    ("edit", "old", "new"),
    [
        ("$.choices[0].message.content=Oslo", b'"content": "Rome"', b'"content": "Oslo"'),
        ("text Oslo", b'"content": "Rome"', b'"content": "Oslo"'),
        ("$text=Oslo", b'"content": "Rome"', b'"content": "Oslo"'),
        ("$.choices[0].message.content+=!", b'"content": "Rome"', b'"content": "Rome!"'),
        ("$.choices[0].index=1", b'"index": 0', b'"index": 1'),
        ("$.choices[*].index=1", b'"index": 0', b'"index": 1'),
        ("$..index=1", b'"index": 0', b'"index": 1'),
        ("delete $.id", b'"id": "c-1", ', b""),
        ("delete $.choices[0].message.tool_calls[0].id", b'"id": "t1", ', b""),
        ("$.f=null", b"1.00", b"null"),
        ("$.choices+={}", b"}}]}}]}", b"}}]}},{}]}"),
        ("$.choices[0].message.tool_calls[0].function.arguments.n=2", b'\\"n\\": 1}', b'\\"n\\": 2}'),
        (
            '$.choices[0].message.tool_calls[0].function.arguments={"a":1}',
            b'"{\\"city\\": \\"Rome\\", \\"n\\": 1}"',
            b'"{\\"a\\":1}"',
        ),
    ],
)
def test_a_plain_body_changes_there_alone(coding: str, edit: str, old: bytes, new: bytes) -> None:
    exchange = answered(CHAT, url=URLS["openai-chat"], asked=ASKED, coding=coding)
    assert CHAT.count(old) == 1
    assert plain(edited(exchange, edit)) == CHAT.replace(old, new)


def test_chunks_keep_their_boundaries() -> None:
    exchange = answered([b'{"a": "b', b'ar", "c"', b": 1}"])
    out = edited(exchange, "$.c=22", "$.a=f")
    assert [(chunk.t, chunk.data) for chunk in out.chunks] == [(10, b'{"a": "f'), (20, b'", "c"'), (30, b": 22}")]


def test_a_whole_body() -> None:
    exchange = answered([b"one", b"two"], "text/plain", headers=((b"Content-MD5", b"x"), (b"X-A", b"1")))
    out = edited(exchange, "body @four and more")
    assert [chunk.data for chunk in out.chunks] == [b"fou", b"r and more"]
    assert out.response is not None and b"Content-MD5" not in dict(out.response.headers)
    assert dict(out.response.headers)[b"X-A"] == b"1"
    assert plain(edited(exchange, "text four")) == b"four"
    assert edited(exchange, "body @").response_body == b""
    packed = answered(b"onetwo" * 9, "text/plain", coding="gzip")
    assert plain(edited(packed, "body @four")) == b"four"


def test_an_answer_that_broke_off_becomes_whole_with_a_whole_body() -> None:
    exchange = answered(b'{"a": 1', how="upstream-cut")
    out = edited(exchange, 'body @{"a": 1}')
    assert out.end is not None and out.end.how == "complete"
    with pytest.raises(UsageError, match="is not JSON"):
        edited(exchange, "$.a=2")


def test_status_and_headers() -> None:
    exchange = answered(b"{}", headers=((b"Retry-After", b"1"), (b"retry-after", b"2")))
    out = edited(exchange, "status 429", "header retry-after: 7", "$headers.x-one=1", "$headers.x-one+=2")
    assert out.response is not None
    assert (out.response.status, out.response.reason) == (429, b"Too Many Requests")
    assert [h for h in out.response.headers if h[0].lower() not in (b"content-type", b"content-length")] == [
        (b"Retry-After", b"7"),
        (b"x-one", b"1"),
        (b"x-one", b"2"),
    ]
    gone = edited(exchange, "delete $headers['Retry-After']")
    assert gone.response is not None
    assert b"retry-after" not in {name.lower() for name, _ in gone.response.headers}


def test_a_status_without_a_body_and_back() -> None:
    empty = edited(answered(b"{}"), "$status=204")
    assert empty.response is not None and empty.response.framing == "none" and empty.chunks == []
    assert b"Content-Length" not in dict(empty.response.headers)
    back = edited(empty, "status 200", 'body @{"a":1}')
    assert back.response_body == b'{"a":1}' and flaw(back) is None
    bare = edited(empty, "status 200")
    assert flaw(bare) is None and b"".join(part.data for part in render(bare).parts).endswith(
        b"content-length: 0\r\n\r\n"
    )


def test_an_exchange_without_an_answer_gets_one() -> None:
    exchange = answered(b"", how="connect-error")
    exchange.response = None
    out = edited(exchange, "status 200", 'body @{"a":1}', "header content-type: application/json")
    assert out.response is not None and out.end is not None
    assert (out.response.status, out.response_body, out.end.how) == (200, b'{"a":1}', "complete")
    assert flaw(out) is None
    with pytest.raises(UsageError, match=r"there is no answer \(connect-error\)"):
        edited(exchange, "$.a=1")


def test_the_given_exchange_stays_as_it_is() -> None:
    exchange = streamed("anthropic", TEXTS)
    before = exchange.response_body, exchange.response
    edited(exchange, "text other", "status 500")
    assert (exchange.response_body, exchange.response) == before


def test_no_edit_leaves_everything() -> None:
    for kind in STREAMS:
        exchange = streamed(kind, TEXTS, coding="gzip")
        assert apply(exchange, []) == exchange


# --- what does not fit ---------------------------------------------------------------------------------------------

MESSAGE = answered(CHAT, url=URLS["openai-chat"], asked=ASKED)


@pytest.mark.parametrize(
    ("exchange", "edit", "said"),
    [
        (MESSAGE, "$.choices[0].mesage.content=x", r"\$\.choices\[0\] has no 'mesage': .*did you mean .*message\?"),
        (MESSAGE, "$.choices[3].index=1", r"\$\.choices has no item 3: it is a list of 1, \[0\] to \[0\]"),
        (MESSAGE, "$.id.x=1", r"\$\.id has no \.x: it is the text \"c-1\""),
        (MESSAGE, "$.id[0]=1", r"\$\.id has no \[0\]"),
        (MESSAGE, "$.id+=1", r"only a text can be appended"),
        (MESSAGE, "$.f+=1", r"\$\.f is the value 1\.00: only lists and texts"),
        (MESSAGE, "delete $.nothing", r"\$ has no 'nothing': it is an object with id, n, f, choices"),
        (MESSAGE, "delete $", r"whole body cannot be deleted"),
        (MESSAGE, "$..nowhere=1", r"nothing below \$ is called 'nowhere'"),
        (MESSAGE, "$events[0].a=1", r"no stream of events"),
        (answered(b"hello", "text/plain"), "$.a=1", r"the body is not JSON: its body \(text/plain, 5 bytes\)"),
        (answered(b'{"a":1}'), "text x", r"not that of a model"),
        (answered(b"data: x\n\n", "text/event-stream"), "$.a=1", r"a stream of 1 events, not one JSON value"),
        (answered(b"data: x\n\n", "text/event-stream"), "$events[1].a=1", r"there is no event 1: the stream has 1"),
        (answered(b"data: x\n\n", "text/event-stream"), "$events[0].a=1", r"event 0: it is not JSON, but 'x'"),
        (answered(b"data: x\n\n", "text/event-stream"), "$events.a=1", r"events have numbers"),
        (answered(b"data: x\n\n", "text/event-stream"), "delete $events", r"name one"),
        (streamed("openai-chat", [], ARGUMENTS), "text x", r"the answer has no text"),
        (streamed("openai-chat", TEXTS), "$.choices[0].message.content=7", r'only become another text, as "7"'),
        (
            streamed("openai-chat", TEXTS),
            "$.choices[0].message.contents=x",
            r"no place for \$.choices\[0\].message.con",
        ),
        (streamed("anthropic", TEXTS), "delete $.content[0].text", r"cannot be taken out"),
        (streamed("anthropic", TEXTS), "$.content[4].text=x", r"a list of 1"),
        (MESSAGE, "header content-length: 3", r"follows from the body"),
        (MESSAGE, "delete $headers.x-none", r"there is no header x-none: there are content-type, content-length"),
        (answered(b"", method=b"HEAD"), "body @x", r"the answer to a HEAD of status 200 has no body"),
        (answered(b"", status=304), "body @x", r"has no body"),
    ],
)
def test_what_does_not_fit_says_what_is_there(exchange: Exchange, edit: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        edited(exchange, edit)
    assert "exchange 3: " in str(caught.value)


def test_of_two_texts_one_has_to_be_named() -> None:
    body = {"type": "message", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    exchange = answered(json.dumps(body).encode(), url=URLS["anthropic"], asked=ASKED)
    with pytest.raises(UsageError, match=r"2 texts: set one of them, \$\.content\[0\]\.text or \$\.content\[1\]\.text"):
        edited(exchange, "text x")
    call = read_call(edited(exchange, "$.content[1].text=x"))
    assert call is not None and call.answer is not None and call.answer.parts == (Text("a"), Text("x"))


def test_a_damaged_body_is_only_replaced() -> None:
    exchange = answered(b'{"a": 1}' * 40, coding="gzip")
    exchange.chunks.pop()
    with pytest.raises(UsageError, match="cannot be edited: the compressed body was cut"):
        edited(exchange, "$.a=2")
    assert plain(edited(exchange, "body @{}")) == b"{}"


@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=200), kind=st.sampled_from(["text/event-stream", "application/json", "text/x", ""]))
@pytest.mark.parametrize("edit", ["$.a=1", "$events[0].a=1", "text x", "delete $events[0]", "$..a+=x"])
def test_garbage_is_edited_or_refused(edit: str, body: bytes, kind: str) -> None:
    exchange = answered(b'data: {"a":' + body, kind, url=URLS["anthropic"], asked=ASKED)
    try:
        edited(exchange, edit)
    except UsageError as error:
        assert str(error)
