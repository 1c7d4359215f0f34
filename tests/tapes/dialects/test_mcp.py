"""Calls of MCP, as both transports have them, and the line that `show` prints of each."""

import json
from collections.abc import Sequence
from typing import Any

import agentruns
import pytest

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.dialects.mcp import McpCall, listed_tools, read_mcp, result_pictures
from tapeproxy.tapes.exchanges import Exchange, assemble
from tapeproxy.tapes.records import Record

EVENTS = ((b"Content-Type", b"text/event-stream"),)
JSON = (agentruns.JSON_TYPE,)


def exchange(asked: Any, answer: Sequence[bytes] = (), headers: Any = JSON, **more: Any) -> Exchange:
    records: list[Record] = [agentruns.HEAD]
    records += agentruns.exchange(
        1, "http://w.mcp-stdio.invalid/x", method="POST", asked=asked, headers=headers, chunks=answer, **more
    )
    return assemble(Entry(at, b"", 0, record) for at, record in enumerate(records)).exchanges[0]


def asked(method: str, number: Any = 0, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def said(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7} | fields).encode()


CALL = asked("tools/call", name="weather", arguments={"city": "Paris"})
ARGUMENTS = '{"city":"Paris"}'
TEXT = said(result={"content": [{"type": "text", "text": "18\ndegrees"}, {"type": "image", "data": ""}]})
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'


@pytest.mark.parametrize(
    ("found", "call", "title"),
    [
        (
            exchange(CALL, [TEXT]),
            McpCall("tools/call", "weather", ARGUMENTS, "18\ndegrees\n[image]"),
            'tools/call weather {"city":"Paris"} → 18 degrees [image]',
        ),
        (
            exchange(CALL, [b"event: message\r\ndata: " + PROGRESS + b"\r\n\r\ndata: ", TEXT + b"\r\n\r\n"], EVENTS),
            McpCall("tools/call", "weather", ARGUMENTS, "18\ndegrees\n[image]"),
            'tools/call weather {"city":"Paris"} → 18 degrees [image]',
        ),
        (
            exchange(CALL, [said(result={"content": [], "isError": True})]),
            McpCall("tools/call", "weather", ARGUMENTS, '{"content":[],"isError":true}', error=True),
            'tools/call weather {"city":"Paris"} → error: {"content":[],"isError":true}',
        ),
        (
            exchange(CALL, [said(error={"code": -1, "message": "no such tool"})]),
            McpCall("tools/call", "weather", ARGUMENTS, "no such tool", error=True),
            'tools/call weather {"city":"Paris"} → error: no such tool',
        ),
        (
            exchange(CALL, status=None, how="upstream-cut"),
            McpCall("tools/call", "weather", ARGUMENTS),
            'tools/call weather {"city":"Paris"}',
        ),
        (exchange(asked("tools/list"), [said(result={"tools": []})]), None, "tools/list"),
        (exchange(asked("resources/read", uri="file:///a"), [said(result={"x": "y" * 80})]), None, None),
        (exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}, status=202), None, None),
    ],
)
def test_calls(found: Exchange, call: McpCall | None, title: str | None) -> None:
    read = read_mcp(found)
    assert read is not None
    assert call is None or read == call
    assert title is None or read.title == title
    assert len(read.title) < 200


@pytest.mark.parametrize(
    "found",
    [
        exchange({"jsonrpc": "2.0", "id": 1, "result": {}}),
        exchange({"jsonrpc": "1.0", "method": "m"}),
        exchange({"model": "gpt", "messages": []}),
        exchange(b'"jsonrpc" {'),
        exchange([asked("m")]),
        exchange({"jsonrpc": "2.0", "method": 3}),
    ],
)
def test_what_is_no_call(found: Exchange) -> None:
    assert read_mcp(found) is None
    assert listed_tools(found) == []


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}], ["data:image/png;base64,iVBORw0KGgo="]),
        ([{"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"}], []),
        ([{"type": "image", "data": "<svg>", "mimeType": "image/png"}, {"type": "text", "text": "x"}, 7], []),
        ("content", []),
    ],
)
def test_pictures_of_a_result_are_those_that_a_browser_shows(content: Any, shown: list[str]) -> None:
    assert result_pictures(exchange(CALL, [said(result={"content": content})])) == shown
