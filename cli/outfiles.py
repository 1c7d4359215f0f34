"""Files that a command writes for people: whole or not at all. Knows no tape."""

from collections.abc import Iterable
from pathlib import Path

from tapeproxy.tapes.errors import TapeExistsError, TapeWriteError, UsageError


def write_whole(path: Path, pieces: Iterable[bytes], *, force: bool) -> None:
    """Write a file, for its owner to read; `force` replaces one that is there.

    Raises TapeExistsError without it, and UsageError when the file cannot be written.
    """
    from tapeproxy.proxy.drafts import drafted

    try:
        with drafted(path, force=force) as file:
            file.writelines(pieces)
    except TapeExistsError:
        raise
    except TapeWriteError as error:
        raise UsageError(error.what.replace("the tape", "the file"), where=error.where) from None
