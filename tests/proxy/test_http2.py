"""The tape server in HTTP/2: every kind of answer, many at once, windows, and clients that mean no good."""

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from h2.errors import ErrorCodes
from h2client import Client2, Heard
from served import MS, Served, exchange, serve

from tapeproxy.proxy.http2 import Http2
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.records import End
from tapeproxy.tapes.violations import Violation


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


URL = "https://api.example.com"


def taped(path: str, *chunks: bytes, version: str = "HTTP/2", **fields: object) -> Exchange:
    """An exchange that was recorded over HTTP/2."""
    one = exchange(URL + path, *chunks, **{"framing": "chunked", **fields})  # type: ignore[arg-type]  # a row's fields
    one.request = replace(one.request, http=version, alpn="h2" if version == "HTTP/2" else "http/1.1")
    assert one.response is not None
    one.response = replace(one.response, http=version, reason=b"")
    return one


def ended(one: Exchange, **fields: object) -> Exchange:
    assert one.end is not None
    one.end = replace(one.end, **fields)  # type: ignore[arg-type]  # a row's fields
    return one


@contextlib.contextmanager
def talking(run: Served, *, acknowledges: bool = True, protocols: tuple[str, ...] = ("h2",)) -> Iterator[Client2]:
    """A raw client in HTTP/2 behind CONNECT."""
    context = run.trust()
    context.set_alpn_protocols(list(protocols))
    sock = run.connect()
    sock.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
    assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")
    with context.wrap_socket(sock, server_hostname="api.example.com") as tls:
        assert tls.selected_alpn_protocol() == "h2"
        yield Client2(tls, acknowledges=acknowledges)


def violations(run: Served) -> list[str]:
    return [one.kind for one in run.noticed if isinstance(one, Violation)]


# --- what is negotiated -------------------------------------------------------------------------------------------

OFFERS = {
    ("HTTP/2", ("h2", "http/1.1")): "h2",
    ("HTTP/2", ("http/1.1", "h2")): "h2",  # it is the server that chooses
    ("HTTP/2", ("http/1.1",)): "http/1.1",
    ("HTTP/2", ()): None,
    ("HTTP/1.1", ("h2", "http/1.1")): "http/1.1",
    ("HTTP/1.1", ("h2",)): "h2",  # or nobody would hear what it asks
}


@pytest.mark.parametrize(("recorded", "offered"), OFFERS)
def test_a_client_gets_what_was_negotiated_when_recorded(ca: Path, recorded: str, offered: tuple[str, ...]) -> None:
    with serve([taped("/", b"x", version=recorded)], ca) as run, run.connect() as sock:
        context = run.trust()
        if offered:
            context.set_alpn_protocols(list(offered))
        sock.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
        sock.recv(1000)
        with context.wrap_socket(sock, server_hostname="api.example.com") as tls:
            assert tls.selected_alpn_protocol() == OFFERS[recorded, offered]


def test_another_host_of_the_same_tape_is_spoken_to_as_it_was(ca: Path) -> None:
    other = exchange("https://old.example.com/", b"old")
    with serve([taped("/", b"new"), other], ca) as run, client(run) as http:
        assert http.get(URL + "/").http_version == "HTTP/2"
        assert http.get("https://old.example.com/").http_version == "HTTP/1.1"


def client(run: Served) -> httpx.Client:
    return httpx.Client(http2=True, proxy=run.proxy, verify=run.trust(), trust_env=False, timeout=10)


# --- answers ------------------------------------------------------------------------------------------------------

LINK = ((b"Link", b"</a.css>"),)
HEADERS = (
    *((b"X-A", b"1"), (b"x-a", b" 2 ")),
    *((b"Connection", b"close, X-Hop"), (b"X-Hop", b"y"), (b"Keep-Alive", b"5")),
)
ANSWERS: dict[str, tuple[Exchange, str, Heard]] = {
    "pieces": (taped("/", b"one", b"two", headers=()), "GET", Heard(200, pieces=[b"one", b"two"], ended=True)),
    "a length": (
        taped("/", b"abc", framing="length", headers=((b"Content-Length", b"3"),)),
        "GET",
        Heard(200, (("content-length", "3"),), pieces=[b"abc"], ended=True),
    ),
    "a length that redaction changed": (
        taped("/", b"abc", framing="length", headers=((b"content-length", b"99"),)),
        "GET",
        Heard(200, (("content-length", "3"),), pieces=[b"abc"], ended=True),
    ),
    "capitals, doubles, what is said of a connection": (
        taped("/", b"x", framing="close", headers=HEADERS),
        "GET",
        Heard(200, (("x-a", "1"), ("x-a", "2")), pieces=[b"x"], ended=True),
    ),
    "chunked, recorded in HTTP/1.1": (
        taped("/", b"x", b"y", version="HTTP/1.1", headers=((b"Transfer-Encoding", b"chunked"),)),
        "GET",
        Heard(200, pieces=[b"x", b"y"], ended=True),
    ),
    "trailers": (
        ended(taped("/", b"x", headers=()), trailers=((b"grpc-status", b"0"),)),
        "GET",
        Heard(200, pieces=[b"x"], trailers=(("grpc-status", "0"),), ended=True),
    ),
    "trailers without a body": (
        ended(taped("/", headers=()), trailers=((b"grpc-status", b"0"),)),
        "GET",
        Heard(200, trailers=(("grpc-status", "0"),), ended=True),
    ),
    "a head alone": (
        taped("/", headers=((b"grpc-status", b"5"),)),
        "GET",
        Heard(200, (("grpc-status", "5"),), ended=True),
    ),
    "no content": (taped("/", status=204, framing="none", headers=()), "GET", Heard(204, ended=True)),
    "not modified": (
        taped("/", status=304, framing="none", headers=((b"content-length", b"7"),)),
        "GET",
        Heard(304, (("content-length", "7"),), ended=True),
    ),
    "a head that was asked for": (
        taped("/", method=b"HEAD", framing="none", headers=((b"content-length", b"7"),)),
        "HEAD",
        Heard(200, (("content-length", "7"),), ended=True),
    ),
    "early hints": (
        taped("/", b"x", headers=(), informational=((103, LINK), (102, ()))),
        "GET",
        Heard(200, early=[(103, (("link", "</a.css>"),)), (102, ())], pieces=[b"x"], ended=True),
    ),
    "a reset of the stream": (
        ended(taped("/", b"x", headers=()), how="reset", code=11),
        "GET",
        Heard(200, pieces=[b"x"], reset=11),
    ),
    "a reset before anything": (
        Exchange(1, 1, taped("/").request, None, end=End(t=0, of=1, how="reset", code=7)),
        "GET",
        Heard(reset=7),
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ANSWERS)
@pytest.mark.parametrize("speed", [None, 1.0])
def test_an_answer_in_http2(ca: Path, row: str, speed: float | None) -> None:
    one, method, expected = ANSWERS[row]
    with serve([one], ca, speed=speed) as run, talking(run) as http:
        heard = http.hear(http.ask(method))
        assert heard == expected
        assert run.noticed == []


@pytest.mark.parametrize("how", ["upstream-cut", "connect-error", "reset"])
def test_a_cut_connection_is_cut_once_the_answers_under_way_are_out(ca: Path, how: str) -> None:
    slow = taped("/slow", *[b"z" * 1000] * 5, gap=20 * MS)
    cut = ended(taped("/cut", b"x", headers=()), how=how)
    if how == "connect-error":
        cut.response, cut.chunks = None, []
    with serve([slow, cut], ca, speed=1.0) as run, talking(run) as http:
        first, second = http.ask(path="/slow"), http.ask(path="/cut")
        http.hear(second)
        assert http.streams[first] == Heard(
            200, (("content-type", "text/plain"),), pieces=[b"z" * 1000] * 5, ended=True
        )
        assert http.gone
        assert not http.streams[second].ended


def test_where_the_tape_was_interrupted_the_stream_alone_ends(ca: Path) -> None:
    """All that were under way then are asked for, though one of them ends before the next one is asked for."""
    exchanges = [taped(f"/{n}", b"x" * n, headers=()) for n in range(1, 4)]
    for one in exchanges:
        one.end = None
    with serve(exchanges, ca) as run, talking(run) as http:
        heard = [http.hear(http.ask(path=f"/{n}")) for n in range(1, 4)]
        assert heard == [Heard(200, pieces=[b"x" * n], reset=2) for n in range(1, 4)]
        assert violations(run) == ["interrupted"] * 3


def test_an_answer_whose_client_left_is_held_until_this_one_does(ca: Path) -> None:
    held = ended(taped("/held", b"x", headers=()), how="client-gone")
    with serve([held, taped("/", b"next", headers=())], ca) as run, talking(run) as http:
        first = http.ask(path="/held")
        assert http.hear(http.ask()).body == b"next"
        assert http.streams[first].body == b"x"
        http.frames.reset_stream(first, ErrorCodes.CANCEL)
        http.flush()


def test_chunks_come_when_they_are_due(ca: Path) -> None:
    with serve([taped("/", b"a", b"b", b"c", gap=30 * MS)], ca, speed=1.0) as run, talking(run) as http:
        number = http.ask()
        seen: list[int] = []
        while not http.streams[number].ended:
            http.read()
            seen.append(len(http.streams[number].pieces))
        assert seen[0] == 0 and 1 in seen and 2 in seen


# --- streams and windows ------------------------------------------------------------------------------------------


def test_a_hundred_streams_at_once_each_get_their_own(ca: Path) -> None:
    tape = [taped(f"/{n}", str(n).encode() * 500, b"!") for n in range(100)]
    with serve(tape, ca) as run, talking(run) as http:
        numbers = [http.ask(path=f"/{n}") for n in reversed(range(100))]
        bodies = [http.hear(number).body for number in numbers]
        assert bodies == [str(n).encode() * 500 + b"!" for n in reversed(range(100))]
        assert run.replayer.served == 100


def test_a_client_that_takes_nothing_holds_up_only_what_it_does_not_take(ca: Path) -> None:
    big = taped("/big", *[b"x" * (1 << 20)] * 8)
    with serve([big, taped("/", headers=((b"a", b"b"),))], ca) as run, talking(run, acknowledges=False) as http:
        number = http.ask(path="/big")
        while len(http.streams[number].body) < 65535:
            http.read()
        assert http.hear(http.ask()).headers == (("a", "b"),)  # a head needs no window
        (connection,) = run.server.connections
        assert isinstance(connection.talk, Http2)
        stream = connection.talk._streams[number]
        assert stream._waiting < 2 << 20
        http.frames.increment_flow_control_window(1 << 24)
        http.frames.increment_flow_control_window(1 << 24, number)
        http.flush()
        assert len(http.hear(number).body) == 8 << 20


def test_a_request_with_a_body_is_matched_as_in_http1(ca: Path) -> None:
    one = taped("/v1", b"ok", method=b"POST", body=b'{"a":1,"b":2}', version="HTTP/1.1")
    with serve([one], ca) as run, talking(run) as http:
        number = http.ask("POST", "/v1", b'{"b": 2, "a": 1}', ("content-type", "application/json"))
        assert http.hear(number).body == b"ok"


def test_a_tape_of_http2_answers_a_client_of_http1(ca: Path) -> None:
    tape = [
        ended(taped("/", b"one", b"two"), trailers=((b"x-t", b"1"),)),
        taped("/", b"abc", framing="length", headers=((b"content-length", b"3"),)),
        taped("/", headers=((b"grpc-status", b"5"),)),
    ]
    with serve(tape, ca) as run, httpx.Client(proxy=run.proxy, verify=run.trust(), trust_env=False) as http:
        first, second, third = (http.get(URL + "/") for _ in range(3))
        assert (first.http_version, first.content, first.headers["transfer-encoding"]) == (
            "HTTP/1.1",
            b"onetwo",
            "chunked",
        )
        assert (second.content, second.headers["content-length"]) == (b"abc", "3")
        assert (third.content, third.headers["grpc-status"]) == (b"", "5")


def test_a_client_that_expects_it_is_told_to_go_on(ca: Path) -> None:
    with serve([taped("/", b"ok", method=b"POST", body=b"{}")], ca) as run, talking(run) as http:
        number = http.begin("POST", "/", ("expect", "100-continue"), ("content-type", "application/json"))
        while not http.streams[number].early:
            http.read()
        http.say(number, b"{}", end=True)
        assert http.hear(number).body == b"ok"


def test_http2_without_tls_in_a_tunnel(ca: Path) -> None:
    one = taped("/", b"x", headers=())
    one.request = replace(one.request, url=b"http://api.example.com:50051/", alpn=None)
    with serve([one], ca) as run, run.connect() as sock:
        sock.sendall(b"CONNECT api.example.com:50051 HTTP/1.1\r\n\r\n")
        sock.recv(1000)
        http = Client2(sock, scheme="http")
        assert http.hear(http.ask()).body == b"x"


# --- violations ---------------------------------------------------------------------------------------------------


def test_a_miss_is_a_violation_and_the_connection_lives_on(ca: Path) -> None:
    with serve([taped("/", b"x", headers=())], ca) as run, talking(run) as http:
        missed = http.hear(http.ask(path="/nowhere"))
        assert (missed.status, missed.ended, dict(missed.headers)["x-should-retry"]) == (470, True, "false")
        assert b"this request is not on the tape" in missed.body
        assert http.hear(http.ask()).body == b"x"
        assert violations(run) == ["miss"]


def test_a_host_that_is_not_on_the_tape_at_all(ca: Path) -> None:
    with serve([exchange("https://other.example.com/")], ca) as run, talking(run) as http:
        assert http.hear(http.ask()).status == 470
        assert violations(run) == ["miss"]


def test_a_body_that_is_too_large_is_answered_before_it_has_all_come(ca: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapeproxy.proxy.http2streams.MAX_BODY", 1 << 20)
    with serve([taped("/", b"x", headers=())], ca) as run, talking(run) as http:
        number = http.begin("POST", "/")
        http.say(number, b"x" * (3 << 20))
        heard = http.hear(number)
        assert (heard.status, heard.ended, heard.reset) == (470, True, None)
        http.say(number, b"x" * (1 << 20), end=True)  # and what it goes on to send does no harm
        assert http.hear(http.ask()).body == b"x"
        assert violations(run) == ["too-large"]


def test_a_head_that_is_too_large_is_a_violation(ca: Path) -> None:
    with serve([taped("/", b"x")], ca) as run, talking(run) as http:
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            http.ask("GET", "/", b"", *((f"x-{n}", "y" * 8000) for n in range(40)))
        while not http.gone:
            http.read()
        assert violations(run) == ["too-large"]


BROKEN = {
    "a frame that is too large": b"\x02\x00\x01\x00\x00\x00\x00\x00\x01" + bytes(0x20001),
    "settings of no length that there is": b"\x00\x00\x01\x04\x00\x00\x00\x00\x00x",
    "data on a stream that nobody began": b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x",
    "headers that are none": b"\x00\x00\x03\x01\x05\x00\x00\x00\x01\xff\xff\xff",
    "continuations without end": b"\x00\x00\x00\x01\x00\x00\x00\x00\x01"
    + b"\x00\x00\x00\x09\x00\x00\x00\x00\x01" * 100,
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_http2_is_a_violation(ca: Path, name: str) -> None:
    with serve([taped("/", b"x")], ca) as run, talking(run) as http:
        http.sock.sendall(BROKEN[name])
        while not http.gone:
            http.read()
        assert violations(run) == ["malformed"]
        assert http.goaway not in (None, 0)


def test_a_client_that_takes_back_all_it_asks_is_sent_away(ca: Path) -> None:
    with serve([taped("/", b"x")], ca) as run, talking(run) as http:
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # of which the first says what came of the last
            for _ in range(1100):
                number = http.begin("POST", "/")
                http.frames.reset_stream(number)
        while not http.gone:
            http.read()
        assert violations(run) == ["malformed"]


def test_a_tunnel_within_http2_is_refused(ca: Path) -> None:
    with serve([taped("/", b"x")], ca) as run, talking(run) as http:
        number = http.frames.get_next_available_stream_id()
        http.streams[number] = Heard()
        http.frames.config.validate_outbound_headers = False
        http.frames.send_headers(number, [(":method", "CONNECT"), (":authority", "a:1")])
        http.flush()
        assert http.hear(number).status == 470
        assert violations(run) == ["tunnel"]


# --- the end of a connection --------------------------------------------------------------------------------------


def test_a_client_that_says_it_leaves_still_gets_its_answer(ca: Path) -> None:
    with serve([taped("/", b"a", b"b", gap=20 * MS)], ca, speed=1.0) as run, talking(run) as http:
        number = http.ask()
        # Not by the library, which would hear nothing more.
        http.sock.sendall(b"\x00\x00\x08\x07\x00\x00\x00\x00\x00" + bytes(8))
        assert http.hear(number).body == b"ab"
        while not http.gone:
            http.read()


def test_a_server_that_stops_says_so(ca: Path) -> None:
    with serve([taped("/", b"x")], ca) as run, talking(run) as http:
        http.hear(http.ask())
        run.server.loop.call_soon_threadsafe(run.server._drop)
        while not http.gone:
            http.read()
        assert http.goaway == 0


def test_an_answer_that_redaction_left_a_piece_of_nothing_in(ca: Path) -> None:
    one = taped("/", headers=())
    one.chunks = [Chunk(0, b"a"), Chunk(0, b""), Chunk(None, b"b")]
    with serve([one], ca) as run, talking(run) as http:
        assert http.hear(http.ask()).body == b"ab"


def test_the_library_is_not_loaded_where_nobody_speaks_http2() -> None:
    import subprocess
    import sys

    modules = "sorted(m for m in sys.modules if m in ('h2', 'hpack', 'hyperframe'))"
    code = f"import sys, tapeproxy.proxy.tapeserver, tapeproxy.proxy.replaying; print({modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
