"""`tapeproxy ls` and `tapeproxy prune`: the tapes in `.tapes`."""

import json
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from tapeproxy.cli.choose import FOLDER, LOCKED_SUFFIX, begun, list_tapes, signature_path
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import Cell, Column, count, echo, moment, printable, screen_of, size, table
from tapeproxy.tapes.errors import TapeproxyError, TapeWriteError, UsageError

_DAY = 86400
_COLUMNS = (
    Column("name", least=16, cut="start"),
    Column("when", rank=2),
    Column("command", least=10, rank=1),
    Column("exchanges", right=True, rank=3),
    Column("size", right=True, rank=4),
    Column("outcome"),
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A tape in the list.

    `outcome` is in words; `damage` says what is wrong, and then the rest is what came before. Of an encrypted tape
    that the environment does not open only its age is known; `exchanges` is None then.
    """

    path: Path
    started_at: str
    argv: tuple[str, ...]
    exchanges: int | None
    size: int
    outcome: str
    sealed: bool
    damage: str | None
    redacted: bool


@click.command(context_settings=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(as_json: bool) -> None:
    """List the tapes in .tapes.

    The one that was begun last is at the end. Files there that are no tapes are left out. The outcome is how the
    agent ended; timeout and Ctrl-C where that ended it; recording while its recorder runs, interrupted when that
    was killed; damaged; encrypted, where TAPEPROXY_PASSPHRASE, TAPEPROXY_PASSPHRASE_FILE or TAPEPROXY_KEY_FILE does not
    open it. "not redacted" stands there where a tape was made with --no-redact.

    --json prints: tapes, a list of name, path, started_at, argv, exchanges (null: encrypted), size (bytes), outcome,
    sealed, damage (null, or what is wrong with it) and redacted.
    """
    tapes = [listed for path in list_tapes() if (listed := look(path)) is not None]
    if as_json:
        click.echo(json.dumps({"tapes": [_document(listed) for listed in tapes]}, indent=2))
    elif tapes:
        for line in table(_COLUMNS, [_cells(listed) for listed in tapes], screen_of(sys.stdout)):
            echo(line)
    else:
        click.echo(f"no tapes in {FOLDER}/; record one with: tapeproxy record -- COMMAND", err=True)


def look(path: Path) -> Listed | None:
    """Read through one file; None when it does not begin as a tape does."""
    from tapeproxy.proxy.tapefile import is_being_written, read_entries
    from tapeproxy.tapes.errors import LockedTapeError
    from tapeproxy.tapes.outcomes import outcome
    from tapeproxy.tapes.records import Exit, Head, Request, Seal
    from tapeproxy.tapes.redactionrules import is_redacted

    head = exit = seal = damage = None
    exchanges = 0
    length = _length(path)
    recording = is_being_written(path)
    try:
        for entry in read_entries(path):
            match entry.record:
                case Head():
                    head = entry.record
                case Request():
                    exchanges += 1
                case Exit():
                    exit = entry.record
                case Seal():
                    seal = entry.record
                case _:
                    pass
    except LockedTapeError:
        began = f"{begun(path):%Y-%m-%dT%H:%M:%SZ}"
        return Listed(path, began, (), None, length, "encrypted", sealed=False, damage=None, redacted=True)
    except UsageError:  # what the environment says of keys is no good, whatever the tapes are
        raise
    except TapeproxyError as error:
        damage = str(error)
    if head is None:
        return None
    return Listed(
        path=path,
        started_at=head.started_at,
        argv=head.argv,
        exchanges=exchanges,
        size=length,
        outcome="damaged" if damage else "recording" if recording and seal is None else outcome(seal, exit),
        sealed=seal is not None and not damage,
        damage=damage,
        redacted=is_redacted(head.rules),
    )


def _document(listed: Listed) -> dict[str, object]:
    return {
        "name": listed.path.name,
        "path": str(listed.path),
        "started_at": listed.started_at,
        "argv": listed.argv,
        "exchanges": listed.exchanges,
        "size": listed.size,
        "outcome": listed.outcome,
        "sealed": listed.sealed,
        "damage": listed.damage,
        "redacted": listed.redacted,
    }


def _cells(listed: Listed) -> list[Cell]:
    outcome = listed.outcome if listed.redacted else f"{listed.outcome}, not redacted"
    return [
        Cell(listed.path.name),
        Cell(moment(listed.started_at)),
        Cell(shlex.join(listed.argv)),
        Cell("" if listed.exchanges is None else str(listed.exchanges)),
        Cell(size(listed.size)),
        Cell(outcome, None if listed.sealed and listed.redacted else "yellow"),
    ]


@click.command(context_settings=HELP)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N.  [default: 20]")
@click.option("--older-than", type=click.FloatRange(0), metavar="DAYS", help="Delete only what is older.")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be deleted.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
def prune(keep: int | None, older_than: float | None, dry_run: bool, yes: bool) -> None:
    """Delete old tapes from .tapes.

    Without options all but the newest 20 go. --older-than alone goes by age only, counted from when a tape was begun;
    given both options, only what both allow is deleted. Files that are no tapes are never touched, nor a tape
    that is being recorded, what a link points to, or what is in folders. A tape's signature goes with it, and so does
    what the shim left beside it where its recorder was killed.
    """
    from tapeproxy.proxy.tapefile import is_being_written

    # Age alone decides where it is all that was asked for.
    newest = keep if keep is not None else 20 if older_than is None else 0
    tapes = list_tapes()
    old = tapes[: max(0, len(tapes) - newest)]
    if older_than is not None:
        now = datetime.now(UTC)
        old = [path for path in old if (now - begun(path)).total_seconds() > older_than * _DAY]
    doomed = [path for path in old if not path.is_symlink() and _is_tape(path) and not is_being_written(path)]
    if not doomed:
        click.echo("nothing to delete")
        return
    for path in doomed:
        echo(printable(str(path)))
    what = f"{count(len(doomed), 'tape')} ({size(sum(map(_length, doomed)))})"
    if dry_run:
        click.echo(f"would delete {what}")
        return
    if not yes:
        click.confirm(f"delete {what}?", abort=True)
    for path in doomed:
        _delete(path)
    click.echo(f"deleted {what}")


def _is_tape(path: Path) -> bool:
    """Whether the file begins with a head that this version can read, or is encrypted; the rest may be damaged."""
    from tapeproxy.proxy.tapefile import is_locked, read_entries

    try:
        if is_locked(path):
            return True
        next(read_entries(path))
    except TapeproxyError:
        return False
    return True


def _delete(path: Path) -> None:
    import shutil

    signature = signature_path(path)
    plain = signature.with_suffix("")
    left = _left_by_recorder(path)
    try:
        path.unlink(missing_ok=True)
        # It holds for the plain tape and its encrypted copy, and is worth nothing without one of them.
        if not plain.exists() and not plain.with_name(plain.name + LOCKED_SUFFIX).exists():
            signature.unlink(missing_ok=True)
    except OSError as error:
        what = f"the tape cannot be deleted: {(error.strerror or str(error)).lower()}"
        raise TapeWriteError(what, where=str(path)) from None
    if left is not None:
        shutil.rmtree(left, ignore_errors=True)


def _left_by_recorder(path: Path) -> Path | None:
    """The shim's files beside a tape whose recorder was killed."""
    from tapeproxy.proxy.sidecar import find_folder
    from tapeproxy.proxy.tapefile import read_entries
    from tapeproxy.tapes.records import Head

    try:
        head = next(read_entries(path)).record
    except TapeproxyError:
        return None
    return find_folder(path, head.seed) if isinstance(head, Head) else None


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # deleted meanwhile
        return 0
