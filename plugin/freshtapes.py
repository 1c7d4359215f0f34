"""New tapes of a test, until it has passed: where they lie, and how they come into the place of the old ones."""

import os
from datetime import UTC, datetime
from pathlib import Path

from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redactionrules import DEFAULT


def fresh(path: Path) -> Path:
    """Where a tape is until its test has passed: a failing test must leave no tape to be replayed for ever."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{os.getpid()}.{path.name}")


def settle(new: Path, path: Path | None) -> None:
    """Put a new tape into its place, or remove it."""
    if path is None:
        new.unlink(missing_ok=True)
    elif new.exists():
        new.replace(path)


def put_beside(new: Path, path: Path, *, accept: bool) -> str:
    """Leave a new tape beside the old one, or, if it is accepted already, in its place. How it differs, in lines."""
    from tapeproxy.plugin.changes import change_lines
    from tapeproxy.proxy.pending import new_beside, replace_tape
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.tapediff import diff_tapes

    diff = diff_tapes(load(path)[0], load(new)[0])
    said = ", ".join(f"{number} {kind}" for kind, number in diff.counts().items() if number)
    beside = new_beside(path)
    new.replace(beside)
    if accept:
        replace_tape(path, beside, keep=False)
    return "\n".join((said, *change_lines(diff)))


def nothing() -> Tape:
    """The tape of a test that has none: what is asked there is redacted as a recording of today would do."""
    return Tape(Head(started_at=datetime.now(UTC).isoformat(), rules=DEFAULT.to_json()), [])
