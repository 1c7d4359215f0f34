"""Where words come from, on the page of a server and in the single file, in a real browser."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Watched, browser, needs_chromium
from difftapes import get, say, write
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tapeproxy.proxy.tapefile import load
from tapeproxy.web import singlefile
from tapeproxy.web.singlefile import single_file

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=alert(1)> \u202e words that come again"
ASKS = (
    get("m", "doc", f"A page.\nIt says {HOSTILE}, and no more."),
    say("m", f"Tool said: {HOSTILE}\nAnd my own words, too.", answer="I see: words that come again."),
    say("m", f"Tool said: {HOSTILE}\nAnd my own words, too.", "I see: words that come again.", "On."),
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(params=["served", "file"])
def page(request: pytest.FixtureRequest, chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    tape = write(tmp_path / "t.tape.jsonl.gz", *ASKS)
    page = chromium.new_page()
    if request.param == "file":
        loaded, ending = load(tape)
        (tmp_path / "t.html").write_bytes(b"".join(single_file(loaded, ending, tape.name, None)))
        yield from opened(page, (tmp_path / "t.html").as_uri())
        return
    command = [sys.executable, "-m", "tapeproxy.cli.main", "serve", str(tape)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield from opened(page, server.stdout.readline().strip())
    finally:
        server.terminate()
        server.communicate()


def opened(page: Page, address: str) -> Iterator[Page]:
    watched = Watched(page, address.partition("/tape/")[0])
    page.goto(address)
    expect(page.locator(".row")).to_have_count(3)
    yield page
    assert watched.said == []
    page.close()


def click_on(page: Page, text: Locator, words: str) -> None:
    """Click where these words stand in a text."""
    box = text.evaluate(
        """(pre, words) => {
          const range = document.createRange(), at = pre.firstChild.data.indexOf(words);
          range.setStart(pre.firstChild, at + 1);
          range.setEnd(pre.firstChild, at + 2);
          const box = range.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }""",
        words,
    )
    page.mouse.click(*box)


def test_all_that_is_new_is_told_and_a_source_is_a_click_away(page: Page) -> None:
    for key in ("j", "j", "w"):
        page.keyboard.press(key)
    expect(page.locator(".why mark.why-0")).to_contain_text("<img src=x onerror=alert(1)> \\u{202e} words")
    expect(page.locator(".why .around").first).to_contain_text("A page.\nIt says <img", use_inner_text=True)
    assert page.locator("#app img").count() == 0
    page.locator(".why ol .jump").first.click()
    expect(page.locator(".detail")).to_have_attribute("data-number", "1")
    expect(page.locator("mark.lit")).to_have_text("<img src=x onerror=alert(1)> \\u{202e} words that come again")
    page.keyboard.press("j")
    expect(page.locator(".detail")).to_have_attribute("data-number", "2")
    expect(page.locator("mark.lit")).to_have_count(0)


def test_words_that_are_selected_are_asked_about_alone(page: Page) -> None:
    page.evaluate("tp.state.set({number: 3})")
    expect(page.locator(".message")).to_have_count(4)
    page.locator(".message .text").nth(1).select_text()
    page.keyboard.press("w")
    expect(page.locator(".why .message")).to_have_count(1)
    expect(page.locator(".why .message h4")).to_have_text("$.messages[1].content")
    expect(page.locator(".why .jump").first).to_contain_text("the answer of event 2")
    # They were of that event: the next one is asked about what is new in it.
    page.keyboard.press("k")
    expect(page.locator(".why")).to_have_attribute("data-number", "2")
    expect(page.locator(".why .message h4").first).to_have_text("$.messages[0].content")


def test_a_click_on_words_tells_where_they_come_from(page: Page) -> None:
    page.evaluate("tp.state.set({number: 3})")
    text = page.locator(".message .text").first
    click_on(page, text, "onerror")
    where = page.locator(".where")
    expect(where.locator("mark.here")).to_contain_text("<img src=x onerror")
    expect(where).to_contain_text("since event 2")
    expect(where).not_to_contain_text("my own words")
    click_on(page, text, "own words")
    expect(where.locator("mark")).to_have_count(0)
    expect(where).to_contain_text("own words")
    where.get_by_role("button", name="close").click()
    expect(where).to_have_count(0)
    # The text has the focus again.
    page.keyboard.press("Enter")
    expect(where.locator("mark.why-0")).to_have_count(1)
    page.keyboard.press("w")
    expect(where).to_have_count(0)
    expect(page.locator(".message[data-place=answer] .asks")).to_have_count(0)


@pytest.mark.parametrize("page", ["served"], indirect=True)
def test_an_older_answer_is_not_shown_below_newer_words(page: Page) -> None:
    page.evaluate("tp.state.set({number: 3})")
    held: list[Route] = []
    page.route("**/why?*onerror*", lambda route: held.append(route))
    text = page.locator(".message .text").first
    expect(text).to_be_visible()
    click_on(page, text, "onerror")
    expect(page.locator(".where")).to_contain_text("looking")
    click_on(page, text, "own words")
    expect(page.locator(".where")).to_contain_text("own words")
    with page.expect_response("**/why?*onerror*"):
        held[0].continue_()
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.locator(".where mark")).to_have_count(0)


def test_a_file_says_where_it_tells_no_more(chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singlefile, "_REQUESTS", 2)  # 4,000 exchanges would take a while
    tape = write(tmp_path / "t.tape.jsonl.gz", *ASKS)
    loaded, ending = load(tape)
    (tmp_path / "t.html").write_bytes(b"".join(single_file(loaded, ending, tape.name, None)))
    page = chromium.new_page()
    page.goto((tmp_path / "t.html").as_uri() + "#e=3&view=why")
    expect(page.locator(".why .bad")).to_contain_text("tapeproxy why TAPE --event 3")
    page.close()
