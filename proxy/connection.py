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

from tapeproxy.proxy.playback import Pace, Playback
from tapeproxy.proxy.replayer import Asked, Live
from tapeproxy.proxy.requestreader import RequestReader, UnreadableError
from tapeproxy.proxy.tlschannel import TlsChannel
from tapeproxy.tapes.answers import Answer, Finish
from tapeproxy.tapes.hosts import split_authority
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.inside import Heard
    from tapeproxy.proxy.tapeserver import TapeServer
    from tapeproxy.tapes.records import Headers

_MOST_WAITING = 64
"""Requests that may wait for their turn before no more are read."""
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
        self._early = b""  # bytes for a tunnel that is not yet through
        self._queue: deque[tuple[Asked | Violation, bool]] = deque()
        self._busy = False
        self._closing = False
        self._holding = False  # the client is waited for to leave
        self._deaf = False  # the last request was heard
        self._half_closed = False  # by the client, which may still read
        self._held_back = False  # too many requests wait
        self._playback: Playback | None = None
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self.last_heard = server.loop.time()
        # A proactor loop reads ahead, so there each connection needs an inbox of its own.
        shared = isinstance(server.loop, asyncio.SelectorEventLoop)
        self._inbox = server.inbox if shared else memoryview(bytearray(_OWN_INBOX))
        self._reader = RequestReader()

    @property
    def idle(self) -> bool:
        """No answer is under way."""
        return not self._busy and not self._queue and self._relay is None

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
        if self._relay is not None:
            self._relay.pause_reading()

    def resume_writing(self) -> None:
        self._paused = False
        if self._relay is not None:
            self._relay.resume_reading()
        # Not at once: asyncio calls this while it writes, and a transport that is closed just then closes twice.
        self._server.loop.call_soon(self._resume)

    def _resume(self) -> None:
        if self._paused or self._closing:
            return
        if self._playback is not None:
            self._playback.resume()
        else:
            self._next()

    def eof_received(self) -> bool:
        """Whether the connection stays open: a client that sends no more may still wait for its answer."""
        if self._relay is not None:
            self._relay.write_eof()
            return True
        return self._still_answers()

    def _still_answers(self) -> bool:
        self._half_closed = True
        # A server of the run should notice that its client has left, which looks the same.
        return not self.idle and self._task is None and not self._holding

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox

    def buffer_updated(self, nbytes: int) -> None:
        self.last_heard = self._server.woken()
        try:
            self._receive(self._inbox[:nbytes])
        except Exception as error:
            self._bug(error)

    def _receive(self, data: bytes | memoryview) -> None:
        if self._relay is not None:
            self._relay.write(bytes(data))
        elif self._deaf or self._closing:
            return
        elif self._authority is not None and not self._tunnel_open:
            self._open_tunnel(data)
        elif self._tls is not None:
            self._decrypt(self._tls, data)
        else:
            self._parse(data)
        # requests and urllib3 turn Nagle on behind a proxy and write head and body apart: without an immediate ACK of
        # the head, the body waits for our 40 ms delayed-ACK timer.
        if self._reader.reading and _QUICKACK is not None and not self._closing:
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
        if tls.closed and not self._closing and not self._still_answers():
            self._close()

    def _tunnel_host(self) -> str:
        assert self._authority is not None
        return self._authority.rsplit(b":", 1)[0].decode("latin-1").strip("[]")

    # --- HTTP/1.1 in -------------------------------------------------------------------------------------------

    def _parse(self, data: bytes | memoryview) -> None:
        try:
            rest = self._reader.feed(data)
        except UnreadableError as error:
            self._take_requests()
            if self._deaf:  # what comes after the last request says nothing
                return
            what = f"a request could not be read: {error.what}"
            where = error.line if not error.line.endswith(" ") else error.line + self._place()
            self._refuse(Violation("too-large" if error.too_large else "malformed", where, what))
            return
        self._take_requests()
        if rest and self._authority is not None and not self._tunnel_open:
            self._receive(rest)
        elif rest and self._task is not None:
            self._early = bytes(rest)
        elif self._reader.expects and self.idle:
            self._proceed()

    def _proceed(self) -> None:
        self._reader.expects = False
        self._send(_CONTINUE)

    def _take_requests(self) -> None:
        requests, self._reader.requests = self._reader.requests, []
        for method, url, headers, body, http10, keep in requests:
            if method == b"CONNECT":
                self._connect(url)
            elif not self._deaf:
                self._enqueue(Asked(method, self._absolute(url, headers), headers, body, http10), keep)

    def _absolute(self, url: bytes, headers: Headers) -> bytes:
        """The URL as the record wire has it: in a tunnel, whoever the tunnel leads to is asked."""
        if url.startswith(b"/") or url == b"*":
            if self._origin:
                return self._origin + url
            return b"http://" + next((value for name, value in headers if name.lower() == b"host"), b"") + url
        scheme, separator, rest = url.partition(b"://")
        if self._origin and separator and scheme.isalpha():
            return self._origin + b"/" + rest.partition(b"/")[2]
        return url

    def _connect(self, authority: bytes) -> None:
        line = f"CONNECT {authority.decode('latin-1')}"
        if self._authority is not None or not self.idle:
            self._refuse(Violation("tunnel", line, "a tunnel was asked for inside a tunnel, or behind other requests"))
            return
        target = split_authority(authority)
        if target is None:
            self._refuse(Violation("malformed", line, "a tunnel was asked for to what is no host and port"))
            return
        self._authority = authority
        self._reader = RequestReader()
        self._transport.write(_ESTABLISHED)
        if self._server.is_inside(*target):
            self._tunnel_open = True
            self._transport.pause_reading()
            self._task = self._server.loop.create_task(self._tunnel(*target))

    def _refuse(self, violation: Violation) -> None:
        """Count it, and answer with it when its turn comes."""
        self._server.replayer.violate(violation)
        self._enqueue(violation, keep=False)

    def _place(self) -> str:
        return (self._authority or b"the proxy").decode("latin-1")

    def _enqueue(self, turn: Asked | Violation, keep: bool) -> None:
        self._queue.append((turn, keep))
        self._deaf = not keep
        if len(self._queue) > _MOST_WAITING and not self._held_back:
            self._held_back = True
            self._transport.pause_reading()
        self._next()

    # --- answering ---------------------------------------------------------------------------------------------

    def _next(self) -> None:
        if self._busy or self._paused or not self._queue or self._closing:
            return
        self._busy = True
        turn, keep = self._queue.popleft()
        if self._held_back and len(self._queue) <= _MOST_WAITING // 2:
            self._hear_again()
        try:
            self._answer(turn, keep)
        except Exception as error:
            self._bug(error, turn)

    def _answer(self, turn: Asked | Violation, keep: bool) -> None:
        if isinstance(turn, Violation):
            self._send(turn.to_answer())
            self._finish("close")
            return
        self._server.before_request()
        decision = self._server.replayer.decide(turn)
        if isinstance(decision, Answer):
            self._play(decision, keep)
        elif isinstance(decision, Violation):
            self._send(decision.to_answer(body=turn.method != b"HEAD"))
            self._finish("close")
        else:
            self._task = self._server.loop.create_task(self._live(turn, decision, keep))

    def _hear_again(self) -> None:
        self._held_back = False
        self._transport.resume_reading()

    def _play(self, answer: Answer, keep: bool) -> None:
        finish = answer.finish if keep or answer.finish != "keep" else "close"
        if self._server.speed is None and answer.size <= _AT_ONCE:
            self._send(b"".join([part.data for part in answer.parts]))
            self._finish(finish)
            return
        pace = Pace(self._server.woken(), self._server.speed)
        self._playback = Playback(self._server.loop, answer, pace, self._send, lambda: self._finish(finish), self._bug)
        if self._paused:
            self._playback.pause()
        self._playback.start()

    async def _live(self, asked: Asked, live: Live, keep: bool) -> None:
        from tapeproxy.proxy.inside import relay_exchange

        def compare(heard: Heard) -> None:
            self._server.replayer.compare(live, heard.status, heard.headers, heard.body)

        try:
            again = await relay_exchange(asked, live.host, live.port, self._send, compare)
        except Exception as error:
            self._bug(error, asked)
            return
        self._finish("cut" if again is None else "keep" if keep and again else "close")

    async def _tunnel(self, host: str, port: int) -> None:
        from tapeproxy.proxy.inside import relay_tunnel

        try:
            self._relay = await relay_tunnel(self._transport, host, port)
        except Exception as error:
            self._bug(error)
        self._task = None
        if self._relay is not None and self._early:
            self._relay.write(self._early)
        self._transport.resume_reading()

    def _bug(self, error: Exception, turn: Asked | Violation | None = None) -> None:
        """What nobody foresaw must not leave the client waiting, nor the run looking clean."""
        line = (
            f"{turn.method.decode('latin-1')} {turn.url.decode('latin-1')}"
            if isinstance(turn, Asked)
            else self._place()
        )
        violation = Violation("internal", line, f"a bug in tapeproxy: {type(error).__name__}: {error}")
        self._server.replayer.violate(violation)
        if self._closing:
            return
        if self._playback is None and self._task is None:
            self._send(violation.to_answer())
            self._finish("close")
        else:
            self._finish("cut")

    def _send(self, data: bytes) -> None:
        if not data or self._closing:
            return
        try:
            sealed = data if self._tls is None else self._tls.seal(data)
        except ssl.SSLError:  # the client broke the session off
            self._closing = True
            self._transport.abort()
            return
        self._transport.write(sealed)

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
                elif self._half_closed:
                    self._close()
                elif self._reader.expects:
                    self._proceed()
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
                # connection_lost ends it, so the end of the connection must be heard.
                self._holding = self._deaf = True
                if self._half_closed:
                    self._close()
                elif self._held_back:
                    self._hear_again()

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
