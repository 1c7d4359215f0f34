"""`tapeproxy tui`: tapes in a terminal."""

from collections.abc import Iterator

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError


@click.command(context_settings=HELP)
@click.argument("tape", required=False)
@click.argument("other", required=False)
@unlock_options
def command(tape: str | None, other: str | None, unlocking: Unlocking) -> None:
    """Look at a tape in the terminal: lanes, exchanges, conversations, streams; or at what two tapes differ in.

    \b
    tapeproxy tui                      the last tape in .tapes
    tapeproxy tui TAPE
    tapeproxy tui A B                  A, compared with B

    The keys are those of the page that `serve` shows; `?` lists them. NO_COLOR is honoured. It needs the extra `view`:
    pip install 'tapeproxy[view]'.
    """
    try:
        from tapeproxy.cli.tuiapp import Viewer
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the terminal viewer needs {error.name}, which is not installed", fix="pip install 'tapeproxy[view]'"
        ) from None
    import sys

    from tapeproxy.cli.tuirows import Rows
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.causality import Causality

    path = choose_tape(tape)
    loaded, ending = load(path, unlocking.ask)
    compared = None if other is None else [*_compared(str(path), other, unlocking)]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the terminal viewer needs a terminal", fix="`tapeproxy show` prints the same as text")
    viewer = Viewer(
        Rows(loaded, ending, path.name), Causality.of(loaded), None if compared is None else lambda: compared
    )
    viewer.run()


def _compared(ours: str, theirs: str, unlocking: Unlocking) -> Iterator[str]:
    """What `diff` says of two tapes."""
    from tapeproxy.cli.diffpages import diff_page
    from tapeproxy.cli.diffsides import read_sides
    from tapeproxy.cli.rendering import Screen
    from tapeproxy.tapes.tapediff import diff_tapes

    shown = read_sides((choose_tape(ours), choose_tape(theirs)), unlocking)
    try:
        diff = diff_tapes(shown[0].tape, shown[1].tape)
    except ValueError as error:
        raise UsageError(f"the tapes cannot be compared: {error}") from None
    yield from diff_page(shown, diff, Screen(), context=True, whole=False)
