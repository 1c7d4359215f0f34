import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import agentruns
import difftapes
import pytest
from difftapes import Ask, get, say, streamed

from tapeproxy.tapes.comparisons import Details, changes, details, gist
from tapeproxy.tapes.sides import Side, both_readings, settle_keys


def sides(ours: Ask, theirs: Ask, *, strict: bool = False) -> tuple[Side, Side]:
    tapes = difftapes.run(ours), difftapes.run(theirs)
    reading = both_readings(*tapes)
    one, other = (Side(tape, reading, strict=strict) for tape in tapes)
    settle_keys(one, other)
    return one, other


def changed(ours: Ask, theirs: Ask, *, strict: bool = False) -> tuple[str, ...]:
    one, other = sides(ours, theirs, strict=strict)
    return changes(one, other, one.events[0], other.events[0])


def told(ours: Ask, theirs: Ask) -> Details:
    one, other = sides(ours, theirs)
    return details(one, other, one.events[0], other.events[0])


def asking(body: Any) -> Ask:
    return replace(say(None, "Hello"), asked=body)


def tools(*ids: str) -> Ask:
    """A turn after two tool calls; `ids` of the two calls, then of the two results."""
    calls = [{"id": one, "function": {"name": "add", "arguments": "{}"}} for one in ids[:2]]
    results = [{"role": "tool", "tool_call_id": one, "content": f"{at}"} for at, one in enumerate(ids[2:])]
    return asking({"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}, *results]})


JSON = (agentruns.JSON_TYPE,)
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"
CONVERSE = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"


def gemini(mark: str, text: str = "hi", answer: str = "Yes.") -> Ask:
    """A turn after a call of a function; `mark` is in all that Gemini makes up anew."""
    call = {"functionCall": {"name": "add", "args": {}, "id": mark}, "thoughtSignature": mark}
    result = {"functionResponse": {"name": "add", "response": {"a": 1}, "id": mark}}
    contents = [{"role": "user", "parts": [{"text": text}]}, {"role": "model", "parts": [call]}, {"parts": [result]}]
    parts = [{"text": answer, "thoughtSignature": mark}, {"functionCall": {"name": "add", "args": {}, "id": mark}}]
    back = {
        "candidates": [{"content": {"parts": parts}, "avgLogprobs": len(mark)}],
        "usageMetadata": {"promptTokenCount": len(mark)},
        "responseId": mark,
        "createTime": mark,
    }
    return Ask("m", GEMINI, {"contents": contents}, json.dumps(back).encode(), headers=JSON)


def converse(mark: str, text: str = "hi", answer: str = "Yes.") -> Ask:
    """The same of Bedrock."""
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": mark}}}
    use = {"toolUse": {"toolUseId": mark, "name": "add", "input": {}}}
    result = {"toolResult": {"toolUseId": mark, "content": [{"text": "1"}]}}
    messages = [
        {"role": "user", "content": [{"text": text}]},
        {"role": "assistant", "content": [thought, use]},
        {"role": "user", "content": [result]},
    ]
    said = {"role": "assistant", "content": [thought, {"text": answer}, use]}
    numbers = {"usage": {"inputTokens": len(mark)}, "metrics": {"latencyMs": len(mark)}}
    back = json.dumps({"output": {"message": said}, "stopReason": "end_turn"} | numbers).encode()
    return Ask("m", CONVERSE, {"messages": messages}, back, headers=JSON)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (get("m", "a"), get("m", "a"), ()),
        (get("m", "a"), get("m", "b"), ("request",)),
        (get("m", "a", "x"), get("m", "a", "y"), ("response",)),
        (get("m", "a", "x"), get("m", "a", "y", status=500), ("status", "response")),
        (get("m", "a", '{"a": 1, "b": 2}', headers=JSON), get("m", "a", '{"b":2,"a":1}', headers=JSON), ()),
        (get("m", "a", headers=((b"Date", b"now"),)), get("m", "a", headers=((b"Date", b"then"),)), ()),
        (get("m", "a", headers=((b"Retry-After", b"1"),)), get("m", "a"), ("response",)),
        (get("m", "a", '{"id": "x1"}', headers=JSON), get("m", "a", '{"id": "x2"}', headers=JSON), ("response",)),
        # Of LLM calls, what the provider makes up is nothing.
        (say("m", "Hi", call_id="c1"), say("m", "Hi", call_id="c22"), ()),
        (say("m", "Hi", answer="Yes."), say("m", "Hi", answer="No."), ("response",)),
        (say("m", "Hi"), say("m", "Ho"), ("request",)),
        (say("m", "Hi", temperature=0), say("m", "Hi", temperature=1), ("request",)),
        (say("m", "Hi", tools=[{"name": "a"}]), say("m", "Hi", tools=[{"name": "a", "strict": True}]), ("request",)),
        (streamed("m", "Hi", "Yes", " sir"), streamed("m", "Hi", "Yes sir", call_id="c2"), ()),
        (streamed("m", "Hi", "Yes", " sir"), streamed("m", "Hi", "Yes", " madam"), ("response",)),
        (
            streamed("m", "Hi", "Yes"),
            replace(streamed("m", "Hi", "Yes"), stream=streamed("m", "", "No").stream[:1]),
            ("response",),
        ),
        # Tool calls have other ids in each run; which result belongs to which call is no matter of names.
        (tools("a1", "a2", "a1", "a2"), tools("b1", "b2", "b1", "b2"), ()),
        (tools("a1", "a2", "a1", "a2"), tools("b1", "b2", "b2", "b1"), ("request",)),
        (tools("a1", "a2", "a1", "a2"), tools("b1", "b1", "b1", "b1"), ("request",)),
        (gemini("a"), gemini("bb"), ()),
        (gemini("a"), gemini("bb", "ho", "No."), ("request", "response")),
        (converse("a"), converse("bb"), ()),
        (converse("a"), converse("bb", "ho", "No."), ("request", "response")),
    ],
)
def test_what_of_an_exchange_is_another(ours: Ask, theirs: Ask, expected: tuple[str, ...]) -> None:
    assert changed(ours, theirs) == expected
    assert changed(theirs, ours) == expected
    assert changed(ours, ours) == changed(theirs, theirs) == ()


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (get("m", "a", headers=((b"Date", b"now"),)), get("m", "a", headers=((b"Date", b"then"),)), ("response",)),
        (say("m", "Hi", call_id="c1"), say("m", "Hi", call_id="c22"), ("response",)),
        (tools("a1", "a2", "a1", "a2"), tools("b1", "b2", "b1", "b2"), ("request",)),
    ],
)
def test_strictly_all_of_it_counts(ours: Ask, theirs: Ask, expected: tuple[str, ...]) -> None:
    assert changed(ours, theirs, strict=True) == expected


def test_ids_in_what_the_model_wrote_are_its_words() -> None:
    def with_input(value: str) -> Ask:
        block = {"type": "tool_use", "id": "t1", "name": "get", "input": {"id": value}}
        body = {"model": "m", "messages": [{"role": "assistant", "content": [block]}]}
        return replace(asking(body), url="https://api.anthropic.com/v1/messages")

    assert changed(with_input("1"), with_input("2")) == ("request",)


def test_a_compressed_answer_is_what_is_in_it() -> None:
    plain = get("m", "a", "text", headers=((b"Content-Type", b"text/plain"),))
    packed = replace(plain, answer=gzip.compress(b"text"), headers=(*plain.headers, (b"Content-Encoding", b"gzip")))
    assert changed(plain, packed) == ()


def test_the_context_is_told_as_messages_and_the_rest_by_path() -> None:
    found = told(say("m", "One", "Two", temperature=0.5), say("m", "One", "New", "Two", temperature=0.9))
    assert [(one.kind, one.asked, one.text) for one in found.context] == [("injected", 1, "New")]
    assert [(one.where, one.taped, one.asked) for one in found.request] == [("body $.temperature", "0.5", "0.9")]
    assert [len(side) for side in found.messages] == [2, 3]
    assert found.response == ()


@pytest.mark.parametrize("made", [gemini, converse])
def test_the_context_is_told_of_every_provider(made: Callable[..., Ask]) -> None:
    found = told(made("a"), made("bb", "ho"))
    assert [(one.kind, one.asked, one.text) for one in found.context if one.asked == 0] == [
        ("changed", 0, "[-hi-]{+ho+}")
    ]
    assert found.request == ()


def test_an_answer_is_told_by_path() -> None:
    found = told(say("m", "Hi", answer="It is noon."), say("m", "Hi", answer="It is dusk.", call_id="c22"))
    assert [(one.where, one.words) for one in found.response] == [
        ("body $.choices[0].message.content", "It is [-noon-]{+dusk+}.")
    ]
    assert not any(one.rule for one in (*found.request, *found.response))


def test_a_stream_is_told_as_what_it_adds_up_to() -> None:
    found = told(streamed("m", "Hi", "It is", " noon."), streamed("m", "Hi", "It is", " du", "sk."))
    assert [(one.where, one.words) for one in found.response] == [("answer $.text", "It is [-noon-]{+dusk+}.")]


def test_a_stream_against_an_error() -> None:
    failed = Ask("m", difftapes.MODEL, status=429, answer=json.dumps({"error": {"message": "slow down"}}).encode())
    failed = replace(failed, asked=streamed("m", "Hi").asked)
    found = told(streamed("m", "Hi", "Yes"), failed)
    assert ("status", "200", "429") in [(one.where, one.taped, one.asked) for one in found.response]
    assert ("answer $.error", None, "slow down") in [(one.where, one.taped, one.asked) for one in found.response]


def test_the_same_has_no_details() -> None:
    found = told(say("m", "Hi"), say("m", "Hi", call_id="c22"))
    assert (found.request, found.response, found.context) == ((), (), ())


@pytest.mark.parametrize("body", [b"\xff\xfe", b"{", b"[" * 2000, b'{"messages": 5}', b'{"messages": [5, null]}'])
def test_whatever_the_bytes_are(body: bytes) -> None:
    ours = Ask("m", difftapes.MODEL, body, body)
    theirs = Ask("m", difftapes.MODEL, body + b" ", body + b"x")
    for one, other in ((ours, theirs), (theirs, ours)):
        assert set(changed(one, other)) <= {"request", "response"}
        told(one, other)


def test_a_url_that_is_none() -> None:
    assert changed(Ask("m", "nonsense"), Ask("m", "other nonsense")) == ("request",)
    assert told(Ask("m", "nonsense"), Ask("m", "rubbish")).request[0].where == "url"


def test_the_gist_is_the_last_message() -> None:
    exchange = difftapes.run(say("m", "One", "Two\n words")).exchanges[0]
    assert gist(exchange) == "user: Two words"
    assert gist(difftapes.run(get("m", "a")).exchanges[0]) == ""
