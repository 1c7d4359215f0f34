"""Content codings undone, for display and matching; knows compressed bytes, not what they mean.

`Content-Encoding` is a claim, not a fact: recorders store a decoded body and keep the header, or drop the header and
keep the compressed body. So the bytes decide. A body that claims a coding and shows none is taken as it is; one that
claims none but begins with a magic number is decoded when its type is text. Nothing here raises: what could not be
undone is said in the result. br and zstd need an optional module, which is imported when such a body is met.
"""

import codecs
import importlib
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from tapeproxy.tapes.records import Headers

LIMIT: Final = 64 << 20
"""Bytes a body may decode to: what one display or comparison may cost."""

_MOST_CODINGS = 4
# Small enough that damage costs little of what came before it, and that zstandard, which takes no limit of its own,
# can give at most 86 blocks of 128 KiB for one.
_SLICE = 256
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_NONE = frozenset({"", "identity", "none", "utf-8"})
_ALIASES = {"x-gzip": "gzip", "zlib": "deflate", "brotli": "br"}
_TEXTUAL = re.compile(
    rb"\s*(text/|application/([\w.+-]*(json|xml|javascript|yaml)|x-www-form-urlencoded|graphql)|$)", re.I
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body with its codings undone.

    `coding` names those undone, outermost first. `whole`: `data` is all of it; else the body was cut or damaged, has a
    coding that can't be undone here, or reached the limit. `note` says what people should know, or is empty.
    """

    data: bytes
    coding: tuple[str, ...] = ()
    whole: bool = True
    note: str = ""


class _Stream:
    """One coding being undone. `feed` yields pieces of the plain text; `done`: the data so far ends where it may."""

    def __init__(self, make: Callable[[], Any], errors: tuple[type[Exception], ...]) -> None:
        self._make = make
        self._decoder: Any = None
        self.errors = errors
        self.done = False
        self.junk = False
        self.damaged = False

    def feed(self, data: bytes, room: int) -> Iterator[bytes]:
        """Decompress `data` to about `room` bytes; stop reading once more than that came out."""
        while data:
            if self._decoder is None:
                if self._finished_by(data):
                    return
                self._decoder = self._make()
            yield self._step(data, room)
            self.done = bool(self._decoder.eof)
            if not self.done:
                return
            # Members and frames may follow one another; padding and junk may, too.
            data, self._decoder = self._decoder.unused_data, None

    def _step(self, data: bytes, room: int, /) -> bytes:
        text: bytes = self._decoder.decompress(data, room)
        return text

    def _finished_by(self, data: bytes) -> bool:
        """After the first member: whether what follows is padding or junk instead of another one."""
        if not self.done:
            return False
        if data.startswith((_GZIP, _ZSTD)) or data in (_GZIP[:1], _ZSTD[:1], _ZSTD[:2], _ZSTD[:3]):
            self.done = False
            return False
        self.junk = bool(data.strip(b"\0"))
        return True


class _Unlimited(_Stream):
    """A zstandard stream: its decompressobj takes no limit, the slice's size is the limit."""

    def _step(self, data: bytes, _room: int, /) -> bytes:
        text: bytes = self._decoder.decompress(data)
        return text


class _Brotli(_Stream):
    """A brotli stream: one member, other names for the same things."""

    def feed(self, data: bytes, room: int) -> Iterator[bytes]:
        if self._decoder is None:
            self._decoder = self._make()
        # Where it stops short of its input it gave `room` bytes or more, and no more is asked of it.
        yield self._decoder.process(data, output_buffer_limit=room)
        self.done = bool(self._decoder.is_finished())


def decode(body: bytes, headers: Headers, limit: int = LIMIT) -> Decoded:
    """Undo the content codings of `body` as far as it goes, to at most `limit` bytes. Never raises."""
    claimed = _claims(headers)
    if not claimed:
        return _unclaimed(body, headers, limit)
    if len(claimed) > _MOST_CODINGS:
        return Decoded(body, whole=False, note=f"the body claims {len(claimed)} codings: left as it is")
    result = Decoded(body)
    for coding in claimed:
        step = _undo(result.data, coding, limit)
        notes = [note for note in (result.note, step.note) if note]
        result = Decoded(step.data, result.coding + step.coding, result.whole and step.whole, "; ".join(notes))
    return result


def decode_chunks(chunks: Sequence[bytes], headers: Headers, limit: int = LIMIT) -> tuple[Decoded, list[bytes]]:
    """The same of a body that came in chunks, and what of the plain body each of them brings. Never raises.

    A chunk brings what can be told once it is there; what can be told at no chunk, the last one brings.
    """
    decoded = decode(b"".join(chunks), headers, limit)
    if not decoded.coding:
        return decoded, list(chunks)
    pieces = list(chunks)
    for coding in decoded.coding:
        pieces = _undo_pieces(pieces, coding, limit)
    ends = [*accumulate(map(len, pieces))]
    ends[-1] = len(decoded.data)
    return decoded, [decoded.data[start:end] for start, end in pairwise([0, *ends])]


def _undo_pieces(pieces: Sequence[bytes], coding: str, limit: int) -> list[bytes]:
    """What each piece brings, up to damage, junk or the limit."""
    stream = _MAKERS[coding](b"".join(pieces)[:2])
    out = [bytearray() for _ in pieces]
    room = limit
    slices = ((n, piece[at : at + _SLICE]) for n, piece in enumerate(pieces) for at in range(0, len(piece), _SLICE))
    for n, data in slices:
        if stream is None or stream.junk or room < 0:
            break
        try:
            for text in stream.feed(data, room + 1):
                out[n] += text
                room -= len(text)
        except stream.errors:
            break
    return [bytes(one) for one in out]


def looks_like_text(data: bytes) -> bool:
    """Whether `data` is UTF-8 without control characters; it may be cut inside a character."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return _CONTROLS.search(text) is None


def header(headers: Headers, name: bytes) -> bytes:
    """All values of header `name` (given in lower case), joined as one list; b"" when there is none."""
    return b", ".join(value for key, value in headers if key.lower() == name)


def _claims(headers: Headers) -> list[str]:
    """The codings that the headers name, the one applied last first."""
    claim = header(headers, b"content-encoding")
    if not claim:
        return []
    words = claim.decode("latin-1").lower().split(",")
    names = [_ALIASES.get(word.strip(), word.strip()) for word in words]
    return [name for name in reversed(names) if name not in _NONE]


def _unclaimed(body: bytes, headers: Headers, limit: int) -> Decoded:
    magic = "gzip" if body.startswith(_GZIP) else "zstd" if body.startswith(_ZSTD) else ""
    # A download that is a .gz file stays one.
    if not magic or not _TEXTUAL.match(header(headers, b"content-type")):
        return Decoded(body)
    result = _undo(body, magic, limit)
    if not result.coding:
        return result
    note = f"the body is {magic} though no content-encoding says so"
    return Decoded(result.data, result.coding, result.whole, "; ".join(filter(None, (note, result.note))))


def _undo(data: bytes, coding: str, limit: int) -> Decoded:
    if not data:
        return Decoded(data)
    plain = Decoded(data, note=f"content-encoding says {coding}, but the body is not")
    if coding == "gzip" and not data.startswith(_GZIP[: len(data)]):
        return plain
    if coding == "zstd" and not (data[0] & 0xF0 == 0x50 or data.startswith(_ZSTD[: len(data)])):
        return plain
    maker = _MAKERS.get(coding)
    if maker is None:
        text = looks_like_text(data)
        return plain if text else Decoded(data, whole=False, note=f"the coding {coding!r} is not known")
    stream = maker(data)
    if stream is None:
        if looks_like_text(data):
            return plain
        return Decoded(data, whole=False, note=f"{coding} cannot be undone here: install {_PACKAGES[coding]}")
    result = _run(stream, data, limit)
    if not result.whole and looks_like_text(data):
        # Chance can make a text begin like a compressed body, but not like a whole one.
        return plain
    if stream.damaged and not result.data:
        return Decoded(data, whole=False, note=result.note)
    return Decoded(result.data, (coding,), result.whole, result.note)


def _run(stream: _Stream, data: bytes, limit: int) -> Decoded:
    """Decompress in slices, so that what came before damage is kept and a bomb stops at the limit."""
    out = bytearray()
    for start in range(0, len(data), _SLICE):
        piece = data[start : start + _SLICE]
        try:
            for text in stream.feed(piece, limit + 1 - len(out)):
                out += text
                if len(out) > limit:
                    return Decoded(
                        bytes(out[:limit]), whole=False, note=f"cut at {limit} bytes: the body decodes to more"
                    )
        except stream.errors:
            stream.damaged = True
            return Decoded(bytes(out), whole=False, note=f"the compressed body is damaged near byte {start}")
        if stream.junk:
            return Decoded(bytes(out), whole=False, note="bytes that are not compressed follow the compressed body")
    if not stream.done:
        return Decoded(bytes(out), whole=False, note="the compressed body was cut")
    return Decoded(bytes(out))


def _gzip(_: bytes) -> _Stream:
    return _Stream(lambda: zlib.decompressobj(31), (zlib.error,))


def _deflate(data: bytes) -> _Stream:
    """RFC 9110 means the zlib format; some servers send raw deflate."""
    wrapped = data[0] & 0x0F == 8 and (len(data) < 2 or int.from_bytes(data[:2]) % 31 == 0)
    return _Stream(lambda: zlib.decompressobj(15 if wrapped else -15), (zlib.error,))


def _brotli(_: bytes) -> _Stream | None:
    module = _module("brotli")
    # Older ones take no output limit, so a few bytes could fill the memory.
    if module is None or not hasattr(module.Decompressor, "can_accept_more_data"):
        return None
    return _Brotli(module.Decompressor, (module.error,))


def _zstd(_: bytes) -> _Stream | None:
    for name in ("compression.zstd", "backports.zstd"):
        if module := _module(name):
            return _Stream(module.ZstdDecompressor, (module.ZstdError,))
    if module := _module("zstandard"):
        return _Unlimited(lambda: module.ZstdDecompressor().decompressobj(), (module.ZstdError,))
    return None


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_MAKERS: dict[str, Callable[[bytes], _Stream | None]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
_PACKAGES = {"br": "brotli 1.2 or newer", "zstd": "backports.zstd or zstandard"}
