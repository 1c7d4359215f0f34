"""What the tape holds, and that it held it in time: real mitmproxy, real sockets, a server that decides every write."""

import gzip
import socket
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import requests
from authority import Authority
from origin import Call, Gate, Origin
from recording import KEY, Recording, read_until

from tapeproxy.addons.flows import MAX_BODY
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.records import Chunks, End, Record, Request, Response
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.tokens import is_token

type Make = Callable[..., Recording]

PIECES = [
    b"data: one\n\n",
    b"data: two\r\n\r\n",
    b"x" * 5000,
    b"ends in 0\r\n",
    b"\r\n0\r\n\r\n",
    "ü€".encode(),
    b"\x00\xff",
]


async def stream(call: Call) -> None:
    await call.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    for piece in PIECES:
        await call.chunk(piece)
    await call.last_chunk()


async def hello(call: Call) -> None:
    await call.reply(b"hello")


def chunks_of(recording: Recording) -> list[bytes]:
    return [chunk.data for chunk in recording.exchange().chunks]


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_chunk_boundaries_are_the_same_at_the_client_and_on_the_tape(
    record: Make, authority: Authority, secure: bool
) -> None:
    tls = authority.serving("127.0.0.1") if secure else None
    with (
        Origin(stream, tls=tls) as origin,
        record() as recording,
        recording.client() as client,
        client.stream("GET", origin.url) as response,
    ):
        got = list(response.iter_raw())
    assert got == PIECES
    assert chunks_of(recording) == PIECES
    assert recording.exchange().request.alpn == ("http/1.1" if secure else None)
    assert recording.wire.failures.count == 0


def test_many_chunks_in_one_write_keep_their_boundaries(record: Make) -> None:
    async def burst(call: Call) -> None:
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in PIECES)
        await call.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")

    with (
        Origin(burst) as origin,
        record() as recording,
        recording.client() as client,
        client.stream("GET", origin.url) as response,
    ):
        assert list(response.iter_raw()) == PIECES
    assert chunks_of(recording) == PIECES


def test_a_chunk_extension_and_a_split_chunk_pass(record: Make) -> None:
    async def odd(call: Call) -> None:
        await call.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;name=value\r\nhel")
        await call.send(b"lo\r\n0\r\n\r\n")

    with Origin(odd) as origin, record() as recording, recording.client() as client:
        assert client.get(origin.url).content == b"hello"
    assert recording.exchange().response_body == b"hello"


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_chunk_reaches_the_client_before_the_next_is_sent_and_the_tape_before_the_client(
    record: Make, authority: Authority, secure: bool
) -> None:
    gates = [Gate() for _ in range(3)]

    async def stepwise(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        for number, gate in enumerate(gates):
            await call.chunk(b"%d" % number)
            await call.wait(gate)  # which the client opens once it has the chunk
        await call.last_chunk()

    tls = authority.serving("127.0.0.1") if secure else None
    with (
        Origin(stepwise, tls=tls) as origin,
        record() as recording,
        recording.client() as client,
        client.stream("GET", origin.url) as response,
    ):
        assert [r.status for r in recording.records(Response)] == [200]
        for number, got in enumerate(response.iter_raw()):
            taped = [data for chunks in recording.records(Chunks) for _, data in chunks.parts]
            assert taped == [b"%d" % n for n in range(number + 1)] and got == taped[-1]
            assert recording.records(End) == []
            gates[number].open()


def test_a_request_is_on_the_tape_before_anybody_is_called(record: Make) -> None:
    recording = record()
    on_disk: list[Record] = []

    async def look(call: Call) -> None:
        on_disk.extend(recording.records(Request))
        await call.reply(b"ok")

    with Origin(look) as origin, recording, recording.client() as client:
        client.post(f"{origin.url}/path?b=2&a=1&a=2", content=b"the body", headers=[("X-One", "1"), ("X-One", "2")])
        (request,) = on_disk
    assert isinstance(request, Request)
    assert request.method == b"POST" and request.body == b"the body" and request.http == "HTTP/1.1"
    assert request.url == f"{origin.url}/path?b=2&a=1&a=2".encode()
    assert [value for name, value in request.headers if name == b"X-One"] == [b"1", b"2"]


def test_the_last_byte_of_a_sized_body_is_on_the_tape_before_the_client_has_it(record: Make) -> None:
    async def sized(call: Call) -> None:
        await call.head("200 OK", "Content-Length: 6")
        await call.send(b"[DONE]")

    with Origin(sized) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        read_until(sock, b"[DONE]")
        assert [data for chunks in recording.records(Chunks) for _, data in chunks.parts] == [b"[DONE]"]


@pytest.mark.parametrize("ending", ["\r\n", ""], ids=["complete", "unfinished"])
def test_a_compressed_stream_stays_compressed(record: Make, ending: str) -> None:
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(f"data: {n}\n\n".encode()) + packer.flush(zlib.Z_SYNC_FLUSH) for n in range(3)]
    pieces += [packer.flush()] if ending else []

    async def packed(call: Call) -> None:
        await call.head("200 OK", "Content-Encoding: gzip", "Transfer-Encoding: chunked")
        for piece in pieces:
            await call.chunk(piece)
        await call.last_chunk()

    with (
        Origin(packed) as origin,
        record() as recording,
        recording.client() as client,
        client.stream("GET", origin.url) as response,
    ):
        assert list(response.iter_raw()) == pieces
    assert chunks_of(recording) == pieces
    if ending:
        assert gzip.decompress(recording.exchange().response_body) == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


@pytest.mark.parametrize(
    ("method", "head", "body", "framing"),
    [
        ("GET", ("200 OK", "Content-Length: 2"), b"ok", "length"),
        ("GET", ("200 OK", "Content-Length: 0"), b"", "length"),
        ("GET", ("200 OK", "Connection: close"), b"till the end", "close"),
        ("HEAD", ("200 OK", "Content-Length: 1488324"), b"", "none"),
        ("HEAD", ("200 OK", "Transfer-Encoding: chunked"), b"", "none"),
        ("GET", ("204 No Content",), b"", "none"),
        ("GET", ("304 Not Modified", 'ETag: "x"', "Content-Length: 5"), b"", "none"),
        ("DELETE", ("202 Odd Reason", "Content-Length: 0"), b"", "length"),
    ],
)
def test_every_framing(record: Make, method: str, head: tuple[str, ...], body: bytes, framing: str) -> None:
    async def answer(call: Call) -> None:
        await call.head(*head)
        if body:
            await call.send(body)
        if "Connection: close" in head:
            call.close()

    with Origin(answer) as origin, record() as recording, recording.client() as client:
        response = client.request(method, origin.url)
        again = client.request(method, origin.url)
    assert (response.status_code, response.content) == (int(head[0][:3]), body) == (again.status_code, again.content)
    assert [(name.lower(), value) for name, value in response.headers.raw] == [
        (name.lower().encode(), value.encode()) for name, value in (line.split(": ") for line in head[1:])
    ]
    first, second = recording.tape().exchanges
    assert first.response is not None and first.end is not None
    assert first.response.framing == framing and first.response.reason == head[0][4:].encode()
    assert first.response_body == body == second.response_body
    assert first.end.how == "complete"


def test_headers_keep_order_case_and_duplicates(record: Make) -> None:
    async def cookies(call: Call) -> None:
        await call.reply(b"", "200 OK", "Set-Cookie: a=1", "x-LOWER: Value", "Set-Cookie: b=2; Path=/")

    with Origin(cookies) as origin, record() as recording, recording.client() as client:
        response = client.get(origin.url)
        assert response.headers.get_list("set-cookie") == ["a=1", "b=2; Path=/"]
        sent = origin.requests[0].headers
    exchange = recording.exchange()
    assert exchange.response is not None
    names = [name for name, _ in exchange.response.headers]
    assert names == [b"Set-Cookie", b"x-LOWER", b"Set-Cookie", b"Content-Length"]
    assert tuple((n.decode(), v.decode()) for n, v in exchange.request.headers) == sent


def test_twenty_requests_on_one_connection(record: Make, authority: Authority) -> None:
    async def echo(call: Call) -> None:
        await call.reply(call.request.body)

    with Origin(echo, tls=authority.serving("127.0.0.1")) as origin, record() as recording:
        with recording.client() as client:
            for number in range(20):
                assert client.post(f"{origin.url}/{number}", content=b"%d" % number).content == b"%d" % number
        assert origin.connections == 1
    tape = recording.tape()
    assert [e.request_body for e in tape.exchanges] == [e.response_body for e in tape.exchanges]
    assert [e.request.url.rpartition(b"/")[2] for e in tape.exchanges] == [b"%d" % n for n in range(20)]


def test_pipelined_requests_are_answered_in_order(record: Make) -> None:
    async def echo(call: Call) -> None:
        await call.reply(f"<{call.request.target}>".encode())

    with Origin(echo) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(b"".join(f"GET {origin.url}/{n} HTTP/1.1\r\nHost: a\r\n\r\n".encode() for n in range(3)))
        for number in range(3):
            assert read_until(sock, b">").endswith(b"\r\n\r\n</%d>" % number)
    assert [e.response_body for e in recording.tape().exchanges] == [b"</0>", b"</1>", b"</2>"]


def test_eight_streams_at_once_do_not_mix(record: Make, authority: Authority) -> None:
    gates = [Gate() for _ in range(8)]

    async def interleave(call: Call) -> None:
        number = int(call.request.target[1:])
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"%d-a" % number)
        gates[number].open()
        for gate in gates:  # all eight are under way before any goes on
            await call.wait(gate)
        await call.chunk(b"%d-b" % number)
        await call.last_chunk()

    with Origin(interleave, tls=authority.serving("127.0.0.1")) as origin, record() as recording:

        def fetch(number: int) -> list[bytes]:
            with recording.client() as client, client.stream("GET", f"{origin.url}/{number}") as response:
                return list(response.iter_raw())

        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(fetch, range(8)))
    assert got == [[b"%d-a" % n, b"%d-b" % n] for n in range(8)]
    taped = {e.request.url.rpartition(b"/")[2]: [c.data for c in e.chunks] for e in recording.tape().exchanges}
    assert taped == {b"%d" % n: got[n] for n in range(8)}


def test_requests_can_speak_through_it(record: Make, authority: Authority) -> None:
    with (
        Origin(hello, tls=authority.serving("127.0.0.1")) as origin,
        record() as recording,
        requests.Session() as session,
    ):
        session.trust_env = False
        session.proxies = {"https": recording.url}
        session.verify = str(authority.cert)
        assert session.post(origin.url, data={"a": "b"}).content == b"hello"
    assert recording.exchange().request_body == b"a=b"


@pytest.mark.parametrize(
    ("value", "lane"),
    [
        ("p0/t1#3@17", ("p0/t1", 3, 17)),
        ("p0#0@0", ("p0", 0, 0)),
        ("p0", (None, None, None)),
        ("#1@2", (None, None, None)),
        ("p0#1@-2", (None, None, None)),
        ("", (None, None, None)),
    ],
)
def test_the_lane_header_goes_on_the_record_and_nowhere_else(
    record: Make, value: str, lane: tuple[str | None, int | None, int | None]
) -> None:
    with Origin(hello) as origin, record() as recording, recording.client() as client:
        client.get(origin.url, headers={"X-Tapeproxy-Lane": value})
        assert origin.requests[0].header("x-tapeproxy-lane") is None
    request = recording.exchange().request
    assert (request.lane, request.n, request.reads) == lane
    assert all(name.lower() != b"x-tapeproxy-lane" for name, _ in request.headers)


def test_a_secret_is_redacted_on_the_tape_alone(record: Make) -> None:
    secret = "sk-proj-AbCdEf0123456789xyzXYZ"
    halves = [f"data: {secret[:12]}".encode(), f"{secret[12:]}\n\n".encode()]

    async def leak(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        for half in halves:
            await call.chunk(half)
        await call.last_chunk()

    redactor = Redactor(KEY, [secret])
    with Origin(leak) as origin, record(redactor=redactor) as recording, recording.client() as client:
        with client.stream("POST", f"{origin.url}/?api_key=k123456789", content=secret.encode()) as response:
            assert list(response.iter_raw()) == halves
        assert origin.requests[0].body == secret.encode()
    exchange = recording.exchange()
    assert is_token(exchange.request_body) and b"k123456789" not in exchange.request.url
    assert [len(chunk.data) for chunk in exchange.chunks] == [len(half) for half in halves]
    assert secret.encode() not in exchange.response_body


def test_a_broken_off_stream_gives_up_what_was_held_back(record: Make) -> None:
    async def tease(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"key: sk-proj")
        call.close()

    redactor = Redactor(KEY, ["sk-proj-AbCdEf0123456789xyzXYZ"])
    with (
        Origin(tease) as origin,
        record(redactor=redactor) as recording,
        recording.client() as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.get(origin.url)
    assert chunks_of(recording) == [b"key: sk-proj"]


def test_of_a_secret_that_a_stream_breaks_off_in_nothing_is_taped(record: Make) -> None:
    async def tease(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"key: sk-proj-AbCdEf0123456789xyz")
        call.close()

    redactor = Redactor(KEY, ["sk-proj-AbCdEf0123456789xyzXYZ"])
    with Origin(tease) as origin, record(redactor=redactor) as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert b"sk-proj-AbCdEf0123456789xyz" in read_until(sock, b"(close)")
    (chunk,) = chunks_of(recording)
    assert chunk.startswith(b"key: tpx") and len(chunk) == 32


def test_a_secret_in_a_reason_or_a_lane_is_redacted(record: Make) -> None:
    secret = "sk-proj-AbCdEf0123456789xyzXYZ"

    async def leak(call: Call) -> None:
        await call.reply(b"", f"401 {secret} is not a key")

    redactor = Redactor(KEY, [secret])
    token = redactor.text(secret)
    with Origin(leak) as origin, record(redactor=redactor) as recording, recording.client() as client:
        assert secret in client.get(origin.url, headers={"x-tapeproxy-lane": f"{secret}#1@0"}).reason_phrase
    exchange = recording.exchange()
    assert exchange.request.lane == token
    assert exchange.response is not None and exchange.response.reason == f"{token} is not a key".encode()


class FailingTape:
    """A tape whose `add` fails from the n-th record on."""

    def __init__(self, writer: TapeWriter, good: int) -> None:
        self._writer = writer
        self._good = good
        self.now = writer.now
        self.commit = writer.commit

    def add(self, record: Record) -> int:
        self._good -= 1
        if self._good < 0:
            raise OSError("the disk is on fire")
        return self._writer.add(record)


class Watched:
    """A tape that opens a gate when a request is on it."""

    def __init__(self, writer: TapeWriter, asked: Gate) -> None:
        self._writer = writer
        self._asked = asked
        self.now = writer.now

    def add(self, record: Record) -> int:
        number = self._writer.add(record)
        if isinstance(record, Request):
            self._writer.commit()
            self._asked.open()
        return number

    def commit(self) -> None:
        self._writer.commit()


@pytest.mark.parametrize("good", [0, 1, 2, 4])
def test_a_tape_that_fails_changes_nothing_for_the_client(record: Make, good: int) -> None:
    with (
        Origin(stream) as origin,
        record(tape=lambda writer: FailingTape(writer, good)) as recording,
        recording.client() as client,
    ):
        for _ in range(2):
            with client.stream("GET", origin.url) as response:
                assert list(response.iter_raw()) == PIECES
    failures = recording.wire.failures
    assert failures.count > 0 and str(failures.first) == "the disk is on fire"


def test_a_big_upload_streams_and_is_taped_in_chunks(record: Make) -> None:
    recording = record()
    size = MAX_BODY + 100_000
    early: list[int] = []

    async def swallow(call: Call) -> None:
        await call.reply(b"%d" % len(call.request.body))

    def body() -> Iterator[bytes]:
        yield b"a" * (size // 2)
        early.append(len(recording.records(Request)))
        yield b"b" * (size - size // 2)

    with Origin(swallow) as origin, recording, recording.client() as client:
        response = client.post(origin.url, content=body(), headers={"Content-Length": str(size)})
    assert response.content == b"%d" % size
    exchange = recording.exchange()
    assert early == [1], "the request's head is on the tape while its body is still being sent"
    assert exchange.request.body == b""
    assert exchange.request_body == b"a" * (size // 2) + b"b" * (size - size // 2)


def test_an_answer_that_comes_before_the_end_of_a_big_upload(record: Make) -> None:
    """413, and the server has heard enough."""
    size = MAX_BODY + 1
    with socket.create_server(("127.0.0.1", 0)) as server, record() as recording, recording.connect() as sock:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        sock.sendall(f"POST {url} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\nbegin".encode())
        peer, _ = server.accept()
        with peer:
            assert read_until(peer, b"begin").endswith(b"begin")
            peer.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            assert read_until(sock, b"no").endswith(b"\r\n\r\nno")
            sock.sendall(b"more")
            assert read_until(peer, b"more") == b"more"
    exchange = recording.exchange()
    assert exchange.end is not None and exchange.end.how == "complete"
    assert exchange.response_body == b"no" and exchange.request_body == b"begin"
    assert recording.wire.failures.count == 0


def test_a_big_upload_of_unknown_length_streams_from_where_it_is_too_big(
    record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 200_000
    monkeypatch.setattr("tapeproxy.addons.inline.MAX_BODY", most)
    early: list[int] = []
    gone_on = Gate()

    async def swallow(call: Call) -> None:
        await call.reply(b"%d" % len(call.request.body))

    def body() -> Iterator[bytes]:
        yield b"a" * most
        early.append(len(recording.records(Request)))
        yield b"b" * 1000
        gone_on.passed()
        early.append(len(recording.records(Request)))
        yield b"c"

    with (
        Origin(swallow) as origin,
        record(tape=lambda writer: Watched(writer, gone_on)) as recording,
        recording.client() as client,
    ):
        assert client.post(origin.url, content=body()).content == b"%d" % (most + 1001)
    assert early == [0, 1]
    assert recording.exchange().request_body == b"a" * most + b"b" * 1000 + b"c"
    assert recording.wire.failures.count == 0


def test_a_growing_upload_goes_where_a_host_is_mapped_to(record: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapeproxy.addons.inline.MAX_BODY", 1000)
    with Origin(hello) as origin, record(hosts={"api.example.com": origin.url}) as recording:
        with recording.client() as client:
            client.post("http://api.example.com/", content=iter([b"x" * 2000]))
        assert origin.requests[0].body == b"x" * 2000
    assert recording.exchange().request.url == b"http://api.example.com/"


def test_a_small_chunked_upload_is_one_body(record: Make) -> None:
    with Origin(hello) as origin, record() as recording, recording.client() as client:
        client.post(origin.url, content=iter([b"one", b"two"]))
        assert origin.requests[0].body == b"onetwo"
    assert recording.exchange().request.body == b"onetwo"


def test_expect_continue_is_answered_and_taped(record: Make) -> None:
    body = b"z" * 2000
    with Origin(hello) as origin, record() as recording, recording.connect() as sock:
        head = f"POST {origin.url}/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode())
        assert read_until(sock, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert read_until(sock, b"hello").endswith(b"\r\n\r\nhello")
        assert origin.requests[0].header("Expect") is None
    exchange = recording.exchange()
    assert (b"Expect", b"100-continue") in exchange.request.headers
    assert exchange.request_body == body


def test_a_server_that_declares_length_and_chunked_is_left_to_the_client(record: Make) -> None:
    async def both(call: Call) -> None:
        await call.head("200 OK", "Content-Length: 2", "Transfer-Encoding: chunked")
        await call.chunk(b"ok")
        await call.last_chunk()

    with Origin(both) as origin, record() as recording, recording.client() as client:
        assert client.get(origin.url).content == b"ok"
    response = recording.exchange().response
    assert response is not None and response.framing == "chunked"
