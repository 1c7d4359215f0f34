"""How answers travel: chunk boundaries, compression, cuts and resets, as a raw client hears them."""

import gzip
import json
import socket
import zlib
from typing import Any

import httpx
import pytest
from sse_reader import parse_events

from tapeproxy.testing import FakeProvider

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**CHAT, "stream": True}
QUICK = {"gap_ms": [0, 0]}


def heard(entry: dict[str, Any], body: dict[str, Any]) -> tuple[dict[str, str], list[bytes] | bytes]:
    """Head and body as raw bytes until the server closes: a list of chunks when chunked."""
    with FakeProvider({**QUICK, "reply": [entry]}) as provider, connected(provider) as sock:
        content = json.dumps(body).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n"
        sock.sendall(head.encode() + content)
        data = b""
        while piece := sock.recv(65536):
            data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    return headers, chunks_of(rest) if headers.get("transfer-encoding") == "chunked" else rest


def connected(provider: FakeProvider) -> socket.socket:
    return socket.create_connection((provider.host, provider.port))


def chunks_of(data: bytes) -> list[bytes]:
    """The chunks, an empty one last when the body was ended properly."""
    chunks = []
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        chunks.append(data[:length])
        assert data[length : length + 2] == b"\r\n"
        data = data[length + 2 :]
    return chunks


def test_each_event_is_a_chunk_of_its_own() -> None:
    headers, chunks = heard({"text": "one two three four five six"}, STREAM)
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert chunks[-1] == b""
    for chunk in chunks[:-1]:
        assert isinstance(chunk, bytes)
        assert len(parse_events(chunk)) == 1


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_cut_stream_has_so_many_events_and_no_end(count: int) -> None:
    _, chunks = heard({"cut_after": count}, STREAM)
    assert len(chunks) == count
    assert b"" not in chunks


def test_a_cut_body_is_half_there() -> None:
    headers, body = heard({"cut_after": 3}, CHAT)
    assert len(body) == int(headers["content-length"]) // 2


def test_a_compressed_body() -> None:
    headers, body = heard({"gzip": True}, CHAT)
    assert isinstance(body, bytes)
    assert headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(body))["object"] == "chat.completion"


def test_a_compressed_stream_can_be_read_as_it_comes() -> None:
    headers, chunks = heard({"gzip": True, "text": "one two three four"}, STREAM)
    assert headers["content-encoding"] == "gzip"
    reader = zlib.decompressobj(wbits=31)
    decoded = [reader.decompress(chunk) for chunk in chunks if isinstance(chunk, bytes)]
    assert reader.eof
    events = [event for event in decoded if event]
    assert all(len(parse_events(event)) == 1 for event in events)
    assert events[-1] == b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    "entry", [{"reset": True}, {"reset": True, "cut_after": 2}], ids=["before the head", "mid-stream"]
)
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["whole", "stream"])
def test_a_reset(entry: dict[str, Any], body: dict[str, Any]) -> None:
    with pytest.raises(ConnectionResetError):
        heard(entry, body)


def test_pace() -> None:
    """The delay comes before the head, the gaps between events."""
    with FakeProvider({"delay_ms": 30, "gap_ms": [5, 5], "reply": [{"text": "Hello."}]}) as provider:
        with httpx.Client(base_url=provider.url, trust_env=False) as client:
            response = client.post("/v1/chat/completions", json=STREAM)
            response.read()
        assert response.elapsed.total_seconds() >= 0.030 + 4 * 0.005
