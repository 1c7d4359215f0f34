"""Leaf certificates that are kept from run to run: the first one that a process signs costs it 60 ms of imports.

Knows names and times, no cryptography: what a file's first line says of the certificate below it was true when it was
written, and a file is found by the authority that signed it. The keys are as secret as the authority's beside them.
"""

import contextlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from blake3 import blake3

from tapeproxy.proxy import pemfiles
from tapeproxy.proxy.pemfiles import CaError

SPARE = timedelta(days=30)
"""A leaf that is valid for less than this around a run is made anew."""
_MOST = 256
"""Files: an agent that talks to thousands of hosts does not fill the disk."""


class KeptLeaves:
    """The leaves of one authority, whose certificate is `issuer`, in `folder`."""

    def __init__(self, folder: Path, issuer: bytes) -> None:
        self._folder = folder
        self._issuer = issuer

    def find(self, name: str, moments: Iterable[datetime]) -> bytes | None:
        """PEM of key and certificate for `name`, valid around all `moments`, if there is one. Not verified."""
        try:
            pem = self._path(name).read_bytes()
        except OSError:
            return None
        words = pem.partition(b"\n")[0].decode("latin-1").split(" ")
        try:
            told, begin, end = words[0], *map(datetime.fromisoformat, words[1:])
            good = told == name and all(begin + SPARE <= moment <= end - SPARE for moment in moments)
        except (ValueError, TypeError, OverflowError):  # no times, without a zone, or at the end of time
            return None
        return pem if good else None

    def keep(self, name: str, pem: bytes, validity: tuple[datetime, datetime]) -> None:
        """Keep a leaf. Where it can't be, so be it: the next run makes another."""
        begin, end = validity
        with contextlib.suppress(CaError, OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if len(list(self._folder.iterdir())) < _MOST:
                line = f"{name} {begin.isoformat()} {end.isoformat()}\n".encode()
                pemfiles.replace_private(self._path(name), line + pem)

    def drop(self, name: str) -> None:
        """Forget a leaf that is no good."""
        with contextlib.suppress(OSError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{blake3(self._issuer + name.encode()).hexdigest(16)}.pem"
