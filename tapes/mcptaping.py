"""What passes between a client and an MCP server on stdio, as the records of exchanges. Knows no pipe and no file.

`tapeproxy mcp` writes each message to a sidecar file before it passes it on; here the lines become records:

- the server's life is one exchange, `POST http://NAME.mcp-stdio.invalid/` with its command line as JSON. Its answer is
  a stream of events: each message that the server sent of its own accord, and how it ended;
- each message of the client's is an exchange. Its answer is the server's, or a 202 where none is due. A request that
  the server never answered has no response.

A message of the server's says where it stood: `NUMBER AFTER`, its number among the server's, and how many messages the
client had sent by then (its closing of stdin counts as one). So a replay can say all again in its place.
"""

import base64
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tapeproxy.tapes.mcpmessages import JSON, Message, canonical, id_key, read_message, url_of
from tapeproxy.tapes.records import Chunks, End, Headers, Json, Record, Request, Response
from tapeproxy.tapes.redaction import Redactor

POSITION: Final = b"mcp-stdio-position"
NUMBER: Final = b"mcp-stdio-id"
TOKEN: Final = b"mcp-stdio-progress"
EVENTS: Final = ((b"content-type", b"text/event-stream"),)
_EMPTY: Final = ((b"content-length", b"0"),)


class Sink(Protocol):
    """Where records go: a tape."""

    def add(self, record: Record) -> int:
        """Write a record; returns its number."""
        ...


@dataclass(slots=True)
class _Asked:
    """A request that waits: `of` is its record, `ids` those that an answer to it may have."""

    of: int
    message: Message
    ids: list[str]


@dataclass(slots=True)
class _Session:
    """The life of one server. `received`: messages of the client's so far; `said`: those of the server's."""

    name: str
    number: int
    of: int
    received: int = 0
    said: int = 0
    waiting: list[_Asked] = field(default_factory=list[_Asked])
    sent: dict[str, int] = field(default_factory=dict[str, int])
    ended: bool = False


class McpTaping:
    """Makes records of the lines that `tapeproxy mcp` writes. `epoch`: the tape's start in nanoseconds since 1970.

    A line is data from a process of the run: one that has another form is left out.
    """

    def __init__(self, redactor: Redactor, epoch: int, sink: Sink) -> None:
        self.exchanges = 0
        self._redactor = redactor
        self._epoch = epoch
        self._sink = sink
        self._sessions: dict[tuple[str, int], _Session] = {}

    def take(self, line: Json, now: int) -> None:
        """Tape a line that was read at `now`. Raises nothing for what is in it."""
        name, number, ns = line.get("server"), line.get("session"), line.get("ns")
        if not (isinstance(name, str) and type(number) is int and type(ns) is int):
            return
        t = min(max(ns - self._epoch, 0), now)
        session = self._sessions.get((name, number))
        if session is None:
            if line.get("what") == "start" and isinstance(argv := line.get("argv"), list):
                self._sessions[name, number] = self._begin(name, number, list(map(str, argv)), t)
            return
        if session.ended:
            return
        raw = raw_of(line)
        match line.get("what"):
            case "client" if raw is not None:
                self._client(session, raw, t)
            case "server" if raw is not None:
                self._server(session, raw, t)
            case "eof":
                session.received += 1
            case "exit":
                self._exit(session, {name: line[name] for name in ("code", "signal") if name in line}, t)
            case _:
                pass

    def finish(self, now: int) -> None:
        """The run is over: what goes on still has no end of its own."""
        for session in self._sessions.values():
            if not session.ended:
                self._end(session, now)

    def _begin(self, name: str, number: int, argv: list[str], t: int) -> _Session:
        body = redacted_command(self._redactor, command_body(tuple(argv)))
        of = self._ask(url_of(name, "", number), body, t)
        self._sink.add(Response(t=t, of=of, status=200, reason=b"OK", headers=EVENTS, framing="chunked"))
        return _Session(name, number, of)

    def _client(self, session: _Session, raw: bytes, t: int) -> None:
        session.received += 1
        message = read_message(raw)
        body = self._redactor.body(JSON, canonical(message, session.sent))
        of = self._ask(url_of(session.name, message.path, session.number), body, t)
        if message.wants_answer:
            ids = list(map(id_key, message.ids))
            session.sent.update(dict.fromkeys(ids, session.received))
            session.waiting.append(_Asked(of, message, ids))
            return
        self._sink.add(Response(t=t, of=of, status=202, reason=b"Accepted", headers=_EMPTY))
        self._sink.add(End(t=t, of=of, how="complete"))

    def _server(self, session: _Session, raw: bytes, t: int) -> None:
        session.said += 1
        message = read_message(raw)
        asked = self._asked(session, message)
        clean = self._redactor.body(JSON, raw)
        if asked is None:
            kind = "text" if message.kind == "text" else "message"
            self._tell(session, kind, clean, t)
            return
        session.waiting.remove(asked)
        headers: Headers = (*JSON, (POSITION, b"%d %d" % (session.said, session.received)))
        if asked.message.kind == "request":
            headers = (*headers, (NUMBER, id_key(asked.message.id).encode()))
            if asked.message.token is not None:
                headers = (*headers, (TOKEN, id_key(asked.message.token).encode()))
        headers = self._redactor.headers(headers)
        self._sink.add(Response(t=t, of=asked.of, status=200, reason=b"OK", headers=headers))
        self._sink.add(Chunks(t=t, of=asked.of, parts=((0, clean),)))
        self._sink.add(End(t=t, of=asked.of, how="complete"))

    def _exit(self, session: _Session, how: Json, t: int) -> None:
        import json

        session.said += 1
        self._tell(session, "exit", json.dumps(how).encode(), t)
        self._end(session, t)

    def _end(self, session: _Session, t: int) -> None:
        for asked in session.waiting:
            self._sink.add(End(t=t, of=asked.of, how="upstream-cut", error="the server did not answer"))
        self._sink.add(End(t=t, of=session.of, how="complete"))
        session.ended = True

    def _tell(self, session: _Session, kind: str, data: bytes, t: int) -> None:
        event = event_of(kind, data, session.said, session.received)
        self._sink.add(Chunks(t=t, of=session.of, parts=((0, event),)))

    def _asked(self, session: _Session, message: Message) -> _Asked | None:
        """The request that a message of the server's answers."""
        if message.kind not in ("response", "batch"):
            return None
        ids = set(map(id_key, message.ids))
        return next((asked for asked in session.waiting if not ids.isdisjoint(asked.ids)), None)

    def _ask(self, url: bytes, body: bytes, t: int) -> int:
        self.exchanges += 1
        return self._sink.add(Request(t=t, method=b"POST", url=url, headers=JSON, body=body))


def command_body(argv: tuple[str, ...]) -> bytes:
    """What is taped, and compared, of a server's command line; where its program lies is of no account."""
    import json

    program = argv[0].replace("\\", "/").rpartition("/")[2] if argv else ""
    text = json.dumps({"command": program, "arguments": argv[1:]}, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def redacted_command(redactor: Redactor, body: bytes) -> bytes:
    """`command_body` redacted as the command line that it is: by the names of its options, too."""
    import json

    try:
        said = json.loads(body)
        words = (said["command"], *said["arguments"])
    except (ValueError, KeyError, TypeError):
        return redactor.body(JSON, body)
    if not all(isinstance(word, str) for word in words):
        return redactor.body(JSON, body)
    return redactor.body(JSON, command_body(redactor.argv(words)))


def event_of(kind: str, data: bytes, number: int, after: int) -> bytes:
    """A message of the server's as an event of its stream; one that would break its line is told in base64."""
    if b"\r" in data or b"\n" in data:
        kind, data = f"{kind}-base64", base64.b64encode(data)
    return b"event: %b\nid: %d %d\ndata: %b\n\n" % (kind.encode(), number, after, data)


def raw_of(line: Json) -> bytes | None:
    """The bytes of a message in a sidecar line."""
    text, coded = line.get("text"), line.get("b64")
    if isinstance(text, str):
        return text.encode(errors="replace")
    if isinstance(coded, str):
        try:
            return base64.b64decode(coded, validate=True)
        except ValueError:
            return None
    return None


def as_line(raw: bytes) -> dict[str, Any]:
    """How a message stands in a sidecar line."""
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(raw).decode()}
