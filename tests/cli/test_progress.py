import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import agentruns
import pytest

from tapeproxy.cli.progress import ReadingBar
from tapeproxy.proxy.importing import ImportSettings, import_file
from tapeproxy.proxy.scrubs import ScrubSettings, scrub_tape
from tapeproxy.proxy.tapefile import read_entries
from tapeproxy.proxy.watching import WATCHER


def drawn(steps: list[tuple[float, int]], of: int = 1000) -> list[str]:
    """What goes to the terminal when at these seconds so many bytes are done."""
    out: list[str] = []
    times: Iterator[float] = iter([at for at, done in steps if done < of])
    bar = ReadingBar(lambda: next(times), out.append)
    for _, done in steps:
        bar.tell(Path("a\x1b.tape"), done, of, "reading")
    return [text.removeprefix("\r\x1b[K") for text in out]


def test_a_tape_that_is_read_within_a_second_has_no_bar() -> None:
    assert drawn([(0, 1), (0.5, 300), (0.99, 999), (1, 1000)]) == []


def test_a_bar_comes_after_a_second_ten_times_a_second_and_goes_at_the_end() -> None:
    assert drawn([(0, 0), (1.0, 250), (1.05, 260), (1.1, 500), (3, 1000), (9, 10), (9.9, 20)]) == [
        "[#####...............] 25 % of 1.0 kB, reading a\\x1b.tape",
        "[##########..........] 50 % of 1.0 kB, reading a\\x1b.tape",
        "",
    ]


def test_the_watcher_hears_of_each_file_that_is_read_to_its_end_or_not(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    path = agentruns.write_tape(
        tmp_path / "a.tape.jsonl.gz", agentruns.exchange(1, "http://x/", asked=os.urandom(600_000))
    )
    size = path.stat().st_size
    token = WATCHER.set(lambda _, done, of, _doing: heard.append((done, of)))
    try:
        entries = read_entries(path)
        next(entries)
        del entries
        assert heard == [(size, size)]
        heard.clear()
        whole = len([*read_entries(path)])
        assert heard == [(1 << 18, size), (2 << 18, size), (size, size)]
    finally:
        WATCHER.reset(token)
    heard.clear()
    assert len([*read_entries(path)]) == whole
    assert heard == []


def test_the_watcher_hears_of_all_that_takes_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    tape, source = tmp_path / "a.tape.jsonl.gz", tmp_path / "c.yaml"
    exchanges = [one for n in range(9) for one in agentruns.exchange(1 + 3 * n, "http://x/", asked=b"sk-" + b"a" * 40)]
    agentruns.write_tape(tape, exchanges)
    source.write_text(
        "interactions:\n" + "- {request: {method: GET, uri: 'http://x/'}, response: {status: 200}}\n" * 99
    )
    heard: dict[str, list[tuple[int, int]]] = {}
    token = WATCHER.set(lambda _, done, of, doing: heard.setdefault(doing, []).append((done, of)))
    try:
        scrub_tape(ScrubSettings(tape=tape, output=tmp_path / "clean", environment={}))
        assert list(heard) == ["reading", "scrubbing", "writing"]
        assert len(heard["scrubbing"]) > 3 * 9
        told = [heard.pop(doing) for doing in list(heard)]
        import_file(ImportSettings(source=source, output=tmp_path / "c", environment={}))
        assert list(heard) == ["reading", "importing", "redacting", "writing"]
        told += heard.values()
        assert all(steps == sorted(steps) and steps[-1][0] == steps[-1][1] for steps in told)
        assert len([steps for steps in told if len(steps) > 5]) == 5
    finally:
        WATCHER.reset(token)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("terminal", [True, False])
def test_only_a_terminal_has_a_watcher(terminal: bool) -> None:
    code = (
        "from tapeproxy.cli import main, progress; from tapeproxy.proxy.watching import WATCHER\n"
        "try: main.main(['--version'])\n"
        "except SystemExit: print(WATCHER.get() is not None)"
    )
    ours, theirs = pty.openpty()
    try:
        stderr = theirs if terminal else subprocess.DEVNULL
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stderr, text=True)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout.splitlines()[-1] == str(terminal)
