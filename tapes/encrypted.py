"""The container of an encrypted tape: header, keys and chunks; knows no cipher, file, passphrase or random number.

docs/FORMAT.md ("Encrypted tapes") is the specification. The content is cut into chunks, each sealed by an AEAD with a
nonce that says which chunk it is and whether it is the last (the STREAM construction: Hoang, Reyhanitabar, Rogaway,
Vizár, "Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance", 2015). So chunks can't be changed,
moved, left out or repeated, and the end can't be cut off. Every file has keys of its own, from its salt, so that no
nonce comes twice under one key, and the header holds a check of the key, so that a wrong one is told from an edit.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from blake3 import blake3

from tapeproxy.tapes.errors import LockedTapeError, Place, TapeFormatError
from tapeproxy.tapes.magic import MAGIC

type Kind = Literal["key", "passphrase"]
type Close = Callable[[bytes, bytes, bytes], bytes]
"""Encrypts: (nonce, plain, associated data) -> bytes that are TAG longer."""
type Open = Callable[[bytes, bytes, bytes], bytes | None]
"""Decrypts: (nonce, sealed, associated data) -> the plain bytes, None when they are not what was encrypted."""

SIZE = 64
"""Bytes of a header."""
CHUNK = 1 << 16
TAG = 16
SALT = 32
KEY = 32
COST = 17
"""What a writer takes: scrypt with N = 2**17 needs 128 MiB and about 0.3 s."""
COSTS = range(10, 19)
"""What a reader takes: at most 256 MiB and a second, whatever a hostile header asks for."""
R, P = 8, 1
"""The other parameters of scrypt (RFC 7914); they are not in the header."""

_VERSIONS = (1, 2)
_CONTEXT = "tapeproxy encrypted tape 1"
_KINDS: tuple[Kind, ...] = ("key", "passphrase")
_LAYOUT = struct.Struct(f">8sBBBx{SALT}s16s4s")
_PREFIX = 7
_MOST_CHUNKS = 1 << 32
_AGAIN = "take the file again from where it came"


@dataclass(frozen=True, slots=True)
class Header:
    """How a tape is locked: by what `kind` of secret; `cost` is log2 of scrypt's N (0 for a key).

    `version` 1 has chunks; 2, of a tape that was encrypted while it was recorded, frames (`encryptedframes.py`).
    """

    kind: Kind
    cost: int
    salt: bytes
    version: int = 1

    def pack(self, check: bytes) -> bytes:
        """The header's bytes; `check` is that of the keys."""
        raw = _LAYOUT.pack(MAGIC, self.version, _KINDS.index(self.kind), self.cost, self.salt, check, bytes(4))[:-4]
        return raw + blake3(raw).digest(4)

    def keys(self, master: bytes) -> "Keys":
        """The keys of this file, from `master`: 32 bytes, the key itself or what scrypt made of a passphrase."""
        drawn = blake3(master + self.pack(bytes(16))[:-20], derive_key_context=_CONTEXT).digest(KEY + _PREFIX + 16)
        return Keys(drawn[:KEY], drawn[KEY : KEY + _PREFIX], drawn[KEY + _PREFIX :])


@dataclass(frozen=True, slots=True)
class Keys:
    """What a file is encrypted with: the cipher's `key`, what its nonces begin with, and the header's `check`."""

    key: bytes = field(repr=False)
    prefix: bytes = field(repr=False)
    check: bytes

    def nonce(self, number: int, *, last: bool) -> bytes:
        """The 12 bytes for chunk `number`. Raises ValueError past 2**32 chunks."""
        if number >= _MOST_CHUNKS:
            raise ValueError(f"there are more than {_MOST_CHUNKS} chunks")
        return self.prefix + number.to_bytes(4) + bytes((last,))


def parse_header(data: bytes, source: str = "tape") -> tuple[Header, bytes]:
    """The header at the beginning of `data`, and the check of its keys. Raises TapeFormatError, naming `source`."""
    if len(data) < SIZE:
        raise _wrong(source, "the encrypted tape was cut off in its header", _AGAIN)
    raw = data[:SIZE]
    magic, version, kind, cost, salt, check, checksum = _LAYOUT.unpack(raw)
    if magic != MAGIC:
        raise _wrong(source, "this is not an encrypted tape", "")
    if version > _VERSIONS[-1]:
        what = f"the tape is encrypted in format {version}; this version reads formats up to {_VERSIONS[-1]}"
        raise _wrong(source, what, "install a newer tapeproxy to read it")
    if checksum != blake3(raw[:-4]).digest(4) or version not in _VERSIONS or raw[11]:
        raise _wrong(source, "the header of the encrypted tape was changed", _AGAIN)
    if kind >= len(_KINDS) or (cost != 0 if _KINDS[kind] == "key" else cost not in COSTS):
        what = f"the header asks for a way to make the key that is refused (kind {kind}, cost {cost})"
        raise _wrong(source, what, f"no tape that tapeproxy encrypted does, it may take too much memory; {_AGAIN}")
    return Header(_KINDS[kind], cost, salt, version), check


class Encrypter:
    """Makes an encrypted tape of bytes in pieces of any size."""

    def __init__(self, header: Header, keys: Keys, close: Close) -> None:
        self._header = header.pack(keys.check)
        self._keys = keys
        self._close = close
        self._held = bytearray()
        self._number = 0

    def begin(self) -> bytes:
        """The header."""
        return self._header

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the chunks that `data` completes. Exhaust it before feeding more."""
        self._held += data
        # The last chunk has another nonce, so one is kept back until more comes.
        while len(self._held) > CHUNK:
            plain = bytes(self._held[:CHUNK])
            del self._held[:CHUNK]
            yield self._seal(plain, last=False)

    def finish(self) -> bytes:
        """The last chunk."""
        return self._seal(bytes(self._held), last=True)

    def _seal(self, plain: bytes, *, last: bool) -> bytes:
        nonce = self._keys.nonce(self._number, last=last)
        self._number += 1
        return self._close(nonce, plain, self._header)


class Decrypter:
    """Reads the chunks of an encrypted tape, in pieces of any size; gives out nothing that it has not checked.

    What is given out is what was encrypted, but only after `finish` is it known that it is all. `source` names the
    tape in errors.
    """

    def __init__(self, header: Header, keys: Keys, open: Open, source: str = "tape") -> None:
        self._header = header.pack(keys.check)
        self._keys = keys
        self._open = open
        self._source = source
        self._held = bytearray()
        self._number = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield plain bytes. Exhaust it before feeding more. Raises TapeFormatError."""
        self._held += data
        while len(self._held) > CHUNK + TAG:
            sealed = bytes(self._held[: CHUNK + TAG])
            del self._held[: CHUNK + TAG]
            plain = self._try(sealed, last=False)
            if plain is None:
                raise self._changed()
            self._number += 1
            yield plain

    def finish(self) -> bytes:
        """The rest of the plain bytes. Raises TapeFormatError: the end was cut off, or changed."""
        sealed = bytes(self._held)
        plain = self._try(sealed, last=True)
        # A chunk of nothing is for a file of nothing: otherwise one content would have two forms.
        if plain is None or (not plain and self._number):
            if not sealed or (len(sealed) == CHUNK + TAG and self._try(sealed, last=False) is not None):
                raise _wrong(self._source, f"the encrypted tape was cut off after byte {self._at}", _AGAIN)
            raise self._changed()
        return plain

    @property
    def _at(self) -> int:
        """Where in the file the next chunk begins."""
        return SIZE + self._number * (CHUNK + TAG)

    def _try(self, sealed: bytes, *, last: bool) -> bytes | None:
        if len(sealed) < TAG or self._number >= _MOST_CHUNKS:
            return None
        return self._open(self._keys.nonce(self._number, last=last), sealed, self._header)

    def _changed(self) -> TapeFormatError:
        return changed(self._source, self._at)


def check_keys(keys: Keys, check: bytes, header: Header, source: str) -> None:
    """Raise LockedTapeError unless `keys` are those of the header with this `check`."""
    if keys.check != check:
        word = "passphrase" if header.kind == "passphrase" else "key"
        what = f"this {word} is not the one that the tape was encrypted with"
        raise LockedTapeError(what, where=source, fix=f"give another {word}; if it is right, the header was changed")


def changed(source: str, at: int) -> TapeFormatError:
    """What is wrong where the bytes from `at` on do not open."""
    what = "the key is right, but the encrypted tape was changed or cut off: what begins at byte "
    return _wrong(source, f"{what}{at} is not what was written there", _AGAIN)


def _wrong(source: str, what: str, fix: str) -> TapeFormatError:
    return TapeFormatError(what, place=Place(source), fix=fix)
