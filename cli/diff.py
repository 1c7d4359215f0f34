"""`tapeproxy diff`: where two runs part, and what is other in each lane."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import echo, printable, screen_of
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError

if TYPE_CHECKING:
    from tapeproxy.cli.diffsides import Shown
    from tapeproxy.tapes.tapediff import TapeDiff

DIFFERENT = 1


@click.command(context_settings=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write one page that needs nothing else, to look at or send.",
)
@click.option("--lane", metavar="LANE", help="Only this lane, by its id in either tape, or its name.")
@click.option("--context", is_flag=True, help="Tell of every event what changed, not only of the first.")
@click.option("--strict", is_flag=True, help="Count what providers make up anew, too: ids, moments, all headers.")
@click.argument("a")
@click.argument("b")
@unlock_options
def command(
    a: str,
    b: str,
    as_json: bool,
    html: Path | None,
    lane: str | None,
    context: bool,
    strict: bool,
    unlocking: Unlocking,
) -> int:
    """Show where two runs part, and what is other in each lane.

    \b
    tapeproxy diff good.tape.jsonl.gz bad.tape.jsonl.gz
    tapeproxy diff parent.tape.jsonl.gz child.tape.jsonl.gz --html fork.html

    A is taken for the older tape. Exchanges stand for each other that ask the same in the same lane; of the others,
    those that are alike, in their order. The branch point is the first that differs in causal order. Lanes may have
    other ids in the other run; the order in which lanes that run side by side asked is no difference.

    An event is same, changed (request, status, ending: how it ended, response), moved (the same in another lane, or
    at another turn of its lane), missing (only A has it) or extra (only B has it). Times are not compared. Of an
    LLM call neither are ids, moments, fingerprints and tallies of tokens, which are new in each answer, and of
    other answers' headers only those that clients act on; with --strict all of these are. What tools gave and what
    agents told each other, where hints taped it, is compared lane by lane. What was read otherwise before the
    branch point is listed as far as the tapes have it; see docs/DIFF.md.

    \b
    Exit codes: 0 nothing differs that counts
                1 something does
                5 a tape is damaged

    --json prints: same, relation (words, or empty), a and b (each with tape, argv, started_at, sealed, exit_code,
    signal, duration_ns, exchanges, calls, failed, tokens_in, tokens_out), counts (same, moved, changed, missing,
    extra), branch (an event, or null), reads (kind: clock, chance, env, value; what, a, b, where), hints (kind, a,
    b: the hint's LANE#N or null, what: tool, hint for a value, message; title, differences), outcome (where, a, b)
    and lanes (a, b, name, counts, same: pairs of numbers, and events: those that are not). An event has kind, a and
    b (its numbers, or null), lane (a, b, name), changes (request, status, ending, response, lane, order), source
    (of B's, in a fork: reused, mutated, live), line (its request) and details: request and response (where; a and
    b: excerpts; words, kind) and context (kind, role, a and b: the message's numbers; text).
    """
    from tapeproxy.cli.diffsides import read_sides
    from tapeproxy.tapes.tapediff import diff_tapes, only_lane

    shown = read_sides((choose_tape(a), choose_tape(b)), unlocking)
    try:
        diff = diff_tapes(shown[0].tape, shown[1].tape, strict=strict)
    except ValueError as error:
        raise TapeFormatError(f"the tapes cannot be compared: {error}", place=Place(shown[0].path)) from None
    if lane is not None:
        try:
            diff = only_lane(diff, lane)
        except KeyError:
            known = ", ".join(printable(one.lane.ours or one.lane.theirs or "none") for one in diff.lanes[:20])
            raise UsageError(f"no request is of a lane {lane!r}", fix=f"those that made requests: {known}") from None
    _say(shown, diff, as_json=as_json, context=context, whole=lane is not None)
    if html is not None:
        _write(html, shown, diff)
    return 0 if diff.same else DIFFERENT


def _say(shown: "tuple[Shown, Shown]", diff: "TapeDiff", *, as_json: bool, context: bool, whole: bool) -> None:
    if as_json:
        from tapeproxy.cli.diffdocuments import diff_document
        from tapeproxy.cli.documents import dump

        click.echo(dump(diff_document(shown, diff)))
        return
    from tapeproxy.cli.diffpages import diff_page

    for line in diff_page(shown, diff, screen_of(sys.stdout), context=context, whole=whole):
        echo(line)


def _write(path: Path, shown: "tuple[Shown, Shown]", diff: "TapeDiff") -> None:
    from tapeproxy.cli.diffhtml import diff_html
    from tapeproxy.cli.outfiles import write_whole

    pieces = (piece.encode(errors="backslashreplace") for piece in diff_html(shown, diff))
    write_whole(path, pieces, force=True)
    click.echo(f"tapeproxy: wrote {printable(str(path))}", err=True)
