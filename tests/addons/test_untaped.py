"""What passes through live: it works, and the tape says that it was there."""

import socket
import ssl
from collections.abc import Callable

import pytest
import wsproto
import wsproto.events as ws
from authority import Authority
from origin import Call, Origin
from recording import KEY, Recording, read_all, read_until

from tapeproxy.tapes.records import Note
from tapeproxy.tapes.redaction import Redactor

type Make = Callable[..., Recording]


async def ws_echo(call: Call) -> None:
    """Accept a WebSocket and send every text back twice, the second time reversed."""
    server = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    lines = "".join(f"{name}: {value}\r\n" for name, value in call.request.headers)
    server.receive_data(f"GET {call.request.target} HTTP/1.1\r\n{lines}\r\n".encode())
    while True:
        for event in server.events():
            match event:
                case ws.Request():
                    await call.send(server.send(ws.AcceptConnection()))
                case ws.TextMessage(data=text):
                    await call.send(server.send(ws.TextMessage(text)) + server.send(ws.TextMessage(text[::-1])))
                case ws.CloseConnection():
                    await call.send(server.send(event.response()))
                    call.close()
                    return
        server.receive_data(await call.read())


class WsClient:
    def __init__(self, sock: socket.socket, host: str, target: str) -> None:
        self._sock = sock
        self._ws = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
        sock.sendall(self._ws.send(ws.Request(host=host, target=target)))

    def send(self, text: str) -> None:
        self._sock.sendall(self._ws.send(ws.TextMessage(text)))

    def close(self) -> None:
        self._sock.sendall(self._ws.send(ws.CloseConnection(code=1000)))

    def next(self) -> ws.Event:
        while True:
            for event in self._ws.events():
                return event
            self._ws.receive_data(self._sock.recv(65536))


def test_a_websocket_passes_and_is_noted_once(record: Make, authority: Authority) -> None:
    with Origin(ws_echo, tls=authority.serving("127.0.0.1")) as origin, record() as recording:
        with recording.tunnel("127.0.0.1", origin.port, authority.trusting()) as sock:
            client = WsClient(sock, f"127.0.0.1:{origin.port}", "/chat?x=1")
            assert isinstance(client.next(), ws.AcceptConnection)
            for text in ("one", "two"):
                client.send(text)
                answers = [client.next(), client.next()]
                assert answers == [ws.TextMessage(text), ws.TextMessage(text[::-1])]
            client.close()
            closing = client.next()
            assert isinstance(closing, ws.CloseConnection) and closing.code == 1000
        recording.finish()
        recording.join()
        assert recording.wire.untaped == {("websocket-untaped", "127.0.0.1"): 1}
    exchange = recording.exchange()
    assert exchange.request.url == f"https://127.0.0.1:{origin.port}/chat?x=1".encode()
    assert exchange.response is not None and exchange.response.status == 101
    assert exchange.response.framing == "none"
    assert exchange.end is not None and exchange.end.how == "complete"
    (note,) = recording.tape().notes
    assert note.what == "websocket-untaped" and note.data == {"host": "127.0.0.1", "port": origin.port}
    assert recording.wire.failures.count == 0


def test_a_tunnel_of_another_protocol_passes_and_is_noted(record: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, record() as recording:
        port = server.getsockname()[1]
        with recording.tunnel("127.0.0.1", port) as sock:
            sock.sendall(b"\x00\x01\x02 not HTTP")
            peer, _ = server.accept()
            with peer:
                assert peer.recv(100) == b"\x00\x01\x02 not HTTP"
                peer.sendall(b"\xffanswer")
            assert read_all(sock) == b"\xffanswer"
    (note,) = recording.tape().notes
    assert note.what == "tunnel-untaped" and note.data == {"host": "127.0.0.1", "port": port}
    assert recording.tape().exchanges == []


def test_an_upgrade_to_another_protocol_passes_and_is_noted(record: Make) -> None:
    async def upgrade(call: Call) -> None:
        await call.head("101 Switching Protocols", "Connection: Upgrade", "Upgrade: tcp")
        assert await call.read() == b"ping"
        await call.send(b"pong")
        call.close()

    with Origin(upgrade) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n".encode())
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        sock.sendall(b"ping")
        assert read_until(sock, b"pong") == b"pong"
    assert [note.what for note in recording.tape().notes] == ["tunnel-untaped"]
    end = recording.exchange().end
    assert end is not None and end.how == "complete"


def test_a_client_that_does_not_trust_our_ca_is_noted(record: Make) -> None:
    with record() as recording, pytest.raises(ssl.SSLCertVerificationError):
        recording.tunnel("localhost", 9, ssl.create_default_context())
    (note,) = recording.tape().notes
    assert note.what == "client-refused-ca"
    assert note.data == {"host": "localhost", "port": 9}
    assert "unknown ca" in note.text


def test_a_secret_in_a_note_is_redacted(record: Make) -> None:
    secret = "sk-proj-abcdef0123456789xyzxyz"
    redactor = Redactor(KEY, [secret])
    with record(redactor=redactor) as recording:
        with pytest.raises(ssl.SSLCertVerificationError):
            recording.tunnel(f"{secret}.example", 9, ssl.create_default_context())
        recording.finish()
        recording.join()
        host = redactor.text(secret) + ".example"
        assert recording.wire.untaped == {("client-refused-ca", host): 1}
    (note,) = recording.tape().notes
    assert note.data == {"host": host, "port": 9}
    assert secret not in note.text


def test_http2_after_http1_is_refused_and_noted(record: Make) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        record() as recording,
        recording.tunnel("127.0.0.1", server.getsockname()[1]) as sock,
    ):
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 204 ")
            sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            assert read_all(sock) == b""
    assert [note.what for note in recording.tape().notes] == ["h2-refused"]
    assert len(recording.tape().exchanges) == 1
    assert recording.wire.failures.count == 0


def test_notes_are_on_disk_at_once(record: Make) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        record() as recording,
        recording.tunnel("127.0.0.1", server.getsockname()[1]) as sock,
    ):
        sock.sendall(b"\x00\x01\x02")
        peer, _ = server.accept()
        with peer:
            peer.recv(100)
            assert [note.what for note in recording.records(Note)] == ["tunnel-untaped"]
