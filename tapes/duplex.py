"""A call in which both sides speak at once (gRPC): is it a taped one, and does it go on like that? Pure.

A request is known when it is whole, but such a client waits for answers before it says more. So a call is taken for the
first taped one of its place that began with the same messages, and every later message has to be the taped one. What
the server said on the tape is due when all has come that had come before it there.
"""

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate

from tapeproxy.tapes.answers import Part
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.tokens import mask_tokens

_PREFIX = 5
"""Bytes before each message: whether it is compressed, and its length (gRPC over HTTP/2, Length-Prefixed-Message)."""
_SHOWN = 80


def split_messages(data: bytes) -> tuple[list[bytes], bytes]:
    """The whole messages in `data`, each with its prefix, and what is left."""
    found: list[bytes] = []
    at = 0
    while len(data) - at >= _PREFIX:
        end = at + _PREFIX + int.from_bytes(data[at + 1 : at + _PREFIX], "big")
        if end > len(data):
            break
        found.append(data[at:end])
        at = end
    return found, data[at:]


def overlaps(exchange: Exchange) -> bool:
    """Whether the server spoke before the client had said all."""
    if exchange.response is None or not exchange.uploads:
        return False
    last = exchange.uploads[-1].t
    return last is not None and exchange.response.t < last


class Duplex:
    """A call that is compared with a taped one. `redact` is applied to each message as it was on the tape."""

    def __init__(self, exchange: Exchange, redact: Callable[[bytes], bytes]) -> None:
        self.exchange = exchange
        self._redact = redact
        self._taped, self._end = split_messages(exchange.request_body)
        self._times, self._sizes = _places(exchange)
        self._rest = b""
        self._count = 0
        self._size = 0
        """Bytes of taped messages that have come."""

    def take(self, data: bytes) -> Difference | None:
        """Compare what comes; returns the first difference."""
        messages, self._rest = split_messages(self._rest + data)
        for message in messages:
            taped = self._taped[self._count] if self._count < len(self._taped) else None
            if taped is None or (message != taped and mask_tokens(self._redact(message)) != mask_tokens(taped)):
                return self._difference(message, taped)
            self._count += 1
            self._size += len(taped)
        return None

    def finish(self) -> Difference | None:
        """The client has said all; returns what is missing, or too much."""
        if self._count < len(self._taped):
            return self._difference(None, self._taped[self._count])
        if self._rest != self._end:
            return Difference("the end of the messages", _shown(self._end), _shown(self._rest))
        return None

    def is_due(self, part: Part) -> bool:
        """Whether all has come that had come before this part of the answer on the tape."""
        before = bisect_left(self._times, part.due)
        return before == 0 or self._size + len(self._rest) >= self._sizes[before - 1]

    def _difference(self, message: bytes | None, taped: bytes | None) -> Difference:
        asked = None if message is None else _shown(self._redact(message)[_PREFIX:])
        return Difference(f"message {self._count + 1}", None if taped is None else _shown(taped[_PREFIX:]), asked)


def _places(exchange: Exchange) -> tuple[list[int], list[int]]:
    """When the pieces of the request came, after it had begun, and how many bytes had come with them."""
    assert isinstance(exchange.request.body, bytes)  # the decoder resolves references
    times = accumulate(((chunk.t or 0) - exchange.request.t for chunk in exchange.uploads), max)
    sizes = accumulate((chunk.size for chunk in exchange.uploads), initial=len(exchange.request.body))
    return list(times), list(sizes)[1:]


def _shown(data: bytes) -> str:
    text = repr(data[:_SHOWN])[1:]
    return text if len(data) <= _SHOWN else f"{text}… ({len(data)} bytes)"
