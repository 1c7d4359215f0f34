"""Pictures that a call holds can be shown, whatever the provider; what a browser would run or fetch is never one."""

from typing import Any

import pytest

from tapeproxy.tapes.conversation import Answer, Dialect, Media, ToolResult
from tapeproxy.tapes.dialects import anthropic, ollama, openai_chat, openai_responses

PNG = "iVBORw0KGgoAAAANSUhEUg=="
SHOWN = f"data:image/png;base64,{PNG}"


def seen(dialect: Dialect, path: str, body: dict[str, Any]) -> list[str | None]:
    """The pictures of a request, those in results of tools too."""
    asked = dialect.read_request(path, {"model": "m"} | body)
    assert asked is not None
    found: list[str | None] = []
    for part in (part for message in asked.messages for part in message.parts):
        if isinstance(part, Media):
            found.append(part.image)
        elif isinstance(part, ToolResult):
            found += [one.image for one in part.media]
    return found


def chat(url: Any) -> list[str | None]:
    content = [{"type": "image_url", "image_url": {"url": url}}]
    return seen(
        openai_chat.DIALECT, "https://h/v1/chat/completions", {"messages": [{"role": "user", "content": content}]}
    )


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_a_data_url_of_a_picture_is_shown(kind: str) -> None:
    url = f"data:image/{kind};base64,{PNG}"
    assert chat(url) == [url]


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/cat.png",
        "data:image/svg+xml;base64,PHN2Zz4=",
        "data:image/svg+xml,<svg onload=alert(1)>",
        "data:text/html;base64,PHA+",
        f"data:image/png;charset=x;base64,{PNG}",
        f"data:image/png;base64,{PNG}\n",
        'data:image/png;base64,AA" onerror="alert(1)',
        "javascript:alert(1)",
        "",
        7,
    ],
)
def test_anything_else_is_not(url: Any) -> None:
    assert chat(url) == [None]


def test_pictures_of_a_tool() -> None:
    part = [{"type": "image_url", "image_url": {"url": SHOWN}}]
    messages = [{"role": "tool", "tool_call_id": "c", "content": part}]
    assert seen(openai_chat.DIALECT, "https://h/v1/chat/completions", {"messages": messages}) == [SHOWN]


def test_anthropic() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    svg = {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": PNG}}
    away = {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a shot"}, image]}
    body = {"max_tokens": 1, "messages": [{"role": "user", "content": [image, svg, away, result]}]}
    assert seen(anthropic.DIALECT, "https://h/v1/messages", body) == [SHOWN, None, None, SHOWN]


def test_responses() -> None:
    image = {"type": "input_image", "image_url": SHOWN}
    given = [
        {"type": "message", "role": "user", "content": [image]},
        {"type": "computer_call_output", "call_id": "c", "output": [image]},
        {"type": "image_generation_call", "status": "completed", "result": PNG},
        {"type": "image_generation_call", "status": "completed", "result": "UEs="},
    ]
    assert seen(openai_responses.DIALECT, "https://h/v1/responses", {"input": given}) == [SHOWN, SHOWN, SHOWN, None]


def test_a_picture_in_an_answer() -> None:
    item = {"type": "image_generation_call", "id": "ig", "status": "completed", "result": PNG}
    answered = openai_responses.DIALECT.read_answer(Answer(({"object": "response", "output": [item]},), status=200))
    assert answered.message is not None
    assert answered.message.parts == (Media("image", "completed", SHOWN),)


def test_ollama() -> None:
    messages = [{"role": "user", "content": "?", "images": [PNG, "/9j/4AAQ", "AA", 3]}]
    found = seen(ollama.DIALECT, "http://h/api/chat", {"messages": messages})
    assert found == [SHOWN, "data:image/jpeg;base64,/9j/4AAQ", None, None]
