"""The addon that tapes HTTP: hooks in, records out. Knows mitmproxy's order of hooks, not files or sockets.

A request is on the tape before it is forwarded, a chunk before the client has it: agents act on `[DONE]` long before
the `response` hook runs. mitmproxy does not guard stream callables, so everything here runs inside `Failures`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tapeproxy.addons.early import early_of
from tapeproxy.addons.endings import how_it_failed
from tapeproxy.addons.exchange import TapedExchange
from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import MAX_BODY, PASSED, declared_length, framing_of, is_grpc, url_of, version_of
from tapeproxy.addons.h2fixes import reset_of
from tapeproxy.addons.passing import in_force
from tapeproxy.addons.sockets import Resets, reset_on_close
from tapeproxy.addons.tape import ServedTape, Tape
from tapeproxy.addons.tapedsocket import TapedSocket
from tapeproxy.addons.taps import TAP, Tap
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.lanes import LaneTag, split_tag
from tapeproxy.tapes.records import End, Headers, Request, Response, Side
from tapeproxy.tapes.redaction import Redactor

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow


class Origins(Protocol):
    """In a fork, where answers come from."""

    def source(self, flow: "HTTPFlow", tag: LaneTag | None, headers: Headers, body: bytes) -> str | None:
        """Decide it for a request that is about to be taped: the word for its record."""
        ...

    def is_answered_at_once(self, flow: "HTTPFlow", tag: LaneTag | None, headers: Headers) -> bool:
        """Whether a call of gRPC is decided by its head, for its client may wait for answers before it says all."""
        ...

    def ending(self, flow: "HTTPFlow") -> End | None:
        """How the exchange ended on the tape that its answer comes from; None where it comes from the world."""
        ...


@dataclass(slots=True)
class _Live:
    """A request under way: its headers as they came (mitmproxy takes Expect out), and its exchange once taped."""

    tag: LaneTag | None
    headers: Headers
    exchange: TapedExchange | None = None
    inside: bool = False


class Recorder:
    """Addon: tapes every HTTP exchange. `is_inside` tells whether a process of the run listens on a loopback port.

    `untagged` hears of each request without a lane: the client's port.
    """

    def __init__(
        self,
        tape: Tape,
        redactor: Redactor,
        is_inside: Callable[[int], bool] = lambda _port: False,
        resets: Resets | None = None,
        failures: Failures | None = None,
        untagged: Callable[[int], None] = lambda _port: None,
    ) -> None:
        self.failures = failures or Failures()
        self._tape = tape
        self._redactor = redactor
        self._is_inside = is_inside
        self._untagged = untagged
        self._origins: Origins | None = None
        self._resets = resets or Resets()
        self._live: dict[str, _Live] = {}
        self._served: Counter[str] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()

    def ask(self, origins: "Origins") -> None:
        """Have `origins` say where answers come from, in a fork."""
        self._origins = origins

    async def idle(self) -> None:
        """Wait until no exchange is under way."""
        await self._idle.wait()

    def requestheaders(self, flow: "HTTPFlow") -> None:
        with self.failures:
            if PASSED in flow.metadata:
                return
            if flow.request.method == "PRI":
                return  # HTTP/2 after HTTP/1: refused, and noted by Untaped
            tag, headers = split_tag(flow.request.headers.fields)
            flow.request.headers.fields = headers
            live = self._live[flow.id] = _Live(tag, headers)
            self._idle.clear()
            # Where an answer may come from a tape, the whole request has to be known first.
            big = (declared_length(headers) or 0) > MAX_BODY
            call = is_grpc(headers) and flow.request.is_http2
            if self._origins is None:
                if big or call:
                    self._stream(flow, live)
            elif call and self._origins.is_answered_at_once(flow, tag, headers):
                self._stream(flow, live)

    def request_grows(self, flow: "HTTPFlow") -> None:
        """More has come than one record holds: stream it, if what answers it need not see it whole."""
        with self.failures:
            live = self._live.get(flow.id)
            if live is not None and live.exchange is None and self._origins is None:
                self._stream(flow, live)

    def _stream(self, flow: "HTTPFlow", live: _Live) -> None:
        """Tape a request now, and its body as it passes."""
        live.exchange = self._start(flow, live, b"")
        flow.request.stream = self._tap(live.exchange, "server")

    def request(self, flow: "HTTPFlow") -> None:
        with self.failures:
            live = self._live.get(flow.id)
            if live is None or live.exchange is not None:
                return  # not ours; or streamed, and on the tape since its head came
            body = flow.request.raw_content or b""
            if len(body) <= MAX_BODY:
                live.exchange = self._start(flow, live, body)
                return
            # Chunked, so nobody knew its length before.
            live.exchange = self._start(flow, live, b"", body)
            live.exchange.upload_whole(body)

    def responseheaders(self, flow: "HTTPFlow") -> None:
        assert flow.response is not None
        flow.response.stream = True
        with self.failures:
            live = self._live.get(flow.id)
            if live is None or (exchange := live.exchange) is None:
                return
            if live.inside and live.tag is not None:
                self._serve(flow, live.tag)
            flow.response.stream = self._tap(exchange, "client")
            exchange.respond(self._response(flow, exchange.of))

    def response(self, flow: "HTTPFlow") -> None:
        with self.failures:
            if flow.websocket is not None and self._tap_socket(flow):
                return
            exchange = self._close(flow)
            if exchange is not None:
                trailers = flow.response.trailers if flow.response else None
                exchange.end("complete", trailers=trailers.fields if trailers else ())

    def error(self, flow: "HTTPFlow") -> None:
        with self.failures:
            exchange = self._close(flow)
            if exchange is not None:
                how = how_it_failed(flow, was_reset=self._resets.was_reset(flow.server_conn))
                text = flow.error.msg if flow.error else None
                taped = None if self._origins is None or how == "client-gone" else self._origins.ending(flow)
                if taped is None:
                    reset = reset_of(flow)
                    exchange.end(how, text, code=reset.code if reset is not None and how == "reset" else None)
                else:
                    exchange.end(taped.how, taped.error, code=taped.code)

    def done(self) -> None:
        """End what is still open when mitmproxy stops: every request on a tape has an end."""
        with self.failures:
            for live in self._live.values():
                if live.exchange is not None:
                    live.exchange.end("client-gone", "the recording ended first")
            self._live.clear()

    def _tap_socket(self, flow: "HTTPFlow") -> bool:
        """Tape what passes on a WebSocket, up to its end; False where nobody is asked to (`passing.apply`)."""
        live = self._live.get(flow.id)
        if not in_force() or live is None or live.exchange is None or flow.response is None:
            return False
        socket = live.exchange.become_socket(flow.response.headers.fields)

        def take(to: Side, data: bytes) -> None:
            with self.failures:
                socket.take(to, data)

        def ended(by: Side) -> None:
            with self.failures:
                self._end_socket(flow, socket, by)

        flow.metadata[TAP] = Tap(take, ended, lambda: socket.lost)
        return True

    def _end_socket(self, flow: "HTTPFlow", socket: TapedSocket, by: Side) -> None:
        exchange = self._close(flow)
        if exchange is None:
            return
        if socket.closed:
            exchange.end("complete")
        elif by == "client":
            exchange.end("client-gone", "the client left without closing the WebSocket")
        elif self._resets.was_reset(flow.server_conn):
            reset_on_close(flow.client_conn)
            exchange.end("reset", "the server reset the connection")
        else:
            exchange.end("upstream-cut", "the server left without closing the WebSocket")

    def _close(self, flow: "HTTPFlow") -> TapedExchange | None:
        live = self._live.pop(flow.id, None)
        if not self._live:
            self._idle.set()
        return live.exchange if live else None

    def _serve(self, flow: "HTTPFlow", tag: LaneTag) -> None:
        """Tell which connection of ours a server of the run has this request from."""
        address = flow.server_conn.sockname
        if isinstance(self._tape, ServedTape) and address is not None:
            number = self._served[flow.server_conn.id]
            self._served[flow.server_conn.id] += 1
            self._tape.serving(address[1], number, f"{self._redactor.text(tag.lane)}#{tag.n}")

    def _start(self, flow: "HTTPFlow", live: _Live, body: bytes, follows: bytes = b"") -> TapedExchange:
        """Tape a request with its `body`, or without one that `follows` in chunks."""
        request, tag = flow.request, live.tag
        if tag is None:
            self._untagged(flow.client_conn.peername[1])
        source = None if self._origins is None else self._origins.source(flow, tag, live.headers, body or follows)
        headers, body = self._redactor.message(live.headers, body)
        live.inside = is_loopback(request.host) and self._is_inside(request.port)
        record = Request(
            t=self._tape.now(),
            method=request.data.method,
            url=self._redactor.url(url_of(request)),
            http=version_of(request),
            alpn=(flow.client_conn.alpn or b"").decode("ascii") or None if flow.client_conn.tls else None,
            headers=headers,
            body=body,
            lane=self._redactor.text(tag.lane) if tag else None,
            n=tag.n if tag else None,
            reads=tag.reads if tag else None,
            sleeps=tag.sleeps if tag else 0,
            awake=tag.awake if tag else None,
            inside=live.inside,
            source=source,
        )
        return TapedExchange(self._tape, self._redactor, record)

    def _response(self, flow: "HTTPFlow", of: int) -> Response:
        response = flow.response
        assert response is not None
        headers = self._redactor.headers
        return Response(
            t=self._tape.now(),
            of=of,
            status=response.status_code,
            reason=self._redactor.content(response.data.reason),
            http=version_of(response),
            headers=headers(response.headers.fields),
            framing=framing_of(flow.request, response),
            informational=tuple((status, headers(fields)) for status, fields in early_of(response).seen),
        )

    def _tap(self, exchange: TapedExchange, to: Side) -> Callable[[bytes], bytes]:
        def tap(data: bytes) -> bytes:
            with self.failures:
                if data:
                    exchange.take(to, data)
                else:
                    exchange.finish(to)  # mitmproxy's last call
            return data

        return tap
