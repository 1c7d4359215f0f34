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

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def encrypt(pieces: Iterator[bytes], secret: Secret, *, cost: int = COST) -> Iterator[bytes]:
    """Yield the bytes of the encrypted tape. `cost` is for passphrases, as in a Header. Raises LockedTapeError."""
    header = Header(secret.kind, 0 if secret.kind == "key" else cost, secrets.token_bytes(SALT))
    keys = header.keys(secret.master(header))
    encrypter = Encrypter(header, keys, _cipher(keys).encrypt)
    yield encrypter.begin()
    for piece in pieces:
        yield from encrypter.feed(piece)
    yield encrypter.finish()


def decrypt(pieces: Iterator[bytes], source: str, ask: Ask) -> Iterator[bytes]:
    """Yield the plain bytes of an encrypted tape; it is whole only when this came to its end without an error.

    Raises TapeFormatError, naming `source`, for what was changed or cut off; and LockedTapeError.
    """
    start = b""
    while len(start) < SIZE and (piece := next(pieces, b"")):
        start += piece
    header, check = parse_header(start, source)
    keys = header.keys(ask(header.kind, source).master(header))
    check_keys(keys, check, header, source)
    decrypter = Decrypter(header, keys, _opening(keys), source)
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
