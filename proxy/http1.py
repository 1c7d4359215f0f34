"""HTTP/1.1 on a connection of the tape server: bytes to requests, and the answers of its `Turns` to bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapeproxy.proxy.decisions import Asked
from tapeproxy.proxy.requestreader import RequestReader, UnreadableError
from tapeproxy.proxy.turns import Turn, Turns
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tapeproxy.proxy.connection import Connection
    from tapeproxy.proxy.tapeserver import TapeServer
    from tapeproxy.tapes.answers import Finish
    from tapeproxy.tapes.records import Headers

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Http1:
    """What a connection speaks at first, and in most tunnels. See `Talk`, and `Line` for what its turns need.

    `check` is given the headers of the CONNECT and of requests outside a tunnel. It returns those that are left of
    them, or what the client is answered with instead.
    """

    def __init__(
        self, server: TapeServer, connection: Connection, check: Callable[[Headers], Headers | bytes] | None
    ) -> None:
        self._server = server
        self._connection = connection
        self._check = check
        self._reader = RequestReader()
        self._turns = Turns(server, self)
        self._holding = False  # the client is waited for to leave
        self.deaf = False
        """The last request was heard."""

    # --- what the connection needs (`Talk`) ----------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        return self._turns.idle

    @property
    def reading(self) -> bool:
        return self._reader.reading

    @property
    def answers(self) -> bool:
        # A server of the run should notice that its client has left, which looks the same.
        return not self.idle and not self._turns.live and not self._holding

    def feed(self, data: bytes | memoryview) -> bytes | memoryview:
        """Take bytes; returns those that come after a CONNECT."""
        try:
            rest = self._reader.feed(data)
        except UnreadableError as error:
            self._take_requests()
            if not self.deaf:  # what comes after the last request says nothing
                what = f"a request could not be read: {error.what}"
                where = error.line if not error.line.endswith(" ") else error.line + self.place()
                self._refuse(Violation("too-large" if error.too_large else "malformed", where, what))
            return b""
        self._take_requests()
        if not rest and self._reader.expects and self.idle:
            self._proceed()
        return rest

    def fail(self, error: Exception) -> None:
        self._turns.fail(error)

    def pause(self) -> None:
        self._turns.pause()

    def unpause(self) -> None:
        self._turns.unpause()

    def resume(self) -> None:
        self._turns.resume()

    def cancel(self) -> None:
        self._turns.cancel()

    def farewell(self) -> bytes:
        return b""

    # --- requests --------------------------------------------------------------------------------------------------

    def _proceed(self) -> None:
        self._reader.expects = False
        self.send(_CONTINUE)

    def _take_requests(self) -> None:
        requests, self._reader.requests = self._reader.requests, []
        connection = self._connection
        for method, url, headers, body, http10, keep in requests:
            if self._check is not None and connection.authority is None:
                checked = self._check(headers)
                if isinstance(checked, bytes):
                    self._enqueue(checked, keep=False)
                    return
                headers = checked
            if method == b"CONNECT":
                self._connect(url)
            elif not self.deaf:
                asked = Asked(method, connection.absolute(url, headers), headers, body, http10, connection.port)
                self._enqueue(asked, keep)

    def _connect(self, authority: bytes) -> None:
        violation = self._connection.connect(authority)
        if violation is None:
            self._reader = RequestReader()
        else:
            self._refuse(violation)

    def _refuse(self, violation: Violation) -> None:
        """Count it, and answer with it when its turn comes."""
        self._server.replayer.violate(violation)
        self._enqueue(violation, keep=False)

    def _enqueue(self, turn: Turn, keep: bool) -> None:
        self.deaf = not keep
        self._turns.add(turn, keep)

    # --- what the turns need (`Line`) ------------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        return self._connection.closing

    def send(self, data: bytes) -> None:
        self._connection.send(data)

    def refuse(self, violation: Violation, *, body: bool = True) -> None:
        self.send(violation.to_answer(body=body))

    def spare(self) -> None:
        if self._connection.half_closed:
            self.end("close")
        elif self._reader.expects:
            self._proceed()

    def hold(self) -> None:
        self._holding = self.deaf = True
        if self._connection.half_closed:
            self.end("close")

    def end(self, how: Finish, code: int | None = None) -> None:
        self._connection.end(how)

    def pause_reading(self) -> None:
        self._connection.pause_reading()

    def resume_reading(self) -> None:
        self._connection.resume_reading()

    def place(self) -> str:
        return self._connection.place()

    def switch(self, talk: object) -> None:
        # Imported late: most runs have no WebSocket.
        from tapeproxy.proxy.conversation import Conversation
        from tapeproxy.proxy.sockettalk import SocketTalk

        if not isinstance(talk, Conversation):
            from tapeproxy.proxy.inside import Relay

            assert isinstance(talk, Relay)
            self._connection.relay(talk)
            return
        socket = SocketTalk(self._server, self._connection, talk)
        self._connection.talk = socket
        socket.go_on()
