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
from tapeproxy.tapes.dialects.gemini import DIALECT

HOST = "https://generativelanguage.googleapis.com"
PATH = f"{HOST}/v1beta/models/gemini-2.5-flash:generateContent"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l"
HI: dict[str, Any] = {"role": "user", "parts": [{"text": "hi"}]}


@pytest.mark.parametrize(
    ("path", "model"),
    [
        (PATH, "gemini-2.5-flash"),
        (f"{HOST}/v1/models/m:streamGenerateContent", "m"),
        (f"{HOST}/v1beta/models/m%3AgenerateContent", "m"),
        (f"{HOST}/v1beta/tunedModels/mine-1:generateContent", "mine-1"),
        (f"{VERTEX}/publishers/google/models/gemini-2.5-pro:streamGenerateContent", "gemini-2.5-pro"),
        (f"{VERTEX}/endpoints/123:generateContent", "123"),
    ],
)
@pytest.mark.parametrize("contents", [[HI], HI])
def test_the_model_stands_in_the_path(path: str, model: str, contents: Any) -> None:
    assert DIALECT.read_request(path, {"contents": contents}) == Asked(model, (Message("user", (Text("hi"),)),))


@pytest.mark.parametrize(
    "verb", ["countTokens", "embedContent", "batchEmbedContents", "batchGenerateContent", "predict"]
)
def test_its_neighbours_are_no_calls(verb: str) -> None:
    assert DIALECT.read_request(f"{HOST}/v1beta/models/m:{verb}", {"contents": [HI]}) is None


@pytest.mark.parametrize("path", [PATH, PATH + "/x", f"{HOST}/v1beta/files:generateContent"])
def test_what_is_no_call(path: str) -> None:
    assert DIALECT.read_request(path, {"model": "m", "messages": []}) is None
    assert path == PATH or DIALECT.read_request(path, {"contents": []}) is None


PARTS: list[tuple[Any, tuple[Part, ...]]] = [
    ([{"text": "a"}, {"text": "b"}], (Text("a"), Text("b"))),
    ({"text": "one part need not be in a list"}, (Text("one part need not be in a list"),)),
    ([{"text": "hm", "thought": True, "thoughtSignature": "s"}], (Thought("hm"),)),
    ([{"text": "", "thoughtSignature": "s"}, {"thoughtSignature": "s"}, {}], ()),
    ([{"functionCall": {"name": "add", "args": {"a": 1}}}], (ToolCall("add", '{"a":1}'),)),
    ([{"function_call": {"name": "add", "args": {}, "id": "c1"}}], (ToolCall("add", "{}", "c1"),)),
    (
        [{"functionCall": {"name": "add", "partialArgs": [{"jsonPath": "$.a"}]}}],
        (ToolCall("add", '[{"jsonPath":"$.a"}]'),),
    ),
    (
        [{"functionResponse": {"name": "add", "response": {"result": 3}}}],
        (ToolResult('{"result":3}', "add"),),
    ),
    (
        [{"function_response": {"name": "add", "id": "c1", "response": {"error": "no"}}}],
        (ToolResult('{"error":"no"}', "c1", error=True),),
    ),
    (
        [{"inlineData": {"mimeType": "image/png", "data": "AA-_"}}],
        (Media("image", "image/png 4 characters", "data:image/png;base64,AA+/"),),
    ),
    (
        [{"inline_data": {"mime_type": "audio/wav", "data": "AAAA"}}],
        (Media("audio", "audio/wav 4 characters"),),
    ),
    (
        [{"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}}],
        (Media("file", "application/pdf 4 characters"),),
    ),
    ([{"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v.mp4"}}], (Media("video", "gs://b/v.mp4"),)),
    ([{"file_data": {"file_uri": "gs://b/x"}}], (Media("file", "gs://b/x"),)),
    ([{"executableCode": {"language": "PYTHON", "code": "1 + 1"}}], (ToolCall("executableCode", "1 + 1"),)),
    ([{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}], (ToolResult("2"),)),
    ([{"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "x"}}], (ToolResult("x", error=True),)),
    ([{"sculpture": 1}, 7], (Media("sculpture"),)),
    (None, ()),
]


@pytest.mark.parametrize(("parts", "read"), PARTS)
def test_the_parts_of_a_content(parts: Any, read: tuple[Part, ...]) -> None:
    body = {"contents": [{"role": "user", "parts": parts}]}
    assert DIALECT.read_request(PATH, body) == Asked("gemini-2.5-flash", (Message("user", read),))


def test_pictures_that_a_function_gave() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    response = {"name": "draw", "response": {"ok": True}, "parts": [picture, {"fileData": {"fileUri": "x"}}]}
    asked = DIALECT.read_request(PATH, {"contents": [{"parts": [{"functionResponse": response}]}]})
    assert asked is not None
    (result,) = asked.messages[0].parts
    assert isinstance(result, ToolResult)
    assert [one.image for one in result.media] == ["data:image/png;base64,AAAA"]


@pytest.mark.parametrize("name", ["systemInstruction", "system_instruction"])
def test_the_system_instruction_comes_first(name: str) -> None:
    asked = DIALECT.read_request(PATH, {"contents": [HI], name: {"parts": [{"text": "be brief"}]}})
    assert asked is not None
    assert asked.messages == (Message("system", (Text("be brief"),)), Message("user", (Text("hi"),)))


def event(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"promptTokenCount": 90, "cachedContentTokenCount": 80, "totalTokenCount": 90}
    candidate = {"content": {"role": "model", "parts": [*parts]}, "index": 0} | more
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-1"}


STREAM = (
    event({"text": "h", "thought": True}),
    event({"text": "m", "thought": True}),
    event({"text": "Hel"}),
    event({"text": "lo"}, {"functionCall": {"name": "add", "args": {"a": 1}}}),
    event({"text": "", "thoughtSignature": "s"}, finishReason="STOP")
    | {
        "usageMetadata": {
            "promptTokenCount": 90,
            "cachedContentTokenCount": 80,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 4,
        }
    },
)
SAID = (Thought("hm"), Text("Hello"), ToolCall("add", '{"a":1}'))


@pytest.mark.parametrize(("events", "parts"), [(1, (Thought("h"),)), (3, (Thought("hm"), Text("Hel"))), (5, SAID)])
def test_a_stream_put_together_as_far_as_it_came(events: int, parts: tuple[Part, ...]) -> None:
    stop, out = ("STOP", 9) if events == 5 else (None, 0)
    expected = Answered("m-1", Message("model", parts), stop, 90, out, tokens_cached=80)
    assert DIALECT.read_answer(Answer(STREAM[:events], streamed=True)) == expected


def test_a_plain_answer_has_its_parts_as_they_are() -> None:
    answered = DIALECT.read_answer(Answer((event({"text": "a"}, {"text": "b"}, finishReason="MAX_TOKENS"),)))
    assert answered.message == Message("model", (Text("a"), Text("b")))
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "x"}]}}]}
    assert DIALECT.read_answer(Answer((other,))) == Answered()


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {"promptTokenCount": 10, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 17},
            (15, 2),
        ),
        ({"promptTokenCount": 10, "thoughtsTokenCount": 7}, (10, 7)),
        ({"promptTokenCount": 10, "totalTokenCount": 10}, (10, 0)),
        ({"promptTokenCount": 10}, (10, None)),
        ({}, (None, None)),
    ],
)
def test_tokens(usage: dict[str, Any], counts: tuple[int | None, int | None]) -> None:
    answered = DIALECT.read_answer(Answer(({"usageMetadata": usage},)))
    assert (answered.tokens_in, answered.tokens_out) == counts


def test_what_was_refused() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m-1"}
    assert DIALECT.read_answer(Answer((blocked,))) == Answered("m-1", None, "SAFETY")
    error = {"error": {"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"}}
    assert DIALECT.read_answer(Answer((error,), streamed=True)) == Answered(error="Resource has been exhausted")
