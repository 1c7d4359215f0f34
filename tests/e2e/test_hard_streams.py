"""Hard inputs 9-17, 21, 23, 26, 30 and 32, by number: what passes both wires, to the byte and in its time."""

import asyncio
import gzip
import io
import sys
import tarfile
import time
import zlib
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

import brotli
import pytest
import requests
import zstandard
from authority import Authority
from bothwires import URL, BothWires
from clirun import Cli, maps
from noderuns import node
from origin import Call, Gate, Handler, Origin
from origin2 import Call as Call2
from origin2 import Origin2
from wireclients import CLIENTS, Client, Reply, Sent, Way, curl, each_client

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.tapes.exchanges import Chunk

STREAM = ("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
ODD = b"\0\xff\r\n0\r\n\r\n"


def ask(client: Client, sent: Sent) -> Callable[[Way], Reply]:
    """A client that sends one request."""
    return lambda way: client(way, sent)


# --- streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [None, 1.0], ids=["at once", "paced"])
def test_09_the_first_byte_comes_at_once_of_a_stream_that_goes_on_and_on(wires: BothWires, speed: float | None) -> None:
    """A client that gives up after a silence of its read timeout hears the beginning long before the end is due."""
    more = Gate()

    async def slow(call: Call) -> None:
        await call.head(*STREAM)
        await call.chunk(b"data: first\n\n")
        await call.wait(more)
        await call.chunk(b"data: last\n\n")
        await call.last_chunk()

    def play(way: Way) -> bytes:
        with way.httpx(timeout=10) as client, client.stream("GET", URL) as reply:
            first = next(chunks := reply.iter_raw())
            more.open()
            return first if speed else first + b"".join(chunks)

    wires.record(slow, play)
    exchange = wires.exchange()
    # What was taped in a moment is stretched: the first chunk is where it was, the last an hour later.
    first = exchange.chunks[0]
    assert first.t is not None
    exchange.chunks = [first, Chunk(first.t + 3600 * 10**9, b"data: last\n\n")]
    assert wires.replay(play, speed=speed) == b"data: first\n\n" + (b"" if speed else b"data: last\n\n")


def streamed_by_httpx(way: Way) -> Generator[bytes]:
    with way.httpx() as client, client.stream("GET", URL) as reply:
        yield from reply.iter_raw()


def streamed_by_requests(way: Way) -> Generator[bytes]:
    with requests.Session() as session:
        session.trust_env = False
        with session.get(URL, stream=True, proxies={"https": way.proxy}, verify=way.cafile, timeout=30) as reply:
            yield from reply.iter_content(None)


def streamed_by_openai(way: Way) -> Generator[bytes]:
    """Reads up to `[DONE]`, and closes."""
    with way.openai() as client:
        for part in client.chat.completions.create(model="m", messages=[{"role": "user", "content": "a"}], stream=True):
            yield (part.choices[0].delta.content or "").encode()


@pytest.mark.parametrize("stream", [streamed_by_httpx, streamed_by_requests], ids=["httpx", "requests"])
def test_10_chunks_come_one_by_one_when_paced(wires: BothWires, stream: Callable[[Way], Generator[bytes]]) -> None:
    pieces = [b"data: %d\n\n" % n for n in range(4)]

    async def answer(call: Call) -> None:
        await call.head(*STREAM)
        for piece in pieces:
            await call.chunk(piece)
            await asyncio.sleep(0.05)  # the distance that is measured
        await call.last_chunk()

    def play(way: Way) -> list[tuple[bytes, float]]:
        began = time.monotonic()
        return [(data, time.monotonic() - began) for data in stream(way)]

    wires.record(answer, play)
    exchange = wires.exchange()
    assert [chunk.data for chunk in exchange.chunks] == pieces
    heard = wires.replay(play, speed=1.0)
    assert [data for data, _ in heard] == pieces
    due = [chunk.t for chunk in exchange.chunks if chunk.t is not None]
    for t, (_, moment) in zip(due, heard, strict=True):
        assert moment >= (t - due[0]) / 1e9 - 0.002
    assert b"".join(data for data, _ in wires.replay(play)) == b"".join(pieces)


def part(text: str) -> bytes:
    choice = f'{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}'
    return b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%b]}\n\n' % (
        choice.encode()
    )


# The SDK of openai reads a stream to its end after [DONE].
@pytest.mark.parametrize(("client", "ends"), [("openai", True), ("httpx", True), ("httpx", False)])
def test_11_nothing_is_lost_of_a_client_that_leaves_at_done(wires: BothWires, client: str, ends: bool) -> None:
    said = [part("a"), part("b"), b"data: [DONE]\n\n"]

    async def answer(call: Call) -> None:
        await call.head(*STREAM)
        for piece in said:
            await call.chunk(piece)
        if ends:
            await call.last_chunk()
        else:
            await call.gone()

    def play(way: Way) -> list[bytes]:
        if client == "openai":
            return list(streamed_by_openai(way))
        heard: list[bytes] = []
        for piece in streamed_by_httpx(way):
            heard.append(piece)
            if b"[DONE]" in piece:
                break
        return heard

    assert wires.record(answer, play) == ([b"a", b"b"] if client == "openai" else said)
    assert wires.exchange().response_body == b"".join(said)
    assert wires.replay(play) == ([b"a", b"b"] if client == "openai" else said)


@each_client
def test_12_a_server_that_goes_leaves_what_came(wires: BothWires, client: Client) -> None:
    async def answer(call: Call) -> None:
        await call.head(*STREAM)
        await call.chunk(b"data: half")
        call.close()

    def play(way: Way) -> str:
        with pytest.raises(Exception) as caught:  # each client has a name of its own for it
            client(way, Sent("GET", f"{URL}/cut"))
        return type(caught.value).__name__

    wires.same(answer, play)
    exchange = wires.exchange()
    assert exchange.end is not None and exchange.end.how == "upstream-cut"
    assert exchange.response_body == b"data: half"


@pytest.mark.parametrize("stream", [streamed_by_httpx, streamed_by_requests], ids=["httpx", "requests"])
def test_12_a_client_that_goes_leaves_what_came(wires: BothWires, stream: Callable[[Way], Generator[bytes]]) -> None:
    left = Gate()

    async def answer(call: Call) -> None:
        await call.head(*STREAM)
        await call.chunk(b"data: half")
        await call.gone()
        left.open()

    def play(way: Way) -> bytes:
        parts = stream(way)
        first = next(parts)
        parts.close()
        return first

    def live(way: Way) -> bytes:
        first = play(way)
        left.passed()
        return first

    assert wires.record(answer, live) == b"data: half"
    end = wires.exchange().end
    assert end is not None and end.how == "client-gone"
    assert wires.replay(play) == b"data: half"


# --- framing ------------------------------------------------------------------------------------------------------


@each_client
def test_13_chunk_extensions_trailers_and_a_body_that_looks_like_an_end(wires: BothWires, client: Client) -> None:
    async def answer(call: Call) -> None:
        await call.head("200 OK", "Trailer: X-Sum", "Transfer-Encoding: chunked")
        await call.send(b"4;ext=1\r\nbody\r\n")
        await call.chunk(b"0\r\n\r\n")
        await call.chunk(b"and 0\r\n")
        await call.last_chunk("X-Sum: abc")

    heard = wires.same(answer, ask(client, Sent("GET", f"{URL}/odd")))
    assert heard.body == b"body0\r\n\r\nand 0\r\n"
    end = wires.exchange().end
    assert end is not None and end.trailers == ((b"X-Sum", b"abc"),)
    if client is CLIENTS["curl"]:
        assert heard.all("x-sum") == ["abc"]


@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [
        ("HEAD", "200 OK", ("Content-Length: 1488324", "X-A: 1")),
        ("GET", "304 Not Modified", ('ETag: "x"', "X-A: 1")),
        ("DELETE", "204 No Content", ("X-A: 1",)),
    ],
    ids=["HEAD", "304", "204"],
)
@each_client
def test_14_answers_without_a_body(
    wires: BothWires, client: Client, method: str, status: str, headers: tuple[str, ...]
) -> None:
    async def answer(call: Call) -> None:
        await call.head(status, *headers)

    heard = wires.same(answer, ask(client, Sent(method, f"{URL}/none")))
    assert (heard.status, heard.body, heard.all("x-a")) == (int(status[:3]), b"", ["1"])
    assert [f"Content-Length: {value}" for value in heard.all("content-length")] == list(
        headers[:1] * (method == "HEAD")
    )


@pytest.mark.parametrize("client", ["httpx", "aiohttp", "curl"])  # those that know a 103
def test_15_expect_100_and_an_early_hint(wires: BothWires, client: str) -> None:
    async def answer(call: Call) -> None:
        await call.head("103 Early Hints", "Link: </a>")
        await call.reply(b"%d" % len(call.request.body))

    headers = (("expect", "100-continue"), ("content-type", "text/plain"))
    sent = Sent("POST", f"{URL}/big", b"z" * 5000, headers)
    assert wires.same(answer, ask(CLIENTS[client], sent)).body == b"5000"
    response = wires.exchange().response
    assert response is not None and response.informational == ((103, ((b"Link", b"</a>"),)),)


def test_15_curl_sees_the_hint(wires: BothWires) -> None:
    async def answer(call: Call) -> None:
        await call.head("103 Early Hints", "Link: </a>")
        await call.reply(b"ok")

    def play(way: Way) -> list[bytes]:
        # The words after a status of 1xx are on no tape.
        lines = curl(way, "--include", "-H", "Expect: 100-continue", "--data-binary", "z" * 2000, URL).body.splitlines()
        return [line[:12] for line in lines if line.startswith((b"HTTP/", b"Link"))]

    assert wires.same(answer, play) == [b"HTTP/1.1 100", b"HTTP/1.1 103", b"Link: </a>", b"HTTP/1.1 200"]


def brotli_at(data: bytes, level: int) -> bytes:
    return brotli.compress(data, quality=level)


def gzip_at(data: bytes, level: int) -> bytes:
    return gzip.compress(data, level, mtime=0)


CODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": gzip_at,
    "deflate": zlib.compress,
    "br": brotli_at,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", CODERS)
@each_client
def test_16_coded_answers_and_coded_requests(wires: BothWires, client: Client, coding: str) -> None:
    """Requests are coded at another level, and so in other bytes, when they are replayed; answers stay as they were."""
    text = b'{"a": "%b"}' % " ".join(f"word {n * n}" for n in range(300)).encode()

    async def answer(call: Call) -> None:
        headers = ("Content-Type: application/json", f"Content-Encoding: {coding}")
        await call.reply(CODERS[coding](call.request.body[:4] + text, 5), "200 OK", *headers)

    def at(level: int) -> Callable[[Way], Reply]:
        body = CODERS[coding](text, level)
        headers = (("content-type", "application/json"), ("content-encoding", coding), ("accept-encoding", coding))
        return ask(client, Sent("POST", f"{URL}/coded", body, headers))

    live = wires.record(answer, at(1))
    assert wires.exchange().request_body == CODERS[coding](text, 1) != CODERS[coding](text, 9)
    assert wires.replay(at(9)) == live
    if client is CLIENTS["httpx"]:
        assert live.body.endswith(text)


@each_client
def test_17_two_cookies_stay_two_and_in_order(wires: BothWires, client: Client) -> None:
    values = ["b=s3cr3tValueOfSessionB0123; Path=/", "a=s3cr3tValueOfSessionA0123; HttpOnly"]

    async def answer(call: Call) -> None:
        await call.reply(b"ok", "200 OK", *[f"Set-Cookie: {value}" for value in values])

    play = ask(client, Sent("GET", f"{URL}/login", headers=(("cookie", "c=s3cr3tValueOfClient012345"),)))
    assert wires.record(answer, play).all("set-cookie") == values
    assert b"s3cr3t" not in wires.text
    again = wires.replay(play).all("set-cookie")
    assert [(value[:2], value.partition(";")[2], len(value)) for value in again] == [
        (value[:2], value.partition(";")[2], len(value)) for value in values
    ]


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return out.getvalue()


UPLOADS = {
    "tar": ("application/x-tar", tarred()),
    "csv": ("text/csv; charset=windows-31j", "名前,値\r\n猫ソ表,1\r\n".encode("cp932")),
    "pdf": ("application/pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(range(256)) + b"\n%%EOF\n"),
}


@pytest.mark.parametrize("kind", UPLOADS)
@each_client
def test_21_a_tar_a_csv_and_a_pdf(wires: BothWires, client: Client, kind: str) -> None:
    media, data = UPLOADS[kind]

    async def echo(call: Call) -> None:
        await call.reply(call.request.body, "200 OK", f"Content-Type: {media}")

    sent = Sent("POST", f"{URL}/upload", data, (("content-type", media),))
    assert wires.same(echo, ask(client, sent)).body == data
    assert wires.exchange().request_body == wires.exchange().response_body == data
    _, kinds, _ = wires.replay_anyhow(ask(client, sent._replace(body=data[:-1] + b"?")))
    assert kinds == ["miss"]


@each_client
def test_23_a_secret_in_the_path_is_on_no_tape(wires: BothWires, client: Client) -> None:
    """And another one in its place, as on another machine, finds the same answer."""

    async def answer(call: Call) -> None:
        await call.reply(call.request.target.encode())

    def at(secret: str) -> Sent:
        return Sent("GET", f"{URL}/bot/{secret}/send?v=1")

    secrets = ["sk-proj-AbCdEf0123456789xyzXYZabcdEFGH", "sk-proj-ZyXwVu9876543210abcABCdcbaHGFE"]
    assert wires.record(answer, ask(client, at(secrets[0]))).body == f"/bot/{secrets[0]}/send?v=1".encode()
    assert b"AbCdEf0123" not in wires.text
    again = wires.replay(ask(client, at(secrets[1])))
    assert again.body.startswith(b"/bot/") and b"AbCdEf0123" not in again.body


@each_client
def test_30_a_redirect_followed_and_not(wires: BothWires, client: Client) -> None:
    async def answer(call: Call) -> None:
        if call.request.target == "/there":
            await call.reply(b"there")
        else:
            await call.reply(b"", "302 Found", "Location: /there")

    def play(way: Way) -> list[Reply]:
        return [client(way, Sent("GET", f"{URL}/moved", follow=follow)) for follow in (False, True)]

    stayed, followed = wires.same(answer, play)
    assert (stayed.status, stayed.all("location")) == (302, ["/there"])
    assert (followed.status, followed.body) == (200, b"there")
    assert [one.request.url.rpartition(b"/")[2] for one in wires.tape.exchanges] == [b"moved", b"moved", b"there"]


@each_client
def test_32_a_large_request_that_is_a_violation_gets_its_answer(wires: BothWires, client: Client) -> None:
    async def answer(call: Call) -> None:
        await call.reply(b"%d" % len(call.request.body))

    big = Sent("POST", f"{URL}/big", b"x" * (3 << 20), (("content-type", "application/octet-stream"),))
    assert wires.same(answer, ask(client, big)).body == b"%d" % (3 << 20)
    heard, kinds, unused = wires.replay_anyhow(ask(client, big._replace(body=b"y" * (3 << 20))))
    assert (heard.status, kinds, unused) == (470, ["miss"], 1)
    assert b"not on the tape" in heard.body


# --- waiting ------------------------------------------------------------------------------------------------------


def busy() -> Handler:
    """429 with Retry-After first, then the answer."""
    first = iter([True])

    async def answer(call: Call) -> None:
        if next(first, False):
            await call.reply(b"", "429 Too Many Requests", "Retry-After: 20")
        else:
            await call.reply(b"at last")

    return answer


@pytest.mark.parametrize("speed", [None, 1.0], ids=["at once", "paced"])
@each_client
def test_26_a_retry_after_is_passed_on_and_not_kept_to(wires: BothWires, client: Client, speed: float | None) -> None:
    def play(way: Way) -> list[Reply]:
        return [client(way, Sent("GET", f"{URL}/busy")) for _ in range(2)]

    live = wires.record(busy(), play)
    began = time.monotonic()
    assert wires.replay(play, speed=speed) == live
    assert time.monotonic() - began < 15
    assert (live[0].status, live[0].all("retry-after"), live[1].body) == (429, ["20"], b"at last")


PATIENT = """
import httpx, sys, time
while True:
    reply = httpx.get("https://search.example.com/busy", timeout=30)
    print(reply.status_code, reply.text)
    if reply.status_code == 200:
        break
    if sys.argv[1:]:
        time.sleep(float(reply.headers["retry-after"]))
"""


def test_26_an_agent_that_keeps_to_it_does_not_wait_either(cli: Cli, home: Path) -> None:
    """It waits on the clamped clock, which a replay moves on."""
    (cli.cwd / "agent.py").write_text(PATIENT)
    agent = ["--", sys.executable, "agent.py"]
    with Origin(busy(), tls=CertificateAuthority.open(home).server_context("127.0.0.1")) as origin:
        recorded = cli.run("record", "-o", "t.jsonl.gz", *maps(origin.url), *agent)
    assert (recorded.returncode, recorded.stdout) == (0, "429 \n200 at last\n"), recorded.stderr
    began = time.monotonic()
    replayed = cli.run("replay", "t.jsonl.gz", *agent, "patiently")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert time.monotonic() - began < 18


class Polled:
    """Lines of JSON, and a poll that is answered by what another request brings about, in either version of HTTP.

    The second half of the lines comes once the client has said that it has the first.
    """

    def __init__(self) -> None:
        self.heard, self.happened = Gate(), Gate()

    async def answer1(self, call: Call) -> None:
        path = call.request.target
        if path != "/lines":
            await self._meet(path, call.wait)
            await call.reply(path.encode())
            return
        await call.head("200 OK", "Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
        for number in range(4):
            if number == 2:
                await call.wait(self.heard)
            await call.chunk(b'{"n": %d}\n' % number)
        await call.last_chunk()

    async def answer2(self, call: Call2) -> None:
        if call.path != "/lines":
            await self._meet(call.path, call.wait)
            await call.head(200)
            await call.data(call.path.encode(), end=True)
            return
        await call.head(200, ("content-type", "application/x-ndjson"))
        for number in range(4):
            if number == 2:
                await call.wait(self.heard)
            await call.data(b'{"n": %d}\n' % number, end=number == 3)

    async def _meet(self, path: str, wait: Callable[[Gate], Awaitable[None]]) -> None:
        if path == "/poll":
            await wait(self.happened)
        else:
            (self.heard if path == "/heard" else self.happened).open()


POLLERS = {
    "python": (
        """
import asyncio, sys, httpx
async def main():
    url, http2 = sys.argv[1], sys.argv[2] == "h2"
    async with httpx.AsyncClient(http2=http2, timeout=20) as client:
        async with client.stream("GET", url + "/lines") as reply:
            async for line in reply.aiter_lines():
                print(reply.http_version, line, flush=True)
                if '"n": 1' in line:
                    print((await client.get(url + "/heard")).text, flush=True)
        polling = asyncio.create_task(client.get(url + "/poll"))
        await asyncio.sleep(0.05)
        print((await client.get(url + "/do")).text, (await polling).text)
asyncio.run(main())
"""
    ),
    "node": (
        """
const [url] = process.argv.slice(2);
const text = async (path) => (await fetch(url + path)).text();
let rest = "";
for await (const piece of (await fetch(url + "/lines")).body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + piece).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    console.log(line);
    if (line.includes('"n": 1')) console.log(await text("/heard"));
  }
}
const polling = text("/poll");
await new Promise((done) => setTimeout(done, 50));
console.log(await text("/do"), await polling);
"""
    ),
}


@pytest.mark.parametrize(("program", "version"), [("python", "h1"), ("python", "h2"), ("node", "h1")])
def test_lines_of_json_and_long_polls_in_either_version(
    cli: Cli, authority: Authority, program: str, version: str
) -> None:
    file = cli.cwd / ("agent.py" if program == "python" else "agent.mjs")
    file.write_text(POLLERS[program])
    polled, tls = Polled(), authority.serving("127.0.0.1")
    with Origin(polled.answer1, tls=tls) if version == "h1" else Origin2(polled.answer2, tls) as origin:
        argv = [sys.executable if program == "python" else node(), file.name, origin.url, version]
        done = cli.run("record", "-o", "t.tape.jsonl.gz", "--upstream-ca", str(authority.cert), "--", *argv)
    assert done.returncode == 0, done.stderr
    words = [line.removeprefix("HTTP/1.1 ").removeprefix("HTTP/2 ") for line in done.stdout.splitlines()]
    assert words == ['{"n": 0}', '{"n": 1}', "/heard", '{"n": 2}', '{"n": 3}', "/do /poll"]
    for pace in ((), ("--pace", "recorded")):
        again = cli.run("replay", "t.tape.jsonl.gz", *pace)
        assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
        assert "4 of 4 exchanges served, 0 violations" in again.stderr
