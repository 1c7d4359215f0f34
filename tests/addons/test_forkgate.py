"""The addon of a fork in a real mitmproxy: to the tape server with a ticket, out with its edit, or nowhere."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from authority import Authority
from origin import PATIENCE, Call, Origin
from recording import KEY, Recording, read_all

from tapeproxy.proxy.forkwire import ForkWire
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.wireoptions import WireOptions
from tapeproxy.tapes.forkverdict import TICKET_HEADER, Verdict
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.records import End, Request
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.violations import Violation


class Judge:
    """Decides as it was told; keeps what it was asked."""

    def __init__(self) -> None:
        self.verdict: Callable[[Request], Verdict] = lambda _: Verdict("live")
        self.asked: list[tuple[Request, LaneTag | None]] = []
        self.over: list[Verdict] = []
        self.unread: list[bytes] = []

    def judge(self, request: Request, tag: LaneTag | None, port: int) -> Verdict:
        assert port
        self.asked.append((request, tag))
        return self.verdict(request)

    def judge_call(self, request: Request, tag: LaneTag | None, port: int) -> Verdict | None:
        return None

    def refused(self, line: bytes, reason: str) -> None:
        assert reason
        self.unread.append(line)

    def kept_off(self, host: str, port: int, line: bytes) -> Violation | None:
        return None

    def speaks_http2(self, host: str, port: int) -> bool | None:
        return None

    def ended(self, verdict: Verdict) -> None:
        self.over.append(verdict)


class Forking(Recording):
    """A recording by the wire of a fork; `tape` is where it takes the tape server to be."""

    def __init__(self, folder: Path, authority: Authority, judge: Judge, tape: Origin, hosts: dict[str, str]) -> None:
        super().__init__(folder, authority)
        options = WireOptions(confdir=authority.folder, upstream_ca=authority.cert, hosts=hosts)
        wire = ForkWire(options, self._writer, Redactor(KEY), RunProcesses("none"), lambda _port: None)
        wire.obey(judge, tape.port)
        self.wire = wire


async def taped(call: Call) -> None:
    headers = dict(call.request.headers)
    assert call.request.body == b""
    await call.reply(f"ticket {headers[TICKET_HEADER.decode()]} for {call.request.method}".encode())


async def world(call: Call) -> None:
    await call.reply(call.request.target.encode() + b" " + call.request.body)


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def forking(tmp_path: Path, authority: Authority, judge: Judge) -> Iterator[Forking]:
    """Requests to api.example.com go to a world of our own, over TLS."""
    with Origin(taped) as tape, Origin(world, tls=authority.serving("127.0.0.1")) as out:
        hosts = {"api.example.com": out.url, "127.0.0.1": "http://127.0.0.1:9"}
        with Forking(tmp_path, authority, judge, tape, hosts) as running:
            yield running


def test_what_the_tape_answers_comes_from_the_tape_server_and_is_taped_as_the_agent_sent_it(
    forking: Forking, judge: Judge
) -> None:
    judge.verdict = lambda _: Verdict("reused", 7)
    with forking.client() as client:
        headers = {"x-tapeproxy-lane": "m/t0#3@9", "authorization": "Bearer x"}
        answer = client.post("https://api.example.com/v1?a=1", content=b"question", headers=headers)
        assert answer.text == "ticket 7 for POST"
    forking.finish()
    forking.join()
    ((request, tag),) = judge.asked
    assert (request.url, request.body, tag) == (b"https://api.example.com/v1?a=1", b"question", LaneTag("m/t0", 3, 9))
    exchange = forking.exchange()
    assert (exchange.request.source, exchange.request.body, exchange.request.lane) == ("reused", b"question", "m/t0")
    assert exchange.request.url == b"https://api.example.com/v1?a=1"
    assert exchange.response_body == b"ticket 7 for POST"
    assert [verdict.ticket for verdict in judge.over] == [7]
    assert forking.wire.failures.count == 0


def test_what_goes_out_is_changed_for_the_world_alone(forking: Forking, judge: Judge) -> None:
    def edit(request: Request) -> Request:
        return replace(request, body=b"a longer question", url=request.url.replace(b"v1", b"v2"))

    judge.verdict = lambda _: Verdict("live", edit=edit)
    with forking.client() as client:
        assert client.post("https://api.example.com/v1", content=b"question").text == "/v2 a longer question"
    forking.finish()
    forking.join()
    request = forking.exchange().request
    assert (request.source, request.url, request.body) == ("live", b"https://api.example.com/v1", b"question")


def test_a_long_upload_is_decided_about_whole(forking: Forking, judge: Judge) -> None:
    body = b"x" * (33 << 20)
    judge.verdict = lambda request: Verdict("reused", len(request.body) if isinstance(request.body, bytes) else 0)
    with forking.client() as client:
        assert client.post("https://api.example.com/", content=body).text == f"ticket {33 << 20} for POST"


def test_how_a_taped_exchange_ended_is_taped_again(tmp_path: Path, authority: Authority, judge: Judge) -> None:
    async def drop(call: Call) -> None:
        call.close()

    end = End(t=0, of=1, how="connect-error", error="connection refused")
    judge.verdict = lambda _: Verdict("reused", 1, end)
    with Origin(drop) as tape, Forking(tmp_path, authority, judge, tape, {}) as running:
        with running.client() as client, pytest.raises(httpx.TransportError):
            client.get("https://api.example.com/")
        running.finish()
        running.join()
        found = running.exchange().end
    assert found is not None
    assert (found.how, found.error) == ("connect-error", "connection refused")


def test_what_nobody_could_decide_about_goes_nowhere(forking: Forking, judge: Judge) -> None:
    def fail(_: Request) -> Verdict:
        raise RuntimeError("no verdict")

    judge.verdict = fail
    with forking.client() as client, pytest.raises(httpx.TransportError):
        client.get("https://api.example.com/")
    assert forking.wire.failures.count >= 1


def test_what_is_not_http_does_not_pass(forking: Forking, judge: Judge) -> None:
    with forking.tunnel("127.0.0.1", 9) as sock:
        sock.settimeout(PATIENCE)
        sock.sendall(b"\x00\x01\x02\x03 not http\r\n\r\n")
        read_all(sock)
    assert judge.unread
    assert judge.asked == []
