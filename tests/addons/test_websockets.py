"""WebSockets on their way to the tape: what passes is on it before it is passed on, and passes as it came."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import wsproto.events as ws
from authority import Authority
from origin import Call, Gate, Origin
from recording import KEY, Recording, read_all, read_until
from wstalks import ServerEnd, WsClient, accepting, echo

from tapeproxy.tapes.records import Frame
from tapeproxy.tapes.redaction import Redactor

type Make = Callable[..., Recording]
type Said = tuple[str, str, bytes, str | None]

SECRET = "sk-" + "proj-abcdef0123456789xyzxyzAB"


def said(recording: Recording) -> list[Said]:
    """What is on disk of the WebSockets, in the order in which it came: direction, type, data, and what is open."""
    frames = sorted(recording.records(Frame), key=lambda frame: (frame.of, frame.n))
    return [(frame.to, frame.type, frame.data, frame.open) for frame in frames]


@contextmanager
def talking(
    record: Make, origin: Origin, *, deflate: bool = False, subprotocols: tuple[str, ...] = (), **options: object
) -> Iterator[tuple[Recording, WsClient]]:
    """A client that has opened a WebSocket to an origin, through a recording."""
    with origin, record(**options) as recording, recording.tunnel("127.0.0.1", origin.port) as sock:
        client = WsClient(sock, f"127.0.0.1:{origin.port}", "/chat?x=1", deflate=deflate, subprotocols=subprotocols)
        yield recording, client


def test_an_echo_session_over_tls(record: Make, authority: Authority) -> None:
    origin = Origin(accepting(echo), tls=authority.serving("127.0.0.1"))
    with origin, record() as recording:
        with recording.tunnel("127.0.0.1", origin.port, authority.trusting()) as sock:
            client = WsClient(sock, f"127.0.0.1:{origin.port}", "/chat?x=1").accepted()
            client.send("one", "zwölf")
            assert client.texts(4) == ["one", "eno", "zwölf", "flöwz"]
            closing = client.close(4001, "bye")
            assert isinstance(closing, ws.CloseConnection) and (closing.code, closing.reason) == (4001, "bye")
            assert read_all(sock) == b""
        recording.finish()
        recording.join()
        assert not recording.wire.untaped
        assert recording.wire.failures.count == 0
    exchange = recording.exchange()
    assert exchange.request.url == f"https://127.0.0.1:{origin.port}/chat?x=1".encode()
    assert exchange.response is not None and exchange.response.status == 101
    assert exchange.response.framing == "none"
    assert exchange.end is not None and exchange.end.how == "complete"
    assert [(f.to, f.type, f.data, f.code) for f in exchange.frames] == [
        ("server", "text", b"one", None),
        ("server", "text", "zwölf".encode(), None),
        ("client", "text", b"one", None),
        ("client", "text", b"eno", None),
        ("client", "text", "zwölf".encode(), None),
        ("client", "text", "flöwz".encode(), None),
        ("server", "close", b"bye", 4001),
        ("client", "close", b"bye", 4001),
    ]
    assert [frame.n for frame in exchange.frames] == list(range(8))
    assert recording.tape().notes == []


def test_frames_are_passed_on_live_and_as_they_were_sent(record: Make) -> None:
    gate, taped = Gate(), Gate()

    async def talk(end: ServerEnd) -> None:
        await end.say(ws.TextMessage("whole"), ws.TextMessage("first ", message_finished=False), ws.Ping(b"now"))
        await end.call.wait(gate)  # the client has the first half of the message
        assert await end.hear() == ws.Pong(b"now")
        await end.say(ws.TextMessage("second"), ws.BytesMessage(b"\xff\x00"))
        await end.call.wait(taped)
        await end.close(1011)

    with talking(record, Origin(accepting(talk))) as (recording, client):
        client.accepted()
        assert client.next() == ws.TextMessage("whole")
        assert said(recording)[0] == ("client", "text", b"whole", None)
        assert client.next() == ws.TextMessage("first ", message_finished=False)
        assert client.next() == ws.Ping(b"now")
        client.say(ws.Pong(b"now"))
        gate.open()
        assert client.next() == ws.TextMessage("second")
        assert client.next() == ws.BytesMessage(b"\xff\x00")
        assert said(recording) == [
            ("client", "text", b"whole", None),
            ("client", "text", b"first ", "message"),
            ("client", "ping", b"now", None),
            ("server", "pong", b"now", None),
            ("client", "text", b"second", None),
            ("client", "binary", b"\xff\x00", None),
        ]
        taped.open()
        closing = client.next()
        assert isinstance(closing, ws.CloseConnection) and (closing.code, closing.reason) == (1011, "")
        client.say(ws.CloseConnection(1011))
        assert read_all(client.sock) == b""
    assert [frame.code for frame in recording.exchange().frames[-2:]] == [1011, 1011]


def test_compressed_messages_are_taped_in_clear_and_passed_as_they_are(record: Make) -> None:
    with talking(record, Origin(accepting(echo, deflate=True)), deflate=True) as (recording, client):
        client.accepted()
        for _ in range(3):  # each refers to the ones before it
            client.send("over and over and over")
            assert client.texts(2) == ["over and over and over", "revo dna revo dna revo"]
        client.close()
    exchange = recording.exchange()
    assert exchange.response is not None
    assert any(name.lower() == b"sec-websocket-extensions" for name, _ in exchange.response.headers)
    assert [frame.data for frame in exchange.frames if frame.type == "text"].count(b"over and over and over") == 6


def test_a_long_frame_is_taped_in_pieces_that_are_passed_as_they_come(record: Make) -> None:
    size = 3 << 20

    async def talk(end: ServerEnd) -> None:
        await end.say(ws.BytesMessage(bytes(size)))
        await end.close()

    with talking(record, Origin(accepting(talk))) as (recording, client):
        client.accepted()
        got = 0
        while got < size:
            event = client.next()
            assert isinstance(event, ws.BytesMessage)
            got += len(event.data)
            assert sum(len(data) for _, _, data, _ in said(recording)) >= got
        client.next()
        client.say(ws.CloseConnection(1000))
    pieces = [frame for frame in recording.exchange().frames if frame.type == "binary"]
    assert b"".join(frame.data for frame in pieces) == bytes(size)
    assert max(len(frame.data) for frame in pieces) <= 1 << 18
    assert {frame.open for frame in pieces[:-1]} == {"frame"} and pieces[-1].open is None


def test_secrets_in_frames_and_in_the_subprotocol_are_redacted(record: Make) -> None:
    async def talk(end: ServerEnd) -> None:
        for text in (f'{{"delta": "the key is {SECRET[:9]}"}}', f'{{"delta": "{SECRET[9:]}."}}', "x" * 10):
            await end.say(ws.TextMessage(text))
        await end.say(ws.TextMessage(f"{SECRET[:20]}", message_finished=False), ws.TextMessage(SECRET[20:]))
        await end.hear()
        await end.close(1000, f"of {SECRET}")

    redactor = Redactor(KEY, ["correct-horse-battery-staple"])
    offered = ("realtime", f"openai-insecure-api-key.{SECRET}")
    with talking(record, Origin(accepting(talk, "realtime")), subprotocols=offered, redactor=redactor) as (
        recording,
        client,
    ):
        client.accepted()
        texts = client.texts(4)
        assert texts[3] == SECRET  # the agent gets what was sent
        client.send('{"api_key": "correct-horse-battery-staple", "n": 1}')
        client.next()
        client.say(ws.CloseConnection(1000))
    exchange = recording.exchange()
    data = b"".join(frame.data for frame in exchange.frames)
    for piece in (SECRET[9:], SECRET[:20], SECRET[20:], "correct-horse-battery-staple"):
        assert piece.encode() not in data
    (protocol,) = [value for name, value in exchange.request.headers if name.lower() == b"sec-websocket-protocol"]
    assert protocol.startswith(b"realtime, openai-insecure-api-key.") and SECRET.encode() not in protocol
    assert [frame.open for frame in exchange.frames if frame.to == "client"][3:5] == ["message", None]
    assert [len(frame.data) for frame in exchange.frames if frame.to == "client"][3:5] == [20, len(SECRET) - 20]


async def cut(end: ServerEnd) -> None:
    await end.say(ws.TextMessage("last words"))
    end.call.close()


async def reset(end: ServerEnd) -> None:
    await end.say(ws.TextMessage("last words"))
    await end.hear()
    end.call.reset()


@pytest.mark.parametrize(("talk", "how"), [(cut, "upstream-cut"), (reset, "reset")])
def test_a_server_that_vanishes(record: Make, talk: Callable[[ServerEnd], object], how: str) -> None:
    with talking(record, Origin(accepting(talk))) as (recording, client):  # type: ignore[arg-type]
        client.accepted()
        assert client.texts(1) == ["last words"]
        client.send("go on")
        assert client.next() == ws.CloseConnection(code=1006)
    end = recording.exchange().end
    assert end is not None and end.how == how


def test_a_client_that_vanishes(record: Make) -> None:
    gone = Gate()

    async def talk(end: ServerEnd) -> None:
        await end.hear()
        await end.call.gone()
        gone.open()

    with talking(record, Origin(accepting(talk))) as (recording, client):
        client.accepted().send("hello")
        client.sock.shutdown(socket.SHUT_RDWR)
        client.sock.close()
        gone.passed()
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "client-gone"
    assert [frame.data for frame in exchange.frames] == [b"hello"]


def test_what_is_no_frame_passes_and_the_tape_says_that_it_lacks_it(record: Make) -> None:
    async def talk(end: ServerEnd) -> None:
        await end.say(ws.TextMessage("fine"))
        await end.call.send(b"\x73\x02ab")  # reserved bits and an opcode that nobody knows
        await end.call.send(b"\x81\x02cd")
        end.call.close()

    with talking(record, Origin(accepting(talk))) as (recording, client):
        assert read_until(client.sock, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        assert read_all(client.sock) == b"\x81\x04fine\x73\x02ab\x81\x02cd"
        recording.finish()
        recording.join()
        assert recording.wire.untaped == {("websocket-untaped", "127.0.0.1"): 1}
        assert recording.wire.failures.count == 0
    assert [(frame.type, frame.data) for frame in recording.exchange().frames][:1] == [("text", b"fine")]
    assert [frame.type for frame in recording.exchange().frames] == ["text", "untaped"]
    assert [note.what for note in recording.tape().notes] == ["websocket-untaped"]


def test_a_refused_upgrade_is_an_answer_like_any_other(record: Make) -> None:
    async def refuse(call: Call) -> None:
        await call.reply(b"no", "403 Forbidden")

    with talking(record, Origin(refuse)) as (recording, client):
        assert read_until(client.sock, b"no").startswith(b"HTTP/1.1 403 ")
    exchange = recording.exchange()
    assert exchange.response is not None and exchange.response.status == 403
    assert exchange.frames == [] and exchange.end is not None and exchange.end.how == "complete"
