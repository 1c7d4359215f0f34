"""The terminal viewer in a real terminal: tmux draws what it is sent, and types."""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clirun import Cli
from difftapes import say, write

TMUX = shutil.which("tmux")
pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
pytest.importorskip("textual", reason="the extra `view` is not installed")

HOSTILE = "[red]no markup[/]\x1b[31m\x1b]0;title\x07\u202eturned"
EDITOR = "import sys; path = sys.argv[1]; text = open(path).read(); open(path, 'w').write(text.replace('Yes.', 'No.'))"


class Terminal:
    """A window of a tmux of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "tmux"
        self._conf = folder / "tmux.conf"
        options = ("remain-on-exit on", "escape-time 0", "default-terminal screen-256color")
        self._conf.write_text("".join(f"set -g {option}\n" for option in options))

    def tell(self, *words: str) -> str:
        assert TMUX is not None
        line = [TMUX, "-S", str(self._socket), "-f", str(self._conf), *words]
        return subprocess.run(line, capture_output=True, text=True, check=True, timeout=30).stdout

    def press(self, *keys: str) -> None:
        self.tell("send-keys", *keys)

    def screen(self, *options: str) -> str:
        return self.tell("capture-pane", "-p", *options)

    def about(self, what: str) -> str:
        return self.tell("display-message", "-p", f"#{{{what}}}").strip()

    def until(self, what: Callable[[], bool]) -> None:
        begun = time.monotonic()
        while not what():
            assert time.monotonic() < begun + 60, self.screen()

    def shows(self, text: str) -> None:
        self.until(lambda: text in self.screen())


@contextmanager
def running(folder: Path, cli: Cli, *words: str, **environment: str) -> Iterator[Terminal]:
    terminal = Terminal(folder)
    variables = [f"{name}={value}" for name, value in (cli.environment() | environment).items()]
    argv = shlex.join(["env", "-i", "-C", str(cli.cwd), "TERM=screen-256color", *variables, *cli.argv(*words)])
    # tmux itself does not always know how what it ran has ended.
    ended = shlex.quote(str(folder / "ended"))
    terminal.tell(
        "new-session", "-d", "-x", "80", "-y", "24", f"{argv}; echo $? > {ended}.part; mv {ended}.part {ended}"
    )
    try:
        yield terminal
    finally:
        terminal.tell("kill-server")


def page(terminal: Terminal) -> str:
    """What stands on the right, as if it were not wrapped."""
    return "".join(line.partition("│ ")[2].rstrip() for line in terminal.screen().splitlines())


def test_a_tape_in_a_terminal(tmp_path: Path) -> None:
    tape = write(tmp_path / "run.tape.jsonl.gz", say("m", "What is it?"), say("m/t0", HOSTILE), names={"m/t0": HOSTILE})
    cli = Cli(tmp_path, tmp_path / "home")
    with running(tmp_path, cli, "tui", tape.name, EDITOR=shlex.join([sys.executable, "-c", EDITOR])) as terminal:
        terminal.shows("exited, 2 exchanges")
        title = terminal.about("pane_title")
        terminal.press("g", "2", "Enter")
        terminal.until(lambda: r"[red]no markup[/]\x1b[31m\x1b]0;title\x07\u202eturned" in page(terminal))
        assert "\u202e" not in terminal.screen("-e")
        assert terminal.about("pane_title") == title

        terminal.tell("resize-window", "-x", "160", "-y", "50")
        terminal.until(lambda: len(terminal.screen().splitlines()) == 50)
        terminal.press("f")
        terminal.shows("Fork at exchange 2")
        terminal.press("C-o")
        terminal.shows('content = "No."')
        terminal.press("C-p")
        terminal.shows("mutated 2")
        assert terminal.about("alternate_on") == "1"
        terminal.press("Escape")
        terminal.until(lambda: "Fork at exchange" not in terminal.screen())
        terminal.press("q")
        terminal.until((tmp_path / "ended").exists)
        assert (tmp_path / "ended").read_text() == "0\n"
        terminal.until(lambda: terminal.about("alternate_on") == "0")
