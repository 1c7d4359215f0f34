"""One client connection of the tape server: CONNECT, TLS, HTTP/1.1 in. No upstream of any kind.

The only connection that it or its turns can cause is to a server of the run itself, on loopback, when the replayer says
so (`Live`).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from typing import TYPE_CHECKING, cast

from tapeproxy.proxy.replayer import Asked
from tapeproxy.proxy.requestreader import RequestReader, UnreadableError
from tapeproxy.proxy.tlschannel import TlsChannel
from tapeproxy.proxy.turns import Turn, Turns
from tapeproxy.tapes.hosts import split_authority
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tapeproxy.proxy.tapeserver import TapeServer
    from tapeproxy.tapes.answers import Finish
    from tapeproxy.tapes.records import Headers

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_TLS_HANDSHAKE = 0x16
_OWN_INBOX = 1 << 16
_RESET = struct.pack("ii", 1, 0)


class Connection(asyncio.BufferedProtocol):
    """One connection: bytes to requests, and the answers of their `Turns` to bytes.

    `check` is given the headers of the CONNECT and of requests outside a tunnel. It returns those that are left of
    them, or what the client is answered with instead.
    """

    def __init__(self, server: TapeServer, check: Callable[[Headers], Headers | bytes] | None = None) -> None:
        self._server = server
        self._check = check
        self._transport: asyncio.Transport
        self._tls: TlsChannel | None = None
        self._authority: bytes | None = None  # of the CONNECT, once there was one
        self._origin = b""  # scheme and authority of the requests in its tunnel
        self._tunnel_open = False  # the tunnel's first byte was seen
        self._relay: asyncio.Transport | None = None
        self._early = b""  # bytes for a tunnel that is not yet through
        self._turns = Turns(server, self)
        self._tunnelling: asyncio.Task[None] | None = None
        self.closing = False
        self._holding = False  # the client is waited for to leave
        self._deaf = False  # the last request was heard
        self._half_closed = False  # by the client, which may still read
        self.last_heard = server.loop.time()
        # A proactor loop reads ahead, so there each connection needs an inbox of its own.
        shared = isinstance(server.loop, asyncio.SelectorEventLoop)
        self._inbox = server.inbox if shared else memoryview(bytearray(_OWN_INBOX))
        self._reader = RequestReader()

    @property
    def idle(self) -> bool:
        """No answer is under way."""
        return self._turns.idle and self._relay is None

    # --- asyncio.Protocol --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket: socket.socket = self._transport.get_extra_info("socket")
        self._port: int = self._transport.get_extra_info("peername", ("", 0))[1]
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self.closing = True
        self._turns.cancel()
        if self._tunnelling is not None:
            self._tunnelling.cancel()
        if self._relay is not None:
            self._relay.close()

    def pause_writing(self) -> None:
        self._turns.pause()
        if self._relay is not None:
            self._relay.pause_reading()

    def resume_writing(self) -> None:
        self._turns.unpause()
        if self._relay is not None:
            self._relay.resume_reading()
        # Not at once: asyncio calls this while it writes, and a transport that is closed just then closes twice.
        self._server.loop.call_soon(self._turns.resume)

    def eof_received(self) -> bool:
        """Whether the connection stays open: a client that sends no more may still wait for its answer."""
        if self._relay is not None:
            self._relay.write_eof()
            return True
        return self._still_answers()

    def _still_answers(self) -> bool:
        self._half_closed = True
        # A server of the run should notice that its client has left, which looks the same.
        busy = not self.idle and not self._turns.live and self._tunnelling is None
        return busy and not self._holding

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox

    def buffer_updated(self, nbytes: int) -> None:
        self.last_heard = self._server.woken()
        try:
            self._receive(self._inbox[:nbytes])
        except Exception as error:
            self._turns.fail(error)

    def _receive(self, data: bytes | memoryview) -> None:
        if self._relay is not None:
            self._relay.write(bytes(data))
        elif self._deaf or self.closing:
            return
        elif self._authority is not None and not self._tunnel_open:
            self._open_tunnel(data)
        elif self._tls is not None:
            self._decrypt(self._tls, data)
        else:
            self._parse(data)
        # requests and urllib3 turn Nagle on behind a proxy and write head and body apart: without an immediate ACK of
        # the head, the body waits for our 40 ms delayed-ACK timer.
        if self._reader.reading and _QUICKACK is not None and not self.closing:
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
            self.end("close")
            return
        if out := tls.outgoing():
            self._transport.write(out)
        if plain:
            self._parse(plain)
        if tls.closed and not self.closing and not self._still_answers():
            self.end("close")

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
            where = error.line if not error.line.endswith(" ") else error.line + self.place()
            self._refuse(Violation("too-large" if error.too_large else "malformed", where, what))
            return
        self._take_requests()
        if rest and self._authority is not None and not self._tunnel_open:
            self._receive(rest)
        elif rest and self._tunnelling is not None:
            self._early = bytes(rest)
        elif self._reader.expects and self.idle:
            self._proceed()

    def _proceed(self) -> None:
        self._reader.expects = False
        self.send(_CONTINUE)

    def _take_requests(self) -> None:
        requests, self._reader.requests = self._reader.requests, []
        for method, url, headers, body, http10, keep in requests:
            if self._check is not None and self._authority is None:
                checked = self._check(headers)
                if isinstance(checked, bytes):
                    self._enqueue(checked, keep=False)
                    return
                headers = checked
            if method == b"CONNECT":
                self._connect(url)
            elif not self._deaf:
                self._enqueue(Asked(method, self._absolute(url, headers), headers, body, http10, self._port), keep)

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
            self._tunnelling = self._server.loop.create_task(self._tunnel(*target))

    def _refuse(self, violation: Violation) -> None:
        """Count it, and answer with it when its turn comes."""
        self._server.replayer.violate(violation)
        self._enqueue(violation, keep=False)

    def _enqueue(self, turn: Turn, keep: bool) -> None:
        self._deaf = not keep
        self._turns.add(turn, keep)

    async def _tunnel(self, host: str, port: int) -> None:
        from tapeproxy.proxy.inside import relay_tunnel

        try:
            self._relay = await relay_tunnel(self._transport, host, port)
        except Exception as error:
            self.end("cut")
            self._turns.fail(error)
        self._tunnelling = None
        if self._relay is not None and self._early:
            self._relay.write(self._early)
        self._transport.resume_reading()

    # --- what the turns need (`Line`) --------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes of an answer, encrypted where the tunnel is."""
        if not data or self.closing:
            return
        try:
            sealed = data if self._tls is None else self._tls.seal(data)
        except ssl.SSLError:  # the client broke the session off
            self.closing = True
            self._transport.abort()
            return
        self._transport.write(sealed)

    def spare(self) -> None:
        """Every request has had its answer."""
        if self._half_closed:
            self.end("close")
        elif self._reader.expects:
            self._proceed()

    def hold(self) -> None:
        """Send nothing more, and wait for the client to leave."""
        self._holding = self._deaf = True
        if self._half_closed:
            self.end("close")

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
        return (self._authority or b"the proxy").decode("latin-1")

    # --- what the server needs ---------------------------------------------------------------------------------

    def close_idle(self) -> None:
        """End the connection in order if no answer is under way."""
        if self.idle and not self.closing:
            self.end("close")

    def abort(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()
