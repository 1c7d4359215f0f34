"""A replayed WebSocket, as a client sees it: what the server says, when, and what comes of what is not on the tape."""

import base64
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import wsproto.events as ws
from origin import Origin
from served import KEY, MS, Served, read_until, serve, tape_of
from wstalks import WsClient, accepting, echo
from wstapes import OPENED, Said, socket_exchange

from tapeproxy.tapes.blanks import ScrubbedRedactor, blanks_of
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.faults import Faults, parse_fault
from tapeproxy.tapes.records import Head, Headers, How
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import RedactionRules
from tapeproxy.tapes.tokens import make_token

CODE = 4470


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


@contextmanager
def talking(
    ca: Path,
    *said: Said,
    how: How | None = "complete",
    headers: Headers = OPENED,
    deflate: bool = False,
    head: Head | None = None,
    speed: float | None = None,
    gap: int = MS,
) -> Iterator[tuple[Served, WsClient]]:
    """A client that has opened the one WebSocket of a tape."""
    tape = tape_of([socket_exchange(*said, how=how, headers=headers, gap=gap)])
    if head is not None:
        tape = Tape(head, tape.exchanges)
    with serve(tape, ca, speed=speed) as run, opened(run, deflate=deflate) as client:
        yield run, client.accepted()


@contextmanager
def opened(run: Served, path: str = "/ws", **options: bool) -> Iterator[WsClient]:
    with run.connect() as sock:
        sock.sendall(b"CONNECT x.test:80 HTTP/1.1\r\nHost: x.test:80\r\n\r\n")
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        yield WsClient(sock, "x.test", path, deflate=options.get("deflate", False))


def closed(event: ws.Event) -> tuple[int, str | None]:
    assert isinstance(event, ws.CloseConnection), event
    return int(event.code), event.reason or ""


def told(run: Served) -> list[str]:
    return [violation.what for violation in run.replayer.violations]


def test_a_conversation_is_repeated_turn_by_turn(ca: Path) -> None:
    said = ("<welcome", ">one", "<eno", ">two", "<owt", b"<\xff\x00", ">!1000 bye", "<!1000 bye")
    with talking(ca, *said) as (run, client):
        assert client.texts(1) == ["welcome"]
        client.send("one")
        assert client.texts(1) == ["eno"]
        client.send("two")
        assert client.texts(1) == ["owt"]
        assert client.next() == ws.BytesMessage(b"\xff\x00")
        assert closed(client.close(1000, "bye")) == (1000, "bye")
        assert client.sock.recv(100) == b""
        assert run.noticed == []
        assert run.replayer.unsaid() == []


def test_what_the_server_says_waits_for_what_the_client_had_said(ca: Path) -> None:
    with talking(ca, ">one", ">two", "<both", ">!1000", "<!1000") as (_, client):
        client.send("one")
        client.say(ws.Ping(b"still there?"))
        assert client.next() == ws.Pong(b"still there?")  # and nothing before it
        client.send("two")
        assert client.texts(1) == ["both"]
        assert closed(client.close()) == (1000, "")


def test_a_client_that_is_faster_than_on_the_tape_is_answered_all_the_same(ca: Path) -> None:
    said = [f"{way}{n}" for n in range(50) for way in (">", "<")]
    with talking(ca, *said, ">!1000", "<!1000") as (run, client):
        client.send(*map(str, range(50)))
        assert client.texts(50) == [str(n) for n in range(50)]
        assert closed(client.close()) == (1000, "")
        assert run.noticed == []


@pytest.mark.parametrize(
    ("ending", "how", "seen"),
    [
        (("<!1000",), "complete", (1000, "")),
        (("<!1001 going away",), "complete", (1001, "going away")),
        (("<!1011 oops",), "complete", (1011, "oops")),
        (("<!3000",), "complete", (3000, "")),
        (("<!4999 zwölf",), "complete", (4999, "zwölf")),
        (("<!",), "complete", (1005, "")),
        ((), "upstream-cut", (1006, "")),
        ((), "reset", (1006, "")),
    ],
)
def test_the_server_s_end_is_the_taped_one(ca: Path, ending: tuple[str, ...], how: How, seen: tuple[int, str]) -> None:
    with talking(ca, ">go", "<gone", *ending, how=how) as (run, client):
        client.send("go")
        assert client.texts(1) == ["gone"]
        assert closed(client.next()) == seen
        if how == "complete":
            client.say(ws.CloseConnection(seen[0] if seen[0] != 1005 else 1000))
            assert client.sock.recv(100) == b""
        assert run.noticed == []


def test_a_client_that_vanished_is_waited_for(ca: Path) -> None:
    with talking(ca, ">go", "<on", how="client-gone") as (run, client):
        client.send("go")
        assert client.texts(1) == ["on"]
        client.say(ws.Ping())
        assert client.next() == ws.Pong()
        assert run.noticed == []


def test_frames_fragments_pings_and_pieces_of_a_frame(ca: Path) -> None:
    said: tuple[Said, ...] = (
        ("<", "text", b"on", "message"),
        ("<", "ping", b"now"),
        (">", "pong", b"now"),
        ("<", "text", b"e", None),
        ("<", "binary", b"a" * 70_000, "frame"),
        ("<", "binary", b"b" * 70_000, None),
        (">", "text", b"t", "message"),
        (">", "text", b"w", "frame"),
        (">", "text", b"o", None),
        "<!1000",
    )
    with talking(ca, *said) as (run, client):
        assert client.next() == ws.TextMessage("on", message_finished=False)
        assert client.next() == ws.Ping(b"now")
        assert client.next() == ws.TextMessage("e")
        data, last = b"", None
        while last is None or not last.message_finished:
            last = client.next()
            assert isinstance(last, ws.BytesMessage)
            data += last.data
        assert data == b"a" * 70_000 + b"b" * 70_000
        client.say(ws.TextMessage("tw", message_finished=False), ws.TextMessage("o"))  # in other frames
        assert closed(client.next()) == (1000, "")
        assert run.noticed == []


def test_compression_is_what_was_agreed(ca: Path) -> None:
    headers = (*OPENED, (b"Sec-WebSocket-Extensions", b"permessage-deflate; client_no_context_takeover"))
    long = "over and over " * 1000
    with talking(ca, f">{long}", f"<{long}", f"<{long}", headers=headers, deflate=True) as (_, client):
        client.send(long)
        assert client.texts(2) == [long, long]
    with talking(ca, f">{long}", f"<{long}", headers=headers) as (run, client):  # a client that does not offer it
        client.send(long)
        assert client.texts(1) == [long]
        assert run.noticed == []


@pytest.mark.parametrize(
    ("sent", "what", "where"),
    [
        (
            '{"type": "b", "n": 1}',
            "message 2 of the client on the WebSocket of exchange 1 is not the one on",
            "$.n",
        ),
        ('{"type":"a"}', "the client sends message 1 once more; message 2 of the client", "message"),
        ('{"type":"c"}', "is missing: what the client sends is message 3 on the tape", "message"),
        (b"\x00\x01", "message 2 of the client on the WebSocket of exchange 1 is not", "type"),
    ],
)
def test_another_message_is_a_violation_that_says_where(ca: Path, sent: str | bytes, what: str, where: str) -> None:
    said = ('>{"type":"a"}', '>{"n": 2, "type": "b"}', '>{"type":"c"}', "<fine")
    with talking(ca, *said) as (run, client):
        client.send('{ "type" : "a" }')  # the same by value
        client.say(
            ws.TextMessage(sent) if isinstance(sent, str) else ws.BytesMessage(sent),
            ws.TextMessage("and on"),  # not listened to
        )
        assert closed(client.next()) == (CODE, "Tape Violation")
        client.say(ws.CloseConnection(CODE))
        assert client.sock.recv(100) == b""
        (violation,) = run.replayer.violations
        assert violation.kind == "websocket"
        assert what in violation.what
        assert violation.differences[0].where.endswith(where)
        assert violation.request == "GET http://x.test/ws"
        assert run.replayer.violations == run.noticed


def test_one_message_too_many(ca: Path) -> None:
    with talking(ca, ">one", "<two", how="client-gone") as (run, client):
        client.send("one")
        assert client.texts(1) == ["two"]
        client.send("three")
        assert closed(client.next()) == (CODE, "Tape Violation")
        assert told(run) == [
            "the client sends a text message that is not on the tape: the client sent 1 there, and all were sent again"
        ]
        assert run.replayer.violations[0].differences[0].asked == "three"


def test_a_binary_message_is_compared_byte_for_byte(ca: Path) -> None:
    audio = os.urandom(3000)
    with talking(ca, b">" + audio, "<heard", b">" + audio, how="client-gone") as (run, client):
        client.say(ws.BytesMessage(audio))
        assert client.texts(1) == ["heard"]
        client.say(ws.BytesMessage(audio[:-1] + b"!"))
        assert closed(client.next()) == (CODE, "Tape Violation")
        assert run.replayer.violations[0].differences[0].taped == f"3000 bytes: {audio[:16].hex(' ')} …"


def test_rules_secrets_and_machine_facts_count_as_in_bodies(ca: Path) -> None:
    key = "sk-proj-" + "AbCdEfGhIj0123456789KlMnOpQrSt"
    head = Head(started_at="2026-01-01T00:00:00Z", rules={"matching": 2, "user": ["ignore-json $.event_id"]})
    taped = Redactor(KEY).text(f'{{"key":"{key}"}}')
    assert key not in taped
    with talking(ca, '>{"event_id":"a","n":1}', "<1", f">{taped}", "<2", head=head, how="client-gone") as (
        run,
        client,
    ):
        client.send('{"n":1,"event_id":"b"}')
        assert client.texts(1) == ["1"]
        client.send(f'{{"key":"{key[:-4]}wxyz"}}')  # another key of the same kind
        assert client.texts(1) == ["2"]
        assert run.noticed == []


@pytest.mark.parametrize(("sent", "what"), [("late", None), ("other", "message 2 of the client")])
def test_what_the_client_says_after_the_server_closed_is_compared(ca: Path, sent: str, what: str | None) -> None:
    with talking(ca, ">one", "<!1000 bye", ">late", ">!1000 bye") as (run, client):
        client.send("one")
        assert client.next() == ws.CloseConnection(1000, "bye")
        client.sock.sendall(b"\x81" + bytes((0x80 | len(sent),)) + bytes(4) + sent.encode())
        client.sock.sendall(b"\x88\x85" + bytes(4) + b"\x03\xe8bye")
        while client.sock.recv(1000):
            pass
    assert [text[: len(what or "")] for text in told(run)] == ([what] if what else [])
    assert bool(run.replayer.unsaid()) is (what is not None)


def test_a_client_that_says_less_is_told_at_the_end(ca: Path) -> None:
    with talking(ca, ">one", "<two", ">three", "<four", "<five", ">!1000", "<!1000") as (run, client):
        client.send("one")
        assert client.texts(1) == ["two"]
        (unsaid,) = run.replayer.unsaid()
        assert unsaid.to_text() == (
            "the WebSocket of exchange 1: the client sent 1 of 3 messages; 3 frames of the server wait for the next one"
        )
        assert closed(client.close()) == (1000, "")  # earlier than on the tape: it is answered
        assert run.noticed == []
        assert len(run.replayer.unsaid()) == 1


def test_another_close_code_of_the_client_is_a_drift(ca: Path) -> None:
    with talking(ca, "<hi", ">!1000 done", "<!1000 done") as (run, client):
        assert client.texts(1) == ["hi"]
        assert closed(client.close(1001, "done")) == (1000, "done")
        (drift,) = run.replayer.drifts
        assert [(d.taped, d.asked) for d in drift.differences] == [("1000 done", "1001 done")]


def test_a_tape_that_lacks_the_rest(ca: Path) -> None:
    with talking(ca, "<one", ("<", "untaped", b"an extension"), how="upstream-cut") as (run, client):
        assert client.texts(1) == ["one"]
        assert closed(client.next()) == (CODE, "Tape Violation")
        assert told(run) == ["what passed from here on is not on the tape: an extension"]


def test_a_tape_that_was_interrupted(ca: Path) -> None:
    with talking(ca, "<one", ("<", "text", b"half", "message"), ">two", how=None) as (run, client):
        assert client.next() == ws.TextMessage("one")
        assert client.next() == ws.TextMessage("half", message_finished=False)
        client.send("two")
        assert closed(client.next()) == (1006, "")
        assert told(run) == ["the tape was interrupted during exchange 1: its answer is cut off there"]


def test_what_is_no_frame_is_a_violation(ca: Path) -> None:
    with talking(ca, "<one", ">two", how="client-gone") as (run, client):
        assert client.texts(1) == ["one"]
        client.sock.sendall(b"\x81\x03two")  # without a mask
        assert closed(client.next()) == (CODE, "Tape Violation")
        assert "what the client sends is no WebSocket frame" in told(run)[0]


@pytest.mark.parametrize(
    ("exchange", "asked", "what"),
    [
        (socket_exchange(), (), "exchange 1 became a WebSocket, whose frames are not on the tape"),
        (socket_exchange("<hi", headers=((b"Upgrade", b"tcp"),)), (), "exchange 1 went over to another protocol"),
        (socket_exchange("<hi"), ("Upgrade: tcp",), "exchange 1 became a WebSocket, and this request does not ask"),
        (
            socket_exchange("<hi", headers=(*OPENED, (b"Sec-WebSocket-Protocol", b"realtime"))),
            ("Sec-WebSocket-Protocol: chat, other",),
            "the server of exchange 1 chose the subprotocol 'realtime', which this request does not offer",
        ),
        (socket_exchange("<hi", "<!1006"), (), "the tape holds what no WebSocket can: of exchange 1, a close with the"),
        (socket_exchange(("<", "ping", b"x" * 126)), (), "the tape holds what no WebSocket can: of exchange 1, a ping"),
    ],
)
def test_what_cannot_be_opened_is_answered_with_470(
    ca: Path, exchange: Exchange, asked: tuple[str, ...], what: str
) -> None:
    lines = asked or ("Upgrade: websocket",)
    lines = lines if any("Upgrade" in line for line in lines) else ("Upgrade: websocket", *lines)
    key = base64.b64encode(bytes(16)).decode()
    text = "".join(f"{line}\r\n" for line in (*lines, "Connection: Upgrade", f"Sec-WebSocket-Key: {key}"))
    with serve([exchange], ca) as run, run.connect() as sock:
        sock.sendall(f"GET http://x.test/ws HTTP/1.1\r\nHost: x.test\r\n{text}\r\n".encode())
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 470 ")
        assert told(run)[0].startswith(what)
        assert run.replayer.violations[0].kind == "websocket"


def test_a_second_session_is_used_up(ca: Path) -> None:
    with talking(ca, "<one", how="client-gone") as (run, client):
        assert client.texts(1) == ["one"]
        with opened(run) as second:
            refused = second.next()
            assert isinstance(refused, ws.RejectConnection) and refused.status_code == 470
        assert [violation.kind for violation in run.replayer.violations] == ["used-up"]


def test_two_sessions_at_once_are_told_apart(ca: Path) -> None:
    exchanges = [socket_exchange(f">{n}", f"<{n}{n}", how="client-gone", url=f"http://x.test/ws/{n}") for n in (1, 2)]
    with serve(exchanges, ca) as run, opened(run, "/ws/2") as two, opened(run, "/ws/1") as one:
        for client, text in ((two.accepted(), "2"), (one.accepted(), "1")):
            client.send(text)
            assert client.texts(1) == [text * 2]
        assert run.noticed == []


def test_a_recorded_pace_is_kept_from_what_the_client_said(ca: Path) -> None:
    with talking(ca, ">go", "<first", "<second", how="client-gone", speed=1.0, gap=30 * MS) as (_, client):
        began = time.monotonic()
        client.send("go")
        assert client.texts(1) == ["first"]
        assert time.monotonic() - began >= 0.025
        assert client.texts(1) == ["second"]
        assert time.monotonic() - began >= 0.055


def test_a_slow_client_gets_all_of_a_long_talk(ca: Path) -> None:
    frame = b"<" + bytes(1 << 20)
    with talking(ca, *[frame] * 12, "<done", how="client-gone") as (run, client):
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        got = 0
        while not isinstance(event := client.next(), ws.TextMessage):
            assert isinstance(event, ws.BytesMessage)
            got += len(event.data)
        assert (got, event.data) == (12 << 20, "done")
        assert run.noticed == []


def test_a_client_that_takes_nothing_is_owed_one_pong(ca: Path) -> None:
    frame = b"<" + bytes(1 << 20)
    with talking(ca, *[frame] * 12, ">done", "<done", how="client-gone") as (run, client):
        client.say(*(ws.Ping(b"%d" % number) for number in range(20_000)))
        pongs: list[bytes] = []
        client.send("done")
        while not isinstance(event := client.next(), ws.TextMessage):
            pongs += [bytes(event.payload)] if isinstance(event, ws.Pong) else []
        assert pongs[-1] == b"19999"
        assert len(pongs) < 20_000
        assert run.noticed == []


def test_a_server_of_the_run_is_talked_to_live(ca: Path) -> None:
    with Origin(accepting(echo)) as origin:
        taped = socket_exchange(">other", "<words", url=f"http://127.0.0.1:{origin.port}/ws")
        taped.request = replace(taped.request, inside=True)
        with serve([taped], ca, owns_port=lambda port: port == origin.port) as run, run.connect() as sock:
            client = WsClient(sock, f"127.0.0.1:{origin.port}", f"http://127.0.0.1:{origin.port}/ws").accepted()
            client.send("live")
            assert client.texts(2) == ["live", "evil"]
            assert closed(client.close(1000, "bye")) == (1000, "bye")
            assert run.noticed == []
            assert run.replayer.live == 1
        assert [request.target for request in origin.requests] == ["/ws"]


@pytest.mark.parametrize(
    ("words", "seen"),
    [("status=429", "429"), ("reset", ""), ("cut=0", "1006"), ("latency=1ms", "hi")],
)
def test_faults_of_an_upgrade(ca: Path, words: str, seen: str) -> None:
    with serve([socket_exchange("<hi", how="client-gone")], ca) as run:
        run.replayer.faults = Faults([parse_fault(f"path=/ws {words}")])
        with opened(run) as client:
            if words == "reset":
                with pytest.raises(ConnectionResetError):
                    client.sock.recv(1)
            elif seen == "429":
                refused = client.next()
                assert isinstance(refused, ws.RejectConnection) and refused.status_code == 429
            else:
                client.accepted()
                heard = client.next()
                assert heard == (ws.TextMessage("hi") if seen == "hi" else ws.CloseConnection(code=1006))
        assert len(run.replayer.faults.injected) == 1
        assert run.noticed == []


def test_a_scrubbed_message_is_still_the_same(ca: Path) -> None:
    token = make_token(KEY, b"a password in prose")
    tape = tape_of([socket_exchange(f">the word is {token.decode()}, and nothing else", "<yes", how="client-gone")])
    redactor = ScrubbedRedactor(KEY, (), RedactionRules(), blanks_of(tape))
    with serve(tape, ca) as run:
        run.replayer.redactor = redactor
        with opened(run) as client:
            client.accepted().send("the word is a password in prose, and nothing else")
            assert client.texts(1) == ["yes"]
        assert run.noticed == []


def test_no_secret_is_in_a_violation(ca: Path) -> None:
    key = "sk-proj-" + "AbCdEfGhIj0123456789KlMnOpQrSt"
    taped = Redactor(KEY).text(f"my key is {key}")
    for said in ((">first", f">{taped}"), (f">{taped}", ">other"), (">one",)):
        with talking(ca, *said) as (run, client):
            client.send(*(["first"] if said[0] == f">{taped}" else []), f"my key is {key}", f"my key is {key}")
            assert closed(client.next()) == (CODE, "Tape Violation")
            (violation,) = run.replayer.violations
            assert violation.differences
            assert key not in repr(violation) + violation.to_text()
