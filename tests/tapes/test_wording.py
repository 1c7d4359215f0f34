"""How two texts differ, in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.wording import excerpts, shared_ends, shared_prefix, word_changes, word_diff, word_runs

SHORT = st.text("ab ", max_size=300)


@given(SHORT, SHORT, SHORT)
def test_what_texts_share_is_found_to_the_character(start: str, middle: str, end: str) -> None:
    one, other = start + "X" + middle + end, start + "Y" + end
    assert shared_prefix(one, other) == len(start)
    first, last = shared_ends(one, other)
    assert first == len(start)
    assert last >= len(end)
    assert one[len(one) - last :] == other[len(other) - last :]
    assert first + last <= min(len(one), len(other))


@given(SHORT)
def test_equal_texts_share_all(text: str) -> None:
    assert shared_ends(text, text) == (len(text), 0)


@pytest.mark.parametrize(
    ("taped", "asked", "shown"),
    [
        ("high tide at noon", "low tide at noon", "[-high-]{+low+} tide at noon"),
        ("tide at noon", "tide at", "tide at[- noon-]"),
        ("a b", "a x b", "a {+x +}b"),
        ("It is 10:00:01 now.", "It is 11:22:33 now.", "It is [-10:00:01-]{+11:22:33+} now."),
        ("read /tmp/a/x.txt", "read /tmp/b/x.txt", "read [-/tmp/a/x.txt-]{+/tmp/b/x.txt+}"),
    ],
)
def test_changed_words_are_shown_in_place(taped: str, asked: str, shown: str) -> None:
    assert word_diff(taped, asked) == shown


def test_a_long_text_is_shown_around_its_change() -> None:
    text = "word " * 5000
    shown = word_diff(text + "noon " + text, text + "dusk " + text)
    assert "[-noon-]{+dusk+}" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) < 200


def test_more_than_a_few_changes_are_counted() -> None:
    taped = " one two three four five six ".join("abcdefgh")
    asked = " one two three four five six ".join("stuvwxyz")
    assert "and 5 more changes" in word_diff(taped, asked)


def test_texts_without_a_word_in_common_take_no_time() -> None:
    shown = word_diff("a b " * 100_000, "c d " * 100_000)
    assert len(shown) < 400


def test_a_change_knows_what_stands_before_it() -> None:
    (change,) = word_changes("Today is 2026-11-29, and it rains", "Today is 2026-11-30, and it rains")
    assert (change.taped, change.asked, change.before) == ("2026-11-29", "2026-11-30", "Today is ")


def test_excerpts_are_cut_around_the_first_difference() -> None:
    taped, asked = excerpts("x" * 500 + "A" + "y" * 500, "x" * 500 + "B" + "y" * 500)
    assert taped is not None
    assert asked is not None
    assert taped.startswith("…")
    assert taped.index("A") == asked.index("B")
    assert excerpts("short", None) == ("short", None)


@given(st.text("ab", max_size=300), st.text("ab", max_size=300), st.text("ab", max_size=9), st.integers(1, 90))
def test_roughly_shared_ends_are_a_little_less_and_never_more(shared: str, more: str, odd: str, grain: int) -> None:
    one, other = shared + odd + more, shared + more
    exact, rough = shared_ends(one, other), shared_ends(one, other, grain)
    assert sum(exact) - 2 * (grain - 1) <= sum(rough) <= sum(exact)
    assert exact[0] - grain < rough[0] <= exact[0]


@pytest.mark.parametrize(
    ("taped", "asked", "expected"),
    [
        ("", "", []),
        ("same", "same", [("same", "same")]),
        ("", "new", [("in", "new")]),
        (
            "at noon the tide",
            "at dusk the tide",
            [("same", "at "), ("out", "noon"), ("in", "dusk"), ("same", " the tide")],
        ),
        ("noontide", "noonday", [("out", "noontide"), ("in", "noonday")]),
    ],
)
def test_whole_texts_in_runs(taped: str, asked: str, expected: list[tuple[str, str]]) -> None:
    assert word_runs(taped, asked) == expected


@given(st.text("ab c.\n/:é", max_size=14), st.text("ab c.\n/:é", max_size=14))
def test_runs_are_the_whole_of_both_texts(taped: str, asked: str) -> None:
    runs = word_runs(taped, asked)
    assert "".join(text for what, text in runs if what != "in") == taped
    assert "".join(text for what, text in runs if what != "out") == asked


def test_texts_that_differ_in_thousands_of_words_are_two_runs() -> None:
    a, b = (" ".join(f"{letter}{at}" for at in range(3000)) for letter in "ab")
    assert [what for what, _ in word_runs(f"x {a} y", f"x {b} y")] == ["same", "out", "in", "same"]
