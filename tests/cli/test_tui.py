"""The terminal viewer, driven by Textual's pilot."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from difftapes import get, run, say, streamed, write

from tapeproxy.cli.tui import command
from tapeproxy.cli.tuirows import Rows
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape

pytest.importorskip("textual", reason="the extra `view` is not installed")

from textual.pilot import Pilot  # needs textual

from tapeproxy.cli.tuiapp import Viewer  # needs textual

HOSTILE = "[red]not markup[/] \x1b[31m \u202e @click(app.quit)"
ASKS = (
    say("m", "What is it, pray?", answer="A thing of beauty."),
    streamed("m/t0", "And then?", "This", " and", " that."),
    get("m/t0", "a?b=c", '{"x": "A thing of beauty."}', status=503),
    say("m", "What is it, pray?", "A thing of beauty.", HOSTILE),
)


def drive(tape: Tape, use: Callable[[Viewer, Pilot[None]], Awaitable[None]]) -> None:
    async def main() -> None:
        app = Viewer(Rows(tape, None, "t"), Causality.of(tape), lambda: ["compared"])
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            await use(app, pilot)

    asyncio.run(main())


@pytest.fixture(scope="module")
def tape() -> Tape:
    return run(*ASKS, names={"m/t0": "worker"})


def test_the_keys_of_the_page(tape: Tape) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        assert app.page.text() == "compared"
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
        await pilot.press("g", "1", "enter", "m", "g", "4", "enter", "c")
        assert "injected" in app.page.text()
        await pilot.press("w")
        assert "the answer of event 1, $.choices[0].message.content" in app.page.text()
        await pilot.press("?")
        assert "Keys" in app.page.text()
        await pilot.press("d")
        assert app.page.text() == "compared"
        await pilot.press("q")
        assert not app.is_running or app._exit

    drive(tape, use)


def test_a_filter_and_a_lane_that_is_shut(tape: Tape) -> None:
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

    drive(tape, use)


def test_what_a_tape_says_is_plain_text(tape: Tape) -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("g", "4", "enter")
        assert r"[red]not markup[/] \x1b[31m \u202e @click(app.quit)" in app.page.text()
        drawn = [pane.render_line(y).text for pane in (app.page, app.list_pane) for y in range(20)]
        assert any("[red]not markup[/]" in line for line in drawn)
        assert not any("\x1b" in line or "\u202e" in line for line in drawn)

    drive(tape, use)


def test_a_long_tape_draws_only_what_is_on_the_screen() -> None:
    tape = run(*(get("m", f"p{n}") for n in range(3000)))

    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        made: list[int] = []
        words = app._rows.words
        app._rows.words = lambda line, order: made.append(line.number or 0) or words(line, order)  # type: ignore[method-assign,func-returns-value]
        await pilot.press("g", *"2900", "enter")
        await pilot.pause()
        assert app.number == 2900
        assert len(set(made)) < 200

    drive(tape, use)


def test_an_empty_tape() -> None:
    async def use(app: Viewer, pilot: Pilot[None]) -> None:
        await pilot.press("j", "k", "w", "c", "t", "enter", "1")
        assert app.number is None

    drive(run(), use)


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
def test_filters(tape: Tape, query: str, numbers: list[int]) -> None:
    assert Rows(tape, None, "t").chosen(query) == numbers


@pytest.mark.parametrize("query", ["what:ever", "is:blue"])
def test_filters_that_there_are_not(tape: Tape, query: str) -> None:
    with pytest.raises(UsageError, match=r"there is no filter|nothing is:"):
        Rows(tape, None, "t").chosen(query)


def test_without_a_terminal_it_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tape.jsonl.gz", *ASKS)
    result = CliRunner().invoke(command, [str(path), str(path)], standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert "needs a terminal" in str(result.exception)


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_is_honoured(tape: Tape, monkeypatch: pytest.MonkeyPatch, no_color: str) -> None:
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

    drive(tape, use)
