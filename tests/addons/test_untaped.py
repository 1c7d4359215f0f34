"""What passes through live: it works, and the tape says that it was there."""

import socket
import ssl
from collections.abc import Callable

import pytest
from origin import Call, Origin
from recording import KEY, Recording, read_all, read_until

from tapeproxy.tapes.records import Note
from tapeproxy.tapes.redaction import Redactor

type Make = Callable[..., Recording]


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
