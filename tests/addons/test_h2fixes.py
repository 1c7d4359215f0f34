"""The guards for mitmproxy's HTTP/2: each fault is still there, and through the wire it is not."""

import contextlib
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from authority import Authority
from h2.errors import ErrorCodes
from h2client import Client2, Heard
from hyperframe.frame import GoAwayFrame, HeadersFrame
from origin import Gate
from origin2 import Call, Handler2, Origin2
from recording import Recording, read_until

from tapeproxy.addons import h2fixes
from tapeproxy.addons.early import MOST_EARLY
from tapeproxy.addons.h2pacing import HIGH, WINDOW
from tapeproxy.tapes.exchanges import Exchange

GUARDED = ("failed upstream", "early answers", "informational", "resets", "goaway", "slow readers")


def test_every_fault_is_still_there_and_guarded() -> None:
    assert h2fixes.apply() == GUARDED  # one that is gone can go from here, too


PROBES: dict[str, Callable[[], bool]] = {
    "informational": h2fixes.swallows_informational,
    "resets": h2fixes.changes_resets,
    "goaway": h2fixes.breaks_off_at_goaway,
    "early answers": h2fixes.leaves_early_answers_open,
    "failed upstream": h2fixes.resets_the_stream_alone,
}


@pytest.mark.parametrize("name", PROBES)
def test_a_guarded_layer_passes_its_probe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mitmproxy.proxy import layers

    h2fixes.apply()
    for kind in ("Http2Server", "Http2Client"):
        monkeypatch.setattr(h2fixes, kind, getattr(layers.http, kind))
    assert not PROBES[name]()


# --- through the wire ---------------------------------------------------------------------------------------------


class Wire:
    """A recording of an origin in HTTP/2, and a raw client on it."""

    def __init__(self, folder: Path, authority: Authority, answer: Handler2) -> None:
        self._folder, self._authority, self._answer = folder, authority, answer
        self.recording: Recording
        self.origin: Origin2

    @contextlib.contextmanager
    def talking(self) -> Iterator[Client2]:
        with Origin2(self._answer, self._authority.serving("127.0.0.1")) as self.origin:
            self.recording = Recording(self._folder, self._authority, upstream_ca=self._authority.cert)
            with self.recording, self._tunnel() as tls:
                yield Client2(tls)
        assert self.recording.wire.failures.count == 0, self.recording.wire.failures.first

    def _tunnel(self) -> ssl.SSLSocket:
        context = self._authority.trusting()
        context.set_alpn_protocols(["h2", "http/1.1"])
        sock = self.recording.connect()
        sock.sendall(f"CONNECT 127.0.0.1:{self.origin.port} HTTP/1.1\r\n\r\n".encode())
        assert read_until(sock, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        tls = context.wrap_socket(sock, server_hostname="127.0.0.1")
        assert tls.selected_alpn_protocol() == "h2"
        return tls

    def exchanges(self) -> dict[str, Exchange]:
        found = self.recording.tape().exchanges
        return {one.request.url.decode().rpartition("/")[2]: one for one in found}


@pytest.fixture
def wire(tmp_path: Path, authority: Authority) -> Callable[[Handler2], Wire]:
    return lambda answer: Wire(tmp_path, authority, answer)


def test_early_hints_and_trailers_pass_and_are_taped(wire: Callable[[Handler2], Wire]) -> None:
    async def answer(call: Call) -> None:
        await call.head(103, ("link", "</a>"))
        await call.head(200, ("x-a", "1"))
        await call.data(b"one")
        await call.trailers(("x-sum", "7"))

    run = wire(answer)
    with run.talking() as http:
        heard = http.hear(http.ask(path="/a"))
    assert heard == Heard(
        200, (("x-a", "1"),), [(103, (("link", "</a>"),))], [b"one"], trailers=(("x-sum", "7"),), ended=True
    )
    one = run.exchanges()["a"]
    assert (one.request.http, one.request.alpn) == ("HTTP/2", "h2")
    assert one.response is not None and one.end is not None
    assert one.response.informational == ((103, ((b"link", b"</a>"),)),)
    assert (one.response.http, one.response.framing) == ("HTTP/2", "chunked")
    assert one.end.trailers == ((b"x-sum", b"7"),)


@pytest.mark.parametrize("after_head", [False, True])
def test_a_reset_of_a_stream_keeps_its_reason(wire: Callable[[Handler2], Wire], after_head: bool) -> None:
    async def answer(call: Call) -> None:
        if call.path == "/fine":
            await call.head(200, end=True)
            return
        if after_head:
            await call.head(200)
        await call.reset(ErrorCodes.ENHANCE_YOUR_CALM)

    run = wire(answer)
    with run.talking() as http:
        assert http.hear(http.ask(path="/reset")).reset == ErrorCodes.ENHANCE_YOUR_CALM
        assert http.hear(http.ask(path="/fine")).ended  # and the connection lives on
    assert run.origin.lines == 2  # one of which only asked what is spoken
    end = run.exchanges()["reset"].end
    assert end is not None and (end.how, end.code) == ("reset", ErrorCodes.ENHANCE_YOUR_CALM)


def test_a_client_that_takes_a_request_back_is_gone_and_the_server_hears_it(wire: Callable[[Handler2], Wire]) -> None:
    heard = Gate()

    async def answer(call: Call) -> None:
        if call.path == "/fine":
            await call.head(200, end=True)
            return
        await call.head(200)
        await call.data(b"x")
        assert await call.body() == b"first"
        assert call.reset_by_client == ErrorCodes.CANCEL
        heard.open()

    run = wire(answer)
    with run.talking() as http:
        number = http.begin("POST", "/back", ("content-type", "application/grpc"))
        http.say(number, b"first")
        while not http.streams[number].pieces:
            http.read()
        http.frames.reset_stream(number, ErrorCodes.CANCEL)
        http.flush()
        heard.passed()
        assert http.hear(http.ask(path="/fine")).ended
    end = run.exchanges()["back"].end
    assert end is not None and (end.how, end.code) == ("client-gone", None)


def test_what_a_server_that_leaves_has_begun_is_finished(wire: Callable[[Handler2], Wire]) -> None:
    asked = Gate()

    async def answer(call: Call) -> None:
        if call.path == "/first":
            await call.head(200)
            await call.data(b"one")
            await call.leave(call.number)
            await call.wait(asked)
            await call.data(b"two", end=True)
        else:
            await call.head(200, end=True)

    run = wire(answer)
    with run.talking() as http:
        first = http.ask(path="/first")
        while not http.streams[first].pieces:
            http.read()
        second = http.ask(path="/second")  # on a connection of its own
        assert http.hear(second).ended
        asked.open()
        assert http.hear(first).body == b"onetwo"
    assert run.origin.lines == 3


def test_an_answer_that_comes_in_one_piece_with_a_goaway_is_whole(wire: Callable[[Handler2], Wire]) -> None:
    async def answer(call: Call) -> None:
        frames = call.line.h2
        goaway = GoAwayFrame(0, last_stream_id=call.number).serialize()
        frames.send_headers(call.number, [(":status", "200")])
        frames.send_data(call.number, b"all", end_stream=True)
        call.line.writer.write(goaway * 100 + frames.data_to_send())

    run = wire(answer)
    with run.talking() as http:
        heard = http.hear(http.ask(path="/a"))
    assert (heard.status, heard.body, heard.ended) == (200, b"all", True)


def test_early_heads_without_end_pass_and_the_tape_has_the_first_ones(wire: Callable[[Handler2], Wire]) -> None:
    async def flood(call: Call) -> None:
        for number in range(MOST_EARLY + 50):
            await call.head(103, ("link", f"</{number}>"))
        if call.path == "/reset":
            await call.reset(ErrorCodes.CANCEL)
        else:
            await call.head(200, end=True)

    run = wire(flood)
    with run.talking() as http:
        assert len(http.hear(http.ask(path="/reset")).early) == MOST_EARLY + 50
        assert len(http.hear(http.ask(path="/a")).early) == MOST_EARLY + 50
        assert run.recording.wire.untaped == {("early-untaped", "127.0.0.1"): 1}
    one = run.exchanges()["a"].response
    assert one is not None and len(one.informational) == MOST_EARLY


def test_an_informational_response_of_no_status_ends_as_any_other_broken_one(wire: Callable[[Handler2], Wire]) -> None:
    async def answer(call: Call) -> None:
        head = HeadersFrame(call.number, data=call.line.h2.encoder.encode([(":status", "1x3")]))
        head.flags.add("END_HEADERS")
        call.line.writer.write(head.serialize())

    run = wire(answer)
    with run.talking() as http:
        http.hear(http.ask(path="/a"))
        assert http.gone
    end = run.exchanges()["a"].end
    assert end is not None and end.how == "upstream-cut"


def test_an_early_answer_ends_in_order_though_the_server_wants_no_more(wire: Callable[[Handler2], Wire]) -> None:
    async def answer(call: Call) -> None:
        await call.head(413)
        await call.data(b"too much", end=True)
        await call.reset(ErrorCodes.NO_ERROR)

    run = wire(answer)
    with run.talking() as http:
        number = http.begin("POST", "/up", ("content-type", "application/grpc"))
        http.say(number, b"x")
        heard = http.hear(number)
        assert (heard.status, heard.body, heard.ended) == (413, b"too much", True)
    end = run.exchanges()["up"].end
    assert end is not None and end.how == "complete"


def test_a_failed_upstream_ends_the_connection_and_all_that_was_on_it(wire: Callable[[Handler2], Wire]) -> None:
    both = Gate()

    async def answer(call: Call) -> None:
        await call.head(200)
        await call.data(b"x")
        if call.path == "/one":
            await call.wait(both)
            call.cut()

    run = wire(answer)
    with run.talking() as http:
        numbers = [http.ask(path="/one"), http.ask(path="/two")]
        while not all(http.streams[number].pieces for number in numbers):
            http.read()
        both.open()
        while not http.gone:
            http.read()
        assert [(one.ended, one.reset) for one in http.streams.values()] == [(False, None)] * 2
    ends = [one.end.how for one in run.exchanges().values() if one.end is not None]
    assert ends == ["upstream-cut"] * 2


def test_chunks_are_on_the_tape_before_the_client_has_them(wire: Callable[[Handler2], Wire]) -> None:
    go = Gate()

    async def answer(call: Call) -> None:
        await call.head(200)
        await call.data(b"first")
        await call.wait(go)
        await call.data(b"second", end=True)

    run = wire(answer)
    with run.talking() as http:
        number = http.ask(path="/a")
        while not http.streams[number].pieces:
            http.read()
        kinds = [record.kind for record in run.recording.records()]
        assert kinds == ["head", "request", "response", "chunks"]
        go.open()
        assert http.hear(number).pieces == [b"first", b"second"]


def test_of_what_a_client_does_not_take_little_is_taken_from_the_server(wire: Callable[[Handler2], Wire]) -> None:
    size, stuck, sent = 7 << 20, Gate(), 0

    async def answer(call: Call) -> None:
        nonlocal sent
        await call.head(200)
        while call.path == "/slow" and sent < size:
            frames = call.line.h2
            room = min(frames.local_flow_control_window(call.number), frames.max_outbound_frame_size, size - sent)
            if room > 0:
                frames.send_data(call.number, bytes(room))
                sent += room
                await call.line.flush()
            else:
                stuck.open()
                call.line.more.clear()
                await call.line.more.wait()
        await call.data(b"", end=True)

    run = wire(answer)
    with run.talking() as http:
        http.acknowledges = False
        slow = http.ask(path="/slow")
        while len(http.streams[slow].body) < 65_535:
            http.read()
        stuck.passed()
        assert WINDOW <= sent <= WINDOW + HIGH + (1 << 20)
        http.acknowledges = True
        http.frames.increment_flow_control_window(1 << 20)
        assert http.hear(http.ask(path="/other")).ended  # which waits for nobody
        http.frames.increment_flow_control_window(1 << 20, slow)
        http.flush()
        assert len(http.hear(slow).body) == size
    assert len(run.exchanges()["slow"].response_body) == size


def test_many_streams_at_once_are_each_taped_whole(wire: Callable[[Handler2], Wire]) -> None:
    async def answer(call: Call) -> None:
        body = await call.body()
        await call.head(200)
        for _ in range(3):
            await call.data(body)
        await call.data(b"", end=True)

    run = wire(answer)
    with run.talking() as http:
        numbers = [http.ask("POST", f"/{n}", str(n).encode() * 100) for n in range(50)]
        assert [http.hear(number).body for number in numbers] == [str(n).encode() * 300 for n in range(50)]
    taped = run.exchanges()
    assert {name: one.response_body for name, one in taped.items()} == {
        str(n): str(n).encode() * 300 for n in range(50)
    }
