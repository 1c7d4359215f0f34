"""Exchanges of a big tape, kept on disk while it is used: a file without a name, that goes when the process does.

The first ones stay in memory, so of most tapes nothing is ever written. Beyond `BUDGET` the body of each request is
written out, and then all of an exchange that has ended, to be read back when someone looks at it. A body that stands
on the tape by reference is not written again: it is kept as the pieces of earlier ones. Should the disk be full, what
comes after stays in memory.
"""

import contextlib
import dataclasses
import errno
import itertools
import os
import pickle
import tempfile
import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import IO, NamedTuple, overload

from tapeproxy.tapes.exchanges import Chunk, Exchange, Shelved, compared
from tapeproxy.tapes.records import End, Like, Request, Response


class Budget(NamedTuple):
    """Bytes of memory for exchanges that are kept whole, and then for those without their request's body.

    Of most requests only a digest is needed: a replay that finds it gives the answer out.
    """

    whole: int
    bodiless: int


BUDGET = Budget(8 << 20, 24 << 20)
_OVERHEAD, _CHUNK_OVERHEAD = 3000, 200
"""About what the objects of an exchange, and of a chunk, take beside its bytes."""
_WRITE = 1 << 20
_BASES = 1024
"""Bodies that later ones may be pieces of."""

_LARGE = 4 << 20
"""Bytes of chunks of one exchange; what comes beyond is written out at once, and read when it is used."""

_BLOCK = 16
"""Bytes of a block of AES."""

type _Piece = tuple[int, int]
"""Where bytes begin in the file, and how many they are."""


class _LargeChunk(Chunk):
    """A chunk of a large body, on disk."""

    __slots__ = ("file", "piece")
    file: "SpoolFile"
    piece: _Piece

    def __init__(self, t: int | None, file: "SpoolFile", piece: _Piece) -> None:
        for name, value in (("t", t), ("file", file), ("piece", piece)):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> bytes:
        return self.file.get(self.piece)

    @property
    def size(self) -> int:
        return self.piece[1]


@dataclass(slots=True)
class _Out:
    """An exchange of which something is on disk: its request's body, of which `body` is the list of pieces, and perhaps
    all the rest; else that is here, with a reference for the body."""

    body: _Piece
    rest: Exchange | _Piece


class SpooledExchanges(Shelved):
    """Exchanges by place: in memory, or read from the spool each time."""

    def __init__(self, items: list[Exchange | _Out], file: "SpoolFile") -> None:
        self._items = items
        self._file = file

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Exchange: ...
    @overload
    def __getitem__(self, at: slice) -> "SpooledExchanges": ...
    def __getitem__(self, at: int | slice) -> "Exchange | SpooledExchanges":
        if isinstance(at, slice):
            return SpooledExchanges(self._items[at], self._file)
        item = self._items[at]
        exchange = self.answer(at)
        if isinstance(item, Exchange):
            return exchange
        return dataclasses.replace(exchange, request=dataclasses.replace(exchange.request, body=self._body(item)))

    def __iter__(self) -> Iterator[Exchange]:
        return (self[at] for at in range(len(self._items)))

    def answer(self, at: int) -> Exchange:
        item = self._items[at]
        if isinstance(item, Exchange):
            return item
        return item.rest if isinstance(item.rest, Exchange) else _thaw(self._file.get(item.rest), self._file)

    def compared_body(self, at: int) -> bytes:
        # A miss compares its request with every one on the tape: no exchange is put together for that.
        item = self._items[at]
        if isinstance(item, Exchange):
            return item.compared_body
        rest = self.answer(at)
        return compared(rest.request.headers, self._body(item), rest.uploads)

    def _body(self, item: _Out) -> bytes:
        pieces = array("Q", self._file.get(item.body))
        return b"".join(map(self._file.get, zip(pieces[::2], pieces[1::2], strict=True)))


class Spool:
    """A shelf (`tapes.exchanges.Shelf`) that keeps in memory about what its budget allows, and the rest on disk."""

    def __init__(self, budget: Budget = BUDGET, *, secret: bool = False) -> None:
        """`secret`: the tape is encrypted, and so is what is written."""
        self._whole, self._bodiless = budget
        self._file = SpoolFile(secret=secret)
        self._items: list[Exchange | _Out] = []
        self._early: set[int] = set()
        self._open: dict[int, int] = {}  # bytes of chunks of exchanges that have not ended
        self.settled = 0
        """How many exchanges have ended, up to the first that has not."""
        self._likes: dict[int, Like] = {}
        self._bases: dict[int, tuple[_Piece, ...]] = {}
        self._whole_ones: dict[int, bytes] = {}
        """Bodies of exchanges in memory, that later ones may be pieces of once they are written."""

    def begin(self, exchange: Exchange, like: Like | None) -> None:
        self._items.append(exchange)
        if like is not None and self._whole <= 0:
            self._likes[exchange.number] = like

    def adopt(self, exchange: Exchange) -> None:
        """Take over an exchange that has begun elsewhere, and perhaps ended."""
        self.begin(exchange, None)
        if exchange.end is not None:
            self.end(exchange)
        else:
            self._open[exchange.number] = sum(chunk.size for chunk in (*exchange.chunks, *exchange.uploads))

    def keep(self, exchange: Exchange, chunk: Chunk) -> Chunk:
        size = self._open[exchange.number] = self._open.get(exchange.number, 0) + len(chunk.data)
        if size <= _LARGE or self._file.full:
            return chunk
        return _LargeChunk(chunk.t, self._file, self._file.put(chunk.data))

    def end(self, exchange: Exchange) -> None:
        self._open.pop(exchange.number, None)
        like = self._likes.pop(exchange.number, None)
        if self._whole > 0:
            assert isinstance(exchange.request.body, bytes)  # the decoder resolves references
            self._whole -= _weight(exchange) + len(exchange.request.body)
            self._whole_ones[exchange.index] = exchange.request.body
        elif not self._file.full:
            self._items[exchange.number - 1] = self._put_out(exchange, like)
        self._early.add(exchange.number)
        while self.settled + 1 in self._early:
            self.settled += 1
            self._early.remove(self.settled)

    def so_far(self) -> SpooledExchanges:
        """The exchanges that have come, and those to come."""
        return SpooledExchanges(self._items, self._file)

    def exchanges(self) -> Sequence[Exchange]:
        in_memory = [item for item in self._items if isinstance(item, Exchange)]
        return in_memory if len(in_memory) == len(self._items) else SpooledExchanges(self._items, self._file)

    def _put_out(self, exchange: Exchange, like: Like | None) -> _Out:
        pieces = array("Q", itertools.chain.from_iterable(self._pieces(exchange, like)))
        body = self._file.put(pieces.tobytes())
        exchange.request = dataclasses.replace(exchange.request, body=Like(exchange.index, whole=True))
        if self._bodiless > 0:
            self._bodiless -= _weight(exchange)
            return _Out(body, exchange)
        return _Out(body, self._file.put(_freeze(exchange)))

    def _pieces(self, exchange: Exchange, like: Like | None) -> tuple[_Piece, ...]:
        """Where the bytes of the request's body are, now that they are written."""
        body = exchange.request.body
        assert isinstance(body, bytes)  # the decoder resolves references
        base = self._base(like.of) if like is not None else None
        if like is None or base is None:
            pieces: tuple[_Piece, ...] = (self._file.put(body),) if body else ()
        else:
            length = sum(size for _, size in base)
            head = length if like.whole else like.head
            mid = (self._file.put(like.mid),) if like.mid else ()
            pieces = (*_cut(base, 0, head), *mid, *_cut(base, length - like.tail, length))
        self._remember(exchange.index, pieces)
        return pieces

    def _base(self, index: int) -> tuple[_Piece, ...] | None:
        pieces = self._bases.pop(index, None)
        if pieces is None and (body := self._whole_ones.pop(index, None)) is not None:
            pieces = (self._file.put(body),)
        if pieces is not None:
            self._remember(index, pieces)
        return pieces

    def _remember(self, index: int, pieces: tuple[_Piece, ...]) -> None:
        self._bases[index] = pieces
        if len(self._bases) > _BASES:
            del self._bases[next(iter(self._bases))]


def _cut(pieces: Sequence[_Piece], start: int, end: int) -> Iterator[_Piece]:
    """The pieces of the bytes from `start` to `end`."""
    for at, size in pieces:
        first, last = max(start, 0), min(end, size)
        if first < last:
            yield at + first, last - first
        start, end = start - size, end - size


def _weight(exchange: Exchange) -> int:
    """About what an exchange takes in memory, without its request's body."""
    chunks = (*exchange.chunks, *exchange.uploads)
    sizes = [0 if type(chunk) is _LargeChunk else chunk.size for chunk in chunks]
    sizes += [len(frame.data) for frame in exchange.frames]
    return _OVERHEAD + sum(sizes) + _CHUNK_OVERHEAD * len(sizes)


def _names(cls: type) -> tuple[str, ...]:
    return tuple(one.name for one in dataclasses.fields(cls))


# Of a record its values alone are pickled: with the record itself pickle takes three times as long.
_REQUEST, _RESPONSE, _END = _names(Request), _names(Response), _names(End)
_OF_REQUEST, _OF_RESPONSE, _OF_END = attrgetter(*_REQUEST), attrgetter(*_RESPONSE), attrgetter(*_END)


def _freeze(exchange: Exchange) -> bytes:
    chunks, uploads = ([_frozen(chunk) for chunk in side] for side in (exchange.chunks, exchange.uploads))
    response, end = exchange.response, exchange.end
    state = (
        *(exchange.number, exchange.index, _OF_REQUEST(exchange.request)),
        *(None if response is None else _OF_RESPONSE(response), chunks, uploads, None if end is None else _OF_END(end)),
        exchange.frames,
    )
    return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)


def _frozen(chunk: Chunk) -> "tuple[int | None, bytes | _Piece]":
    return chunk.t, chunk.piece if isinstance(chunk, _LargeChunk) else chunk.data


def _thawed(t: int | None, data: "bytes | _Piece", file: "SpoolFile") -> Chunk:
    return Chunk(t, data) if isinstance(data, bytes) else _LargeChunk(t, file, data)


def _thaw(data: bytes, file: "SpoolFile") -> Exchange:
    # Nobody else can have written it: the file has no name.
    number, index, request, response, chunks, uploads, end, frames = pickle.loads(data)
    return Exchange(
        number=number,
        index=index,
        request=Request(**dict(zip(_REQUEST, request, strict=True))),
        response=None if response is None else Response(**dict(zip(_RESPONSE, response, strict=True))),
        chunks=[_thawed(t, data, file) for t, data in chunks],
        uploads=[_thawed(t, data, file) for t, data in uploads],
        end=None if end is None else End(**dict(zip(_END, end, strict=True))),
        frames=frames,
    )


class SpoolFile:
    """Bytes put one after the other into a file without a name. `full`: no more can be put. For any thread."""

    def __init__(self, *, secret: bool = False) -> None:
        """`secret`: what is written is encrypted, by a key that is only in this memory."""
        self.full = False
        self._cipher = _Cipher() if secret else None
        self._file: IO[bytes] | None = None
        self._written = 0
        self._pending = bytearray()
        self._lock = threading.Lock()

    def put(self, data: bytes) -> _Piece:
        """Append bytes; they can be got whatever becomes of the file."""
        with self._lock:
            at = self._written + len(self._pending)
            self._pending += data
            if len(self._pending) >= _WRITE and not self.full:
                self.full = not self._flush()
        return at, len(data)

    def get(self, piece: _Piece) -> bytes:
        """The bytes of a piece. Raises OSError where they can't be read."""
        at, size = piece
        with self._lock:
            if at >= self._written:
                return bytes(self._pending[at - self._written : at - self._written + size])
            assert self._file is not None  # what was written was written there
            self._file.seek(at)
            wanted = min(size, self._written - at)
            out = self._file.read(wanted)
            if len(out) != wanted:
                raise OSError(errno.EIO, "the spool of a big tape is shorter than what was written to it")
            if self._cipher is not None:
                out = self._cipher.apply(at, out)
            return out + bytes(self._pending[: size - wanted])

    def _flush(self) -> bool:
        with contextlib.suppress(OSError):  # no space: what is pending stays in memory
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # open as long as the tape is used
                weakref.finalize(self, self._file.close)
            self._file.seek(self._written)
            view = memoryview(
                self._pending if self._cipher is None else self._cipher.apply(self._written, self._pending)
            )
            while view:
                view = view[self._file.write(view) :]
            view.release()
            self._written += len(self._pending)
            self._pending.clear()
            return True
        return False


class _Cipher:
    """AES in counter mode, by a key that nobody else has and no second file gets.

    No place of the file is written twice with different bytes, so no two bytes have the same place in the key stream.
    """

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers.algorithms import AES

        self._key = AES(os.urandom(32))

    def apply(self, at: int, data: "bytes | bytearray") -> bytes:
        """Encrypt, or decrypt, what stands at `at` in the file."""
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        stream = Cipher(self._key, CTR((at // _BLOCK).to_bytes(_BLOCK))).encryptor()
        stream.update(bytes(at % _BLOCK))
        return stream.update(data)
