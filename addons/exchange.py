"""One exchange on its way to the tape: its records in order, redacted, each committed before anyone can act on it."""

from collections.abc import Iterator

from tapeproxy.addons.tape import Tape
from tapeproxy.addons.tapedsocket import TapedSocket
from tapeproxy.tapes.records import Chunks, End, Headers, How, Request, Response, Side
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.streamredaction import BodyStream

type Timed = tuple[int, bytes]

_PIECE = 1 << 20


class TapedExchange:
    """Writes an exchange whose redacted `request` it is given. Every method has committed when it returns.

    What the headers say of a body decides how secrets are looked for in it.

    What comes after the end is dropped: a server may answer, and be done, while a big upload still goes on.
    """

    def __init__(self, tape: Tape, redactor: Redactor, request: Request) -> None:
        self._tape = tape
        self._redactor = redactor
        self._streams: dict[Side, BodyStream] = {}
        self._ended = False
        self._headers: dict[Side, Headers] = {"server": request.headers}
        self._socket: TapedSocket | None = None
        self.of = tape.add(request)
        tape.commit()

    def upload_whole(self, body: bytes) -> None:
        """Write a request body that is too big for one line as chunks toward the server."""
        for start in range(0, len(body), _PIECE):
            self.take("server", body[start : start + _PIECE])
        self.finish("server")

    def respond(self, response: Response) -> None:
        """Write the response's head."""
        self._headers["client"] = response.headers
        self._tape.add(response)
        self._tape.commit()

    def take(self, to: Side, data: bytes) -> None:
        """Write one chunk that is about to be passed on. It is held back while it may end in half a secret."""
        if self._ended:
            return
        if to not in self._streams:
            self._streams[to] = self._redactor.stream(self._headers.get(to, ()))
        if self._write(to, self._streams[to].feed(self._tape.now(), data)):
            self._tape.commit()

    def finish(self, to: Side) -> None:
        """Write what was held back of a body that has ended, or broken off."""
        stream = self._streams.pop(to, None)
        if stream is not None and self._write(to, stream.finish(), recoded=stream.recoded):
            self._tape.commit()

    def become_socket(self, response: Headers) -> TapedSocket:
        """Go on as a WebSocket that these headers of the response, in clear, have opened."""
        self._socket = TapedSocket(self._tape, self._redactor, self.of, response)
        return self._socket

    def end(self, how: How, error: str | None = None, trailers: Headers = (), code: int | None = None) -> None:
        """Write how it ended."""
        self._ended = True
        for to in tuple(self._streams):
            self.finish(to)
        if self._socket is not None:
            self._socket.finish()
        text = None if error is None else self._redactor.text(error)
        fields = self._redactor.headers(trailers)
        self._tape.add(End(t=self._tape.now(), of=self.of, how=how, error=text, trailers=fields, code=code))
        self._tape.commit()

    def _write(self, to: Side, pieces: list[Timed], *, recoded: bool = False) -> bool:
        records = list(self._chunks(to, pieces, recoded))
        for record in records:
            self._tape.add(record)
        return bool(records)

    def _chunks(self, to: Side, pieces: list[Timed], recoded: bool) -> Iterator[Chunks]:
        for t, data in pieces:
            # A token shorter than its secret can leave a piece empty, and an empty chunk would end a chunked body.
            if data:
                yield Chunks(t=t, of=self.of, to=to, parts=((0, data),), recoded=recoded)
