"""The real openai SDK against the fake provider, with its strict response validation on."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import BaseModel

from tapeproxy.testing import FakeProvider

USER: ChatCompletionMessageParam = {"role": "user", "content": "What is the weather in Lima?"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA, "strict": True}}
FLAT_TOOL: Any = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True}
QUICK = {"gap_ms": [0, 1]}
SAID = {**QUICK, "reply": [{"text": "It rains — a little."}]}


class Weather(BaseModel):
    city: str
    degrees: int


def client(provider: FakeProvider, **options: Any) -> openai.OpenAI:
    options = {"max_retries": 0, "_strict_response_validation": True, **options}
    transport = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="none", http_client=transport, **options)


def async_client(provider: FakeProvider) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{provider.url}/v1",
        api_key="none",
        max_retries=0,
        _strict_response_validation=True,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    )


@pytest.fixture(params=[False, True], ids=["steady", "nondeterministic"])
def said(request: pytest.FixtureRequest) -> Iterator[FakeProvider]:
    with FakeProvider(SAID, seed=3, nondeterministic=request.param) as provider:
        yield provider


@pytest.fixture
def plain() -> Iterator[FakeProvider]:
    with FakeProvider(QUICK) as provider:
        yield provider


def test_chat(said: FakeProvider) -> None:
    with client(said) as sdk:
        completion = sdk.chat.completions.create(model="gpt-4o", messages=[USER])
    assert completion.choices[0].message.content == "It rains — a little."
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    assert completion._request_id


def test_chat_streamed(said: FakeProvider) -> None:
    with client(said) as sdk:
        options: Any = {"include_usage": True}
        chunks = list(sdk.chat.completions.create(model="gpt-4o", messages=[USER], stream=True, stream_options=options))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "It rains — a little."
    assert chunks[-1].usage
    assert len(chunks) > 4


def test_chat_event_stream(said: FakeProvider) -> None:
    with client(said) as sdk, sdk.chat.completions.stream(model="gpt-4o", messages=[USER]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert kinds == {"chunk", "content.delta", "content.done"}
    assert final.choices[0].message.content == "It rains — a little."


def test_chat_event_stream_of_a_tool_call(plain: FakeProvider) -> None:
    with client(plain) as sdk, sdk.chat.completions.stream(model="m", messages=[USER], tools=[TOOL]) as stream:
        kinds = {event.type for event in stream}
        (call,) = stream.get_final_completion().choices[0].message.tool_calls or []
    assert kinds == {"chunk", "tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"}
    assert call.function.arguments == '{"city": "Lima"}'


def test_chat_async(said: FakeProvider) -> None:
    async def scene() -> list[str]:
        async with async_client(said) as sdk:
            completion = await sdk.chat.completions.create(model="gpt-4o", messages=[USER])
            chunks = await sdk.chat.completions.create(model="gpt-4o", messages=[USER], stream=True)
            streamed = [chunk.choices[0].delta.content or "" async for chunk in chunks]
        return [completion.choices[0].message.content or "", "".join(streamed)]

    assert asyncio.run(scene()) == ["It rains — a little."] * 2


def test_chat_tool_loop(plain: FakeProvider) -> None:
    with client(plain) as sdk:
        first = sdk.chat.completions.create(model="gpt-4o", messages=[USER], tools=[TOOL])
        (call,) = first.choices[0].message.tool_calls or []
        assert call.type == "function"
        assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Lima"})
        assert first.choices[0].finish_reason == "tool_calls"
        history: Any = [USER, first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "12 °C"}]
        second = sdk.chat.completions.create(model="gpt-4o", messages=history, tools=[TOOL])
    assert "12 °C" in (second.choices[0].message.content or "")


def test_chat_structured_output(plain: FakeProvider) -> None:
    with client(plain) as sdk:
        completion = sdk.chat.completions.parse(model="gpt-4o", messages=[USER], response_format=Weather)
    assert completion.choices[0].message.parsed == Weather(city="Lima", degrees=3)


def test_responses(said: FakeProvider) -> None:
    with client(said) as sdk:
        response = sdk.responses.create(model="gpt-5", input="Weather?", instructions="Be brief.")
    assert response.output_text == "It rains — a little."
    assert response.instructions == "Be brief."
    assert response.usage
    assert response.status == "completed"


def test_responses_event_stream(said: FakeProvider) -> None:
    with client(said) as sdk, sdk.responses.stream(model="gpt-5", input="Weather?") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == "It rains — a little."
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"


def test_responses_event_stream_of_a_tool_call(plain: FakeProvider) -> None:
    with client(plain) as sdk, sdk.responses.stream(model="m", input="In Lima?", tools=[FLAT_TOOL]) as stream:
        kinds = {event.type for event in stream}
        (call,) = stream.get_final_response().output
    assert "response.function_call_arguments.done" in kinds
    assert call.type == "function_call"
    assert call.arguments == '{"city": "Lima"}'


def test_responses_async(said: FakeProvider) -> None:
    async def scene() -> list[str]:
        async with async_client(said) as sdk:
            whole = await sdk.responses.create(model="gpt-5", input="Weather?")
            async with sdk.responses.stream(model="gpt-5", input="Weather?") as stream:
                streamed = await stream.get_final_response()
        return [whole.output_text, streamed.output_text]

    assert asyncio.run(scene()) == ["It rains — a little."] * 2


def test_responses_tool_loop(plain: FakeProvider) -> None:
    items: ResponseInputParam = [{"role": "user", "content": "Weather in Lima?"}]
    with client(plain) as sdk:
        first = sdk.responses.create(model="gpt-5", input=items, tools=[FLAT_TOOL])
        (call,) = first.output
        assert call.type == "function_call"
        called: Any = call.to_dict()
        items += [called, {"type": "function_call_output", "call_id": call.call_id, "output": "12 °C"}]
        second = sdk.responses.create(model="gpt-5", input=items, tools=[FLAT_TOOL])
    assert "12 °C" in second.output_text


def test_responses_structured_output(plain: FakeProvider) -> None:
    with client(plain) as sdk:
        response = sdk.responses.parse(model="gpt-5", input="Weather in Lima?", text_format=Weather)
    assert response.output_parsed == Weather(city="Lima", degrees=3)


def test_a_429_is_retried_after_what_it_says() -> None:
    script = {**QUICK, "reply": [{"status": 429, "retry_after": 0.01, "times": 2}, {"text": "At last."}]}
    with FakeProvider(script) as provider, client(provider, max_retries=2) as sdk:
        completion = sdk.chat.completions.create(model="gpt-4o", messages=[USER])
    assert completion.choices[0].message.content == "At last."
    assert [request.header("x-stainless-retry-count") for request in provider.requests] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_errors(status: int, error: type[openai.APIStatusError]) -> None:
    script = {"reply": [{"status": status, "message": "as scripted"}]}
    raised = pytest.raises(error, match="as scripted")
    with FakeProvider(script) as provider, client(provider) as sdk, raised as caught:
        sdk.chat.completions.create(model="gpt-4o", messages=[USER])
    assert caught.value.status_code == status
    assert caught.value.type
    assert caught.value.request_id


@pytest.mark.parametrize("entry", [{"cut_after": 3}, {"cut_after": 3, "reset": True}], ids=["cut", "reset"])
def test_a_stream_that_breaks_is_a_connection_error(entry: dict[str, Any]) -> None:
    with FakeProvider({**QUICK, "reply": [entry]}) as provider, client(provider) as sdk:
        with pytest.raises(openai.APIConnectionError):
            list(sdk.chat.completions.create(model="gpt-4o", messages=[USER], stream=True))
        with pytest.raises(openai.APIConnectionError):
            list(sdk.responses.create(model="gpt-5", input="hi", stream=True))


@pytest.mark.parametrize("entry", [{"reset": True}, {"cut_after": 0}], ids=["reset", "cut"])
def test_an_answer_that_breaks_is_retried(entry: dict[str, Any]) -> None:
    script = {**QUICK, "reply": [{**entry, "times": 1}, {"text": "At last."}]}
    with FakeProvider(script) as provider, client(provider, max_retries=1) as sdk:
        completion = sdk.chat.completions.create(model="gpt-4o", messages=[USER])
    assert completion.choices[0].message.content == "At last."


def test_compressed_answers_are_read() -> None:
    script = {**QUICK, "gzip": True, "reply": [{"text": "Small."}]}
    with FakeProvider(script) as provider, client(provider) as sdk:
        whole = sdk.chat.completions.create(model="gpt-4o", messages=[USER])
        with sdk.responses.stream(model="gpt-5", input="hi") as stream:
            streamed = stream.get_final_response()
    assert (whole.choices[0].message.content, streamed.output_text) == ("Small.", "Small.")


def test_a_refused_request_has_the_providers_words(plain: FakeProvider) -> None:
    bad: Any = {"model": "", "messages": [USER]}
    with client(plain) as sdk, pytest.raises(openai.BadRequestError, match="Missing required parameter: 'model'"):
        sdk.chat.completions.create(**bad)
