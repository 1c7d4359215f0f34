import io
import re
import unicodedata

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.cli.rendering import (
    Cell,
    Column,
    Screen,
    block,
    cells,
    clip,
    count,
    duration,
    echo,
    moment,
    printable,
    screen_of,
    size,
    table,
)

# Formatting characters that can be seen, or that scripts and emoji are built with.
HARMLESS = {"\u200c", "\u200d", *map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2))}
HARMLESS |= {*map(chr, (0x110BD, 0x110CD, *range(0x13430, 0x13440)))}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 👩‍💻", "plain é 日本 👩‍💻"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb\nc\td\x08", r"a\rb\nc\td\x08"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("\u2066\u2069\u200f\ufeff\u2028", r"\u2066\u2069\u200f\ufeff\u2028"),
        ("\U000e0041", r"\U000e0041"),
        ("\udcff", r"\udcff"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_what_would_act_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_every_control_and_invisible_character_is_escaped() -> None:
    hostile = [
        char
        for char in map(chr, range(0x110000))
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in HARMLESS
    ]
    assert [char for char in hostile if printable(char) == char] == []


@given(st.text())
def test_a_printed_text_can_be_encoded_and_stays_on_its_line(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in block(text)


def test_a_block_keeps_its_lines_and_tabs() -> None:
    assert block("a\r\nb\n\n\tc\rd\x1b", "  ") == "  a\n  b\n\n  \tc\\rd\\x1b"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.0 ms"),
        (400_000, "0.4 ms"),
        (9_940_000, "9.9 ms"),
        (9_960_000, "10 ms"),
        (412_300_000, "412 ms"),
        (999_400_000, "999 ms"),
        (999_600_000, "1.00 s"),
        (1_240_000_000, "1.24 s"),
        (9_996_000_000, "10.0 s"),
        (59_960_000_000, "1m00s"),
        (123_000_000_000, "2m03s"),
        (3_599_600_000_000, "1h00m"),
        (3_720_000_000_000, "1h02m"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_960, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (20_000_000, "20 MB"),
        (999_500_000, "1.0 GB"),
        (3_000_000_000_000, "3000 GB"),
    ],
)
def test_sizes(n: int, text: str) -> None:
    assert size(n) == text


def test_counts() -> None:
    assert [count(n, "tape") for n in (0, 1, 2)] == ["0 tapes", "1 tape", "2 tapes"]


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_shown_as_it_is(stamp: str) -> None:
    assert moment(stamp) == stamp


def test_a_time_is_local_and_to_the_second() -> None:
    assert re.fullmatch(r"2026-0[67]-\d\d \d\d:\d\d:01", moment("2026-07-01T12:00:01.923456Z"))


@pytest.mark.parametrize(
    ("text", "width", "end", "start"),
    [("abcdef", 6, "abcdef", "abcdef"), ("abcdef", 3, "ab…", "…ef"), ("日本語", 4, "日…", "…語"), ("ab", 1, "…", "…")],
)
def test_clipping(text: str, width: int, end: str, start: str) -> None:
    assert (clip(text, width), clip(text, width, "start")) == (end, start)


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👩‍💻", 4), ("❤️", 1)])
def test_widths(text: str, width: int) -> None:
    assert cells(text) == width


COLUMNS = (
    Column("#", right=True),
    Column("empty"),
    Column("path", least=6, cut="start"),
    Column("model", least=5, rank=1),
    Column("size", right=True, rank=2),
)
ROWS = [
    [Cell("1"), Cell(""), Cell("/v1/chat/completions"), Cell("gpt-4o-mini"), Cell("1.4 kB")],
    [Cell("10"), Cell(""), Cell("/\x1b[2J"), Cell(""), Cell("9 B")],
]


def test_a_table_as_wide_as_it_takes() -> None:
    assert table(COLUMNS, ROWS, Screen()) == [
        " #  path                  model          size",
        " 1  /v1/chat/completions  gpt-4o-mini  1.4 kB",
        "10  /\\x1b[2J                              9 B",
    ]


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (45, " 1  /v1/chat/completions  gpt-4o-mini  1.4 kB"),
        (40, " 1  …at/completions  gpt-4o-mini  1.4 kB"),
        (25, " 1  …tions  gpt-…  1.4 kB"),
        (24, " 1  …pletions  gpt-4o-m…"),
        (14, " 1  …mpletions"),
        (5, " 1  …ions"),
    ],
)
def test_a_table_fitted_to_the_screen(width: int, first: str) -> None:
    lines = table(COLUMNS, ROWS, Screen(width))
    assert lines[1] == first
    assert all(cells(line) <= max(width, 10) for line in lines)


def test_colour_only_where_the_screen_has_it() -> None:
    rows = [[Cell("200", "green"), Cell("", "red")]]
    columns = [Column("status"), Column("x")]
    assert table(columns, rows, Screen()) == ["status", "200"]
    assert table(columns, rows, Screen(colour=True)) == ["\x1b[1mstatus\x1b[0m", "\x1b[32m200   \x1b[0m"]


def test_a_wide_hostile_cell_costs_no_time() -> None:
    assert len(table([Column("x", least=3), Column("y")], [[Cell("a" * 3_000_000), Cell("b")]], Screen(80))[1]) == 80


def test_what_is_no_terminal_has_neither_width_nor_colour() -> None:
    assert screen_of(io.StringIO()) == Screen(None, False)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "screen"),
    [
        ({}, Screen(70, True)),
        ({"NO_COLOR": "1"}, Screen(70, False)),
        ({"NO_COLOR": ""}, Screen(70, True)),
        ({"TERM": "dumb"}, Screen(70, False)),
        ({"COLUMNS": "3"}, Screen(20, True)),
    ],
)
def test_a_terminal_has_a_width_and_mostly_colour(
    environment: dict[str, str], screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in ({"TERM": "xterm", "COLUMNS": "70"} | environment).items():
        monkeypatch.setenv(name, value)
    assert screen_of(Terminal()) == screen


def test_what_the_output_cannot_encode_is_escaped() -> None:
    @click.command()
    def say() -> None:
        echo("é … 日")

    assert CliRunner(charset="latin-1").invoke(say).stdout_bytes == b"\xe9 \\u2026 \\u65e5\n"
    assert CliRunner().invoke(say).stdout == "é … 日\n"
