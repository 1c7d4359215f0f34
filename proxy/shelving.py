"""Where the exchanges of a tape are kept while it is read: in memory, until they are too many for that.

A file does not tell how much it holds: of bodies like earlier ones it has what is new. Most tapes need no spool, and a
replay of one starts faster without its module.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.records import Like

if TYPE_CHECKING:
    from tapeproxy.proxy.spool import Spool

_ROOM = 4 << 20
"""Bytes of bodies that are kept without a spool."""
_OVERHEAD = 200


class Shelving:
    """A shelf (`tapes.exchanges.Shelf`) that becomes a spool. `secret`: the tape is encrypted."""

    def __init__(self, *, secret: bool = False) -> None:
        self._secret = secret
        self._room = _ROOM
        self._items: list[Exchange] = []
        self._spool: Spool | None = None

    def begin(self, exchange: Exchange, like: Like | None) -> None:
        assert isinstance(exchange.request.body, bytes)  # the decoder resolves references
        if (spool := self._after(len(exchange.request.body))) is not None:
            spool.begin(exchange, like)
        else:
            self._items.append(exchange)

    def keep(self, exchange: Exchange, chunk: Chunk) -> Chunk:
        spool = self._after(chunk.size)
        return chunk if spool is None else spool.keep(exchange, chunk)

    def end(self, exchange: Exchange) -> None:
        if self._spool is not None:
            self._spool.end(exchange)

    def exchanges(self) -> Sequence[Exchange]:
        return self._items if self._spool is None else self._spool.exchanges()

    def _after(self, size: int) -> "Spool | None":
        """The spool that so many more bytes go to, if they are too many."""
        self._room -= size + _OVERHEAD
        if self._room < 0 and self._spool is None:
            from tapeproxy.proxy.spool import Spool

            self._spool = Spool(secret=self._secret)
            for exchange in self._items:
                self._spool.adopt(exchange)
        return self._spool
