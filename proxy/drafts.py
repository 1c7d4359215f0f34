"""New files that appear whole or not at all; knows nothing of what is in them."""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tapeproxy.proxy.tapefile import write_error


@contextlib.contextmanager
def drafted(path: Path, *, force: bool = False, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A file to write, which gets `mode`; it is at `path` once the block has ended, and nowhere when the block raised.

    `force` replaces a file that is there. Raises TapeExistsError without it, and TapeWriteError.
    """
    if not force and path.exists():
        raise write_error(path, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))
    draft = path.with_name(f".draft-{secrets.token_hex(8)}")
    try:
        file = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb")
    except OSError as error:
        raise write_error(path, error) from None
    try:
        with _mapped(path), file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with _mapped(path):
            _publish(draft, path, force=force)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_error(path, error) from None


def _publish(draft: Path, path: Path, *, force: bool) -> None:
    if force:
        draft.replace(path)
        return
    try:
        path.hardlink_to(draft)  # unlike a rename it fails when the name is taken
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise
        draft.rename(path)
