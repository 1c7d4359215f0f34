"""mitmproxy's faults in HTTP/1: guarded against here, and each with a test that fails once its guard can go."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from authority import Authority
from origin import Call, Gate, Origin
from recording import Recording, read_until

from tapeproxy.addons.early import MOST_EARLY

type Make = Callable[..., Recording]

_PROBE = "from tapeproxy.addons import h1fixes; print(h1fixes.{name}(), h1fixes.apply(), h1fixes.{name}())"


GUARDS = {
    "trailers": "loses_trailers",
    "informational": "stalls_on_informational",
    "no body": "ends_what_has_no_body",
    "resets": "takes_a_cut_for_an_end",
    "doubled framing": "refuses_doubled_framing",
    "raw paths": "refuses_raw_paths",
}


@pytest.mark.parametrize(("guard", "probe"), GUARDS.items())
def test_the_fault_is_still_there(guard: str, probe: str) -> None:
    """When this fails, the installed mitmproxy has mended the fault: delete the guard."""
    # In a process of its own, for guards stay once they are in.
    out = subprocess.run(
        [sys.executable, "-c", _PROBE.format(name=probe)], capture_output=True, text=True, check=True
    ).stdout
    assert out == f"True {tuple(GUARDS)} True\n", f"guard {guard!r}"


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_response_trailers_reach_the_client_and_the_tape(record: Make, authority: Authority, secure: bool) -> None:
    async def trailing(call: Call) -> None:
        await call.head("200 OK", "Trailer: X-Checksum, X-Two", "Transfer-Encoding: chunked")
        await call.chunk(b"body")
        await call.last_chunk("X-Checksum: abc", "x-Two: 2")

    tls = authority.serving("127.0.0.1") if secure else None
    with Origin(trailing, tls=tls) as origin, record() as recording:
        target = "/" if secure else origin.url
        context = authority.trusting() if secure else None
        with recording.tunnel("127.0.0.1", origin.port, context) if secure else recording.connect() as sock:
            for _ in range(2):  # the connection is as good as before
                sock.sendall(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                got = read_until(sock, b"2\r\n\r\n")
                assert got.endswith(b"4\r\nbody\r\n0\r\nX-Checksum: abc\r\nx-Two: 2\r\n\r\n")
    for exchange in recording.tape().exchanges:
        assert exchange.end is not None and exchange.end.how == "complete"
        assert exchange.end.trailers == ((b"X-Checksum", b"abc"), (b"x-Two", b"2"))
        assert exchange.response_body == b"body"
    assert recording.wire.failures.count == 0


def test_trailers_one_byte_at_a_time(record: Make) -> None:
    async def dribble(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        for byte in b"4\r\nbody\r\n0\r\nA: b\r\n\r\n":
            await call.send(bytes([byte]))

    with Origin(dribble) as origin, record() as recording, recording.client() as client:
        assert client.get(origin.url).content == b"body"
    end = recording.exchange().end
    assert end is not None and end.trailers == ((b"A", b"b"),)


def test_request_trailers_reach_the_server(record: Make) -> None:
    seen: list[bytes] = []

    async def raw(call: Call) -> None:
        await call.reply(b"ok")

    with Origin(raw) as origin, record() as recording, recording.connect() as sock:
        head = f"POST {origin.url}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        for _ in range(2):
            sock.sendall(head.encode() + b"3\r\none\r\n0\r\nX-Sum: 1\r\n\r\n")
            assert read_until(sock, b"ok").endswith(b"ok")
        seen = [request.body for request in origin.requests]
        assert [request.trailers for request in origin.requests] == [(("X-Sum", "1"),)] * 2
    assert seen == [b"one", b"one"]
    assert [e.request_body for e in recording.tape().exchanges] == seen


def test_trailers_of_one_pipelined_request_are_not_given_to_the_next(record: Make) -> None:
    async def ok(call: Call) -> None:
        await call.reply(b"ok;")

    with Origin(ok) as origin, record() as recording, recording.connect() as sock:
        head = f"POST {origin.url}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n".encode()
        sock.sendall(head + b"A: b\r\n\r\n" + head + b"\r\n")
        for _ in range(2):
            read_until(sock, b"ok;")
        assert [request.trailers for request in origin.requests] == [(("A", "b"),), ()]
    assert len(recording.tape().exchanges) == 2


HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
BUSY = b"HTTP/1.1 102 Processing\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    "writes",
    [[HINT, FINAL], [HINT + FINAL], [HINT, BUSY, FINAL], [HINT[:20], HINT[20:] + BUSY + FINAL[:9], FINAL[9:]]],
    ids=["apart", "together", "two", "torn"],
)
def test_informational_responses_reach_the_client_and_the_tape(record: Make, writes: list[bytes]) -> None:
    async def early(call: Call) -> None:
        for write in writes:
            await call.send(write)

    raw = b"".join(writes)
    with Origin(early) as origin, record() as recording, recording.connect() as sock:
        for _ in range(2):
            sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert read_until(sock, b"\r\n\r\nok") == raw
    hints = ((103, ((b"Link", b"</a.css>"),)),)
    for exchange in recording.tape().exchanges:
        assert exchange.response is not None and exchange.response.status == 200
        assert exchange.response.informational == ((*hints, (102, ())) if BUSY in raw else hints)
        assert exchange.response_body == b"ok"


def test_a_hint_reaches_the_client_before_the_answer_is_sent(record: Make) -> None:
    hinted = Gate()

    async def early(call: Call) -> None:
        await call.send(HINT)
        await call.wait(hinted)
        await call.send(FINAL)

    with Origin(early) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert read_until(sock, b"\r\n\r\n") == HINT
        hinted.open()
        assert read_until(sock, b"ok") == FINAL


def test_hints_without_end_pass_and_the_tape_has_the_first_ones(record: Make) -> None:
    count = MOST_EARLY + 50

    async def flood(call: Call) -> None:
        await call.send(b"".join(HINT.replace(b"a", b"%d" % number) for number in range(count)))
        await call.send(FINAL)

    with Origin(flood) as origin, record() as recording:
        with recording.connect() as sock:
            for _ in range(2):
                sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                assert read_until(sock, b"\r\n\r\nok").count(b"HTTP/1.1 103 ") == count
        assert recording.wire.untaped == {("early-untaped", "127.0.0.1"): 2}
    tape = recording.tape()
    for exchange in tape.exchanges:
        assert exchange.response is not None
        assert [fields[0][1] for _, fields in exchange.response.informational] == [
            b"</%d.css>" % number for number in range(MOST_EARLY)
        ]
    assert [note.text.partition(" ")[0] for note in tape.notes] == ["50", "50"]


def test_an_old_client_gets_no_hints(record: Make) -> None:
    async def early(call: Call) -> None:
        await call.send(HINT + FINAL)

    with Origin(early) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.0\r\nHost: a\r\n\r\n".encode())
        assert read_until(sock, b"\r\n\r\nok") == FINAL
    response = recording.exchange().response
    assert response is not None and [status for status, _ in response.informational] == [103]


def test_a_hint_without_an_answer_is_an_upstream_cut(record: Make) -> None:
    async def tease(call: Call) -> None:
        await call.send(HINT)
        call.close()

    with Origin(tease) as origin, record() as recording, recording.connect() as sock:
        sock.sendall(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert read_until(sock, b"nothing more") == HINT
    exchange = recording.exchange()
    assert exchange.response is None and exchange.end is not None and exchange.end.how == "upstream-cut"
