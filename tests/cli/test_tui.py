"""The terminal viewer, driven by Textual's pilot."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import agentruns
import pytest
from click.testing import CliRunner
from difftapes import get, run, say, streamed, write
from halves import Halves, agent_of_halves
from origin import Gate, Origin

from tapeproxy.cli.tui import command, open_viewer
from tapeproxy.cli.tuirows import Rows
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.proxy.viewforks import ForkingFolder
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Chunks
from tapeproxy.testing import FakeProvider
from tapeproxy.web.overview import outline
from tapeproxy.web.searching import find

pytest.importorskip("textual", reason="the extra `view` is not installed")

from textual.pilot import Pilot  # needs textual
from textual.widgets import Select, TextArea  # needs textual

from tapeproxy.cli.tuiapp import Viewer  # needs textual
from tapeproxy.cli.tuidiff import beside  # needs textual
from tapeproxy.cli.tuiview import TapeView  # needs textual

NAME = "run.tape.jsonl.gz"
HOSTILE = "[red]not markup[/] \x1b[31m \u202e @click(app.quit)"
ASKS = (
    say("m", "What is it, pray?", answer="A thing of beauty."),
    streamed("m/t0", "And then?", "This", " and", " that."),
    get("m/t0", "a?b=c", '{"x": "A thing of beauty."}', status=503),
    say("m", "What is it, pray?", "A thing of beauty.", HOSTILE),
)
OTHERS = (
    ASKS[0],
    streamed("m/t0", "And then?", "This", " or", " not."),
    ASKS[2],
    say("m", "What is it, pray?", "A thing of beauty.", "Is it?", answer="No."),
    get("m", "extra"),
)
NAMES = {"m/t0": "worker"}

type Use = Callable[[Viewer, Pilot[None]], Awaitable[None]]


def drive(paths: list[Path], use: Use, *, extra: tuple[str, ...] = (), size: tuple[int, int] = (80, 24)) -> None:
    """Use a viewer of one tape or two."""
    folders = [ForkingFolder(path, extra=extra) for path in paths]

    async def main() -> None:
        app = open_viewer(folders, paths)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await use(app, pilot)

    try:
        asyncio.run(main())
    finally:
        for folder in folders:
            folder.close()


async def until(pilot: Pilot[None], what: Callable[[], object]) -> None:
    """Let the viewer run until something is so."""
    begun = time.monotonic()
    while not what():
        assert time.monotonic() < begun + 60, pilot.app.query_one("#page")
        await pilot.pause()


def drawn(app: Viewer) -> list[str]:
    """The screen, line by line."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("one") / NAME, *ASKS, names=NAMES)


@pytest.fixture(scope="module")
def both(path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [path, write(tmp_path_factory.mktemp("other") / NAME, *OTHERS, names=NAMES)]


def test_the_keys_of_the_page(path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        seen = []
        for keys in ("j", "j", "k", "K", "t", "j", "J", "g 3 enter", "g 9 enter"):
            await pilot.press(*keys.split())
            seen.append(app.number)
        assert seen == [4, None, 4, 1, 1, 2, 3, 3, 3]
        for key, words in (
            ("1", "503"),
            ("2", "GET"),
            ("3", "beauty"),
            ("4", "request"),
            ("5", "stream"),
            ("6", "rank"),
        ):
            await pilot.press(key)
            assert words in app.page.text(), key
        await pilot.press("g", "1", "enter", "c")
        assert "no call of this lane is before it" in app.page.text()
        await pilot.press("m", "g", "4", "enter", "c")
        assert "injected" in app.page.text()
        await pilot.press("g", "1", "enter", "m", "g", "4", "enter", "c")
        assert "context of 4, against that of 1" in app.page.text(), "the call before it in its lane"
        await pilot.press("?")
        assert "Keys" in app.page.text()
        await pilot.press("d")
        assert "there is no other tape to compare with" in app.page.text()
        await pilot.press("q")
        assert not app.is_running or app._exit

    drive([path], use)


def test_where_words_come_from(path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("g", "4", "enter", "w")
        assert "the answer of event 1, $.choices[0].message.content" in app.page.text()
        await pilot.press("escape", "2", "tab")
        while "A thing of beauty." not in app.page.line():
            app.step(1)
        await pilot.press("w")
        assert app.page.text().startswith("event 4\n\n$.messages[1].content\n"), "of that line alone"
        assert "the answer of event 1" in app.page.text()
        for typed, words in (
            ("$.messages[0].content", "pray?"),
            ("pray", "pray"),
            ("$.nowhere", "$.nowhere"),
            ("not there", "not there"),
        ):
            await pilot.press("W")
            app.prompt.value = typed
            await pilot.press("enter")
            assert words in app.page.text(), typed
        before = app.page.text()
        await pilot.press("W", "x", "escape")
        assert (app.page.text(), app.focused) == (before, app.list_pane)

    drive([path], use)


def test_a_filter_and_a_lane_that_is_shut(path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("/", *"status:5", "enter")
        assert app.list_pane.count == 2
        assert app.number == 3
        await pilot.press("/", "x", "escape")
        assert app.list_pane.count == 6
        await pilot.press("/", *"colour:red", "enter")
        assert "there is no filter colour:" in app.page.text()
        await pilot.press("k", "k", "k", "k", "k", "k", "enter")
        assert app.list_pane.count == 4

    drive([path], use)


def test_what_a_tape_says_is_plain_text(path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("g", "4", "enter")
        assert r"[red]not markup[/] \x1b[31m \u202e @click(app.quit)" in app.page.text()
        assert any("[red]not markup[/]" in line for line in drawn(app))
        # What is pasted is no text of ours either.
        await pilot.press("/")
        app.prompt.value = HOSTILE
        await pilot.pause()
        assert "\ufffd[31m" in drawn(app)[-1]
        for line in drawn(app):
            assert "\x1b" not in line
            assert "\u202e" not in line

    drive([path], use)


def test_a_long_tape_draws_only_what_is_on_the_screen(tmp_path: Path) -> None:
    path = write(tmp_path / NAME, *(get("m", f"p{n}") for n in range(3000)))

    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        made: list[int] = []
        words = app.view.rows.words
        app.view.rows.words = lambda number, indent="": made.append(number) or words(number, indent)  # type: ignore[method-assign,func-returns-value]
        await pilot.press("g", *"2900", "enter")
        await pilot.pause()
        assert app.number == 2900
        assert len(set(made)) < 200

    drive([path], use)


def test_an_empty_tape(tmp_path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("j", "k", "w", "c", "t", "enter", "1", "p", "f", "+", "right", "0", "l", "m", "b", "x", "o")
        assert app.number is None

    drive([write(tmp_path / NAME)], use)


def test_the_lanes_above(path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        lanes = drawn(app)[1:4]
        assert [line[:6] for line in lanes] == ["m     ", "worker", "      "]
        assert lanes[0].count("▆") == 1
        assert "▆" not in lanes[1]
        await pilot.press("+", "right")
        assert drawn(app)[1:4] != lanes
        await pilot.press("0")
        assert drawn(app)[1:4] == lanes
        await pilot.press("t", "t")
        assert "rank" in drawn(app)[3]
        await pilot.press("l")
        assert "▆" not in "".join(drawn(app))

    drive([path], use)


def test_a_stream_is_played_at_the_pace_of_the_tape(tmp_path: Path) -> None:
    slow = agentruns.chat(1, lane="m")
    # The second chunk and all after it come a day later.
    chunks = [record for record in slow if isinstance(record, Chunks)]
    late = {chunk.t: 86_400 * 10**9 for chunk in chunks[1:]}
    records = [
        replace(record, t=late.get(record.t, record.t)) if isinstance(record, Chunks) else record for record in slow
    ]
    path = agentruns.write_tape(tmp_path / NAME, records)

    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("p")
        assert app.view.tab == "stream"
        assert f"1 of {len(chunks)} pieces" in app.page.text()
        assert app.page.text().endswith("answer (put together from its stream)\n  assistant\n    18 ")
        await pilot.press("p")
        assert f"{len(chunks)} of {len(chunks)} pieces" in app.page.text(), "it was stopped"
        assert not app.player.plays
        await pilot.press("P", "k")
        assert not app.player.plays, "another line was chosen"

    drive([path], use)


def test_a_short_stream_plays_to_its_end(path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("g", "2", "enter", "p")
        await until(pilot, lambda: not app.player.plays)
        assert "5 of 5 pieces" in app.page.text()

    drive([path], use)


def test_two_tapes_side_by_side(both: list[Path]) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        assert (app.number, app.view.tab) == (2, "difference")
        screen = drawn(app)
        heads = [line for line in screen if line.startswith("▸")]
        assert [line.split("│")[1].split() for line in heads] == [["▸", "B:m"], ["▸", "worker", "B:m/t0", "thread"]]
        signs = [line[39] for line in screen if "A1" in line or "B1" in line]
        assert signs == ["="]
        assert any(line[39] == "◆" and "This" in line for line in screen)
        assert any(line[39] == "+" and "B5" in line for line in screen)
        text = app.page.text()
        assert "── difference ── exchange A2 │ exchange B2" in text
        assert "branch point: changed: response" in text
        assert "This and that. │ This or not." in text
        await pilot.press("j", "j", "K", "b")
        assert app.number == 2
        await pilot.press("g", "4", "enter")
        assert "injected" in app.page.text() or "changed message" in app.page.text()
        assert "Is it?" in app.page.text()
        await pilot.press("4")
        assert "── response ── exchange A4 │ exchange B4" in app.page.text()
        assert '"content": "Yes."' in app.page.text()
        assert '"content": "No."' in app.page.text()
        await pilot.press("7")
        assert app.page.text().count("rank") == 2
        await pilot.press("d")
        assert "different: 2 changed, 1 extra, 2 same" in app.page.text()
        for order in (["time", 1, 2, 3, 4, 9], ["rank", 1, 2, 3, 4, 9]):
            await pilot.press("t")
            assert [app.view.order, *(line.numbers[0] for line in app.view.lines)] == order
        await pilot.press("t", "/", *"is:different", "enter")
        assert [line.numbers for line in app.view.lines] == [(), (4, 8), (9,), (), (2, 6)]
        await pilot.press("b", "p")
        await until(pilot, lambda: not app.player.plays)
        assert "5 of 5 pieces" in app.page.text()
        await pilot.press("f", "w")
        assert "of two tapes, look at one" in app.page.text()

    drive(both, use)


@pytest.mark.parametrize(
    ("ours", "theirs", "rows"),
    [
        ("abc", "abc", ["a a", "b b", "c c"]),
        ("abc", "axc", ["a a", "b!x", "c c"]),
        ("abc", "ac", ["a a", "b!-", "c c"]),
        ("ac", "abbc", ["a a", "-!b", "-!b", "c c"]),
        ("ab", "ba", ["a!-", "b b", "-!a"]),
        ("", "ab", ["- a", "- b"]),
        ("", "", []),
    ],
)
def test_lines_of_two_texts_stand_next_to_each_other(ours: str, theirs: str, rows: list[str]) -> None:
    made = [f"{row.left or '-'}{'!' if row.marked else ' '}{row.right or '-'}" for row in beside([*ours], [*theirs])]
    assert made == rows


def test_a_tape_grows_while_it_is_recorded(tmp_path: Path) -> None:
    records = agentruns.sample("m")
    requests = [at for at, record in enumerate(records) if record.kind == "request"]
    writer = TapeWriter(tmp_path / NAME, agentruns.HEAD)

    def add(start: int, stop: int) -> None:
        for record in records[start:stop]:
            writer.add(record)
        writer.commit()

    # The first one has begun to answer.
    add(0, 3)

    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        assert "● recording, 1 exchange," in drawn(app)[0]
        assert "…" in next(line for line in drawn(app) if " 1 200" in line)
        await pilot.press("5")
        assert "1 of 1 piece" in app.page.text()
        add(3, requests[1])
        await until(pilot, lambda: "5 of 5 pieces" in app.page.text())
        assert app.number == 1
        add(requests[1], len(records))
        await until(pilot, lambda: app.list_pane.count == 6)
        assert app.number == 1, "what is chosen stays"
        writer.seal(trace="", outcome="exited")
        await until(pilot, lambda: "exited, 4 exchanges" in drawn(app)[0])
        await pilot.press("g", "2", "enter", "t", "t")
        assert (app.number, app.view.order) == (2, "rank")

    drive([tmp_path / NAME], use)


def test_a_tape_that_is_damaged_meanwhile_is_told(tmp_path: Path) -> None:
    writer = TapeWriter(tmp_path / NAME, agentruns.HEAD)
    for record in agentruns.sample("m"):
        writer.add(record)
    writer.commit()

    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        (tmp_path / NAME).write_bytes(b"other")
        await until(pilot, lambda: "no longer followed" in str(app.query_one("#top").render()))
        await pilot.press("t", "t", "j")
        assert app.number is not None

    drive([tmp_path / NAME], use, size=(200, 24))


def test_a_fork_is_ordered_and_watched(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = agent_of_halves(tmp_path, tmp_path_factory.mktemp("home"))
    halves = Halves()
    halves.second.open()
    for name, value in cli.environment(keys=True).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(cli.cwd)
    with FakeProvider() as provider, Origin(lambda call: halves(call)) as origin:
        maps = (f"--map=api.openai.com={provider.url}", f"--map=halves.test={origin.url}")
        done = cli.run("record", "-o", NAME, *maps, "--", sys.executable, "agent.py", keys=True)
        assert done.returncode == 0, done.stderr
        halves.second = Gate()

        async def use(app: Viewer, pilot: Pilot[None]) -> None:
            await pilot.press("f")
            await until(pilot, lambda: isinstance(app.focused, TextArea))
            told = app.query_one("#fork-told")
            app.query_one("#fork-value", TextArea).text = "12::The moon does it."
            await pilot.press("ctrl+p")
            await until(pilot, lambda: "live calls" in str(told.render()))
            assert str(told.render()).splitlines()[1].endswith("mutated 1; live 2-3")
            assert app.view.planned == {1: "mutated", 2: "live", 3: "live"}
            await pilot.press("ctrl+r")
            await until(pilot, lambda: "run-fork1" in app.view.name and app.view.rows.count == 3)  # type: ignore[attr-defined]  # a TapeView
            assert "fork running: o its output, x stops it" in drawn(app)[0]
            assert "12::The moon does it." in provider.requests[-1].body.decode()
            await pilot.press("g", "3", "enter", "5")
            await until(pilot, lambda: "the first half" in app.page.text())
            await pilot.press("d")
            assert "can be compared when its run has ended" in app.page.text()
            await pilot.press("1")
            halves.second.open()
            await until(pilot, lambda: "ended with exit code 0" in drawn(app)[0] and "exited" in drawn(app)[0])
            await pilot.press("o")
            assert "the first halfthe second half" in app.page.text()
            await pilot.press("d")
            assert (app.number, "branch point" in app.page.text()) == (1, True)
            await pilot.press("u", "u")
            assert isinstance(app.view, TapeView)
            assert app.view.name == NAME
            halves.second = Gate()
            await pilot.press("f")
            await until(pilot, lambda: isinstance(app.focused, TextArea))
            await pilot.press("ctrl+r")
            await until(pilot, lambda: "run-fork2" in drawn(app)[0] or (app.view.rows.count == 3 and app.below))
            await pilot.press("x")
            await until(pilot, lambda: "ended with exit code 130" in app.page.text())

        drive([tmp_path / NAME], use, extra=maps, size=(200, 40))


def test_a_fork_that_cannot_be_made_says_why(path: Path) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("g", "3", "enter", "f")
        await until(pilot, lambda: isinstance(app.focused, TextArea))
        app.query_one("#fork-kind", Select).value = "--status"
        await pilot.pause()
        app.query_one("#fork-value", TextArea).text = "many"
        told = app.query_one("#fork-told")
        await pilot.press("ctrl+p")
        await until(pilot, lambda: str(told.render()) not in ("", "…"))
        assert "a status is a number" in str(told.render())
        await pilot.press("ctrl+o")
        assert "no editor can be opened in this terminal" in str(told.render())
        await pilot.press("escape")
        await until(pilot, lambda: not app.query("#fork"))
        assert app.focused is app.list_pane

    drive([path], use)


def rows(tape: Tape) -> Rows:
    return Rows(outline(tape, None, "t"), lambda number: tape.exchanges[number - 1], lambda text: find(tape, text))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [1, 2, 3, 4]),
        ("is:failed", [3]),
        ("is:llm -lane:worker", [1, 4]),
        ("model:gpt host:openai", [1, 2, 4]),
        ("beauty", [1]),
        ("body:beauty", [1, 3, 4]),
        ("method:get path:/a", [3]),
        ("is:streamed", [2]),
        ("how:complete -status:2", [3]),
    ],
)
def test_filters(query: str, numbers: list[int]) -> None:
    assert rows(run(*ASKS, names=NAMES)).chosen(query) == numbers


@pytest.mark.parametrize("query", ["what:ever", "is:blue"])
def test_filters_that_there_are_not(query: str) -> None:
    with pytest.raises(UsageError, match=r"there is no filter|nothing is:"):
        rows(run(*ASKS)).chosen(query)


def test_without_a_terminal_it_says_so(path: Path) -> None:
    result = CliRunner().invoke(command, [str(path), str(path)], standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert "needs a terminal" in str(result.exception)


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_is_honoured(path: Path, monkeypatch: pytest.MonkeyPatch, no_color: str) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)

    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.pause()
        styles = [segment.style for strip in app.screen._compositor.render_strips() for segment in strip]
        shown = [style.color.triplet for style in styles if style and style.color and style.color.triplet]
        assert shown
        assert all(one.red == one.green == one.blue for one in shown) is bool(no_color)

    drive([path], use)
