"""A tape's signature, a line of JSON beside it: what it says, how it reads; knows no key's secret half and no file.

It is `CONTENT,"signature":"HEX"}`, as a tape's lines are `CONTENT,"h":"HEX"}`: the exact bytes of CONTENT are signed,
with Ed25519 (RFC 8032), after a word that keeps them apart from whatever else the key signs. docs/FORMAT.md,
"Signatures", is the specification.
"""

import base64
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from tapeproxy.tapes.errors import Place, TapeFormatError

VERSION = 1
MOST = 1 << 16
"""Bytes that a signature's file may have."""

_DOMAIN = b"tapeproxy tape signature 1\n"
_OPEN = b',"signature":"'
_LINE = re.compile(rb"(?P<content>\{.*)" + _OPEN + rb'(?P<hex>[0-9a-f]{128})"\}\n')
_HASH = re.compile(r"[0-9a-f]{64}")
_FIX = "take it again from where it came, or sign the tape again with --force"
_HASHES = ("file", "head", "last", "key")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a signer says of a tape. `file`, `head`, `last`: hex BLAKE3 of all its bytes, its first and last line.

    `records` counts its lines, `signed_at` is RFC 3339 by the signer's clock, `key` the signer's public key in hex.
    """

    file: str
    head: str
    last: str
    records: int
    signed_at: str
    key: str

    def content(self) -> bytes:
        """The bytes that the signature's line begins with."""
        fields = {name: getattr(self, name) for name in ("file", "head", "last", "records", "signed_at", "key")}
        return orjson.dumps({"tape_signature": VERSION} | fields)[:-1]


@dataclass(frozen=True, slots=True)
class Signature:
    """A statement as it was read, with the 64 bytes that prove it: `message` is what they sign."""

    statement: Statement
    message: bytes
    value: bytes

    @property
    def fingerprint(self) -> str:
        """The signer's, as `ssh-keygen -l` prints it."""
        return fingerprint(bytes.fromhex(self.statement.key))


def message(content: bytes) -> bytes:
    """What is signed, for a line that begins with `content`."""
    return _DOMAIN + content


def render(content: bytes, value: bytes) -> bytes:
    """The signature's file: its line, with the newline. `value` are the 64 bytes of the signature."""
    return b"".join((content, _OPEN, value.hex().encode(), b'"}\n'))


def parse(data: bytes, source: str) -> Signature:
    """Read a signature's file, named `source` in errors; proves nothing. Raises TapeFormatError."""
    line = _LINE.fullmatch(data) if len(data) <= MOST else None
    try:
        fields: Any = orjson.loads(data) if line is not None else None
    except orjson.JSONDecodeError:
        fields = None
    if line is None or not isinstance(fields, dict):
        raise _wrong(source, "this is not a tape's signature, or it was changed")
    version = fields.get("tape_signature")
    if type(version) is int and version > VERSION:
        what = f"the signature has format {version}; this version reads format {VERSION}"
        raise TapeFormatError(what, place=Place(source), fix="install a newer tapeproxy to read it")
    if type(version) is not int or version < 1 or not _is_whole(fields):
        raise _wrong(source, "the signature lacks a field, or has one of another type")
    statement = Statement(**{name: fields[name] for name in Statement.__slots__})
    return Signature(statement, message(line["content"]), bytes.fromhex(line["hex"].decode()))


def fingerprint(key: bytes) -> str:
    """Of a public key, its 32 bytes: SHA-256 over its SSH form (RFC 8709), as OpenSSH shows it."""
    wire = b"".join(len(part).to_bytes(4) + part for part in (b"ssh-ed25519", key))
    return f"SHA256:{base64.b64encode(sha256(wire).digest()).decode().rstrip('=')}"


def _is_whole(fields: dict[str, Any]) -> bool:
    hashes = all(isinstance(fields.get(name), str) and _HASH.fullmatch(fields[name]) for name in _HASHES)
    return hashes and type(fields.get("records")) is int and isinstance(fields.get("signed_at"), str)


def _wrong(source: str, what: str) -> TapeFormatError:
    return TapeFormatError(what, place=Place(source), fix=_FIX)
