"""The real anthropic SDK against the fake provider, with its strict response validation on."""

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.types import MessageParam
from pydantic import BaseModel

from tapeproxy.testing import FakeProvider

USER: MessageParam = {"role": "user", "content": "What is the weather in Lima?"}
TOOL: Any = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ASK: Any = {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": [USER]}
QUICK = {"gap_ms": [0, 1]}
SAID = {**QUICK, "reply": [{"text": "It rains — a little."}]}


class Weather(BaseModel):
    city: str
    degrees: int


def client(provider: FakeProvider, **options: Any) -> anthropic.Anthropic:
    options = {"max_retries": 0, "_strict_response_validation": True, **options}
    transport = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.Anthropic(base_url=provider.url, api_key="none", http_client=transport, **options)


def async_client(provider: FakeProvider) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=provider.url,
        api_key="none",
        max_retries=0,
        _strict_response_validation=True,
        http_client=anthropic.DefaultAsyncHttpxClient(trust_env=False),
    )


def text_of(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


@pytest.fixture(params=[False, True], ids=["steady", "nondeterministic"])
def said(request: pytest.FixtureRequest) -> Iterator[FakeProvider]:
    with FakeProvider(SAID, seed=3, nondeterministic=request.param) as provider:
        yield provider


@pytest.fixture
def plain() -> Iterator[FakeProvider]:
    with FakeProvider(QUICK) as provider:
        yield provider


def test_message(said: FakeProvider) -> None:
    with client(said) as sdk:
        message = sdk.messages.create(**ASK)
    assert text_of(message) == "It rains — a little."
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 5
    assert message._request_id


def test_raw_stream(said: FakeProvider) -> None:
    with client(said) as sdk:
        kinds = [event.type for event in sdk.messages.create(**ASK, stream=True)]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_event_stream(said: FakeProvider) -> None:
    with client(said) as sdk, sdk.messages.stream(**ASK) as stream:
        pieces = list(stream.text_stream)
        message = stream.get_final_message()
    assert len(pieces) > 1
    assert "".join(pieces) == text_of(message) == "It rains — a little."
    assert message.usage.output_tokens > 1


def test_event_stream_of_a_tool_call(plain: FakeProvider) -> None:
    with client(plain) as sdk, sdk.messages.stream(**ASK, tools=[TOOL]) as stream:
        kinds = {event.type for event in stream}
        (block,) = stream.get_final_message().content
    assert "input_json" in kinds
    assert block.type == "tool_use"
    assert block.input == {"city": "Lima"}


def test_async(said: FakeProvider) -> None:
    async def scene() -> list[str]:
        async with async_client(said) as sdk:
            whole = await sdk.messages.create(**ASK)
            async with sdk.messages.stream(**ASK) as stream:
                streamed = await stream.get_final_text()
        return [text_of(whole), streamed]

    assert asyncio.run(scene()) == ["It rains — a little."] * 2


def test_concurrent_streams(plain: FakeProvider) -> None:
    async def ask(sdk: anthropic.AsyncAnthropic, question: str) -> str:
        given: Any = {**ASK, "messages": [{"role": "user", "content": question}]}
        async with sdk.messages.stream(**given) as stream:
            return await stream.get_final_text()

    async def scene() -> list[str]:
        async with async_client(plain) as sdk:
            return await asyncio.gather(*(ask(sdk, f"Question {n}?") for n in range(8)))

    answers = asyncio.run(scene())
    assert all(f"Question {n}?" in answer for n, answer in enumerate(answers))


def test_tool_loop(plain: FakeProvider) -> None:
    with client(plain) as sdk:
        first = sdk.messages.create(**ASK, tools=[TOOL])
        (block,) = first.content
        assert block.type == "tool_use"
        assert first.stop_reason == "tool_use"
        result: Any = {"type": "tool_result", "tool_use_id": block.id, "content": "12 °C"}
        history: Any = [USER, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = sdk.messages.create(**{**ASK, "messages": history}, tools=[TOOL])
    assert "12 °C" in text_of(second)


def test_structured_output(plain: FakeProvider) -> None:
    with client(plain) as sdk:
        message = sdk.messages.parse(**ASK, output_format=Weather)
    assert message.parsed_output == Weather(city="Lima", degrees=3)


@pytest.mark.parametrize("status", [429, 500, 529])
def test_an_error_is_retried(status: int) -> None:
    script = {**QUICK, "reply": [{"status": status, "retry_after": 0.01, "times": 2}, {"text": "At last."}]}
    with FakeProvider(script) as provider, client(provider, max_retries=2) as sdk:
        assert text_of(sdk.messages.create(**ASK)) == "At last."
    assert [request.header("x-stainless-retry-count") for request in provider.requests] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")],
)
def test_errors(status: int, kind: str) -> None:
    script = {"reply": [{"status": status, "message": "as scripted"}]}
    raised = pytest.raises(anthropic.APIStatusError, match="as scripted")
    with FakeProvider(script) as provider, client(provider) as sdk, raised as caught:
        sdk.messages.create(**ASK)
    assert caught.value.status_code == status
    body: Any = caught.value.body
    assert body["error"]["type"] == kind
    assert caught.value.request_id


def test_a_stream_that_is_cut() -> None:
    """The SDK does not wrap errors in mid-stream: its transport's own error reaches the caller."""
    with FakeProvider({**QUICK, "reply": [{"cut_after": 4}]}) as provider, client(provider) as sdk:
        heard = []
        with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
            for event in sdk.messages.create(**ASK, stream=True):
                heard.append(event.type)
    assert heard == ["message_start", "content_block_start", "content_block_delta"]  # and a ping, which is not shown


@pytest.mark.parametrize("entry", [{"cut_after": 0}, {"reset": True}], ids=["cut", "reset"])
def test_an_answer_that_breaks_is_a_connection_error(entry: dict[str, Any]) -> None:
    raised = pytest.raises(anthropic.APIConnectionError)
    with FakeProvider({"reply": [entry]}) as provider, client(provider) as sdk, raised:
        sdk.messages.create(**ASK)


def test_compressed_answers_are_read() -> None:
    with FakeProvider({**QUICK, "gzip": True, "reply": [{"text": "Small."}]}) as provider, client(provider) as sdk:
        with sdk.messages.stream(**ASK) as stream:
            assert stream.get_final_text() == "Small."
        assert text_of(sdk.messages.create(**ASK)) == "Small."


def test_over_tls(tls: Any) -> None:
    with FakeProvider(SAID, tls=tls.server) as provider:
        transport = anthropic.DefaultHttpxClient(trust_env=False, verify=tls.client)
        with anthropic.Anthropic(base_url=provider.url, api_key="none", http_client=transport) as sdk:
            assert text_of(sdk.messages.create(**ASK)) == "It rains — a little."
