"""One client connection of the tape server: its socket, tunnel and TLS. What it speaks in there is its `Talk`'s.

No upstream of any kind: the only connection that it or its turns can cause is to a server of the run itself, on
loopback, when the replayer says so (`Live`).

One long class: the socket, its tunnel and its TLS are one state, and each callback of the event loop moves all of it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from typing import TYPE_CHECKING, Protocol, cast

from tapeproxy.proxy.http1 import Http1
from tapeproxy.proxy.led import authority
from tapeproxy.proxy.tlschannel import TlsChannel
from tapeproxy.tapes.hosts import split_authority
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tapeproxy.proxy.inside import Relay
    from tapeproxy.proxy.led import Led
    from tapeproxy.proxy.tapeserver import TapeServer
    from tapeproxy.tapes.answers import Finish
    from tapeproxy.tapes.records import Headers

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_TLS_HANDSHAKE = 0x16
_H2_PREFACE = b"PRI * HTTP/2"
_OWN_INBOX = 1 << 16
_RESET = struct.pack("ii", 1, 0)


class Talk(Protocol):
    """A version of HTTP on a connection."""

    @property
    def idle(self) -> bool:
        """No answer is under way."""
        ...

    @property
    def answers(self) -> bool:
        """An answer is under way that a client may wait for which itself sends no more."""
        ...

    @property
    def reading(self) -> bool:
        """A request has begun and is not whole."""
        ...

    @property
    def deaf(self) -> bool:
        """What comes now is not listened to."""
        ...

    def feed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Take bytes of the client's; returns those that are none of this talk."""
        ...

    def pause(self) -> None:
        """The client reads too slowly: send nothing until `resume`."""

    def unpause(self) -> None:
        """The client has caught up; `resume` follows."""

    def resume(self) -> None:
        """Go on, unless there was another `pause`."""

    def cancel(self) -> None:
        """The connection is gone."""

    def fail(self, error: Exception) -> None:
        """What nobody foresaw must not leave the client waiting, nor the run looking clean."""

    def farewell(self) -> bytes:
        """What is said before the connection is closed."""
        ...


class Connection(asyncio.BufferedProtocol):
    """One connection: its bytes to a `Talk`, and back. `check`: see Http1.

    `authority` is that of the CONNECT, once there was one; `origin` scheme and authority of the requests in its tunnel;
    `port` the client's own; `talk` what is spoken. `half_closed`: by the client, which may still read. `is_front`:
    whoever connects here knows of no proxy. `led` knows where connections were meant to go that were led here.
    """

    def __init__(
        self,
        server: TapeServer,
        check: Callable[[Headers], Headers | bytes] | None = None,
        *,
        is_front: bool = False,
        led: Led | None = None,
    ) -> None:
        self.authority: bytes | None = None
        self.origin = b""
        self.port = 0
        self.closing = False
        self.half_closed = False
        self.last_heard = server.loop.time()
        self._server = server
        self._is_front = is_front
        self._led = led
        self._transport: asyncio.Transport
        self._tls: TlsChannel | None = None
        self._tunnel_open = False  # the tunnel's first byte was seen
        self._begun = False  # a front's first byte was
        self._relay: asyncio.Transport | None = None
        self._early = b""  # bytes for a tunnel that is not yet through
        self._tunnelling: asyncio.Task[None] | None = None
        # A proactor loop reads ahead, so there each connection needs an inbox of its own.
        shared = isinstance(server.loop, asyncio.SelectorEventLoop)
        self._inbox = server.inbox if shared else memoryview(bytearray(_OWN_INBOX))
        self.talk: Talk = Http1(server, self, check)

    @property
    def idle(self) -> bool:
        """No answer is under way."""
        return self.talk.idle and self._relay is None

    # --- asyncio.Protocol --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket: socket.socket = self._transport.get_extra_info("socket")
        self.port = self._transport.get_extra_info("peername", ("", 0))[1]
        if self._is_front:
            # By whatever name the client knows this machine, it asks this port.
            self.origin = b"http://127.0.0.1:%d" % self._socket.getsockname()[1]
        self._server.connections.add(self)
        if self._led is not None:
            self._lead(self._led.place(self._socket))

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self.closing = True
        self.talk.cancel()
        if self._tunnelling is not None:
            self._tunnelling.cancel()
        if self._relay is not None:
            self._relay.close()

    def pause_writing(self) -> None:
        self.talk.pause()
        if self._relay is not None:
            self._relay.pause_reading()

    def resume_writing(self) -> None:
        self.talk.unpause()
        if self._relay is not None:
            self._relay.resume_reading()
        # Not at once: asyncio calls this while it writes, and a transport that is closed just then closes twice.
        self._server.loop.call_soon(self.talk.resume)

    def eof_received(self) -> bool:
        """Whether the connection stays open: a client that sends no more may still wait for its answer."""
        if self._relay is not None:
            self._relay.write_eof()
            return True
        return self._still_answers()

    def _still_answers(self) -> bool:
        self.half_closed = True
        return self._tunnelling is None and self.talk.answers

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox

    def buffer_updated(self, nbytes: int) -> None:
        self.last_heard = self._server.woken()
        try:
            self._receive(self._inbox[:nbytes])
        except Exception as error:
            self.talk.fail(error)

    def _receive(self, data: bytes | memoryview) -> None:
        talk = self.talk
        if self._relay is not None:
            self._relay.write(bytes(data))
        elif talk.deaf or self.closing:
            return
        elif self.authority is not None and not self._tunnel_open:
            self._open_tunnel(data)
        elif self._tls is not None:
            self._decrypt(self._tls, data)
        else:
            if self._is_front and not self._begun:
                self._begun = True
                self._look_for_preface(data)
            self._hear(data)
        # requests and urllib3 turn Nagle on behind a proxy and write head and body apart: without an immediate ACK of
        # the head, the body waits for our 40 ms delayed-ACK timer.
        if talk.reading and _QUICKACK is not None and not self.closing:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def _hear(self, data: bytes | memoryview) -> None:
        rest = self.talk.feed(data)
        if rest and self.authority is not None and not self._tunnel_open:
            self._receive(rest)
        elif rest and self._tunnelling is not None:
            self._early = bytes(rest)

    # --- tunnel and TLS ----------------------------------------------------------------------------------------

    def connect(self, authority: bytes) -> Violation | None:
        """Begin a tunnel; or say why not."""
        line = f"CONNECT {authority.decode('latin-1')}"
        if self.authority is not None or not self.idle:
            return Violation("tunnel", line, "a tunnel was asked for inside a tunnel, or behind other requests")
        target = split_authority(authority)
        if target is None:
            return Violation("malformed", line, "a tunnel was asked for to what is no host and port")
        if (passed := self._server.replayer.passed_by(*target, line)) is not None:
            return passed
        self.authority = authority
        self._transport.write(ESTABLISHED)
        if self._server.is_inside(*target):
            self._tunnel_open = True
            self._join(*target)
        return None

    def _lead(self, place: tuple[str, int] | None) -> None:
        """Begin the tunnel that the client of a connection knows nothing of, which was led here."""
        if place is None:
            self._transport.abort()
            return
        name = authority(place)
        if (passed := self._server.replayer.passed_by(*place, f"CONNECT {name.decode()}")) is not None:
            self._server.replayer.violate(passed)
            self.end("reset")
            return
        self.authority = name
        if self._server.is_inside(*place):
            self._tunnel_open = True
            self._join(*place)

    def relay(self, relay: Relay) -> None:
        """Join the client with a server of the run, which is sent the request that asked for it."""
        self._early = relay.data
        self._join(relay.host, relay.port)

    def _join(self, host: str, port: int) -> None:
        self._transport.pause_reading()
        self._tunnelling = self._server.loop.create_task(self._tunnel(host, port))

    def absolute(self, url: bytes, headers: Headers) -> bytes:
        """The URL of a request target as the record wire has it: in a tunnel, whoever the tunnel leads to is asked."""
        if url.startswith(b"/") or url == b"*":
            if self.origin:
                return self.origin + url
            return b"http://" + next((value for name, value in headers if name.lower() == b"host"), b"") + url
        scheme, separator, rest = url.partition(b"://")
        if self.origin and separator and scheme.isalpha():
            return self.origin + b"/" + rest.partition(b"/")[2]
        return url

    def _open_tunnel(self, data: bytes | memoryview) -> None:
        assert self.authority is not None
        self._tunnel_open = True
        if memoryview(data)[0] != _TLS_HANDSHAKE:
            self.origin = b"http://" + self.authority.removesuffix(b":80")
            self._look_for_preface(data)
            self._hear(data)
            return
        self.origin = b"https://" + self.authority.removesuffix(b":443")
        self._shake_hands(bytes(data))

    def _look_for_preface(self, data: bytes | memoryview) -> None:
        """Without TLS nothing is negotiated: gRPC just begins."""
        if bytes(data[: len(_H2_PREFACE)]) == _H2_PREFACE:
            self._speak_http2()

    def _shake_hands(self, hello: bytes) -> None:
        replayer = self._server.replayer
        http2 = replayer.speaks_http2(self.origin)
        if http2 is None and replayer.known is not None:  # the tape is still being read
            self._transport.pause_reading()
            self._server.waiting.append(lambda: self._shake_late(hello))
            return
        self._tls = TlsChannel(self._server.tls_context(self._tunnel_host(), http2 is True), self._server.room)
        self._decrypt(self._tls, hello)

    def _shake_late(self, hello: bytes) -> None:
        if self.closing:
            return
        self._transport.resume_reading()
        try:
            self._shake_hands(hello)
        except Exception as error:
            self.talk.fail(error)

    def _speak_http2(self) -> None:
        from tapeproxy.proxy.http2 import Http2

        self.talk = Http2(self._server, self)

    def _decrypt(self, tls: TlsChannel, data: bytes | memoryview) -> None:
        shaken = tls.ready
        try:
            plain = tls.feed(data)
        except ssl.SSLError as error:
            self._server.refused_tls(self._tunnel_host(), error)
            self._transport.write(tls.outgoing())
            self.end("close")
            return
        if out := tls.outgoing():
            self._transport.write(out)
        if tls.ready and not shaken and tls.protocol == "h2":
            self._speak_http2()
        if plain:
            self._hear(plain)
        if tls.closed and not self.closing and not self._still_answers():
            self.end("close")

    def _tunnel_host(self) -> str:
        assert self.authority is not None
        return self.authority.rsplit(b":", 1)[0].decode("latin-1").strip("[]")

    async def _tunnel(self, host: str, port: int) -> None:
        from tapeproxy.proxy.inside import relay_tunnel

        try:
            self._relay = await relay_tunnel(self._transport, host, port)
        except Exception as error:
            self.end("cut")
            self.talk.fail(error)
        self._tunnelling = None
        if self._relay is not None and self._early:
            self._relay.write(self._early)
        self._transport.resume_reading()

    # --- what the talk needs -----------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes, encrypted where the tunnel is."""
        if not data or self.closing:
            return
        try:
            sealed = data if self._tls is None else self._tls.seal(data)
        except ssl.SSLError:  # the client broke the session off
            self.closing = True
            self._transport.abort()
            return
        self._transport.write(sealed)

    def end(self, how: Finish) -> None:
        """End the connection: in order, cut off, or by a reset."""
        self.closing = True
        if how == "reset":
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()
            return
        if how == "close" and self._tls is not None and self._tls.ready:
            self._transport.write(self._tls.goodbye())
        self._transport.close()

    def pause_reading(self) -> None:
        """Hear no more for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Hear again."""
        self._transport.resume_reading()

    def place(self) -> str:
        """Where the connection leads, for a message."""
        return (self.authority or b"the proxy").decode("latin-1")

    # --- what the server needs ---------------------------------------------------------------------------------

    def close_idle(self) -> None:
        """End the connection in order if no answer is under way."""
        if self.idle and not self.closing:
            self.send(self.talk.farewell())
            self.end("close")

    def abort(self) -> None:
        """Drop the connection at once."""
        self.send(self.talk.farewell())
        self._transport.abort()
