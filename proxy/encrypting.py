"""Encrypted tapes as streams of bytes: the container of `tapes/encrypted.py` with its cipher, AES-256-GCM.

Memory stays flat: a piece and a chunk at a time. cryptography is imported when the first chunk comes, not before: it
takes 25 ms that a plain tape must not pay.
"""

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tapeproxy.proxy.unlocking import Ask, Secret
from tapeproxy.tapes.encrypted import (
    COST,
    SALT,
    SIZE,
    Decrypter,
    Encrypter,
    Header,
    Keys,
    Open,
    check_keys,
    parse_header,
)
from tapeproxy.tapes.encryptedframes import Framer, Unframer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def encrypt(pieces: Iterator[bytes], secret: Secret, *, cost: int = COST) -> Iterator[bytes]:
    """Yield the bytes of the encrypted tape. `cost` is for passphrases, as in a Header. Raises LockedTapeError."""
    header = _new_header(secret, cost, version=1)
    keys = header.keys(secret.master(header))
    encrypter = Encrypter(header, keys, _cipher(keys).encrypt)
    yield encrypter.begin()
    for piece in pieces:
        yield from encrypter.feed(piece)
    yield encrypter.finish()


def framer(secret: Secret, *, cost: int = COST) -> Framer:
    """What encrypts a tape while it is written. Takes a second for a passphrase. Raises LockedTapeError."""
    header = _new_header(secret, cost, version=2)
    keys = header.keys(secret.master(header))
    return Framer(header, keys, _cipher(keys).encrypt)


def _new_header(secret: Secret, cost: int, version: int) -> Header:
    return Header(secret.kind, 0 if secret.kind == "key" else cost, secrets.token_bytes(SALT), version)


def decrypt(pieces: Iterator[bytes], source: str, ask: Ask) -> Iterator[bytes]:
    """Yield the plain bytes of an encrypted tape; it is whole only when this came to its end without an error.

    One that was encrypted while it was recorded is whole when the tape in it has its seal.

    Raises TapeFormatError, naming `source`, for what was changed or cut off; and LockedTapeError.
    """
    start = b""
    while len(start) < SIZE and (piece := next(pieces, b"")):
        start += piece
    header, check = parse_header(start, source)
    keys = header.keys(ask(header.kind, source).master(header))
    check_keys(keys, check, header, source)
    decrypter = (Decrypter if header.version == 1 else Unframer)(header, keys, _opening(keys), source)
    yield from decrypter.feed(start[SIZE:])
    for piece in pieces:
        yield from decrypter.feed(piece)
    yield decrypter.finish()


def _opening(keys: Keys) -> Open:
    from cryptography.exceptions import InvalidTag

    cipher = _cipher(keys)

    def open_chunk(nonce: bytes, sealed: bytes, associated: bytes) -> bytes | None:
        try:
            return cipher.decrypt(nonce, sealed, associated)
        except InvalidTag:
            return None

    return open_chunk


def _cipher(keys: Keys) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(keys.key)
