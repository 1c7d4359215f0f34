"""TLS over bytes: a server's end of one connection in memory. Knows ssl, not sockets.

asyncio's own `start_tls` lost ClientHello bytes that came with the CONNECT, and it puts a second protocol object into
every connection; a pair of memory buffers does neither.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import cast


class TlsChannel:
    """One TLS session. `ready` once the handshake is done."""

    def __init__(self, context: ssl.SSLContext, room: memoryview) -> None:
        """`room` is scratch space, at least 64 KiB; channels of one thread may share it."""
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._room = room
        self.ready = False
        self.closed = False

    def feed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Take bytes from the network, return the plain ones they hold. Raises ssl.SSLError.

        What is returned may lie in `room`, and then is good until the next `feed`. `outgoing` may have something to
        send afterwards. `closed` says that the client ended the session.
        """
        self._in.write(data)
        try:
            if not self.ready:
                self._tls.do_handshake()
                self.ready = True
            return self._read_all()
        except ssl.SSLWantReadError:
            return b""

    def _read_all(self) -> bytes | memoryview:
        # Records are at most 16 KiB: collect them, so that the parser is called once for all.
        out: list[bytes] = []
        at = 0
        try:
            # Reading on when nothing is left would cost an exception each time.
            while self._in.pending or self._tls.pending():
                if at == len(self._room):
                    out.append(bytes(self._room))
                    at = 0
                # typeshed says bytes; with a buffer it is a count.
                n = cast(int, self._tls.read(len(self._room) - at, self._room[at:]))
                if not n:
                    self.closed = True
                    break
                at += n
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.closed = True
        return b"".join((*out, self._room[:at])) if out else self._room[:at]

    def seal(self, data: bytes) -> bytes:
        """Encrypt `data`; returns the bytes for the network."""
        self._tls.write(data)
        return self._out.read()

    @property
    def protocol(self) -> str | None:
        """What was negotiated (ALPN), once `ready`."""
        return self._tls.selected_alpn_protocol()

    def outgoing(self) -> bytes:
        """Handshake bytes and alerts that wait to be sent."""
        return self._out.read() if self._out.pending else b""

    def goodbye(self) -> bytes:
        """The bytes that end the session in order (close_notify)."""
        with contextlib.suppress(ssl.SSLError):  # the client's own close_notify is not waited for
            self._tls.unwrap()
        return self.outgoing()
