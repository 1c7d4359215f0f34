"""One client connection of the tape server: CONNECT, TLS, HTTP/1.1 in, answers out. No upstream of any kind.

The only connection it can cause is to a server of the run itself, on loopback, when the replayer says so (`Live`).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools

from tapeproxy.proxy.playback import Pace, Playback
from tapeproxy.proxy.replayer import Asked, Live
from tapeproxy.proxy.tlschannel import TlsChannel
from tapeproxy.tapes.answers import Answer, Finish
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.inside import Heard
    from tapeproxy.proxy.tapeserver import TapeServer

MAX_HEAD = 1 << 18
MAX_BODY = 1 << 29
_AT_ONCE = 1 << 20
"""Bytes of an answer that are sent in one go when nothing is paced."""
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_TLS_HANDSHAKE = 0x16
_OWN_INBOX = 1 << 16
_RESET = struct.pack("ii", 1, 0)


class Connection(asyncio.BufferedProtocol):
    """One connection. Requests that come while an answer is under way wait their turn (pipelining)."""

    def __init__(self, server: TapeServer) -> None:
        self._server = server
        self._transport: asyncio.Transport
        self._tls: TlsChannel | None = None
        self._authority: bytes | None = None  # of the CONNECT, once there was one
        self._origin = b""  # scheme and authority of the requests in its tunnel
        self._tunnel_open = False  # the tunnel's first byte was seen
        self._relay: asyncio.Transport | None = None
        self._queue: deque[tuple[Asked, bool]] = deque()
        self._busy = False
        self._closing = False
        self._playback: Playback | None = None
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self.last_heard = server.loop.time()
        # A proactor loop reads ahead, so there each connection needs an inbox of its own.
        shared = isinstance(server.loop, asyncio.SelectorEventLoop)
        self._inbox = server.inbox if shared else memoryview(bytearray(_OWN_INBOX))
        self._reset_parser()

    @property
    def idle(self) -> bool:
        """No answer is under way."""
        return not self._busy and self._relay is None

    # --- asyncio.Protocol --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket: socket.socket = self._transport.get_extra_info("socket")
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._closing = True
        if self._playback is not None:
            self._playback.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._relay is not None:
            self._relay.close()

    def pause_writing(self) -> None:
        self._paused = True
        if self._playback is not None:
            self._playback.pause()

    def resume_writing(self) -> None:
        self._paused = False
        if self._playback is not None:
            self._playback.resume()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox

    def buffer_updated(self, nbytes: int) -> None:
        self.last_heard = self._server.woken()
        self._receive(self._inbox[:nbytes])

    def _receive(self, data: bytes | memoryview) -> None:
        if self._relay is not None:
            self._relay.write(bytes(data))
        elif self._authority is not None and not self._tunnel_open:
            self._open_tunnel(data)
        elif self._tls is not None:
            self._decrypt(self._tls, data)
        else:
            self._parse(data)
        # requests and urllib3 turn Nagle on behind a proxy and write head and body apart: without an immediate ACK of
        # the head, the body waits for our 40 ms delayed-ACK timer.
        if self._in_message and _QUICKACK is not None and not self._closing:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    # --- tunnel and TLS ----------------------------------------------------------------------------------------

    def _open_tunnel(self, data: bytes | memoryview) -> None:
        assert self._authority is not None
        self._tunnel_open = True
        if memoryview(data)[0] != _TLS_HANDSHAKE:
            self._origin = b"http://" + self._authority.removesuffix(b":80")
            self._parse(data)
            return
        self._origin = b"https://" + self._authority.removesuffix(b":443")
        host = self._tunnel_host()
        self._tls = TlsChannel(self._server.tls_context(host), self._server.room)
        self._decrypt(self._tls, data)

    def _decrypt(self, tls: TlsChannel, data: bytes | memoryview) -> None:
        try:
            plain = tls.feed(data)
        except ssl.SSLError as error:
            self._server.refused_tls(self._tunnel_host(), error)
            self._transport.write(tls.outgoing())
            self._close()
            return
        if out := tls.outgoing():
            self._transport.write(out)
        if plain:
            self._parse(plain)
        if tls.closed and not self._closing and not self._busy:
            self._close()

    def _tunnel_host(self) -> str:
        assert self._authority is not None
        return self._authority.rsplit(b":", 1)[0].decode("latin-1").strip("[]")

    # --- HTTP/1.1: the parser's callbacks ----------------------------------------------------------------------

    def _reset_parser(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._in_message = False
        self._clear_message()

    def _clear_message(self) -> None:
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._head_size = 0
        self._body_size = 0

    def _parse(self, data: bytes | memoryview) -> None:
        self._in_message = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = memoryview(data)[upgrade.args[0] :]
            if self._authority is not None and not self._tunnel_open and rest:
                self._receive(rest)
        except _TooLargeError as error:
            self._refuse("too-large", str(error))
        except httptools.HttpParserError as error:
            # httptools wraps what a callback raises.
            cause = error.__context__ if isinstance(error.__context__, _TooLargeError) else None
            self._refuse("too-large" if cause else "malformed", str(cause or error))

    def on_message_begin(self) -> None:
        self._clear_message()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._head_size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        self._head_size += len(name) + len(value)
        if self._head_size > MAX_HEAD:
            raise _TooLargeError(f"the request's head is larger than {MAX_HEAD} bytes")

    def on_headers_complete(self) -> None:
        expected = [value for name, value in self._headers if len(name) == 6 and name.lower() == b"expect"]
        if any(value.lower() == b"100-continue" for value in expected):
            self._send(_CONTINUE)

    def on_body(self, data: bytes) -> None:
        self._body.append(data)
        self._body_size += len(data)
        if self._body_size > MAX_BODY:
            raise _TooLargeError(f"the request's body is larger than {MAX_BODY} bytes")

    def on_message_complete(self) -> None:
        self._in_message = False
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._connect(self._url)
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        http10 = self._parser.get_http_version() == "1.0"
        asked = Asked(method, self._absolute(self._url), tuple(self._headers), body, http10)
        self._queue.append((asked, self._parser.should_keep_alive() and not self._parser.should_upgrade()))
        self._clear_message()
        if not self._busy:
            self._next()

    def _absolute(self, url: bytes) -> bytes:
        if not url.startswith(b"/") and url != b"*":
            return url
        path = b"" if url == b"*" else url
        if self._origin:
            return self._origin + path
        host = next((value for name, value in self._headers if name.lower() == b"host"), b"")
        return b"http://" + host + path

    def _connect(self, authority: bytes) -> None:
        self._authority = authority
        self._reset_parser()
        host, _, port = authority.rpartition(b":")
        target = (host.decode("latin-1").strip("[]"), int(port) if port.isdigit() else 0)
        self._transport.write(_ESTABLISHED)
        if self._server.is_inside(*target):
            self._tunnel_open = True
            self._transport.pause_reading()
            self._task = self._server.loop.create_task(self._tunnel(*target))

    # --- answering ---------------------------------------------------------------------------------------------

    def _next(self) -> None:
        if not self._queue or self._closing:
            return
        self._busy = True
        asked, keep = self._queue.popleft()
        self._server.before_request()
        decision = self._server.replayer.decide(asked)
        if isinstance(decision, Answer):
            self._play(decision, keep)
        elif isinstance(decision, Violation):
            self._send(decision.to_answer(body=asked.method != b"HEAD"))
            self._finish("close")
        else:
            self._task = self._server.loop.create_task(self._live(asked, decision, keep))

    def _play(self, answer: Answer, keep: bool) -> None:
        finish = answer.finish if keep or answer.finish != "keep" else "close"
        if self._server.speed is None and answer.size <= _AT_ONCE:
            self._send(b"".join([part.data for part in answer.parts]))
            self._finish(finish)
            return
        pace = Pace(self._server.woken(), self._server.speed)
        self._playback = Playback(self._server.loop, answer, pace, self._send, lambda: self._finish(finish))
        if self._paused:
            self._playback.pause()
        self._playback.start()

    async def _live(self, asked: Asked, live: Live, keep: bool) -> None:
        from tapeproxy.proxy.inside import relay_exchange

        def compare(heard: Heard) -> None:
            self._server.replayer.compare(live, heard.status, heard.headers, heard.body)

        again = await relay_exchange(asked, live.host, live.port, self._send, compare)
        self._finish("cut" if again is None else "keep" if keep and again else "close")

    async def _tunnel(self, host: str, port: int) -> None:
        from tapeproxy.proxy.inside import relay_tunnel

        self._relay = await relay_tunnel(self._transport, host, port)
        self._transport.resume_reading()

    def _refuse(self, kind: str, what: str) -> None:
        where = self._authority or b"the proxy"
        violation = Violation(
            "too-large" if kind == "too-large" else "malformed",
            f"{self._parser_method()} {(self._url or where).decode('latin-1')}",
            f"a request could not be read: {what}",
        )
        self._server.replayer.violate(violation)
        self._send(violation.to_answer())
        self._finish("close")

    def _parser_method(self) -> str:
        return (self._parser.get_method() or b"?").decode("latin-1")

    def _send(self, data: bytes) -> None:
        if data and not self._closing:
            self._transport.write(data if self._tls is None else self._tls.seal(data))

    def _finish(self, how: Finish) -> None:
        self._playback = None
        self._task = None
        if self._closing:
            return
        match how:
            case "keep":
                self._busy = False
                if self._queue:
                    # Not a direct call: a hundred pipelined requests would be a hundred frames deep.
                    self._server.loop.call_soon(self._next)
            case "close":
                self._close()
            case "cut":
                self._closing = True
                self._transport.close()
            case "reset":
                self._closing = True
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self._transport.abort()
            case "hold":
                pass  # connection_lost ends it

    def _close(self) -> None:
        if self._tls is not None and self._tls.ready:
            self._transport.write(self._tls.goodbye())
        self._closing = True
        self._transport.close()

    def close_idle(self) -> None:
        """End the connection in order if no answer is under way."""
        if self.idle and not self._closing:
            self._close()

    def abort(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()


class _TooLargeError(Exception):
    """Raised out of a parser callback."""
