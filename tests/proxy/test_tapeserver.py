"""The replay wire, spoken to by raw sockets and real clients. Each test reads as who said what."""

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import requests
from served import MS, exchange, read_all, read_until, serve

from tapeproxy.proxy.http1 import Http1
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import End
from tapeproxy.tapes.violations import Drift, Violation


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


URL = "https://api.example.com/"
CHUNKED = ((b"content-type", b"text/event-stream"), (b"transfer-encoding", b"chunked"))


def get(path: str = "/", *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: api.example.com", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


# --- what is on the tape ------------------------------------------------------------------------------------------


def test_an_answer_is_byte_for_byte_the_taped_one(ca: Path) -> None:
    headers = ((b"X-Odd-CASE", b"1"), (b"Set-Cookie", b"b=2"), (b"Set-Cookie", b"a=1"), (b"Content-Length", b"5"))
    with serve([exchange(URL, b"hel", b"lo", headers=headers)], ca) as run, run.tunnel() as sock:
        sock.sendall(get())
        expected = (
            b"HTTP/1.1 200 OK\r\nX-Odd-CASE: 1\r\nSet-Cookie: b=2\r\nSet-Cookie: a=1\r\nContent-Length: 5\r\n\r\nhello"
        )
        assert read_until(sock, b"hello") == expected
        assert run.replayer.served == 1


def test_chunk_boundaries_and_trailers_are_the_taped_ones(ca: Path) -> None:
    one = exchange(URL, b"data: 1\n\n", b"0\r\n", b"x" * 300, headers=CHUNKED, framing="chunked")
    one.end = End(t=0, of=1, how="complete", trailers=((b"X-Sum", b"abc"),))
    with serve([one], ca) as run, run.tunnel() as sock:
        sock.sendall(get())
        body = read_until(sock, b"abc\r\n\r\n").partition(b"\r\n\r\n")[2]
        assert body == b"9\r\ndata: 1\n\n\r\n3\r\n0\r\n\r\n12c\r\n" + b"x" * 300 + b"\r\n0\r\nX-Sum: abc\r\n\r\n"


def test_a_client_that_shows_boundaries_sees_the_taped_ones(ca: Path) -> None:
    chunks = [b"a", b"bb" * 500, b"c", b"\n"]
    with (
        serve([exchange(URL, *chunks, headers=CHUNKED, framing="chunked")], ca) as run,
        httpx.Client(proxy=run.proxy, verify=run.trust()) as client,
        client.stream("GET", URL) as response,
    ):
        assert list(response.iter_raw()) == chunks


@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [
        ("HEAD", 200, ((b"content-length", b"1488324"),)),
        ("GET", 304, ((b"etag", b'"x"'), (b"content-length", b"77"))),
        ("DELETE", 204, ((b"x-a", b"1"),)),
    ],
)
def test_an_answer_without_a_body_keeps_its_headers_and_the_connection(
    ca: Path, method: str, status: int, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    first = exchange(URL, method=method.encode(), status=status, headers=headers, framing="none")
    with serve([first, exchange(URL + "next", b"ok")], ca) as run, run.tunnel() as sock:
        sock.sendall(get(method=method))
        head = read_until(sock, b"\r\n\r\n")
        assert head.endswith(b"\r\n\r\n")
        for name, value in headers:
            assert name + b": " + value in head
        sock.sendall(get("/next"))
        assert read_until(sock, b"ok").endswith(b"content-length: 2\r\n\r\nok")


def test_a_hundred_pipelined_requests_are_answered_in_order(ca: Path) -> None:
    taped = [exchange(f"{URL}{n}", b"<%d>" % n) for n in range(100)]
    with serve(taped, ca) as run, run.tunnel() as sock:
        sock.sendall(b"".join(get(f"/{n}") for n in range(100)))
        text = read_until(sock, b"<99>")
        assert [text.index(b"<%d>" % n) for n in range(100)] == sorted(text.index(b"<%d>" % n) for n in range(100))


def test_a_request_that_comes_byte_by_byte_is_understood(ca: Path) -> None:
    body = b'{"x": "' + b"y" * 40 + b'"}'
    with serve([exchange(URL, b"ok", method=b"POST", body=body)], ca) as run, run.connect() as sock:
        for byte in get("http://api.example.com/", method="POST"):
            sock.sendall(bytes([byte]))
        assert b" 470 " in read_until(sock, b"\r\n\r\n")  # plain http is another scheme
    with serve([exchange(URL, b"ok", method=b"POST", body=body)], ca) as run, run.tunnel() as sock:
        for byte in get("/", "Content-Type: application/json", method="POST", body=body):
            sock.sendall(bytes([byte]))
        assert read_until(sock, b"ok").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("framing", ["Content-Length: 4", "Transfer-Encoding: chunked"])
def test_expect_100_continue_is_answered_before_the_body(ca: Path, framing: str) -> None:
    with serve([exchange(URL, b"ok", method=b"PUT", body=b"body")], ca) as run, run.tunnel() as sock:
        sock.sendall(get("/", "Content-Type: application/json", framing, "Expect: 100-continue", method="PUT"))
        assert read_until(sock, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"body" if "Length" in framing else b"4;ext=1\r\nbody\r\n0\r\nX-T: 1\r\n\r\n")
        assert read_until(sock, b"ok").startswith(b"HTTP/1.1 200")


def test_an_early_hint_on_the_tape_is_served_first(ca: Path) -> None:
    one = exchange(URL, b"ok", informational=((103, ((b"link", b"</a>"),)),))
    with serve([one], ca) as run, run.tunnel() as sock:
        sock.sendall(get())
        text = read_until(sock, b"ok")
        assert text.startswith(b"HTTP/1.1 103 \r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_plain_http_by_absolute_form(ca: Path) -> None:
    with serve([exchange("http://plain.example.com/a?b=1", b"plain")], ca) as run:
        with requests.Session() as session:
            session.trust_env = False
            reply = session.get("http://plain.example.com/a?b=1", proxies={"http": run.proxy}, timeout=10)
        assert reply.text == "plain"
        assert run.noticed == []


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_body_that_ends_with_the_connection(ca: Path, framing: str) -> None:
    """A close-delimited answer, and a chunked one for a client of HTTP/1.0."""
    one = exchange("http://h/", b"a", b"b", headers=(), framing=framing)  # type: ignore[arg-type]  # a row's word
    with serve([one], ca) as run, run.connect() as sock:
        sock.sendall(b"GET http://h/ HTTP/1.%d\r\nHost: h\r\n\r\n" % (framing == "close"))
        assert read_all(sock).endswith(b"\r\n\r\nab")


def test_a_length_that_redaction_changed_is_put_right(ca: Path) -> None:
    one = exchange(URL, b"longer than it was", headers=((b"Content-Length", b"3"),))
    with serve([one], ca) as run, run.tunnel() as sock:
        sock.sendall(get())
        assert b"Content-Length: 18\r\n" in read_until(sock, b"it was")


# --- how it ended -------------------------------------------------------------------------------------------------


def test_a_cut_is_a_cut(ca: Path) -> None:
    taped = [exchange(URL, b"part", headers=CHUNKED, framing="chunked", how="upstream-cut")]
    with (
        serve(taped, ca) as run,
        httpx.Client(proxy=run.proxy, verify=run.trust()) as client,
        client.stream("GET", URL) as response,
    ):
        chunks = response.iter_raw()
        assert next(chunks) == b"part"
        with pytest.raises(httpx.RemoteProtocolError):
            next(chunks)
        assert run.noticed == []


def test_a_reset_is_a_reset(ca: Path) -> None:
    with serve([exchange("http://h/", b"part", how="reset")], ca) as run, run.connect() as sock:
        sock.sendall(get("http://h/"))
        with pytest.raises(ConnectionResetError):
            while sock.recv(65536):
                pass


def test_a_connect_error_is_a_closed_connection(ca: Path) -> None:
    one = exchange(URL, how="connect-error")
    one.response = None
    with serve([one], ca) as run, httpx.Client(proxy=run.proxy, verify=run.trust()) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(URL)
        assert run.noticed == []


def test_client_gone_waits_for_the_client_to_go(ca: Path) -> None:
    taped = [exchange(URL, b"part", headers=CHUNKED, framing="chunked", how="client-gone")]
    with serve(taped, ca) as run:
        with run.tunnel() as sock:
            sock.sendall(get())
            assert read_until(sock, b"part\r\n")
            sock.settimeout(0.05)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        assert run.noticed == []


def test_an_exchange_whose_end_the_tape_lost_is_cut_and_counts(ca: Path) -> None:
    one = exchange("http://h/", b"part", headers=CHUNKED, framing="chunked")
    one.end = None
    with serve([one], ca) as run, run.connect() as sock:
        sock.sendall(get("http://h/"))
        assert read_all(sock).endswith(b"4\r\npart\r\n")
        assert [v.kind for v in run.noticed if isinstance(v, Violation)] == ["interrupted"]


# --- pace ---------------------------------------------------------------------------------------------------------


def test_without_pace_nothing_waits(ca: Path) -> None:
    one = exchange(URL, b"a", b"b", headers=((b"retry-after", b"20"),), gap=60_000 * MS)
    with serve([one], ca) as run, run.tunnel() as sock:
        sock.settimeout(5)
        sock.sendall(get())
        assert read_until(sock, b"ab")


@pytest.mark.parametrize(("speed", "factor"), [(1.0, 1.0), (4.0, 0.25)])
def test_paced_chunks_keep_their_distance(ca: Path, speed: float, factor: float) -> None:
    """Nothing comes early; how late things come is measured by `make bench`, not asserted."""
    gap = 40
    taped = [exchange(URL, b"a", b"b", b"c", headers=CHUNKED, framing="chunked", gap=gap * MS)]
    with serve(taped, ca, speed=speed) as run, run.tunnel() as sock:
        start = time.monotonic()
        sock.sendall(get())
        for at, mark in enumerate((b"a\r\n", b"b\r\n", b"c\r\n"), 1):
            read_until(sock, mark)
            assert time.monotonic() - start >= at * gap / 1000 * factor - 0.002


def test_a_slow_reader_does_not_make_the_server_hold_the_body(ca: Path) -> None:
    big = b"z" * (64 << 20)
    with serve([exchange("http://h/", big)], ca) as run, run.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        sock.sendall(get("http://h/"))
        received = len(read_until(sock, b"\r\n\r\n").partition(b"\r\n\r\n")[2])
        (connection,) = run.server.connections
        assert connection._transport.get_write_buffer_size() < 4 << 20
        while received < len(big):
            received += len(sock.recv(1 << 20))
        assert received == len(big)


# --- one replay after another ------------------------------------------------------------------------------------


def test_a_server_that_is_renewed_has_nothing_of_the_replay_before(ca: Path) -> None:
    with serve([exchange("http://h/", b"a")], ca) as run, run.connect() as before:
        before.sendall(get("http://h/"))
        read_until(before, b"\r\n\r\na")
        run.server.refusals["x"] = "y"
        noticed: list[Violation | Drift] = []
        again = Replayer(run.replayer.tape, run.replayer.redactor, lambda _: False, noticed.append)
        asyncio.run_coroutine_threadsafe(renewed(run.server, again), run.server.loop).result(10)
        assert read_all(before) == b""
        assert run.server.refusals == {}
        with run.connect() as after:
            after.sendall(get("http://h/"))
            assert read_until(after, b"\r\n\r\na").startswith(b"HTTP/1.1 200")
        assert (again.served, again.violations, run.replayer.served, noticed) == (1, [], 1, [])


async def renewed(server: TapeServer, replayer: Replayer) -> None:
    await server.fall_silent(0.01)
    assert server.connections, "it waits no longer than it should"
    server.renew(replayer, lambda _host, _port: False)
    await server.fall_silent(10)
    assert not server.connections


# --- what is not on the tape --------------------------------------------------------------------------------------


def test_a_miss_is_answered_with_470_and_explained(ca: Path) -> None:
    taped = [exchange(URL + "v1/chat", b"{}", method=b"POST", body=b'{"messages":[{"content":"hello"}]}')]
    with serve(taped, ca) as run, httpx.Client(proxy=run.proxy, verify=run.trust()) as client:
        reply = client.post(URL + "v1/chat", json={"messages": [{"content": "hallo"}]})
        assert (reply.status_code, reply.reason_phrase) == (470, "Tape Violation")
        assert reply.headers["x-should-retry"] == "false"
        assert "not on the tape" in reply.json()["error"]["message"]
        (found,) = reply.json()["violation"]["nearest"]["differences"]
        assert (found["where"], found["taped"], found["asked"]) == ("body $.messages[0].content", "hello", "hallo")
        assert run.replayer.served == 0
        assert len(run.replayer.violations) == 1


def test_the_same_request_again_is_used_up(ca: Path) -> None:
    with serve([exchange(URL, b"1")], ca) as run, httpx.Client(proxy=run.proxy, verify=run.trust()) as client:
        assert client.get(URL).text == "1"
        reply = client.get(URL)
        assert reply.status_code == 470
        assert reply.json()["violation"]["kind"] == "used-up"


def test_a_large_post_answered_with_a_violation_is_read_whole_first(ca: Path) -> None:
    with serve([], ca) as run, httpx.Client(proxy=run.proxy, verify=run.trust()) as client:
        assert client.post(URL, content=b"x" * (3 << 20)).status_code == 470


def test_a_head_request_gets_a_470_without_a_body(ca: Path) -> None:
    with serve([], ca) as run, run.connect() as sock:
        sock.sendall(get("http://h/", method="HEAD"))
        text = read_all(sock)
        assert text.startswith(b"HTTP/1.1 470 ")
        assert text.endswith(b"\r\n\r\n")


def test_no_answer_of_a_websocket_is_made_up(ca: Path) -> None:
    with serve([exchange("http://h/ws", status=101, framing="none")], ca) as run, run.connect() as sock:
        sock.sendall(get("http://h/ws", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: eA=="))
        assert b" 470 " in read_until(sock, b"\r\n\r\n")
        assert [v.kind for v in run.replayer.violations] == ["websocket"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b"\0\1\2\3 this is not HTTP\r\n\r\n", "malformed"),
        (b"GET http://h/ HTTP/1.1\r\nHost: h\r\nX: " + b"x" * (1 << 19) + b"\r\n\r\n", "too-large"),
        (b"POST http://h/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "malformed"),
        (b"GET / HTTP/1.1\r\nHost:\r\n\r\n", "miss"),
        (b"GET nonsense HTTP/1.1\r\nHost: h\r\n\r\n", "malformed"),
        (b"GET http://h/" + b"a" * (2 << 20) + b" HTTP/1.1\r\n\r\n", "too-large"),
        (b"GET http://h/ HTTP/1.1\r\n" + b"a:\r\n" * 100_000 + b"\r\n", "too-large"),
        (b"POST http://h/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 100_000, "too-large"),
        (b"CONNECT ..:443 HTTP/1.1\r\n\r\n", "malformed"),
        (b"CONNECT : HTTP/1.1\r\n\r\n", "malformed"),
        (b"CONNECT []:443 HTTP/1.1\r\n\r\n", "malformed"),
        (b"CONNECT " + b"x" * 64 + b":443 HTTP/1.1\r\n\r\n", "malformed"),
    ],
)
def test_hostile_requests_are_violations(ca: Path, said: bytes, kind: str) -> None:
    with serve([], ca) as run:
        with run.connect() as sock, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            sock.sendall(said)
            answer = read_all(sock)
            assert answer.startswith(b"HTTP/1.1 470 ")
            assert len(answer) < 1 << 14
        assert [v.kind for v in run.replayer.violations] == [kind]


@pytest.mark.parametrize("tls", [True, False])
def test_a_tunnel_inside_a_tunnel_is_a_violation(ca: Path, tls: bool) -> None:
    with serve([], ca) as run, run.tunnel() if tls else run.connect() as sock:
        if not tls:
            sock.sendall(b"CONNECT h:80 HTTP/1.1\r\n\r\n")
            read_until(sock, b"\r\n\r\n")
        sock.sendall(b"CONNECT other.example.com:443 HTTP/1.1\r\n\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 470 ")
        assert [v.kind for v in run.replayer.violations] == ["tunnel"]


def test_in_a_tunnel_the_absolute_form_asks_who_the_tunnel_leads_to(ca: Path) -> None:
    with serve([exchange(URL + "a?b=1", b"ok")], ca) as run, run.tunnel() as sock:
        sock.sendall(get("http://elsewhere.example.com/a?b=1"))
        assert read_until(sock, b"ok").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("behind", [False, True])
def test_a_bug_is_a_violation_and_not_a_client_that_waits(ca: Path, behind: bool) -> None:
    """An index that breaks stands for whatever may; `behind`: the request waits for the end of a large answer."""
    taped = [exchange("http://h/big", b"x" * (8 << 20))]
    with serve(taped, ca) as run, run.connect() as sock:
        if behind:
            sock.sendall(get("http://h/big") + get("http://h/"))
            read_until(sock, b"\r\n\r\n")
        run.replayer.index = None  # type: ignore[assignment]  # the bug
        if not behind:
            sock.sendall(get("http://h/"))
        assert b"HTTP/1.1 470 " in read_all(sock)
        (found,) = run.replayer.violations
        assert found.kind == "internal"
        assert "a bug in tapeproxy: AttributeError: " in found.what


def test_json_of_any_depth_has_its_answer(ca: Path) -> None:
    deep = b"[" * 300 + b"]" * 300
    taped = [exchange("http://h/", b"one", method=b"POST", body=deep), exchange("http://h/next", b"two")]
    with serve(taped, ca) as run, run.connect() as sock:
        sock.sendall(
            get("http://h/", "Content-Type: application/json", method="POST", body=deep) + get("http://h/next")
        )
        assert b"one" in read_until(sock, b"two")
    with serve(taped, ca) as run, run.connect() as sock:
        other = b"[" + deep + b"]"
        sock.sendall(get("http://h/", "Content-Type: application/json", method="POST", body=other))
        assert read_all(sock).startswith(b"HTTP/1.1 470 ")
        assert [v.kind for v in run.replayer.violations] == ["miss"]


def test_a_client_that_sends_no_more_gets_its_answers(ca: Path) -> None:
    taped = [exchange("http://h/big", b"z" * (8 << 20)), exchange("http://h/", b"ok")]
    with serve(taped, ca) as run, run.connect() as sock:
        sock.sendall(get("http://h/big") + get("http://h/"))
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock).endswith(b"\r\n\r\nok")


def test_what_comes_after_the_last_request_is_not_heard(ca: Path) -> None:
    with serve([exchange("http://h/", b"ok")], ca) as run, run.connect() as sock:
        sock.sendall(get("http://h/", "Connection: close") + b"\0junk")
        assert read_all(sock).endswith(b"ok")
        assert run.noticed == []


def test_a_paced_answer_comes_to_a_client_that_sends_no_more(ca: Path) -> None:
    taped = [exchange("http://h/", b"a", b"b", headers=CHUNKED, framing="chunked", gap=20 * MS)]
    with serve(taped, ca, speed=1.0) as run, run.connect() as sock:
        sock.sendall(get("http://h/"))
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock).endswith(b"1\r\nb\r\n0\r\n\r\n")


def test_a_client_that_reads_nothing_is_not_answered_into_memory(ca: Path) -> None:
    size, count = 1 << 19, 200
    taped = [exchange(f"http://h/{n}", b"z" * size) for n in range(count)]
    with serve(taped, ca) as run, run.connect() as sock:
        sock.sendall(b"".join(get(f"http://h/{n}") for n in range(count)))
        received = len(read_until(sock, b"\r\n\r\n"))
        (connection,) = run.server.connections
        assert connection._transport.get_write_buffer_size() < 4 * size
        assert run.replayer.served < count
        assert isinstance(connection.talk, Http1)
        assert len(connection.talk._turns) < count
        while received < count * size:
            received += len(sock.recv(1 << 20))
        assert run.replayer.served == count


# --- tapes that no server wrote -----------------------------------------------------------------------------------


def test_a_folded_value_is_served_as_one_line(ca: Path) -> None:
    one = exchange(URL, b"ok", headers=((b"X-Long", b"a\r\n  b\r\n\tc"), (b"content-length", b"2")))
    with serve([one], ca) as run, run.tunnel() as sock:
        sock.sendall(get())
        assert b"X-Long: a b c\r\n" in read_until(sock, b"ok")
        assert run.noticed == []


def test_an_answer_of_http_1_0_stays_one(ca: Path) -> None:
    kept = exchange("http://h/1", b"one", http="HTTP/1.0", headers=((b"Connection", b"Keep-Alive"),))
    with serve([kept, exchange("http://h/2", b"two", http="HTTP/1.0")], ca) as run, run.connect() as sock:
        sock.sendall(get("http://h/1"))
        assert read_until(sock, b"one").startswith(b"HTTP/1.0 200 OK\r\n")
        sock.sendall(get("http://h/2"))
        assert read_all(sock).startswith(b"HTTP/1.0 200 OK\r\n")  # and the connection ends


def test_a_client_that_refuses_our_certificate_is_named(ca: Path) -> None:
    with serve([], ca) as run:
        sock = run.connect()
        sock.sendall(b"CONNECT secret.example.com:443 HTTP/1.1\r\n\r\n")
        read_until(sock, b"\r\n\r\n")
        with pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(sock, server_hostname="secret.example.com")
        sock.close()
        with run.connect() as again:  # served after the refusal was handled
            again.sendall(get("http://h/"))
            read_until(again, b"\r\n\r\n")
        assert list(run.server.refusals) == ["secret.example.com"]


# --- inside traffic -----------------------------------------------------------------------------------------------


FLOOD = 64 << 20
FLOODED = threading.Event()


class Tool(BaseHTTPRequestHandler):
    """A tool server as agents run one."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(FLOOD))
        self.end_headers()
        for _ in range(FLOOD >> 20):
            self.wfile.write(bytes(1 << 20))
        FLOODED.set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.upper())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def tool_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Tool) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("host", ["localhost.evil.test", "127.evil.test", "localhostevil.test"])
def test_a_name_that_only_begins_like_this_machine_s_is_never_reached(ca: Path, tool_port: int, host: str) -> None:
    with serve([], ca, owns_port=lambda port: port == tool_port) as run, httpx.Client(proxy=run.proxy) as client:
        assert client.post(f"http://{host}:{tool_port}/tool", json="a").status_code == 470
        assert run.replayer.live == 0


@pytest.mark.parametrize("host", ["app.localhost", "LOCALHOST", "[::ffff:127.0.0.1]"])
def test_every_name_of_this_machine_leads_to_the_server_of_the_run(ca: Path, tool_port: int, host: str) -> None:
    with serve([], ca, owns_port=lambda port: port == tool_port) as run, run.connect() as sock:
        asked = get(f"http://{host}:{tool_port}/tool", "Connection: close", method="POST", body=b'"a"')
        sock.sendall(asked)
        assert read_all(sock).endswith(b'"A"')


def inside(*chunks: bytes, body: bytes = b'"a"') -> list[Exchange]:
    headers = ((b"content-type", b"application/json"),)
    return [exchange("http://127.0.0.1:1/tool", *chunks, method=b"POST", body=body, headers=headers, inside=True)]


def test_a_server_of_the_run_is_asked_live_and_compared(ca: Path, tool_port: int) -> None:
    taped = inside(b'"A"')
    with (
        serve(taped, ca, owns_port=lambda port: port == tool_port) as run,
        httpx.Client(proxy=run.proxy) as client,
    ):
        assert client.post(f"http://127.0.0.1:{tool_port}/tool", json="a").text == '"A"'
        assert run.noticed == []
        assert (run.replayer.live, run.replayer.served) == (1, 0)
        assert client.post(f"http://127.0.0.1:{tool_port}/tool", json="b").text == '"B"'
        assert len(run.server.connections) == 1
        (drift,) = run.noticed
        assert isinstance(drift, Drift)
        assert "not on the tape" in drift.what


def test_another_answer_of_a_server_of_the_run_is_a_drift(ca: Path, tool_port: int) -> None:
    with (
        serve(inside(b'"Z"'), ca, owns_port=lambda port: port == tool_port) as run,
        httpx.Client(proxy=run.proxy) as client,
    ):
        assert client.post(f"http://127.0.0.1:{tool_port}/tool", json="a").text == '"A"'
        (drift,) = run.replayer.drifts
        assert [(d.where, d.taped, d.asked) for d in drift.differences] == [("body $", "Z", "A")]


def test_a_server_of_the_run_waits_for_a_client_that_reads_slowly(ca: Path, tool_port: int) -> None:
    with serve([], ca, owns_port=lambda port: port == tool_port) as run, run.connect() as sock:
        sock.sendall(get(f"http://127.0.0.1:{tool_port}/flood", "Connection: close"))
        received = len(read_until(sock, b"\r\n\r\n"))
        assert not FLOODED.wait(0.5)
        while data := sock.recv(1 << 20):
            received += len(data)
        assert received > FLOOD


def test_a_server_of_the_run_that_is_not_up_yet_looks_as_it_would_live(ca: Path) -> None:
    with serve(inside(b'"A"'), ca) as run, httpx.Client(proxy=run.proxy) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("http://127.0.0.1:1/tool", json="a")
        assert run.noticed == []


def test_a_tunnel_to_a_server_of_the_run_closes_one_side_at_a_time(ca: Path, tool_port: int) -> None:
    with serve([], ca, owns_port=lambda port: port == tool_port) as run, run.connect() as sock:
        request = get("/tool", method="POST", body=b'"a"')
        sock.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % tool_port + request[:10])
        read_until(sock, b"\r\n\r\n")
        sock.sendall(request[10:])
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock).endswith(b'"A"')


def test_a_loopback_server_outside_the_run_is_never_reached(ca: Path, tool_port: int) -> None:
    with serve([], ca) as run, httpx.Client(proxy=run.proxy) as client:
        assert client.post(f"http://127.0.0.1:{tool_port}/tool", json="a").status_code == 470
