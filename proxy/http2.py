"""HTTP/2 on a connection of the tape server: frames to requests, and the answers of many streams to frames.

The library `h2` knows frames and states; it does no I/O. Each stream has `Turns` of its own, so what decides and paces
its answer is what does so in HTTP/1.1. Imported when a client speaks HTTP/2, not before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import h2.events as events
from h2.config import H2Configuration
from h2.connection import ConnectionInputs, H2Connection, H2ConnectionStateMachine
from h2.errors import ErrorCodes
from h2.exceptions import DenialOfServiceError, ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

from tapeproxy.proxy.http2streams import Stream
from tapeproxy.proxy.requestreader import MAX_HEAD
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from h2.events import Event

    from tapeproxy.proxy.connection import Connection
    from tapeproxy.proxy.tapeserver import TapeServer
    from tapeproxy.tapes.answers import Finish

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WINDOW = (1 << 31) - 1
"""What clients may send before we acknowledge it: all of it is wanted, as in HTTP/1.1."""
_STREAMS = 1000
_FRAME = 1 << 17
_RESETS = 1000
"""Streams that a client may take back beyond those that were answered (CVE-2023-44487)."""


class _States(H2ConnectionStateMachine):
    """Those of the library, for which a client's GOAWAY is the end of all."""

    def process_input(self, input_: ConnectionInputs) -> list[Event]:
        return [] if input_ is ConnectionInputs.RECV_GOAWAY else super().process_input(input_)


class Http2:
    """The talk of one connection (`proxy.connection.Talk`). `window_of` and the like are for its streams."""

    deaf = False
    reading = False

    def __init__(self, server: TapeServer, connection: Connection) -> None:
        config = H2Configuration(
            client_side=False,
            header_encoding=None,
            normalize_inbound_headers=False,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        self.frames = H2Connection(config)
        self.frames.state_machine = _States()
        self.paused = False
        """The client reads too slowly."""
        self._server = server
        self.connection = connection
        self._streams: dict[int, Stream] = {}
        self._ending: Finish | None = None
        self._awaited: set[int] = set()  # streams whose answers are sent before the connection is cut off
        self._resets = 0
        self._open()

    def _open(self) -> None:
        frames = self.frames
        settings = frames.local_settings
        settings[SettingCodes.INITIAL_WINDOW_SIZE] = _WINDOW
        settings[SettingCodes.MAX_FRAME_SIZE] = frames.max_inbound_frame_size = _FRAME
        settings[SettingCodes.MAX_CONCURRENT_STREAMS] = _STREAMS
        settings[SettingCodes.MAX_HEADER_LIST_SIZE] = frames.decoder.max_header_list_size = MAX_HEAD
        settings.acknowledge()  # or the library sends what it had before
        frames.initiate_connection()
        frames.increment_flow_control_window(_WINDOW - frames.inbound_flow_control_window)
        self.flush()

    # --- what the connection needs -------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        return not self._streams

    @property
    def answers(self) -> bool:
        return any(stream.answers for stream in self._streams.values())

    def feed(self, data: bytes | memoryview) -> bytes:
        try:
            received = self.frames.receive_data(data)
        except (ProtocolError, ValueError, IndexError) as error:  # the last two: of what the library does not foresee
            self._broken(error)
            return b""
        for event in received:
            if self.connection.closing:
                break
            self._hear(event)
        self.flush()
        return b""

    def pause(self) -> None:
        self.paused = True
        for stream in self._streams.values():
            stream.pace()

    def unpause(self) -> None:
        self.paused = False

    def resume(self) -> None:
        if not self.paused and not self.connection.closing:
            self._drain(list(self._streams.values()))

    def cancel(self) -> None:
        for stream in self._streams.values():
            stream.leave()
        self._streams.clear()

    def fail(self, error: Exception) -> None:
        what = f"a bug in tapeproxy: {type(error).__name__}: {error}"
        self._server.replayer.violate(Violation("internal", self.connection.place(), what))
        if not self.connection.closing:
            self.connection.end("cut")

    def farewell(self) -> bytes:
        return b"" if self.connection.closing else self._goaway(ErrorCodes.NO_ERROR)

    # --- events ----------------------------------------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        match event:
            case events.RequestReceived():
                self._begin(event)
            case events.DataReceived():
                self.frames.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if (stream := self._streams.get(event.stream_id)) is not None:
                    stream.take(event.data)
            case events.StreamEnded():
                if (stream := self._streams.get(event.stream_id)) is not None:
                    stream.complete()
            case events.StreamReset():
                self._take_back(event.stream_id)
            case events.WindowUpdated():
                one = self._streams.get(event.stream_id)
                self._drain([one] if one is not None else self._in_turn())
            case events.RemoteSettingsChanged():
                self._drain(self._in_turn())
            case events.ConnectionTerminated():
                # The client begins nothing more, and may still wait for what it has begun.
                self.connection.half_closed = True
                self._look()
            case _:
                pass  # pings and settings are answered by the library; priorities are advice

    def _begin(self, event: events.RequestReceived) -> None:
        pseudo = {name: value for name, value in event.headers if name[:1] == b":"}
        headers = tuple((bytes(name), bytes(value)) for name, value in event.headers if name[:1] != b":")
        stream = Stream(self._server, self, event.stream_id, pseudo, headers)
        self._streams[event.stream_id] = stream
        if self._ending is not None:
            self._awaited.add(event.stream_id)
        stream.begin(more=event.stream_ended is None)

    def _take_back(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            stream.leave()
        self._awaited.discard(number)
        self._resets += 1
        if self._resets > _RESETS:
            self._refuse("a client took back too many requests", ErrorCodes.ENHANCE_YOUR_CALM)
        else:
            self._look()

    def _broken(self, error: Exception) -> None:
        large = isinstance(error, DenialOfServiceError)
        self.flush()  # the library has written why
        self._refuse(f"what came is not HTTP/2, or too large: {error}", None, too_large=large)

    def _refuse(self, what: str, code: ErrorCodes | None, *, too_large: bool = False) -> None:
        self._server.replayer.violate(
            Violation("too-large" if too_large else "malformed", self.connection.place(), what)
        )
        if code is not None:
            self.connection.send(self._goaway(code))
        if not self.connection.closing:
            self.connection.end("close")

    def _goaway(self, code: ErrorCodes) -> bytes:
        # Not the library's own: after that it sends nothing for streams that are under way.
        return GoAwayFrame(0, last_stream_id=self.frames.highest_inbound_stream_id, error_code=code).serialize()

    # --- what the streams need -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send the frames that the library has made."""
        self.connection.send(self.frames.data_to_send())

    def done(self, stream: Stream) -> None:
        """The answer of a stream is sent."""
        self._resets -= 1 if self._resets > 0 else 0
        self._awaited.discard(stream.number)
        if stream.heard:
            self._streams.pop(stream.number, None)
        self._look()

    def forget(self, stream: Stream) -> None:
        """A stream is over on both sides."""
        self._streams.pop(stream.number, None)
        self._awaited.discard(stream.number)
        self._look()

    def cut(self, stream: Stream, how: Finish) -> None:
        """The connection was cut off below a stream: let those answers go out that are under way, and cut it here.

        On the tape, they had come before it. Nothing is said of that: clients that are told give up the others, too.
        """
        self._streams.pop(stream.number, None)
        if self._ending is None:
            self._ending = how
            self._awaited = {number for number, other in self._streams.items() if other.answers}
        self._awaited.discard(stream.number)
        self._look()

    def hold(self, stream: Stream) -> None:
        """The client of a stream is waited for."""
        self._awaited.discard(stream.number)
        self._look()

    def _look(self) -> None:
        """End the connection, if it is time."""
        if self.connection.closing:
            return
        if self._ending is not None and not self._awaited:
            self.flush()
            self.connection.end(self._ending)
        elif self.connection.half_closed and not self.answers:
            self.flush()
            self.connection.end("close")

    def _in_turn(self) -> Iterator[Stream]:
        """The streams, another one first each time: what the connection's window allows is for all."""
        numbers = list(self._streams)
        for number in numbers:
            stream = self._streams.get(number)
            if stream is None:
                continue
            if self.frames.outbound_flow_control_window <= 0:
                return
            self._streams[number] = self._streams.pop(number)
            yield stream

    def _drain(self, streams: Iterator[Stream] | list[Stream]) -> None:
        for stream in streams:
            stream.drain()
        self.flush()
