"""`tapeproxy tui`: tapes in a terminal. Parses, opens the tapes, and leaves the screen to the viewer."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.forkoptions import fork_options
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError, install

if TYPE_CHECKING:
    from tapeproxy.cli.tuiapp import Viewer
    from tapeproxy.web.library import Library


@click.command(context_settings=HELP)
@click.argument("tape", required=False)
@click.argument("other", required=False)
@fork_options
@unlock_options
def command(tape: str | None, other: str | None, extra: tuple[str, ...], unlocking: Unlocking) -> None:
    """Look at a tape in the terminal: lanes, exchanges, conversations, streams; or at two tapes side by side.

    \b
    tapeproxy tui                      the last tape in .tapes
    tapeproxy tui TAPE
    tapeproxy tui A B                  A beside B, at where they part

    A tape that is being recorded grows on the screen. The keys are those of the page that `serve` shows; `?` lists
    them. f forks: change an answer, see what is reused and what is asked anew, run it, and watch its tape grow.
    NO_COLOR is honoured. It needs the extra `view`.
    """
    import sys

    try:
        import tapeproxy.cli.tuiapp  # noqa: F401  # first of all, for what to do without it
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the terminal viewer needs {error.name}, which is not installed", fix=install("view")
        ) from None
    from tapeproxy.proxy.viewforks import ForkingFolder

    paths = [choose_tape(name) for name in ([tape] if other is None else [tape, other])]
    folders = [ForkingFolder(path, unlocking.asked_now(path), extra) for path in paths]
    viewer = open_viewer(folders, paths)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the terminal viewer needs a terminal", fix="`tapeproxy show` prints the same as text")
    try:
        viewer.run()
    finally:
        for folder in folders:
            folder.close()  # ends the forks that run


def open_viewer(folders: "Sequence[Library]", paths: Sequence[Path]) -> "Viewer":
    """The viewer of a tape, or of two side by side, each in a library of its own.

    Raises TapeproxyError for one that cannot be read, and for two that cannot be compared.
    """
    from tapeproxy.cli.tuiapp import Viewer
    from tapeproxy.cli.tuiforks import compared
    from tapeproxy.cli.tuiview import TapeView

    views = [TapeView(folder.open(path.name), path.name) for folder, path in zip(folders, paths, strict=True)]
    if len(views) == 1:
        return Viewer(views[0], folders[0])
    return Viewer(compared((views[0], views[1]), (str(paths[0]), str(paths[1]))))
