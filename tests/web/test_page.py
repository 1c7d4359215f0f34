"""The page in a real browser: the single file from disk with the network off, and a tape that grows on a server."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Watched, browser, needs_chromium
from difftapes import get, say, streamed, write
from playwright.sync_api import Browser, Page, expect

from tapeproxy.proxy.tapefile import load
from tapeproxy.web.singlefile import single_file

pytestmark = needs_chromium

ASKS = (
    say("m", "What is it?", answer="A thing."),
    streamed("m/t0", "And then?", "This", " and", " that."),
    get("m/t0", "broken", "no", status=503),
    say("m", "What is it?", "And now?", answer="Another thing."),
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tape = write(tmp_path / "t.tape.jsonl.gz", *ASKS, names={"m/t0": "worker"})
    loaded, ending = load(tape)
    (tmp_path / "run.html").write_bytes(b"".join(single_file(loaded, ending, "t.tape.jsonl.gz", tape.read_bytes())))
    return tmp_path / "run.html"


@pytest.fixture
def page(chromium: Browser, file: Path) -> Iterator[Page]:
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 800})
    page = context.new_page()
    watched = Watched(page, file.as_uri())
    page.goto(file.as_uri())
    expect(page.locator(".row")).to_have_count(4)
    yield page
    assert watched.said == []
    context.close()


def test_the_keys_go_through_a_tape(page: Page) -> None:
    chosen = page.locator(".detail")
    page.keyboard.press("j")
    expect(chosen).to_have_attribute("data-number", "1")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(chosen).to_have_attribute("data-number", "3")
    page.keyboard.press("K")
    expect(chosen).to_have_attribute("data-number", "2")
    page.keyboard.press("k")
    expect(chosen).to_have_attribute("data-number", "1")
    for key in "g4":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(chosen).to_have_attribute("data-number", "4")
    expect(page.locator(".message")).to_have_count(3)
    page.keyboard.press("4")
    expect(page.locator(".headers").first).to_contain_text("X-Test")


def test_the_filter_leaves_what_fits(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("status:5")
    expect(page.locator(".row")).to_have_count(1)
    page.locator(".filter").fill("lane:worker -is:failed")
    expect(page.locator(".row .n")).to_have_text(["2"])
    page.locator(".filter").fill("another")
    expect(page.locator(".row .n")).to_have_text(["4"])
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator(".row")).to_have_count(4)


def test_a_search_looks_into_bodies(page: Page) -> None:
    page.locator(".sought").fill("nobody said this")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(0)
    page.locator(".sought").fill("And then?")
    page.keyboard.press("Enter")
    expect(page.locator(".row .n")).to_have_text(["2"])


def test_a_stream_plays_as_it_came(page: Page) -> None:
    for key in "jj5":
        page.keyboard.press(key)
    expect(page.locator(".chunk")).to_have_count(5)
    page.keyboard.press("p")
    expect(page.locator(".play")).to_have_text("play")
    expect(page.locator(".chunk")).to_have_count(5)
    assert page.locator(".chunk .when").first.inner_text() == "+10 ms"


def test_the_address_names_the_view_and_nothing_else(page: Page, file: Path) -> None:
    page.keyboard.press("j")
    page.keyboard.press("t")
    page.keyboard.press("6")
    expect(page.locator(".detail")).to_contain_text("causal rank")
    assert page.evaluate("location.hash") == "#e=1&tab=place&axis=rank"
    page.locator(".filter").fill("secret words")
    assert "secret" not in page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(f"{file.as_uri()}#e=2&tab=stream")
    expect(page.locator(".detail")).to_have_attribute("data-number", "2")
    expect(page.locator(".chunk")).to_have_count(5)


def test_the_chain_is_checked_in_the_browser(page: Page) -> None:
    page.locator(".badge").click()
    expect(page.locator(".badge")).to_contain_text("chain intact")
    expect(page.locator(".badge")).to_contain_text("sealed")


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_an_edited_tape_is_told_from_the_one_that_was_written(chromium: Browser, file: Path, at: float) -> None:
    text = file.read_text()
    before, _, rest = text.partition("id=tp-file>")
    packed, _, after = rest.partition("<")
    tape = bytearray(base64.b64decode(packed))
    tape[int(len(tape) * at)] ^= 1
    file.write_text(f"{before}id=tp-file>{base64.b64encode(tape).decode()}<{after}")
    page = chromium.new_page()
    page.goto(file.as_uri())
    expect(page.locator(".row")).to_have_count(4)
    page.locator(".badge").click()
    expect(page.locator(".badge.bad, .badge.good")).not_to_contain_text("sealed", timeout=10_000)
    page.close()


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "<!-- ]]> \x1b[31mred\x1b[0m \u202eevil\u202c \u2028 ${alert(4)} {{x}} javascript:alert(5)"
)


def test_what_a_tape_says_is_text(chromium: Browser, tmp_path: Path) -> None:
    asks = (
        say("m", HOSTILE, answer=HOSTILE, call_id=HOSTILE),
        get("m", "x", HOSTILE, headers=((b"X-" + HOSTILE.encode("ascii", "replace"), HOSTILE.encode()),)),
    )
    tape = write(tmp_path / "t.tape.jsonl.gz", *asks, names={"m": HOSTILE})
    loaded, ending = load(tape)
    file = tmp_path / "run.html"
    file.write_bytes(b"".join(single_file(loaded, ending, HOSTILE, tape.read_bytes())))
    page = chromium.new_page()
    watched = Watched(page, file.as_uri())
    page.goto(file.as_uri())
    expect(page.locator(".row")).to_have_count(2)
    for key in ("j", "1", "2", "3", "4", "5", "6", "j", "1", "2", "3", "4", "5", "6", "1"):
        page.keyboard.press(key)
        expect(page.locator(".detail .body")).to_be_visible()
    page.keyboard.press("k")
    expect(page.locator(".message").first).to_contain_text("<img src=x onerror=alert(2)>")
    expect(page.locator(".message").first).to_contain_text("\\u{202e}evil\\u{202c}")
    expect(page.locator(".message").first).to_contain_text("\\u{1b}[31mred")
    assert page.locator("#app img, #app svg, #app script").count() == 0
    assert watched.said == []
    page.close()
