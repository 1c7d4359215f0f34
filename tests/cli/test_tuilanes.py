"""The lanes of the terminal viewer as characters: tables of where bars stand."""

import pytest
from difftapes import get, run

from tapeproxy.cli.tuilanes import Chart, Kind, Window
from tapeproxy.cli.tuirows import Rows
from tapeproxy.tapes.records import Json
from tapeproxy.web.overview import outline


def drawn(*rows: tuple[int, int | None, int | None], recording: bool = False, **more: object) -> Rows:
    """Exchanges of one lane: when each began, was heard of and ended, in µs."""
    made: Json = outline(run(*(get("m", str(at)) for at in range(len(rows)))), None, "t")
    made["tape"] |= {"duration": 10, "recording": recording}
    for name, at in (("at", 0), ("first", 1), ("end", 2)):
        made["rows"][name] = [row[at] for row in rows]
    made["rows"]["how"] = ["complete" if row[2] is not None else None for row in rows]
    made["rows"] |= more
    return Rows(made, lambda _: pytest.fail("no body is read"), lambda _: [])


def picture(rows: Rows, window: Window, width: int = 10, ranks: dict[int, int] | None = None) -> str:
    return "".join(char for char, _ in Chart(rows, ranks).bars("m", window, width, {}))


TEN = Window(0, 10)


@pytest.mark.parametrize(
    ("rows", "window", "seen"),
    [
        ([(0, 2, 4)], TEN, "░░███     "),
        ([(0, 2, 4)], Window(0, 20), "░██       "),
        ([(3, 3, 3)], TEN, "   █      "),
        ([(1, None, None)], TEN, " ░░░░░░░░░"),
        ([(0, 1, 2), (6, 6, 9)], TEN, "░██   ████"),
        ([(0, 1, 2), (6, 6, 9)], Window(5, 10), "  ███████ "),
        ([(0, 0, 9), (2, 4, 6)], TEN, "██░░██████"),
        ([(0, 1, 2)], Window(5, 10), "          "),
        ([(0, 0, 9)], Window(4, 5), "██████████"),
    ],
)
def test_bars(rows: list[tuple[int, int | None, int | None]], window: Window, seen: str) -> None:
    assert picture(drawn(*rows, recording=True), window) == seen


def test_by_rank_and_without_times() -> None:
    rows = drawn((0, 1, 2), (1, 2, 3))
    assert picture(rows, Window(0, 5), ranks={1: 1, 2: 3}) == " ██  ██   "
    timeless = drawn((0, 0, 0), (0, 0, 0))
    timeless.about["duration"] = 0
    chart = Chart(timeless, None)
    assert chart.timeless
    assert (chart.begin(2), chart.stop(2)) == (1.6, 2.4)


def test_of_two_in_a_column_the_worse_is_seen() -> None:
    rows = drawn((0, 0, 1), (0, 0, 1), (0, 0, 1), status=[200, 503, 200])
    planned: dict[int, Kind] = {}
    assert Chart(rows, None).bars("m", TEN, 10, planned)[0] == ("█", "failed")
    planned = {1: "reused", 2: "mutated", 3: "live"}
    chart = Chart(rows, None)
    assert chart.bars("m", TEN, 10, planned)[0] == ("█", "mutated")
    assert chart.bars("m", TEN, 10, {1: "live", 2: "live", 3: "live"})[0] == ("█", "live"), "another plan"


@pytest.mark.parametrize(("factor", "middle", "window"), [(0.5, 4, (2, 7)), (2, 5, (-5, 15)), (0.5, 99, (2.5, 7.5))])
def test_a_zoom_keeps_what_is_chosen(factor: float, middle: float, window: tuple[float, float]) -> None:
    assert TEN.zoomed(factor, middle) == Window(*window)


def test_a_zoom_and_the_axis_have_an_end() -> None:
    window = TEN
    for _ in range(200):
        window = window.zoomed(0.5, 5)
    assert window.stop > window.start
    assert len(Chart(drawn((0, 1, 2)), None).axis(window, 50)) <= 50
    assert Chart(drawn((0, 1, 2)), None).axis(Window(0, 3000), 32) == "╵0.0 ms         ╵1.5 ms"
    assert Chart(drawn((0, 1, 2)), {1: 1}).axis(Window(-1, 3), 32) == "╵               ╵rank 1"
