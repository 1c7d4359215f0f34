"""Requests changed on their way out: system prompt, model, any value; what does not fit stays as it was."""

import json
from typing import Any

import pytest

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.edits import misfits, outgoing, parse_edit
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.records import Request

CHAT = "https://api.openai.com/v1/chat/completions"
AZURE = "https://x.openai.azure.com/openai/deployments/gpt-4/chat/completions?api-version=1"
MESSAGES = "https://api.anthropic.com/v1/messages"
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.claude%3A0/invoke"
VERTEX = "https://h/v1/projects/p/models/claude-x:streamRawPredict"
RESPONSES = "https://api.openai.com/v1/responses"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
CONVERSE = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.claude%3A0/converse-stream"
OLLAMA = "http://h/api/chat"
USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "old"}
DEVELOPER = {"role": "developer", "content": "older"}
NEW = {"role": "system", "content": "new"}


def request(url: str, body: Any, coding: str = "") -> Request:
    data = json.dumps(body).encode() if not isinstance(body, bytes) else body
    headers = ((b"Content-Type", b"application/json"),)
    if coding:
        data = encode(data, (coding,))
        headers += ((b"Content-Encoding", coding.encode()),)
    return Request(t=0, method=b"POST", url=url.encode(), body=data, headers=(*headers, (b"Content-Length", b"0")))


def sent(one: Request, *edits: str) -> tuple[str, Any]:
    out = outgoing(one, [parse_edit(edit) for edit in edits])
    assert isinstance(out.body, bytes)
    if out.body != one.body:
        assert dict(out.headers)[b"Content-Length"] == b"%d" % len(out.body)
    return out.url.decode(), json.loads(decode(out.body, out.headers).data)


@pytest.mark.parametrize(
    ("url", "old", "new"),
    [
        (CHAT, {"messages": [SYSTEM, USER]}, {"messages": [NEW, USER]}),
        (CHAT, {"messages": [DEVELOPER, SYSTEM, USER]}, {"messages": [{**DEVELOPER, "content": "new"}, USER]}),
        (CHAT, {"messages": [USER, SYSTEM]}, {"messages": [NEW, USER, SYSTEM]}),
        (CHAT, {"messages": []}, {"messages": [NEW]}),
        (MESSAGES, {"messages": [USER]}, {"messages": [USER], "system": "new"}),
        (MESSAGES, {"system": [{"type": "text", "text": "x"}], "messages": []}, {"system": "new", "messages": []}),
        (RESPONSES, {"input": "hi"}, {"input": "hi", "instructions": "new"}),
        (RESPONSES, {"input": [SYSTEM, USER]}, {"input": [NEW, USER]}),
        (RESPONSES, {"input": [SYSTEM], "instructions": "x"}, {"input": [SYSTEM], "instructions": "new"}),
        (OLLAMA, {"model": "m", "messages": [USER]}, {"model": "m", "messages": [NEW, USER]}),
        (GEMINI, {"contents": []}, {"contents": [], "systemInstruction": {"parts": [{"text": "new"}]}}),
        (
            GEMINI,
            {"contents": [], "system_instruction": {"parts": []}},
            {"contents": [], "system_instruction": {"parts": [{"text": "new"}]}},
        ),
        (CONVERSE, {"messages": [], "system": [{"text": "x"}]}, {"messages": [], "system": [{"text": "new"}]}),
        (OLLAMA.replace("chat", "generate"), {"prompt": "hi"}, {"prompt": "hi", "system": "new"}),
    ],
)
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_another_system_prompt(url: str, old: Any, new: Any, coding: str) -> None:
    assert sent(request(url, old, coding), "system new")[1] == new


@pytest.mark.parametrize(
    ("url", "old", "moved", "new"),
    [
        (CHAT, {"model": "a", "messages": []}, CHAT, {"model": "m:2", "messages": []}),
        (AZURE, {"messages": []}, AZURE.replace("gpt-4", "m%3A2"), {"messages": []}),
        (BEDROCK, {"anthropic_version": "v", "messages": []}, BEDROCK.replace("us.claude%3A0", "m%3A2"), None),
        (VERTEX, {"anthropic_version": "v", "messages": []}, VERTEX.replace("claude-x", "m%3A2"), None),
        (RESPONSES, {"input": ""}, RESPONSES, {"input": "", "model": "m:2"}),
        (GEMINI, {"contents": []}, GEMINI.replace("gemini-2.5-flash", "m%3A2"), None),
        (GEMINI, {"contents": [], "model": "x"}, GEMINI.replace("gemini-2.5-flash", "m%3A2"), None),
        (GEMINI.replace(":s", "%3As"), {"contents": []}, GEMINI.replace("gemini-2.5-flash:s", "m%3A2%3As"), None),
        (CONVERSE, {"messages": []}, CONVERSE.replace("us.claude%3A0", "m%3A2"), None),
    ],
)
def test_another_model(url: str, old: Any, moved: str, new: Any) -> None:
    assert sent(request(url, old), "model m:2") == (moved, new or old)


def test_a_model_of_gemini_by_its_whole_name() -> None:
    moved = GEMINI.replace("2.5-flash", "3-pro")
    assert sent(request(GEMINI, {"contents": []}), "model models/gemini-3-pro") == (moved, {"contents": []})


@pytest.mark.parametrize("name", ["tunedModels/mine", "endpoints/123"])
def test_a_url_that_names_no_model_keeps_what_it_names(name: str) -> None:
    one = request(GEMINI.replace("models/gemini-2.5-flash", name), {"contents": []})
    assert outgoing(one, [parse_edit("model 3:m")]) is one
    (error,) = misfits(one, [parse_edit("model 3:m")])
    assert "its URL names no model that could be another" in str(error)


def test_any_value() -> None:
    body = b'{"model": "a",  "messages": [], "n": 1.00}'
    one = request(CHAT, body)
    out = outgoing(one, map(parse_edit, ["request-set $.temperature=0", "request-delete $.model"]))
    assert out.body == b'{"messages": [], "n": 1.00,"temperature":0}'
    assert one.body == body


@pytest.mark.parametrize("edit", ["request-set $.a=1", "system x", "model x"])
def test_an_edit_of_all_live_calls_passes_by_other_requests(edit: str) -> None:
    one = request("https://search.example/q", {"q": "sea"})
    assert outgoing(one, [parse_edit(edit)]) is one
    assert misfits(one, [parse_edit(edit)]) == []


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("system 3::x", "no request to a model"),
        ("model 3:x", "no request to a model"),
        ("request-set 3:$.b.c=1", r"$ has no 'b': it is an object with q"),
    ],
)
def test_an_edit_of_one_request_that_does_not_fit(edit: str, said: str) -> None:
    one = request("https://search.example/q", {"q": "sea"})
    assert outgoing(one, [parse_edit(edit)]) is one
    (error,) = misfits(one, [parse_edit(edit)])
    assert said in str(error)
    assert outgoing(one, [parse_edit("request-set 3:$.q=lake")]).body == b'{"q": "lake"}'
