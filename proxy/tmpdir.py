"""The TMPDIR of a replay: empty when it begins, as it was when the recording began. Knows files, not what they are for.

What an earlier run of the tape has left there would move the names of temporary files (a name that is taken is drawn
again) and the numbers of pytest's folders. It is put into a folder beside it, and back when the replay is over.
"""

import os
from contextlib import suppress
from pathlib import Path

_ASIDE = ".before"


class Tmpdir:
    """A folder that is emptied for a run. Another run that has it already keeps it as it is: then `shared` is true."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._aside = path.with_name(path.name + _ASIDE)
        self._lock = _lock(path)
        self.shared = self._lock is None
        if not self.shared:
            with suppress(OSError):  # then names may differ, which will be seen
                self._put_aside()

    def close(self, *, sweep: bool) -> None:
        """Put back what was there, unless the run has made something of that name; remove the folder if it is empty.

        `sweep`: remove what the run has made, first.
        """
        if self._lock is None:
            return
        with suppress(OSError):  # the agent may have removed it, or shut us out
            for path in self.path.iterdir() if sweep else ():
                remove(path)
        with suppress(OSError):
            self._put_back()
        with suppress(OSError):
            self.path.rmdir()
        self.forget()

    def forget(self) -> None:
        """Let another run have the folder, as it is."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _put_aside(self) -> None:
        for path in list(self.path.iterdir()):
            self._aside.mkdir(mode=0o700, exist_ok=True)
            kept = self._aside / path.name
            if os.path.lexists(kept):  # a replay that was killed left both
                remove(path)
            else:
                path.rename(kept)

    def _put_back(self) -> None:
        if not self._aside.is_dir():
            return
        self.path.mkdir(mode=0o700, exist_ok=True)
        for kept in list(self._aside.iterdir()):
            path = self.path / kept.name
            if os.path.lexists(path):
                remove(kept)
            else:
                kept.rename(path)
        self._aside.rmdir()


def private_folder(prefix: str) -> Path:
    """Make a folder that only this user may enter, where temporary files go. Raises OSError."""
    path = Path(os.environ.get("TMPDIR") or "/tmp") / f"{prefix}{os.urandom(4).hex()}"
    try:
        path.mkdir(mode=0o700)
    except OSError:
        import tempfile  # takes 5 ms, and knows more places

        return Path(tempfile.mkdtemp(prefix=prefix))
    return path.absolute()


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it, as far as it may be removed."""
    if path.is_dir() and not path.is_symlink():
        import shutil  # takes 5 ms

        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _lock(path: Path) -> int | None:
    """A descriptor of the folder, locked until it is closed; None where another has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return os.open(os.devnull, os.O_RDONLY)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
