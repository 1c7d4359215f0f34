"""The key that redaction tokens are made with: 32 random bytes, made once for a user, never on a tape.

It is kept so that one secret gives one token on all of a user's tapes. Losing it is harmless: later tapes get other
tokens, and a replay does not need it.
"""

import os
from pathlib import Path

from tapeproxy.proxy.ca import home
from tapeproxy.tapes.errors import UsageError

_SIZE = 32


def load_key(directory: Path | None = None) -> bytes:
    """The key in `directory` (default `home()`), made when there is none. Raises UsageError when it can't be had."""
    path = (directory or home()) / "redaction.key"
    try:
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _create(path)
            key = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        fix = "set TAPEPROXY_HOME to a directory that you can write"
        raise UsageError(f"the redaction key cannot be used: {reason}", where=str(path), fix=fix) from None
    if len(key) != _SIZE:
        raise UsageError(
            f"the redaction key has {len(key)} bytes, not {_SIZE}", where=str(path), fix="remove it: a new one is made"
        )
    return key


def _create(path: Path) -> None:
    # Under another name first, so that no process reads half a key; `link` lets exactly one of two racers win.
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:  # needs an opener
        file.write(os.urandom(_SIZE))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        draft.replace(path)
        return
    draft.unlink()
