"""What mitmproxy misreads or refuses: it passes as it came, is on the tape as it came, or is at least noted."""

from collections.abc import Callable

import pytest
from origin import Call, Gate, Origin
from recording import KEY, Recording, read_all, read_until

from tapeproxy.tapes.redaction import Redactor

type Make = Callable[..., Recording]


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_a_chunked_answer_without_a_body_leaves_the_connection_usable(record: Make, status: str) -> None:
    async def answer(call: Call) -> None:
        if call.request.target == "/next":
            await call.reply(b"next")
        else:
            await call.head(status, "Transfer-Encoding: chunked")

    with Origin(answer) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert b"chunked" in read_until(sock, b"\r\n\r\n")
        sock.sendall(f"GET {origin.url}/next HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert read_until(sock, b"next").startswith(b"HTTP/1.1 200 OK\r\n")
    assert [e.response and e.response.status for e in recording.tape().exchanges] == [int(status[:3]), 200]


@pytest.mark.parametrize("whole", [True, False])
def test_a_body_that_only_the_close_delimits(record: Make, whole: bool) -> None:
    got_it = Gate()

    async def answer(call: Call) -> None:
        await call.head("200 OK", "Connection: close")
        await call.send(b"part")
        await call.wait(got_it)
        if whole:
            call.close()
        else:
            call.reset()

    with Origin(answer) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        read_until(sock, b"part")
        got_it.open()
        if whole:
            assert read_all(sock) == b""
        else:
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
    exchange = recording.exchange()
    assert exchange.response_body == b"part"
    assert exchange.end is not None and exchange.end.how == ("complete" if whole else "reset")


@pytest.mark.parametrize(
    ("lines", "body", "framing"),
    [
        (["Content-Length: 5", "X: y", "content-length: 5"], b"hello", "length"),
        (["Content-Length: 5, 5"], b"hello", "length"),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], b"5\r\nhello\r\n0\r\n\r\n", "chunked"),
    ],
)
def test_an_answer_that_says_its_framing_twice(record: Make, lines: list[str], body: bytes, framing: str) -> None:
    raw = "".join(f"{line}\r\n" for line in ("HTTP/1.1 200 OK", *lines)).encode() + b"\r\n" + body

    listed = "," in lines[0]

    async def answer(call: Call) -> None:
        for line in raw.removesuffix(body).splitlines(keepends=True):
            await call.send(line)
        await call.send(body)

    with Origin(answer) as origin, record() as recording, recording.connect() as sock:
        for _ in range(1 if listed else 2):
            sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert read_until(sock, body) == raw
        assert not listed or sock.recv(1) == b"", "a client that does not understand the list waits for the close"
        assert origin.connections == 1
    for exchange in recording.tape().exchanges:
        assert exchange.response is not None and exchange.response_body == b"hello"
        assert exchange.response.framing == framing
        assert [b": ".join(field).decode() for field in exchange.response.headers] == lines
    assert recording.wire.failures.count == 0


def test_lengths_that_differ_are_still_refused(record: Make) -> None:
    async def answer(call: Call) -> None:
        await call.head("200 OK", "Content-Length: 5", "Content-Length: 6")

    with Origin(answer) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert read_all(sock) == b""
    end = recording.exchange().end
    assert end is not None and end.how == "upstream-cut"


@pytest.mark.parametrize("step", [1, 1000])
def test_raw_bytes_in_the_path_of_an_absolute_url_pass_as_they_came(record: Make, step: int) -> None:
    async def answer(call: Call) -> None:
        await call.reply(call.request.target.encode("latin-1"))

    path = "/café/✓?q=é%20".encode() + b"\xff"
    with Origin(answer) as origin, record() as recording, recording.connect() as sock:
        raw = b"GET " + origin.url.encode() + path + b" HTTP/1.1\r\nHost: a\r\nX-Name: caf\xe9\r\n\r\n"
        for at in range(0, len(raw), step):
            sock.sendall(raw[at : at + step])
        assert read_until(sock, path).endswith(path)
    assert recording.exchange().request.url == origin.url.encode() + path
    assert recording.tape().notes == [] and recording.wire.failures.count == 0


SECRET = "sk-proj-AbCdEf0123456789xyzXYZ"


@pytest.mark.parametrize(
    ("raw", "host", "port", "text"),
    [
        (b"GET http://user:hunter2@h.test:81/a HTTP/1.1\r\n\r\n", "h.test", 81, "GET http://h.test:81/a"),
        (b"GET http://b\xc3\xa4d/ HTTP/1.1\r\n\r\n", "bäd", 0, "Bad HTTP request line"),
        (b"GET http://a..b/ HTTP/1.1\r\n\r\n", "a..b", 0, "Bad HTTP request line"),
        (b"GET / HTTP/1.1\r\n\r\n", "", 0, "no host header"),
        (b"\x00\x01 nonsense\r\n\r\n", "", 0, "Bad HTTP request line"),
        (b"GET http://h.test?password=hunter2 HTTP/1.1\r\n\r\n", "h.test", 0, "GET http://h.test?password=tpx"),
        (b"GET http://h.test?q=1@x HTTP/1.1\r\n\r\n", "h.test", 0, "GET http://h.test?q=1@x"),
        (b"nonsense\r\n\r\n", "", 0, "a request (unreadable)"),
        (b"GET user:hunter2@h.test/a HTTP/1.1\r\n\r\n", "", 0, "GET h.test/a"),
        (b"CONNECT h.test:port HTTP/1.1\r\n\r\n", "h.test:port", 0, "CONNECT h.test:port"),
        (b"GET http://h.test/ HTTP/1.1\r\nAuthorization hunter2\r\n\r\n", "h.test", 0, "Invalid header line"),
        (b"POST http://h.test/ HTTP/1.1\r\nContent-Length: x\r\n\r\n", "h.test", 0, "invalid content-length header"),
        (b"GET http://a..b/" + SECRET.encode() + b" HTTP/1.1\r\n\r\n", "a..b", 0, "http://a..b/tpx"),
    ],
)
def test_a_request_that_mitmproxy_refuses_is_noted(record: Make, raw: bytes, host: str, port: int, text: str) -> None:
    with record(redactor=Redactor(KEY, [SECRET])) as recording:
        with recording.connect() as sock:
            sock.sendall(raw)
            assert read_all(sock).startswith(b"HTTP/1.1 4")
        recording.finish()
        recording.join()
        assert recording.wire.untaped == {("refused-by-proxy", host): 1}
    (note,) = recording.tape().notes
    assert note.what == "refused-by-proxy" and note.data == {"host": host, "port": port}
    assert text in note.text and "hunter2" not in note.text and SECRET not in note.text
    assert recording.wire.failures.count == 0
