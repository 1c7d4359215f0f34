"""Secrets that lock tapes: where they come from, and what makes a key of them. Knows variables and files, no terminal.

Importing it is cheap; it runs only where a tape turns out to be encrypted.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.tapes.errors import LockedTapeError, UsageError

if TYPE_CHECKING:
    from tapeproxy.tapes.encrypted import Header, Kind

PASSPHRASE = "TAPEPROXY_PASSPHRASE"
PASSPHRASE_FILE = "TAPEPROXY_PASSPHRASE_FILE"
KEY_FILE = "TAPEPROXY_KEY_FILE"
SECRETS = (PASSPHRASE, PASSPHRASE_FILE, KEY_FILE)
"""The variables that open tapes. No agent gets to see them."""

_HEX = re.compile(rb"[0-9a-fA-F]{64}\s*")
_MOST = 1 << 16
_HOW = f"set {PASSPHRASE} or {PASSPHRASE_FILE}, or give --passphrase-fd N"


@dataclass(frozen=True, slots=True)
class Secret:
    """A passphrase (its bytes), or a key of 32 bytes; `source` names where it came from."""

    kind: "Kind"
    value: bytes = field(repr=False)
    source: str = ""

    def master(self, header: "Header") -> bytes:
        """The 32 bytes that a file's keys are made from. Takes a second for a passphrase. Raises LockedTapeError."""
        if header.kind == "key":
            return self.value
        import hashlib

        from tapeproxy.tapes.encrypted import KEY, P, R

        memory = 128 * R << header.cost
        try:
            # OpenSSL refuses what takes more than 32 MiB unless it is told; it takes a little more than `memory`.
            return hashlib.scrypt(
                self.value, salt=header.salt, n=1 << header.cost, r=R, p=P, dklen=KEY, maxmem=2 * memory + (1 << 20)
            )
        except (MemoryError, ValueError) as error:
            what = f"the key cannot be made of the passphrase: {error or 'there is not enough memory'}"
            raise LockedTapeError(what, fix=f"it takes {memory >> 20} MiB of memory") from None


type Ask = Callable[[Kind, str], Secret]
"""Gives the secret of a tape, knowing the kind that it needs and the tape's name. Raises LockedTapeError."""


def ask_environment(kind: "Kind", source: str) -> Secret:
    """The secret that the environment names. Raises LockedTapeError when it names none, UsageError for a bad file."""
    return environment_secret(kind, os.environ) or refuse(kind, source)


def ask_with(secret: Secret | None) -> Ask:
    """Who gives just this secret; without one, as `ask_environment`."""
    return ask_environment if secret is None else lambda _kind, _source: secret


def ask_nobody(kind: "Kind", source: str) -> Secret:
    """No secret: for those who look at many tapes in passing. Raises LockedTapeError."""
    return refuse(kind, source)


def refuse(kind: "Kind", source: str) -> Secret:
    """Raise the LockedTapeError of a tape whose secret nobody gave."""
    if kind == "key":
        what, fix = "the tape is encrypted, and its key file is needed", f"set {KEY_FILE}, or give --key-file FILE"
    else:
        what, fix = "the tape is encrypted, and its passphrase is needed", _HOW
    raise LockedTapeError(what, where=source, fix=fix)


def environment_secret(kind: "Kind", environment: Mapping[str, str]) -> Secret | None:
    """The secret of this kind that an environment holds or names. Raises UsageError."""
    if kind == "key":
        name = environment.get(KEY_FILE)
        return read_key(Path(name)) if name else None
    if text := environment.get(PASSPHRASE):
        return passphrase(os.fsencode(text), f"${PASSPHRASE}")
    name = environment.get(PASSPHRASE_FILE)
    return passphrase(_read(Path(name)), name) if name else None


def passphrase(data: bytes, source: str) -> Secret:
    """A passphrase as it was given, without the newline at its end. Raises UsageError when nothing is left."""
    value = data.removesuffix(b"\n").removesuffix(b"\r")
    if not value:
        raise UsageError("the passphrase is empty", where=source, fix="give one of several words")
    return Secret("passphrase", value, source)


def read_key(path: Path) -> Secret:
    """A key file: 32 bytes, or 64 hex digits. Raises UsageError."""
    data = _read(path)
    from tapeproxy.tapes.encrypted import KEY

    if _HEX.fullmatch(data):
        return Secret("key", bytes.fromhex(data.decode()), str(path))
    if len(data) == KEY:
        return Secret("key", data, str(path))
    what = f"a key file holds {KEY} bytes, or {2 * KEY} hex digits, and this one {len(data)} bytes"
    raise UsageError(what, where=str(path), fix="make one with: tapeproxy keygen --encryption FILE")


def read_descriptor(number: int) -> Secret:
    """A passphrase from a descriptor, read to its end and closed: no agent must get it. Raises UsageError."""
    if number in (1, 2):
        raise UsageError(f"descriptor {number} is for output", fix="open another: --passphrase-fd 3 3< FILE")
    try:
        with open(number, "rb", closefd=number != 0) as file:
            data = file.read(_MOST + 1)
        if number == 0:
            _empty_input()
    except (OSError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"the passphrase cannot be read from descriptor {number}: {reason}") from None
    return passphrase(_short(data, f"descriptor {number}"), f"descriptor {number}")


def _empty_input() -> None:
    """Leave nothing on standard input. It stays open: its number must not become another file's."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _short(file.read(_MOST + 1), str(path))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the file cannot be read: {reason}", where=str(path)) from None


def _short(data: bytes, source: str) -> bytes:
    if len(data) > _MOST:
        raise UsageError(f"there are more than {_MOST} bytes, which is no secret", where=source)
    return data
