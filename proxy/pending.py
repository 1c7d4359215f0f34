"""New tapes that wait beside old ones until somebody has looked at them, and how one takes the other's place.

`NAME.new` beside `NAME`. Knows files and what a head says of its parent; asks nobody.
"""

import glob
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.tapefile import is_being_written, load, sync_folder, write_error
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import NoTapeError, Place, UsageError
from tapeproxy.tapes.exchanges import Tape

NEW = ".new"
OLD = ".bak"
SIGNATURE = ".sig"


@dataclass(frozen=True, slots=True)
class Pending:
    """A new tape, `tape` at `new`, and the one that it was made of, `old` at `of`. It is to be at `path`.

    `signed`: there is a signature of what is there now.
    """

    path: Path
    new: Path
    tape: Tape
    of: Path
    old: Tape
    signed: bool


def new_beside(path: Path) -> Path:
    """Where the new tape waits that is to replace this one. A link is followed: its tape is what is replaced."""
    place = _followed(path)
    return place.with_name(place.name + NEW)


def clear(new: Path) -> None:
    """Remove a new tape that was waiting, if there is one. Raises UsageError for one that is being written."""
    if new.exists() and is_being_written(new):
        raise UsageError("another update of this tape is running", where=str(new), fix="wait for its end")
    new.unlink(missing_ok=True)
    for folder in new.parent.glob(f"{glob.escape(new.name)}.sidecar-*"):  # of a recorder that was killed
        shutil.rmtree(folder, ignore_errors=True)


def pending_in(places: Iterable[Path]) -> list[Path]:
    """The tapes, at these paths or in these folders, beside which a new one waits. Raises NoTapeError, of a path."""
    found: dict[Path, None] = {}
    for place in places:
        if place.is_dir():
            waiting = sorted(place.rglob(f"*{NEW}"))
            found |= dict.fromkeys(one.with_name(one.name.removesuffix(NEW)) for one in waiting if one.is_file())
            continue
        path = place.with_name(place.name.removesuffix(NEW))
        if not new_beside(path).is_file():
            what = "no new tape waits beside this one"
            raise NoTapeError(what, place=Place(str(path)), fix=f"make one: tapeproxy update {path}")
        found[path] = None
    return list(found)


def open_pending(path: Path, ask: Ask = ask_environment) -> Pending:
    """Read both tapes. Raises TapeFormatError and LockedTapeError, and UsageError where one is not the other's."""
    new = new_beside(path)
    if is_being_written(new):
        raise UsageError("the new tape is being written", where=str(new), fix="wait for the end of its run")
    tape, ended = load(new, ask)
    old, ending = load(path, ask)
    if not ended.sealed:
        raise UsageError("the new tape was interrupted", where=str(new), fix="update again, or remove it")
    check_parent(path, ending, tape)
    return Pending(path, new, tape, path, old, is_signed(path))


def check_parent(path: Path, ending: Ending, tape: Tape) -> None:
    """Raises UsageError where `tape` was not made of the tape that is at `path`, which ends so."""
    if (tape.head.parent or {}).get("last") != ending.hash:
        what = "the new tape was made of another one than is here now"
        raise UsageError(what, where=str(path), fix="update again, so that nothing is lost that came meanwhile")


def is_signed(path: Path) -> bool:
    """Whether there is a signature beside a tape."""
    return path.with_name(path.name + SIGNATURE).exists()


def replace_tape(path: Path, new: Path, *, keep: bool) -> None:
    """Put a new tape into the place of an old one, which is kept as `.bak` beside it, if it is to be.

    At each moment there is a whole tape at `path`: the old one, then the new one. Raises TapeWriteError.
    """
    place = _followed(path)
    try:
        _to_disk(new)
        if place.exists():
            new.chmod(place.stat().st_mode & 0o777)
            if keep:
                _keep(place)
        new.replace(place)
        sync_folder(place.parent)
    except OSError as error:
        raise write_error(path, error) from None


def _followed(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def _keep(place: Path) -> None:
    kept = place.with_name(place.name + OLD)
    draft = place.with_name(f".{place.name}{OLD}-{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        draft.hardlink_to(place)
    except OSError:  # a file system without links
        shutil.copy2(place, draft)
    draft.replace(kept)


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
