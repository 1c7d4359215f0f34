"""From the lines of `tapeproxy mcp` to exchanges, and from exchanges to what is said in a replay. As transcripts."""

import json
from typing import Any

import pytest

from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.exchanges import Exchange, assemble
from tapeproxy.tapes.mcpmessages import read_message
from tapeproxy.tapes.mcpscript import Exit, Script
from tapeproxy.tapes.mcptaping import McpTaping, as_line, event_of, raw_of
from tapeproxy.tapes.records import Head, Record
from tapeproxy.tapes.redaction import Redactor

SECRET = b"sk-proj-AbCdEf0123456789AbCdEf"
LATE = 10**9


class Records:
    """A tape in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = [Head(started_at="2026-01-02T03:04:05Z")]

    def add(self, record: Record) -> int:
        self.records.append(record)
        return len(self.records) - 1

    def exchanges(self) -> list[Exchange]:
        entries = (Entry(at, b"", 0, record) for at, record in enumerate(self.records))
        return list(assemble(entries).exchanges)


class Server:
    """Tells what a server and its client say, line by line."""

    def __init__(self, *, secrets: dict[str, str] | None = None) -> None:
        self.sink = Records()
        self.taping = McpTaping(Redactor(bytes(32), secrets or {}), 0, self.sink)
        self.ns = 0

    def tell(self, what: str, **fields: Any) -> "Server":
        self.ns += 1
        line = {"k": "mcp", "what": what, "server": "w", "session": 1, "ns": self.ns}
        self.taping.take(line | fields, LATE)
        return self

    def client(self, message: Any) -> "Server":
        return self.tell("client", **as_line(message if isinstance(message, bytes) else json.dumps(message).encode()))

    def server(self, message: Any) -> "Server":
        return self.tell("server", **as_line(message if isinstance(message, bytes) else json.dumps(message).encode()))

    def exchanges(self) -> list[Exchange]:
        return self.sink.exchanges()


def call(number: Any, city: str, token: Any = None) -> dict[str, Any]:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return {"id": number, "method": "tools/call", "params": {"arguments": {"city": city}} | meta}


def progress(token: Any) -> dict[str, Any]:
    return {"method": "notifications/progress", "params": {"progressToken": token}}


def result(number: Any, text: str) -> dict[str, Any]:
    return {"id": number, "result": text}


class Client:
    """A client of the replay of a server: what it hears for each message that it sends."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self.script = Script.read(exchanges[0].response_body)
        self._left = exchanges[1:]
        self._sent: dict[str, int] = {}

    def send(self, message: Any, taped: int) -> list[Any]:
        """Send, where the tape's exchange of this number is what is asked."""
        self.script.received += 1
        exchange = next(one for one in self._left if one.number == taped)
        if exchange.response is not None and exchange.response.status == 200:
            asked = read_message(json.dumps(message).encode())
            self.script.answer(asked, dict(exchange.response.headers), exchange.response_body)
        return self.heard()

    def heard(self, *, late: bool = False) -> list[Any]:
        return [json.loads(said) for said in self.script.due(late=late)]


def test_a_session_is_exchanges() -> None:
    server = Server().tell("start", argv=["/usr/bin/python", "w.py", "--root", "/data"])
    server.client(call(1, "Paris")).server(progress(None)).server(result(1, "sunny"))
    server.client({"method": "notifications/x"}).tell("eof").tell("exit", code=0)
    life, asked, told = server.exchanges()
    assert (life.request.url, life.request.body) == (
        b"http://w.mcp-stdio.invalid/",
        b'{"command":"python","arguments":["w.py","--root","/data"]}',
    )
    assert life.end is not None
    assert life.end.how == "complete"
    assert life.response_body == (
        event_of("message", json.dumps(progress(None)).encode(), 1, 1) + event_of("exit", b'{"code": 0}', 3, 3)
    )
    assert asked.request.url == b"http://w.mcp-stdio.invalid/tools/call"
    assert json.loads(asked.request_body) == call(0, "Paris")
    assert json.loads(asked.response_body) == result(1, "sunny")
    assert asked.response is not None
    assert asked.response.headers[1:] == ((b"mcp-stdio-position", b"2 1"), (b"mcp-stdio-id", b"1"))
    assert told.response is not None
    assert (told.response.status, told.response_body) == (202, b"")


def test_two_calls_answered_in_reverse_order_are_so_again() -> None:
    server = Server().tell("start", argv=["w"])
    server.client(call(1, "Paris")).client(call(2, "Oslo")).server(result(2, "snow")).server(result(1, "sun"))
    client = Client(server.exchanges())
    assert client.send(call(8, "Paris"), 2) == []
    assert client.send(call(9, "Oslo"), 3) == [result(9, "snow"), result(8, "sun")]


def test_calls_in_another_order_get_their_own_answers() -> None:
    server = Server().tell("start", argv=["w"])
    server.client(call(1, "Paris", 1)).client(call(2, "Oslo", 2)).server(progress(2)).server(progress(1))
    server.server(result(1, "sun")).server(result(2, "snow"))
    client = Client(server.exchanges())
    assert client.send(call(1, "Oslo", 1), 3) == []
    heard = client.send(call(2, "Paris", 2), 2)
    assert heard == [progress(1), progress(2), result(2, "sun"), result(1, "snow")]


def test_an_answer_does_not_wait_for_ever_for_what_is_not_asked() -> None:
    server = Server().tell("start", argv=["w"])
    server.client(call(1, "Paris")).client(call(2, "Oslo")).server(result(1, "sun"))
    client = Client(server.exchanges())
    assert client.send(call(1, "Paris"), 2) == []
    assert client.script.waits
    assert client.heard(late=True) == [result(1, "sun")]
    assert not client.script.waits


def test_a_servers_own_words_stand_where_they_stood() -> None:
    sampling = {"id": "s1", "method": "sampling/createMessage"}
    server = Server().tell("start", argv=["w"]).server(b"ready\r").server({"method": "a"}).client(call(1, "Paris"))
    server.server(sampling).client(result("s1", "words")).server(result(1, "sun")).tell("exit", signal="SIGKILL")
    exchanges = server.exchanges()
    assert [one.request.url.rpartition(b".invalid")[2] for one in exchanges] == [b"/", b"/tools/call", b"/-/response"]
    client = Client(exchanges)
    assert list(client.script.due()) == [b"ready\r", b'{"method": "a"}']
    assert client.send(call(1, "Paris"), 2) == [sampling]
    assert client.send(result("s1", "words"), 3) == [result(1, "sun")]
    assert client.script.has_ended
    assert client.script.exit == Exit(2, 0, "SIGKILL")


def test_a_call_that_kills_the_server_has_no_answer() -> None:
    server = Server().tell("start", argv=["w"]).client(call(1, "Paris")).tell("exit", code=9)
    life, asked = server.exchanges()
    assert asked.response is None
    assert asked.end is not None
    assert asked.end.how == "upstream-cut"
    client = Client([life, asked])
    assert not client.script.has_ended
    assert client.send(call(1, "Paris"), 2) == []
    assert client.script.has_ended


def test_what_comes_after_the_end_is_left_out_and_what_has_none_gets_one() -> None:
    server = Server().client(b"before").tell("start", argv=["w"]).client(call(1, "Paris"))
    server.taping.finish(LATE)
    server.client(call(2, "Oslo")).tell("start", argv=["w"])
    life, asked = server.exchanges()
    assert life.end is not None
    assert asked.end is not None
    assert server.taping.exchanges == 2


def test_secrets_are_on_no_tape() -> None:
    server = Server(secrets={"KEY": SECRET.decode()}).tell(
        "start", argv=["w", "--api-key", "hunter2hunter2", SECRET.decode()]
    )
    server.client(call(1, SECRET.decode())).server(b"key " + SECRET).server(result(1, f"is {SECRET.decode()}"))
    text = repr(server.sink.records)
    assert SECRET.decode() not in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"server": 1, "session": 1, "ns": 1},
        {"what": "client", "text": 7},
        {"what": "client", "b64": "*"},
        {"what": "odd"},
        {"what": "start", "argv": None},
    ],
)
def test_a_line_of_another_form_is_left_out(line: dict[str, Any]) -> None:
    server = Server().tell("start", argv=["w"])
    before = len(server.sink.records)
    server.taping.take({"k": "mcp", "server": "w", "session": 1, "ns": 1} | line, LATE)
    server.taping.take(line, LATE)
    assert len(server.sink.records) == before


@pytest.mark.parametrize("raw", [b"", b"text", b"\xff\x00\n", "ü".encode()])
def test_lines_keep_their_bytes(raw: bytes) -> None:
    assert raw_of(as_line(raw)) == raw
    assert list(Script.read(event_of("text", raw, 1, 0)).due()) == [raw]


@pytest.mark.parametrize(
    "events", [b"", b"\n\n", b"event: exit\ndata: [", b"event: message-base64\nid: 1 x\ndata: *\n\n"]
)
def test_a_stream_that_is_none_of_ours_says_little(events: bytes) -> None:
    script = Script.read(events)
    assert list(script.due()) == []
    assert script.exit in (None, Exit(0, 0))
