"""Answers that come late to the page: an older one is never shown for a newer question, and nothing typed is lost."""

from collections.abc import Iterator
from pathlib import Path

import agentruns
import pytest
from browser import Watched, browser, needs_chromium
from difftapes import get, say, streamed, write
from playwright.sync_api import Browser, Page, Route, expect
from viewserving import opened, viewing

from tapeproxy.proxy.tapefile import TapeWriter

pytestmark = needs_chromium
NAME = "run.tape.jsonl.gz"
ASKS = (say("m", "What is it?", answer="A thing."), streamed("m", "And then?", "This", " and that."), get("m", "page"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def page(chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    write(tmp_path / NAME, *ASKS)
    with viewing(tmp_path) as server, opened(chromium, f"{server.address(f'tape/{NAME}')}&e=1") as page:
        watched = Watched(page, "http://127.0.0.1")
        expect(page.locator(".message").first).to_be_visible()
        yield page
        assert [said for said in watched.said if "422" not in said] == []  # the browser tells of an answer of ours


class Held:
    """Requests that are kept until they may go on."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url
        self._routes: list[Route] = []
        page.route(url, lambda route: self._routes.append(route))

    def __len__(self) -> int:
        return len(self._routes)

    def wait(self, count: int = 1) -> None:
        """Until so many came."""
        for _ in range(1000):
            if len(self._routes) >= count:
                return
            self._page.wait_for_timeout(10)
        raise AssertionError("nobody asked")

    def release(self, body: str | None = None, status: int = 200) -> None:
        """Let the first one go on, and wait until the page has drawn what came of it."""
        route = self._routes.pop(0)
        with self._page.expect_response(self._url):
            if body is None:
                route.continue_()
            else:
                route.fulfill(status=status, body=body, content_type="application/json")
        self._page.evaluate("new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")


def search(page: Page, text: str) -> None:
    page.locator(".sought").fill(text)
    page.locator(".sought").press("Enter")


def test_only_the_last_search_counts(page: Page) -> None:
    held = Held(page, "**/search?q=thing")
    search(page, "thing")
    held.wait()
    expect(page.locator(".bar")).to_contain_text("searching")
    search(page, "And then?")
    expect(page.locator(".row .n")).to_have_text(["2"])
    held.release()
    expect(page.locator(".row .n")).to_have_text(["2"])


def test_a_search_that_was_given_up_does_not_come_back(page: Page) -> None:
    held = Held(page, "**/search?q=thing")
    search(page, "thing")
    held.wait()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    held.release()
    expect(page.locator(".row")).to_have_count(3)
    expect(page.locator(".bar")).not_to_contain_text("searching")


def test_an_exchange_that_comes_late_is_not_shown_for_another(page: Page) -> None:
    held = Held(page, "**/exchanges/2")
    page.keyboard.press("j")
    held.wait()
    page.keyboard.press("j")
    expect(page.locator(".detail")).to_have_attribute("data-number", "3")
    held.release()
    expect(page.locator(".detail")).to_have_attribute("data-number", "3")


def test_a_stream_plays_once_it_is_there(page: Page) -> None:
    held = Held(page, "**/exchanges/2")
    page.keyboard.press("j")
    held.wait()
    page.evaluate(
        """window.played = false;
        new MutationObserver(() => { window.played ||= document.querySelector('.play')?.textContent === 'stop'; })
          .observe(document.body, {subtree: true, childList: true, characterData: true})"""
    )
    page.keyboard.press("p")
    page.wait_for_timeout(100)  # what was tried after 60 ms, once, found nothing
    held.release()
    expect(page.locator(".detail")).to_have_attribute("data-number", "2")
    expect(page.locator(".play")).to_have_text("play")
    assert page.evaluate("window.played")


def test_a_fork_is_begun_once_and_an_older_state_of_it_is_not_the_last(page: Page) -> None:
    begun: list[str] = []

    def begin(route: Route) -> None:
        begun.append(route.request.post_data or "")
        route.fulfill(body='{"fork": 1, "child": "x"}', content_type="application/json")

    page.route("**/fork", begin)
    states = Held(page, "**/api/forks/1")
    page.keyboard.press("f")
    page.locator(".forking textarea").fill("12:: it is")
    page.locator(".run").click()
    expect(page.locator(".running")).to_contain_text("running")
    # Its state is not known yet: another click would have begun another one.
    expect(page.locator(".run")).to_be_disabled()
    states.wait()
    page.wait_for_timeout(500)  # more than one of the questions that were asked without waiting for the answer
    assert len(states) == 1
    states.release('{"running": true, "exit_code": null, "output": "on", "child": "x", "begun": false}')
    states.wait()
    states.release('{"running": false, "exit_code": 0, "output": "done", "child": "x", "begun": true}')
    expect(page.locator(".running")).to_contain_text("ended with exit code 0")
    expect(page.locator(".run")).to_be_enabled()
    assert len(begun) == 1
    assert '["--text","1::12:: it is"]' in begun[0]


def test_what_was_typed_for_an_exchange_is_there_when_one_comes_back(page: Page) -> None:
    page.keyboard.press("f")
    expect(page.locator(".plan")).to_be_enabled()
    page.locator(".forking textarea").fill("The moon does it.")
    page.locator(".forking input").fill("NAME")
    page.evaluate("tp.state.set({number: 2})")
    expect(page.locator(".forking textarea")).to_have_value("This and that.")
    page.locator(".forking").get_by_role("button", name="close").click()
    page.evaluate("tp.state.set({number: 1})")
    page.keyboard.press("f")
    expect(page.locator(".forking textarea")).to_have_value("The moon does it.")
    expect(page.locator(".forking input")).to_have_value("NAME")


def test_a_plan_of_what_the_form_said_before_is_not_shown(page: Page) -> None:
    held = Held(page, "**/plan")
    page.keyboard.press("f")
    expect(page.locator(".plan")).to_be_enabled()
    answer = '{"live_calls": 7, "lanes": [], "mutated": []}'
    for status, body, field in ((200, answer, "input"), (422, '{"error": "an older mistake"}', "textarea")):
        page.locator(".plan").click()
        held.wait()
        page.locator(f".forking {field}").fill("Other.")
        held.release(body, status)
        expect(page.locator(".plan")).to_be_enabled()
        expect(page.locator(".planned, .forking .error")).to_have_count(0)
    page.locator(".plan").click()
    held.wait()
    held.release(answer)
    expect(page.locator(".planned")).to_have_count(1)
    page.locator(".forking input").fill("ANOTHER")
    expect(page.locator(".planned")).to_have_count(0)


def test_a_tape_that_grows_is_shown_however_slow_the_answers_are(chromium: Browser, tmp_path: Path) -> None:
    writer = TapeWriter(tmp_path / NAME, agentruns.HEAD)
    for record in agentruns.exchange(1, "http://one.test/path", chunks=(b"first",)):
        writer.add(record)
    request, response, chunks, end = agentruns.exchange(5, "http://two.test/path", chunks=(b"half, ",))
    for record in (request, response, chunks):
        writer.add(record)
    writer.commit()
    with viewing(tmp_path) as server, opened(chromium, f"{server.address(f'tape/{NAME}')}&e=2&tab=stream") as page:
        expect(page.locator(".chunk pre")).to_have_text(["half, "])
        held = Held(page, "**/exchanges/2")
        for _ in range(2):
            writer.add(chunks)
            writer.commit()
        held.wait()
        before = page.evaluate("tp.model.version")
        writer.add(chunks)
        writer.commit()
        while page.evaluate("tp.model.version") == before:
            page.wait_for_timeout(10)
        # It was asked for before the last chunk came: its answer is shown, and asked for once more.
        held.release()
        expect(page.locator(".chunk pre")).not_to_have_count(1)
        held.wait()
        writer.add(end)
        writer.seal(trace="", outcome="exited")
        held.release()
        expect(page.locator(".chunk pre")).to_have_count(4)
        page.unroute_all()


def test_labels_that_come_late_are_not_put_over_newer_ones(chromium: Browser, tmp_path: Path) -> None:
    write(tmp_path / NAME, *ASKS)
    with viewing(tmp_path) as server, opened(chromium, "about:blank") as page:
        held = Held(page, "**/labels?*")
        page.goto(server.address(f"tape/{NAME}"))
        held.wait()
        page.evaluate("tp.model.takeLabels({number: [1], said: ['newer'], dialect: ['x'], model: ['m']}, true)")
        expect(page.locator(".row .words").first).to_have_text("newer")
        held.release()
        expect(page.locator(".row .words").nth(1)).to_have_text("This and that.")
        expect(page.locator(".row .words").first).to_have_text("newer")
