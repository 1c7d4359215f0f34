"""A tape as spans: what the conventions call things, one tree, and nothing that was said unless it is asked for."""

import base64
import functools
import json
from dataclasses import replace
from typing import Any

import agentruns
import orjson
import pytest
from agentruns import HEAD, JSON_TYPE, exchange
from difftapes import MODEL, Ask, get, read, say, streamed
from difftapes import run as run_of
from exporttapes import exported, sample, tapes
from google.protobuf.json_format import ParseDict
from hypothesis import given
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.exports.otlp import export, requests
from tapeproxy.tapes.exports.otlpvalues import attributes
from tapeproxy.tapes.lanes import EDGE_RULES
from tapeproxy.tapes.records import Edge, Exit, Head, Lane, Record, Request, Value

ANTHROPIC = "https://api.anthropic.com/v1/messages"


def document(tape: Tape, *, content: bool = False, lost: list[str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(exported(functools.partial(export, content=content), tape, lost))
    return found


def spans(tape: Tape, *, content: bool = False) -> list[dict[str, Any]]:
    """The spans, with their attributes as plain values."""
    (resource,) = document(tape, content=content)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    return [one | {"attributes": plain(one["attributes"])} for one in scope["spans"]]


def plain(given: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["key"]: value(one["value"]) for one in given}


def value(given: dict[str, Any]) -> Any:
    match given:
        case {"intValue": text}:
            return int(text)
        case {"arrayValue": {"values": items}}:
            return [value(item) for item in items]
        case {"kvlistValue": {"values": pairs}}:
            return plain(pairs)
        case {}:
            return next(iter(given.values()), None)


def named(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (one,) = [one for one in found if one["name"] == name]
    return one


def test_a_streamed_call() -> None:
    one = spans(read(agentruns.chat(1)))[0]
    assert (one["name"], one["kind"], one["status"]) == ("chat gpt-4o", 3, {})
    assert one["attributes"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.model": "gpt-4o-2024",
        "gen_ai.response.time_to_first_chunk": 0.01,
        "gen_ai.usage.input_tokens": 40,
        "gen_ai.usage.output_tokens": 5,
        "server.address": "api.openai.com",
        "server.port": 443,
        "tapeproxy.ending": "complete",
        "tapeproxy.exchange": 1,
    }
    begun = 1_767_323_045_000_000_000
    assert (int(one["startTimeUnixNano"]) - begun, int(one["endTimeUnixNano"]) - begun) == (100_000_000, 151_000_000)


def test_what_was_said_is_only_there_when_it_is_asked_for() -> None:
    tape = read(agentruns.chat(1))
    lost: list[str] = []
    assert "Paris" not in json.dumps(document(tape, lost=lost))
    assert lost == ["left out: what was said to models and tools (--content)"]
    told = spans(tape, content=True)[0]["attributes"]
    assert told["gen_ai.input.messages"] == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Weather?\nIn Paris."}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "name": "weather", "arguments": {"city": "Paris"}, "id": "call_1"}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "response": "18 degrees", "id": "call_1"}]},
    ]
    assert told["gen_ai.output.messages"] == [
        {"role": "assistant", "parts": [{"type": "text", "content": "18 degrees."}]}
    ]


def test_parameters_and_counts() -> None:
    asked = {
        "model": "claude",
        "system": "Be brief.",
        "max_tokens": 9,
        "temperature": 1,
        "top_k": 4,
        "stop_sequences": ["x"],
        "tools": [{"name": "find", "description": "d"}],
        "messages": [{"role": "user", "content": "Hi"}],
    }
    usage = {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 7}
    answer = {
        "id": "msg_1",
        "type": "message",
        "model": "claude-4",
        "role": "assistant",
        "stop_reason": "end_turn",
        "usage": usage,
    }
    answer["content"] = [{"type": "text", "text": "Ho"}]
    tape = run_of(Ask("m", ANTHROPIC, asked, json.dumps(answer).encode(), headers=(JSON_TYPE,)))
    told = spans(tape, content=True)[0]["attributes"]
    assert told["gen_ai.provider.name"] == "anthropic"
    assert told["gen_ai.system_instructions"] == [{"type": "text", "content": "Be brief."}]
    assert told["gen_ai.tool.definitions"] == [{"type": "function", "name": "find"}]
    assert [one["role"] for one in told["gen_ai.input.messages"]] == ["user"]
    assert {name: told.get(f"gen_ai.{name}") for name in COUNTS} == COUNTS


COUNTS = {
    "request.max_tokens": 9,
    "request.temperature": 1.0,
    "request.top_k": 4,
    "request.stop_sequences": ["x"],
    "request.stream": None,
    "response.id": "msg_1",
    "response.model": "claude-4",
    "response.finish_reasons": ["end_turn"],
    "usage.input_tokens": 10,
    "usage.output_tokens": 7,
    "usage.cache_read.input_tokens": 3,
    "usage.cache_write.input_tokens": 2,
}


GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/publishers/google/models/m:generateContent"
CONVERSE = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"
TOLD = {
    "request.max_tokens": 9,
    "request.temperature": 1.0,
    "request.top_p": 0.5,
    "request.stop_sequences": ["x"],
    "usage.input_tokens": 10,
    "usage.output_tokens": 7,
    "usage.cache_read.input_tokens": 3,
    "system_instructions": [{"type": "text", "content": "Be brief."}],
    "tool.definitions": [{"type": "function", "name": "find"}],
    "response.finish_reasons": ["STOP"],
}


@pytest.mark.parametrize(("url", "provider"), [(GEMINI, "gcp.gemini"), (VERTEX, "gcp.vertex_ai")])
def test_a_call_of_gemini(url: str, provider: str) -> None:
    config = {"maxOutputTokens": 9, "temperature": 1, "topP": 0.5, "stopSequences": ["x"]}
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "find"}]}],
        "generationConfig": config | {"responseMimeType": "application/json", "candidateCount": 2},
    }
    usage = {"promptTokenCount": 10, "cachedContentTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
    candidate = {"content": {"parts": [{"text": "Ho"}], "role": "model"}, "finishReason": "STOP"}
    answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-1", "responseId": "r"}
    (one, _) = spans(run_of(Ask("m", url, asked, json.dumps(answer).encode(), headers=(JSON_TYPE,))), content=True)
    told = one["attributes"]
    assert (one["name"], told["gen_ai.provider.name"]) == ("generate_content m", provider)
    assert (told["gen_ai.response.id"], told["gen_ai.response.model"]) == ("r", "m-1")
    assert (told["gen_ai.output.type"], told["gen_ai.request.choice.count"]) == ("json", 2)
    assert told["gen_ai.usage.reasoning.output_tokens"] == 2
    assert [one["role"] for one in told["gen_ai.input.messages"]] == ["user"]
    assert {name: told.get(f"gen_ai.{name}") for name in TOLD} == TOLD


def test_a_call_of_bedrock() -> None:
    asked = {
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
        "system": [{"text": "Be brief."}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "find"}}]},
        "inferenceConfig": {"maxTokens": 9, "temperature": 1, "topP": 0.5, "stopSequences": ["x"]},
    }
    usage = {"inputTokens": 5, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 2, "outputTokens": 7}
    message = {"role": "assistant", "content": [{"text": "Ho"}]}
    answer = json.dumps({"output": {"message": message}, "stopReason": "STOP", "usage": usage}).encode()
    (one, _) = spans(run_of(Ask("m", CONVERSE, asked, answer, headers=(JSON_TYPE,))), content=True)
    told = one["attributes"]
    assert (one["name"], told["gen_ai.provider.name"]) == ("chat m", "aws.bedrock")
    assert told["gen_ai.usage.cache_write.input_tokens"] == 2
    assert {name: told.get(f"gen_ai.{name}") for name in TOLD} == TOLD


def test_embeddings() -> None:
    url = "https://api.mistral.ai/v1/embeddings"
    answer = b'{"model":"e-1","data":[],"usage":{"prompt_tokens":4,"total_tokens":4}}'
    asked = {"model": "e", "input": ["Hi"], "dimensions": 8, "encoding_format": "base64"}
    one = spans(run_of(Ask("m", url, asked, answer, headers=(JSON_TYPE,))), content=True)[0]
    assert one["name"] == "embeddings e"
    told = {name: value for name, value in one["attributes"].items() if name.startswith("gen_ai.")}
    assert told == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "mistral_ai",
        "gen_ai.request.model": "e",
        "gen_ai.embeddings.dimension.count": 8,
        "gen_ai.request.encoding_formats": ["base64"],
        "gen_ai.response.model": "e-1",
        "gen_ai.usage.input_tokens": 4,
    }
    assert spans(run_of(Ask("m", url, {"model": "e"}, b"{}")))[0]["name"] == "POST"


def test_other_requests_and_failures() -> None:
    found = spans(sample())
    weather, missing, refused = found[1:4]
    assert (weather["name"], weather["kind"]) == ("GET", 3)
    assert weather["attributes"]["url.full"] == "http://weather.test:8080/now?city=Paris"
    assert weather["attributes"]["http.response.status_code"] == 200
    assert (missing["attributes"]["error.type"], missing["status"]) == ("404", {"code": 2, "message": "404"})
    assert refused["attributes"]["error.type"] == "connect-error"
    assert refused["attributes"]["tapeproxy.ending"] == "connect-error: connection refused"
    run = found[-1]
    assert (run["name"], run["attributes"]["error.type"], run["attributes"]["process.exit.code"]) == (
        "run agent.py",
        "exit 3",
        3,
    )


ENDINGS: list[tuple[dict[str, Any], str | None]] = [
    ({"how": "upstream-cut"}, "upstream-cut"),
    ({"how": None}, "unfinished"),
    ({"how": "client-gone"}, None),
    ({"status": None, "how": "client-gone"}, "client-gone"),
    ({"status": 503, "how": "reset"}, "503"),
]


@pytest.mark.parametrize(("fields", "error"), ENDINGS)
def test_kinds_of_errors(fields: dict[str, Any], error: str | None) -> None:
    one = spans(read(exchange(1, "https://h.test/", **fields)))[0]
    assert one["attributes"].get("error.type") == error
    assert one["status"] == ({"code": 2, "message": error} if error else {})


def test_a_call_that_broke_off_has_no_reason_to_stop() -> None:
    whole = streamed("m", "When?", "Then")
    records = exchange(
        1, MODEL, method="POST", asked=whole.asked, headers=whole.headers, chunks=whole.stream[:1], how="upstream-cut"
    )
    told = spans(read(records))[0]["attributes"]
    assert told["gen_ai.response.finish_reasons"] == ["error"]
    assert told["error.type"] == "upstream-cut"


def team() -> Tape:
    """A planner, a thread that uses a tool which asks something, and an answer that came of it."""
    head = Head(by=HEAD.by, started_at=HEAD.started_at, argv=HEAD.argv, rules={"edges": EDGE_RULES})
    records: list[Record] = [
        Lane(t=0, id="m", name="planner", asked=0),
        Lane(t=0, id="m/t0", what="thread", name="worker", origin=("m", 0, 0)),
        Lane(t=0, id="m/t0/k0", what="tool call", name="search"),
    ]
    records += exchange(len(records) + 1, "https://h.test/in", chunks=[b"x"], lane="m/t0/k0")
    data = {"call": "m/t0/k0", "args": '{"q":"tides"}', "asked": 0, "began": 10, "ended": 900_000_000}
    records.append(Value(t=5, lane="m/t0", n=0, what="tool", name="search", content=b'["sea"]', data=data))
    records.append(Edge(t=6, what="call", on="m/t0/k0", lane="m/t0", n=0, asked=0))
    records.append(Edge(t=7, what="join", on="m/t0", lane="m", n=0, asked=0, at=(0, 1)))
    records += exchange(len(records) + 1, "https://h.test/after", lane="m")
    records.append(Exit(t=10**10, code=0, duration=10**10))
    return read([replace(one, n=0) if isinstance(one, Request) else one for one in records], head)


def test_lanes_tools_and_agents_are_one_tree() -> None:
    tape = team()
    found = spans(tape, content=True)
    tool, worker = named(found, "execute_tool search"), named(found, "thread worker")
    planner, run = named(found, "invoke_agent planner"), named(found, "run agent.py")
    within, after = (one for one in found if one["name"] == "GET")
    parents = [one.get("parentSpanId") for one in (within, tool, worker, after, planner, run)]
    assert parents == [*(one["spanId"] for one in (tool, worker, planner, planner, run)), None]
    assert (tool["kind"], tool["attributes"]) == (
        1,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": {"q": "tides"},
            "gen_ai.tool.call.result": ["sea"],
        },
    )
    assert planner["attributes"]["gen_ai.agent.name"] == "planner"
    assert [one["spanId"] for one in after["links"]] == [within["spanId"]]
    assert "tides" not in json.dumps(document(tape))


@given(tapes())
def test_any_tape_is_one_trace(tape: Tape) -> None:
    found = spans(tape, content=True)
    ids = [one["spanId"] for one in found]
    assert len(set(ids)) == len(ids)
    assert len({one["traceId"] for one in found}) == 1
    assert sum("parentSpanId" not in one for one in found) == 1
    by_id = {one["spanId"]: one for one in found}
    for one in found:
        assert int(one["startTimeUnixNano"]) <= int(one["endTimeUnixNano"])
        around = by_id[one.get("parentSpanId", one["spanId"])]
        assert int(around["startTimeUnixNano"]) <= int(one["startTimeUnixNano"])
        assert int(one["endTimeUnixNano"]) <= int(around["endTimeUnixNano"])


def test_the_same_tape_has_the_same_ids_and_another_run_others() -> None:
    first = document(sample())
    assert first == document(sample())
    other = read(agentruns.sample(), Head(started_at="2026-01-02T03:04:06Z", argv=HEAD.argv))
    assert spans(other)[0]["traceId"] != spans(sample())[0]["traceId"]


def test_a_collector_gets_it_in_pieces() -> None:
    tape = run_of(*(get("m", str(number)) for number in range(600)))
    made = list(requests(tape, "x", [].append))
    assert [count for count, _ in made] == [256, 256, 89]
    found = [one for _, body in made for one in orjson.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert [one["spanId"] for one in found] == [one["spanId"] for one in spans(tape)]


def test_values_of_any_shape() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    given = {"none": None, "big": 1 << 70, "half": "\ud800", "deep": deep, "nothing": [None], "b": True, "f": 0.5}
    found = {one["key"]: one["value"] for one in attributes(given)}
    assert "none" not in found
    assert found["big"] == {"stringValue": str(1 << 70)}
    assert found["half"] == {"stringValue": "?"}
    assert found["nothing"] == {"arrayValue": {"values": [{}]}}
    assert (found["b"], found["f"]) == ({"boolValue": True}, {"doubleValue": 0.5})
    assert len(orjson.dumps(found["deep"])) < 1000


def test_protobuf_reads_it() -> None:
    for tape in (sample(), team(), run_of(say("m", "Where?", temperature=0.5))):
        made = document(tape, content=True)
        for one in made["resourceSpans"][0]["scopeSpans"][0]["spans"]:  # OTLP has ids in hex, protobuf in base64
            for holder in (one, *one.get("links", [])):
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in holder:
                        holder[name] = base64.b64encode(bytes.fromhex(holder[name])).decode()
        parsed = ParseDict(made, ExportTraceServiceRequest())
        (scope,) = parsed.resource_spans[0].scope_spans
        assert [one.name for one in scope.spans] == [one["name"] for one in spans(tape)]
        assert {len(one.trace_id) for one in scope.spans} == {16}
