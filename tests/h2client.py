"""A client of HTTP/2 for tests that decides every frame, over a socket that is connected already."""

import socket
import ssl
from dataclasses import dataclass, field
from typing import Any

import h2.events
from h2.config import H2Configuration
from h2.connection import H2Connection

type Pairs = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Heard:
    """What came on one stream. `ended`: in order; `reset`: the code with which it was reset."""

    status: int = 0
    headers: Pairs = ()
    early: list[tuple[int, Pairs]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    trailers: Pairs = ()
    ended: bool = False
    reset: int | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


class Client2:
    """Ask with `ask` or `begin` and `say`, hear with `hear`. `goaway`: its error code, once it came.

    `acknowledges`: whether it gives the server room for more when something comes.
    """

    def __init__(self, sock: socket.socket, *, acknowledges: bool = True, scheme: str = "https") -> None:
        self.sock = sock
        self.frames = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
        self.streams: dict[int, Heard] = {}
        self.goaway: int | None = None
        self.gone = False
        self.acknowledges = acknowledges
        self._scheme = scheme
        self.frames.initiate_connection()
        self.flush()

    def ask(self, method: str = "GET", path: str = "/", body: bytes = b"", *headers: tuple[str, str]) -> int:
        """Send a whole request; returns the number of its stream."""
        number = self.begin(method, path, *headers, end=not body)
        if body:
            self.say(number, body, end=True)
        return number

    def begin(self, method: str, path: str, *headers: tuple[str, str], end: bool = False) -> int:
        number = self.frames.get_next_available_stream_id()
        where = [(":method", method), (":scheme", self._scheme), (":authority", "api.example.com"), (":path", path)]
        self.frames.send_headers(number, [*where, *headers], end_stream=end)
        self.streams[number] = Heard()
        self.flush()
        return number

    def say(self, number: int, data: bytes, *, end: bool = False) -> None:
        """Send a piece of a body; waits for the windows."""
        while data or end:
            room = min(self.frames.local_flow_control_window(number), self.frames.max_outbound_frame_size)
            if room <= 0 and data:
                self.read()
                continue
            piece, data = data[:room], data[room:]
            self.frames.send_data(number, piece, end_stream=end and not data)
            self.flush()
            end = end and bool(data)

    def hear(self, number: int) -> Heard:
        """Read until a stream is over, or the connection is."""
        heard = self.streams[number]
        while not heard.ended and heard.reset is None and not self.gone:
            self.read()
        return heard

    def read(self) -> None:
        """Read once. `gone` is set when there is nothing more."""
        try:
            data = self.sock.recv(1 << 16)
            for event in self.frames.receive_data(data):
                self._take(event)
            self.flush()
        except (ConnectionError, ssl.SSLError):
            data = b""
        self.gone = not data

    def flush(self) -> None:
        data = self.frames.data_to_send()
        if data:
            self.sock.sendall(data)

    def _take(self, event: Any) -> None:
        match event:
            case h2.events.InformationalResponseReceived():
                self.streams[event.stream_id].early.append(_split(event.headers))
            case h2.events.ResponseReceived():
                heard = self.streams[event.stream_id]
                heard.status, heard.headers = _split(event.headers)
            case h2.events.DataReceived():
                if event.data:
                    self.streams[event.stream_id].pieces.append(event.data)
                if self.acknowledges:
                    self.frames.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.TrailersReceived():
                self.streams[event.stream_id].trailers = tuple((str(n), str(v)) for n, v in event.headers)
            case h2.events.StreamEnded():
                self.streams[event.stream_id].ended = True
            case h2.events.StreamReset():
                self.streams[event.stream_id].reset = int(event.error_code or 0)
            case h2.events.ConnectionTerminated():
                self.goaway = int(event.error_code or 0)
            case _:
                pass


def _split(headers: Any) -> tuple[int, Pairs]:
    pairs = tuple((str(name), str(value)) for name, value in headers)
    return int(dict(pairs)[":status"]), tuple(pair for pair in pairs if pair[0] != ":status")
