from typing import Any

import pytest

from tapeproxy.tapes.conversation import (
    Answer,
    Answered,
    Asked,
    Media,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from tapeproxy.tapes.dialects.converse import DIALECT

HOST = "https://bedrock-runtime.us-east-1.amazonaws.com"
PATH = f"{HOST}/model/m/converse"
ARN = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx.nova"


@pytest.mark.parametrize(
    ("path", "model"),
    [
        (PATH, "m"),
        (f"{HOST}/model/us.claude%3A0/converse-stream", "us.claude:0"),
        (f"{HOST}/model/{ARN}/converse", "arn:aws:bedrock:us-east-1:1:inference-profile/x.nova"),
    ],
)
def test_the_model_stands_in_the_path(path: str, model: str) -> None:
    body = {"system": [{"text": "be brief"}], "messages": [{"role": "user", "content": [{"text": "hi"}]}]}
    asked = Asked(model, (Message("system", (Text("be brief"),)), Message("user", (Text("hi"),))))
    assert DIALECT.read_request(path, body) == asked


@pytest.mark.parametrize("path", [PATH.replace("converse", "invoke"), PATH.replace("converse", "count-tokens"), PATH])
def test_what_is_no_call(path: str) -> None:
    assert DIALECT.read_request(path, {"messages": "hi"} if path == PATH else {"messages": []}) is None


BLOCKS: list[tuple[dict[str, Any], tuple[Part, ...]]] = [
    ({"text": "a"}, (Text("a"),)),
    ({"cachePoint": {"type": "default"}}, ()),
    ({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}, (Thought("hm"),)),
    ({"reasoningContent": {"redactedContent": "x"}}, (Thought(""),)),
    ({"guardContent": {"text": {"text": "a"}}}, (Text("a"),)),
    ({"citationsContent": {"content": [{"text": "a"}], "citations": []}}, (Text("a"),)),
    ({"toolUse": {"toolUseId": "t", "name": "add", "input": {"a": 1}}}, (ToolCall("add", '{"a":1}', "t"),)),
    (
        {"toolResult": {"toolUseId": "t", "content": [{"text": "3"}, {"json": {"a": 1}}]}},
        (ToolResult('3\n{"a":1}', "t"),),
    ),
    (
        {"toolResult": {"toolUseId": "t", "status": "error", "content": [{"toolResult": {}}]}},
        (ToolResult("[toolResult]", "t", error=True),),
    ),
    (
        {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
        (Media("image", "png 4 characters", "data:image/png;base64,AAAA"),),
    ),
    (
        {"document": {"format": "pdf", "name": "paper", "source": {"s3Location": {"uri": "s3://b/p"}}}},
        (Media("document", "paper pdf s3://b/p"),),
    ),
    ({"sculpture": {}}, (Media("sculpture"),)),
    ({}, (Media("unknown block"),)),
]


@pytest.mark.parametrize(("block", "parts"), BLOCKS)
def test_the_blocks_of_a_message(block: dict[str, Any], parts: tuple[Part, ...]) -> None:
    asked = DIALECT.read_request(PATH, {"messages": [{"role": "user", "content": [block]}]})
    assert asked == Asked("m", (Message("user", parts),))


def test_pictures_that_a_tool_gave() -> None:
    picture = {"image": {"format": "png", "source": {"bytes": "AAAA"}}}
    content = [{"toolResult": {"toolUseId": "t", "content": [picture]}}]
    asked = DIALECT.read_request(PATH, {"messages": [{"role": "user", "content": content}]})
    assert asked is not None
    (result,) = asked.messages[0].parts
    assert isinstance(result, ToolResult)
    assert [one.image for one in result.media] == ["data:image/png;base64,AAAA"]


def test_a_plain_answer_counts_the_whole_prompt() -> None:
    usage = {"inputTokens": 3, "cacheReadInputTokens": 100, "cacheWriteInputTokens": 10, "outputTokens": 2}
    message = {"role": "assistant", "content": [{"text": "4"}]}
    body = {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}
    expected = Answered(
        None, Message("assistant", (Text("4"),)), "end_turn", 113, 2, tokens_cached=100, tokens_written=10
    )
    assert DIALECT.read_answer(Answer((body,))) == expected


def delta(index: int, **given: Any) -> dict[str, Any]:
    return {"contentBlockIndex": index, "delta": given, "p": "abc"}


STREAM: tuple[dict[str, Any], ...] = (
    {"role": "assistant"},
    delta(0, reasoningContent={"text": "h"}),
    delta(0, reasoningContent={"text": "m"}),
    delta(0, reasoningContent={"signature": "s"}),
    {"contentBlockIndex": 0},
    delta(1, text="Hel"),
    delta(1, text="lo"),
    {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t", "name": "add"}}},
    delta(2, toolUse={"input": '{"a":'}),
    delta(2, toolUse={"input": "1}"}),
    {"contentBlockIndex": 2},
    {"stopReason": "tool_use"},
    {"usage": {"inputTokens": 5, "outputTokens": 9}, "metrics": {}},
)


@pytest.mark.parametrize(
    ("events", "parts"),
    [
        (1, ()),
        (2, (Thought("h"),)),
        (6, (Thought("hm"), Text("Hel"))),
        (8, (Thought("hm"), Text("Hello"), ToolCall("add", "", "t"))),
        (9, (Thought("hm"), Text("Hello"), ToolCall("add", '{"a":', "t"))),
        (13, (Thought("hm"), Text("Hello"), ToolCall("add", '{"a":1}', "t"))),
    ],
)
def test_a_stream_put_together_as_far_as_it_came(events: int, parts: tuple[Part, ...]) -> None:
    whole = events == 13
    counts = (5, 9) if whole else (None, None)
    expected = Answered(None, Message("assistant", parts), "tool_use" if whole else None, counts[0], counts[1])
    assert DIALECT.read_answer(Answer(STREAM[:events], streamed=True)) == expected


def test_an_exception_alone_and_in_a_stream() -> None:
    error = {"message": "Too many requests"}
    assert DIALECT.read_answer(Answer((error,))) == Answered(error="Too many requests")
    answered = DIALECT.read_answer(Answer((*STREAM[:6], error), streamed=True))
    assert (answered.error, answered.stop) == ("Too many requests", None)
