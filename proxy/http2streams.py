"""One stream of HTTP/2 at the tape server: a request, and its answer within the client's windows.

Answers are rendered as HTTP/1.1, by whoever decides about them; `Translator` reads that and says what it is in HTTP/2.
One long class: every step of a stream looks at the same few states.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import quote

import httptools
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from tapeproxy.proxy.bodyspool import BodySpool
from tapeproxy.proxy.decisions import Asked, Joined
from tapeproxy.proxy.requestreader import MAX_BODY
from tapeproxy.proxy.turns import Turns
from tapeproxy.tapes.duplex import Duplex, split_messages
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.http2 import Http2
    from tapeproxy.proxy.tapeserver import TapeServer
    from tapeproxy.tapes.answers import Finish
    from tapeproxy.tapes.differences import Difference
    from tapeproxy.tapes.largebodies import LargeBody
    from tapeproxy.tapes.records import Headers

_HIGH, _LOW = 1 << 18, 1 << 16
"""Bytes that may wait for the client's window before no more is taken, and below which it is again."""
_SAID = 4000
"""Characters of a violation that fit into the metadata that clients take."""
_FAILED_PRECONDITION = b"9"
"""Which no client of gRPC tries again."""
_OF_CONNECTIONS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})


class Translator:
    """Reads an answer of HTTP/1.1. `heads` gathers (status, headers, final) and `pieces` what follows the last of them.

    `complete` once the message is whole, with `trailers`.
    """

    def __init__(self, *, head_only: bool) -> None:
        self.heads: list[tuple[int, Headers]] = []
        self.pieces: list[bytes] = []
        self.trailers: Headers = ()
        self.complete = False
        self._head_only = head_only
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._final = False

    def feed(self, data: bytes) -> None:
        """Take bytes of the answer. Raises HttpParserError."""
        if not self.complete:
            self._parser.feed_data(data)

    # --- the parser's callbacks ------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._final = status >= 200
        self.heads.append((status, _for_streams(self._headers)))
        self._headers = []
        if self._head_only and self._final:
            self.complete = True

    def on_body(self, data: bytes) -> None:
        if not self.complete:
            self.pieces.append(data)

    def on_message_complete(self) -> None:
        if self._final:
            self.complete = True
            self.trailers = tuple(self._headers)
        self._headers = []


def _for_streams(headers: list[tuple[bytes, bytes]]) -> Headers:
    """Without what is said of a connection (RFC 9113, 8.2.2)."""
    named = {token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")}
    dropped = _OF_CONNECTIONS | named
    return tuple((name, value.strip()) for name, value in headers if name not in dropped)


class Stream:
    """A stream, and the `Line` of its turns. `heard`: the request is whole; `answers`: the answer is under way."""

    def __init__(
        self, server: TapeServer, talk: Http2, number: int, pseudo: dict[bytes, bytes], headers: Headers
    ) -> None:
        self.number = number
        self.heard = False
        self.answers = False
        self._server = server
        self._talk = talk
        self._pseudo = pseudo
        self._headers = headers
        self._method = pseudo.get(b":method", b"")
        self._body = BodySpool(headers)
        self._turns = Turns(server, self)
        self._translator = Translator(head_only=self._method == b"HEAD")
        self._outbox: deque[bytes | memoryview] = deque()
        self._waiting = 0  # bytes in the outbox
        self._begun = False  # the final head is sent
        self._finish: Finish | None = None  # how it ends, once the outbox is empty
        self._code: int | None = None
        self._gone = False
        self._grpc = any(name == b"content-type" and value.startswith(b"application/grpc") for name, value in headers)
        self._asked: Asked | None = None
        self._duplex: Duplex | None = None  # the taped call with which this one goes on
        self._held_up = talk.paused  # the client can take no more
        if self._held_up:
            self._turns.pause()

    # --- the request -----------------------------------------------------------------------------------------------

    def begin(self, *, more: bool) -> None:
        """The head has come, and perhaps there is `more`."""
        if self._method == b"CONNECT":
            what = "a tunnel was asked for within HTTP/2"
            self._refuse(Violation("tunnel", self._line(), what))
            return
        expected = [value.lower() for name, value in self._headers if name == b"expect"]
        if more and b"100-continue" in expected:
            with contextlib.suppress(ProtocolError):  # the client took it back
                self._talk.frames.send_headers(self.number, [(b":status", b"100")])

    def take(self, data: bytes) -> None:
        """A piece of the request's body."""
        if self._duplex is not None and not self._gone:
            self._compare(self._duplex, self._duplex.take(data))
            return
        if self.answers or self._gone:
            return
        if self._body.size + len(data) > MAX_BODY:
            what = f"the request's body is larger than {MAX_BODY} bytes"
            self._refuse(Violation("too-large", self._line(), what))
            return
        self._body.take(data)
        if self._grpc and data:
            # Not at once: the end of most calls comes with what they say.
            self._server.loop.call_soon(self._join)

    def complete(self) -> None:
        """The request is whole."""
        self.heard = True
        if self._gone:
            self._talk.forget(self)
        elif self._duplex is not None:
            self._compare(self._duplex, self._duplex.finish())
        elif not self.answers:
            self._ask()

    def _ask(self) -> None:
        path = self._pseudo.get(b":path")
        if not path or not self._method:
            what = "a request could not be read: it has no method or no path"
            self._refuse(Violation("malformed", self._line(), what))
            return
        asked = self._asked_for(path, self._body.finish())
        self._body = BodySpool(())
        self.answers = True
        self._turns.add(asked, keep=True)

    def _asked_for(self, path: bytes, body: bytes | LargeBody) -> Asked:
        connection = self._talk.connection
        return Asked(self._method, connection.absolute(path, self._headers), self._headers, body, port=connection.port)

    def _join(self) -> None:
        """Answer a call of which more is to come, if that is how it was on the tape."""
        path = self._pseudo.get(b":path")
        if self.heard or self.answers or self.closing or not path:
            return
        body = self._body.in_memory
        if body is None or not split_messages(body)[0]:
            return
        asked = self._asked_for(path, body)
        replayer = self._server.replayer
        if replayer.known is not None:  # the tape is still being read
            self._server.waiting.append(self._join)
            return
        try:
            self._server.before_request()
            joined = replayer.join(asked, body)
        except Exception as error:
            self._turns.fail(error, asked)
            return
        if joined is None:
            return
        self._asked, self._body = asked, BodySpool(())
        self.answers = True
        if isinstance(joined, Joined):
            self._duplex = joined.duplex
        self._turns.add(joined, keep=True)

    def _compare(self, duplex: Duplex, difference: Difference | None) -> None:
        """The call has gone on: let the answer go on, too, or say what is not on the tape."""
        if difference is None:
            self._turns.look()
            return
        assert self._asked is not None
        violation = self._server.replayer.parted(self._asked, duplex, difference)
        self._turns.cancel()
        self._duplex = None
        self._outbox.clear()
        self._waiting = 0
        self._translator = Translator(head_only=False)
        self.refuse(violation)
        self.end("close")

    def _refuse(self, violation: Violation) -> None:
        self._server.replayer.violate(violation)
        self.answers = True
        self._body = BodySpool(())
        self._turns.add(violation, keep=True)

    def _line(self) -> str:
        path = self._pseudo.get(b":path", b"")
        return f"{self._method.decode('latin-1')} {(self._talk.connection.origin + path).decode('latin-1')}"

    # --- what the talk needs ---------------------------------------------------------------------------------------

    def leave(self) -> None:
        """The client is gone, or wants no answer."""
        self._gone = True
        self.answers = False
        self._outbox.clear()
        self._turns.cancel()

    def pace(self) -> None:
        """Hold the answer back while the client can take no more, or go on with it."""
        if not self._held_up and (self._talk.paused or self._waiting > _HIGH):
            self._held_up = True
            self._turns.pause()
        elif self._held_up and not self._talk.paused and self._waiting <= _LOW:
            self._held_up = False
            self._turns.unpause()
            self._server.loop.call_soon(self._turns.resume)

    def drain(self) -> None:
        """Send what the windows allow."""
        if self._gone or self._talk.paused:
            return
        frames = self._talk.frames
        try:
            while self._outbox:
                room = min(frames.local_flow_control_window(self.number), frames.max_outbound_frame_size)
                if room <= 0:
                    break
                piece = self._outbox.popleft()
                if len(piece) > room:
                    whole = memoryview(piece)  # or a large piece would be copied for each frame
                    self._outbox.appendleft(whole[room:])
                    piece = whole[:room]
                self._waiting -= len(piece)
                last = not self._outbox and self._ends and not self._translator.trailers
                frames.send_data(self.number, bytes(piece), end_stream=last)
                if last:
                    self._over()
                    return
            if not self._outbox and self._finish is not None:
                self._end_stream()
        except ProtocolError:  # the client took it back, or broke the connection off
            self.leave()
            return
        if not self._gone:
            self.pace()

    @property
    def _ends(self) -> bool:
        """The answer is whole, and is to end in order."""
        return self._finish in ("keep", "close")

    def _end_stream(self) -> None:
        frames = self._talk.frames
        match self._finish:
            case "keep" | "close" if self._begun:
                if self._translator.trailers:
                    frames.send_headers(self.number, list(self._translator.trailers), end_stream=True)
                else:
                    frames.end_stream(self.number)
                self._over()
            case "reset" | "cut" if self._code is not None:
                frames.reset_stream(self.number, self._code)
                self.leave()
                self._talk.forget(self)
            case "cut" | "reset" as how:
                self.leave()
                self._talk.cut(self, how)
            case "keep" | "close":  # nothing was said at all
                frames.reset_stream(self.number, ErrorCodes.INTERNAL_ERROR)
                self.leave()
                self._talk.forget(self)
            case _:
                pass

    def _over(self) -> None:
        self.answers = False
        self._gone = True
        self._talk.done(self)

    # --- what the turns need (`Line`) ------------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        return self._gone or self._talk.connection.closing

    def send(self, data: bytes) -> None:
        """Send bytes of an answer in HTTP/1.1."""
        if self.closing or not data:
            return
        translator = self._translator
        try:
            translator.feed(data)
        except httptools.HttpParserError:
            self._translator = Translator(head_only=self._method == b"HEAD")  # for what is said of this
            raise
        self._say(translator)

    def _say(self, translator: Translator) -> None:
        heads, translator.heads = translator.heads, []
        pieces, translator.pieces = translator.pieces, []
        for status, headers in heads:
            final = status >= 200
            self._begun = self._begun or final
            # gRPC has answers that are a head and nothing else.
            ends = final and translator.complete and not pieces and not translator.trailers
            try:
                self._talk.frames.send_headers(self.number, [(b":status", b"%d" % status), *headers], end_stream=ends)
            except ProtocolError:  # the client took it back
                self.leave()
                return
            if ends:
                self._talk.flush()
                self._over()
                return
        self._outbox.extend(pieces)
        self._waiting += sum(map(len, pieces))
        if translator.complete:
            self._finish = "keep"
        self.drain()
        self._talk.flush()

    def end(self, how: Finish, code: int | None = None) -> None:
        """End the answer: in order, with its stream (`code`), or with the connection."""
        if self._gone:
            return
        self._finish, self._code = how, code
        self.drain()
        self._talk.flush()

    def refuse(self, violation: Violation, *, body: bool = True) -> None:
        """Answer with a violation: a call of gRPC in its own words, which its clients show."""
        if self.closing:
            return
        if not self._grpc:
            self.send(violation.to_answer(body=body))
            return
        said = quote(violation.to_text()[:_SAID], safe=" !\"#$&'()*+,/:;<=>?@[\\]^_`{|}~").encode()
        status = [(b"grpc-status", _FAILED_PRECONDITION), (b"grpc-message", said), (b"x-tapeproxy", b"violation")]
        head = [] if self._begun else [(b":status", b"200"), (b"content-type", b"application/grpc")]
        with contextlib.suppress(ProtocolError):  # the client took it back
            self._talk.frames.send_headers(self.number, [*head, *status], end_stream=True)
        self._talk.flush()
        self._over()

    def spare(self) -> None:
        """The answer was sent as it came."""

    def hold(self) -> None:
        """Send nothing more, and wait for the client to take it back."""
        self.answers = False
        self._talk.hold(self)

    def pause_reading(self) -> None:
        """A stream has one request."""

    def resume_reading(self) -> None:
        """A stream has one request."""

    def place(self) -> str:
        return self._talk.connection.place()

    def switch(self, talk: object) -> None:
        # HTTP/2 has no Upgrade, so nobody is given the answer that would lead here.
        raise TypeError("a stream of HTTP/2 does not become a WebSocket")
