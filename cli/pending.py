"""New tapes that wait beside old ones: shown, asked about, written or removed. Prints; knows no agent."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.rendering import echo, printable, screen_of
from tapeproxy.cli.unlocking import Unlocking

if TYPE_CHECKING:
    from tapeproxy.cli.diffsides import Shown
    from tapeproxy.proxy.pending import Pending
    from tapeproxy.tapes.tapediff import TapeDiff

type Review = Literal["review", "accept", "reject"]


def show(pending: "Pending", diff: "TapeDiff") -> None:
    """The difference, for people. It goes where messages go: the agent has the output."""
    from tapeproxy.cli.diffpages import diff_page

    several = len(diff.diverged()) > 1  # of a single one the branch point tells all
    for line in diff_page(shown_of(pending), diff, screen_of(sys.stderr), context=several, whole=False):
        echo(line, err=True)


def shown_of(pending: "Pending") -> "tuple[Shown, Shown]":
    from tapeproxy.cli.diffsides import Shown

    return Shown(str(pending.of), pending.old), Shown(str(pending.new), pending.tape)


def write(pending: "Pending", *, yes: bool, keep: bool) -> bool:
    """Write the new tape, if that is wanted; else it is removed, or waits where nobody could be asked."""
    from tapeproxy.proxy.pending import replace_tape

    name = printable(str(pending.path))
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            why = "there is no terminal to ask on"
            fix = f"to write it: tapeproxy update --accept {name}"
            click.echo(f"tapeproxy: not written: {why}; the new tape is {name}.new\n  {fix}", err=True)
            return False
        if not click.confirm(f"Write {name}?", default=False, err=True):
            pending.new.unlink(missing_ok=True)
            click.echo("tapeproxy: not written", err=True)
            return False
    keep = keep and pending.path.exists()
    replace_tape(pending.path, pending.new, keep=keep)
    click.echo(f"tapeproxy: wrote {name}" + (f"; the old one is {name}.bak" if keep else ""), err=True)
    if pending.signed:
        click.echo(f"tapeproxy: warning: {name}.sig is of the old tape: sign the new one, tapeproxy sign", err=True)
    return True


def settle(how: Review, names: Sequence[str], unlocking: Unlocking, *, yes: bool, as_json: bool) -> int:
    """What is to become of new tapes that wait: `names` are tapes, or folders with tapes."""
    from tapeproxy.cli.diffdocuments import diff_document
    from tapeproxy.proxy.pending import clear, new_beside, open_pending, pending_in
    from tapeproxy.tapes.tapediff import diff_tapes

    paths = pending_in([Path(name) if Path(name).is_dir() else choose_tape(name) for name in names or (".",)])
    if not paths:
        click.echo("tapeproxy: no new tape waits here", err=True)
    told: list[dict[str, object]] = []
    left = False
    for path in paths:
        if how == "reject":
            clear(new_beside(path))
            click.echo(f"tapeproxy: removed {printable(str(path))}.new", err=True)
            continue
        pending = open_pending(path, unlocking.ask)
        diff = diff_tapes(pending.old, pending.tape)
        document = diff_document(shown_of(pending), diff) if as_json else None
        if not as_json:
            show(pending, diff)
        written = write(pending, yes=yes or how == "accept", keep=False)
        left |= not written
        told.append(
            {"tape": str(path), "new": str(pending.new), "written": written, "signature": pending.signed}
            | {"diff": document}
        )
    if as_json:
        from tapeproxy.cli.documents import dump

        click.echo(dump({"tapes": told}))
    return 1 if left else 0
