"""Where words come from, on the page of a server, in a real browser."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import browser, needs_chromium
from difftapes import get, say, write
from playwright.sync_api import Page, expect

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=alert(1)> \u202e words that come again"
ASKS = (get("m", "doc", HOSTILE), say("m", f"Tool said: {HOSTILE}", "And my own words, too."))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    tape = write(tmp_path / "t.tape.jsonl.gz", *ASKS)
    command = [sys.executable, "-m", "tapeproxy.cli.main", "serve", str(tape)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        with browser() as chromium:
            page = chromium.new_page()
            page.goto(server.stdout.readline().strip())
            expect(page.locator(".row")).to_have_count(2)
            yield page
    finally:
        server.terminate()
        server.communicate()


def test_a_words_source_is_a_click_away(page: Page) -> None:
    for key in ("j", "j", "w"):
        page.keyboard.press(key)
    expect(page.locator(".why mark")).to_have_count(1)
    expect(page.locator(".why mark")).to_contain_text("<img src=x onerror=alert(1)> \\u{202e} words")
    expect(page.locator(".why")).to_contain_text("own words")
    assert page.locator("#app img").count() == 0
    page.locator(".why ol .jump").first.click()
    expect(page.locator(".detail")).to_have_attribute("data-number", "1")
    # Words that are selected are asked about alone.
    page.keyboard.press("j")
    page.keyboard.press("1")
    expect(page.locator(".message")).to_have_count(3)
    page.locator(".message .text").nth(1).select_text()
    page.keyboard.press("w")
    expect(page.locator(".why .message")).to_have_count(1)
    expect(page.locator(".why .message h4")).to_have_text("$.messages[1].content")
