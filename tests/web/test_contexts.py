"""The page compares contexts itself: held here against `tapes/contexts.py`, and looked at in the view."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Watched, browser, needs_chromium
from difftapes import get, say, write
from playwright.sync_api import Browser, Page, expect

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.contexts import context_changes
from tapeproxy.tapes.conversation import Message, Text
from tapeproxy.web.singlefile import single_file

pytestmark = needs_chromium

ASKS = (
    say("m", "Be brief.", "What is it?"),
    get("m", "x"),
    say("m/t0", "Something else."),
    say("m", "Be brief.", "What is it, now?", "And more?"),
    say("m", "A long text that is told whole, once.", "And more?"),
    say("m", "A long text that is told …", "And more?"),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser() as chromium:
        yield opened(chromium, tmp_path_factory.mktemp("page"))


def opened(chromium: Browser, folder: Path) -> Page:
    tape = write(folder / "t.tape.jsonl.gz", *ASKS)
    loaded, ending = load(tape)
    file = folder / "run.html"
    file.write_bytes(b"".join(single_file(loaded, ending, tape.name, None)))
    page = chromium.new_page()
    page.goto(file.as_uri())
    expect(page.locator(".row")).to_have_count(6)
    return page


def drawn(chance: random.Random, length: int) -> list[tuple[str, str]]:
    """Messages of few roles and texts, so that many are alike and some are cut."""
    texts = ("one two three four", "one two three", "one two", "alpha beta gamma delta", "alpha b...", "x", "")
    return [(chance.choice(("user", "assistant", "tool")), chance.choice(texts)) for _ in range(length)]


def test_the_page_compares_as_diff_does(page: Page) -> None:
    chance = random.Random(81)
    cases = [(drawn(chance, chance.randrange(9)), drawn(chance, chance.randrange(9))) for _ in range(400)]
    told = page.evaluate(
        """cases => cases.map(pair => {
          const [a, b] = pair.map(side => side.map(m => ({ role: m[0], parts: [{ kind: 'text', text: m[1] }] })));
          return tp.contextRows(a, b).filter(row => row[0] !== 'same');
        })""",
        cases,
    )
    for (a, b), rows in zip(cases, told, strict=True):
        taped, asked = ([Message(role, (Text(text),)) for role, text in side] for side in (a, b))
        changes = [[one.kind, one.taped, one.asked] for one in context_changes(taped, asked)]
        assert rows == changes, json.dumps([a, b])


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("", ""),
        ("a b c", "a c"),
        ("", "new"),
        ("gone", ""),
        ("one\n two", "one\n  two"),
        ("x" * 9, "y"),
        ("é 1", "é 2"),
    ],
)
def test_runs_of_words_add_up_to_both_texts(page: Page, was: str, now: str) -> None:
    runs = page.evaluate("([was, now]) => tp.wordRuns(was, now)", [was, now])
    assert "".join(text for what, text in runs if what != "in") == was
    assert "".join(text for what, text in runs if what != "out") == now


def test_two_texts_that_have_little_in_common_are_not_mixed(page: Page) -> None:
    was, now = "I found a page about it, and it says much.", "The moon does it."
    runs = page.evaluate("([was, now]) => tp.wordRuns(was, now)", [was, now])
    assert runs == [["out", was[:-1]], ["in", now[:-1]], ["same", "."]]


def test_a_call_is_compared_with_the_one_before_in_its_lane(page: Page) -> None:
    watched = Watched(page, "file:")
    page.evaluate("tp.state.set({number: 4, view: '', other: null, marked: null})")
    page.keyboard.press("c")
    view = page.locator(".context")
    expect(view).to_contain_text("From the context of 1 to that of 4")
    expect(view.locator(".chip")).to_have_text(["changed", "injected"])
    expect(view.locator("ins").first).to_have_text(", now")
    expect(view.locator("details.same summary")).to_have_text(["1 message the same"])
    page.keyboard.press("c")
    expect(view).to_have_count(0)
    assert watched.said == []


def test_any_two_calls_are_compared(page: Page) -> None:
    page.evaluate("tp.state.set({number: 5, view: '', other: null, marked: null})")
    page.keyboard.press("m")
    page.keyboard.press("j")
    page.keyboard.press("c")
    view = page.locator(".context")
    expect(view).to_contain_text("From the context of 5 to that of 6")
    expect(view.locator(".chip")).to_have_text(["truncated"])
    assert page.evaluate("location.hash") == "#e=6&view=context&o=5&m=5"
    page.keyboard.press("Escape")


def test_what_has_no_context_is_told(page: Page) -> None:
    page.evaluate("tp.state.set({number: 3, view: 'context', other: null, marked: null})")
    expect(page.locator(".context")).to_contain_text("No call of a model came before this one in its lane")
    page.evaluate("tp.state.set({number: 2, other: 1})")
    expect(page.locator(".context")).to_contain_text("exchange 2 is none")
