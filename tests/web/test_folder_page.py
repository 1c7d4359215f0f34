"""The page of a folder: its list, two of its tapes compared, a tape that nobody has the key of."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Watched, browser, needs_chromium
from difftapes import get, say, write
from playwright.sync_api import Browser, expect
from viewserving import opened, viewing

from tapeproxy.proxy.encrypting import encrypt
from tapeproxy.proxy.unlocking import PASSPHRASE, Secret
from tapeproxy.tapes.encrypted import COSTS

pytestmark = needs_chromium
FIRST = (say("m", "What is it?", answer="A thing."), get("m", "page", "one"), say("m", "And?", answer="One."))
SECOND = (*FIRST[:2], say("m", "And?", answer="Two."), get("m", "more"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def test_two_ticks_compare_two_tapes(chromium: Browser, tmp_path: Path) -> None:
    for name, asks in (("a", FIRST), ("b", SECOND), ("c", FIRST)):
        write(tmp_path / f"{name}.tape.jsonl.gz", *asks)
    with viewing(tmp_path) as server, opened(chromium, server.address()) as page:
        watched = Watched(page, "http://127.0.0.1")
        boxes = {name: page.get_by_label(f"compare {name}.tape.jsonl.gz") for name in "abc"}
        boxes["c"].check()
        expect(page.locator("body")).to_contain_text("Choose another one to compare with")
        boxes["a"].check()
        boxes["b"].check()
        # The first of three is given up.
        expect(boxes["c"]).not_to_be_checked()
        page.locator("a.compare").click()
        expect(page.locator(".verdict")).to_contain_text("different")
        assert page.url.endswith("/diff?a=a.tape.jsonl.gz&b=b.tape.jsonl.gz#e=3&tab=difference")
        expect(page.locator(".difference")).to_contain_text("branch point")
        expect(page.locator(".difference del")).to_have_text("One")
        expect(page.locator(".difference ins")).to_have_text("Two")
        expect(page.locator(".row .n")).to_have_text(["A1", "A2", "A3", "B1", "B2", "B3", "B4"])
        page.get_by_role("button", name="only what differs").click()
        expect(page.locator(".row .n")).to_have_text(["A3", "B3", "B4"])
        page.locator(".sought").fill("Two.")
        page.locator(".sought").press("Enter")
        expect(page.locator(".row .n")).to_have_text(["B3"])
        page.go_back()
        page.locator("a", has_text="c.tape").click()
        expect(page.locator(".bar .dim").first).to_contain_text("3 exchanges")
        assert watched.said == []


def test_the_server_reads_what_is_likely_to_be_asked_for(chromium: Browser, tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.tape.jsonl.gz", *FIRST)
    with viewing(tmp_path) as server, opened(chromium, server.address()) as page:
        with page.expect_response("**/api/tapes/a.tape.jsonl.gz/ready") as ready:
            page.locator("a", has_text="a.tape").hover()
        assert ready.value.ok
        with page.expect_response("**/api/tapes/b.tape.jsonl.gz/ready"):
            page.locator("a", has_text="b.tape").focus()


def test_a_fork_that_runs_is_listed_and_stopped(chromium: Browser, tmp_path: Path) -> None:
    write(tmp_path / "a.tape.jsonl.gz", *FIRST)
    own = {"fork": 2, "parent": "a.tape.jsonl.gz", "at": 3, "child": "a-fork2.tape.jsonl.gz", "begun": True}
    rows = [own | {"running": True, "exit_code": None}, own | {"fork": 1, "running": False, "exit_code": 0}]
    with viewing(tmp_path) as server, opened(chromium, "about:blank") as page:
        page.route("**/api/forks", lambda route: route.fulfill(json=rows))
        page.route("**/api/forks/2/stop", lambda route: (rows.clear(), route.fulfill(json={})))
        page.goto(server.address())
        forks = page.locator(".forks tr")
        expect(forks).to_have_text(["a-fork2.tape.jsonl.gzof a.tape.jsonl.gz at 3stop"])
        with page.expect_request("**/api/forks/2/stop") as asked:
            forks.get_by_role("button", name="stop").click()
        assert asked.value.method == "POST"
        expect(forks).to_have_count(0)


def test_a_tape_without_its_key_says_what_to_do(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSPHRASE, raising=False)
    write(tmp_path / "a.tape.jsonl.gz", *FIRST)
    plain = (tmp_path / "a.tape.jsonl.gz").read_bytes()
    locked = tmp_path / "b.tape.jsonl.gz.enc"
    locked.write_bytes(b"".join(encrypt(iter([plain]), Secret("passphrase", b"correct horse"), cost=COSTS.start)))
    with viewing(tmp_path) as server, opened(chromium, server.address()) as page:
        expect(page.locator("td.outcome")).to_have_text(["encrypted", "exit 0"])
        page.locator("a", has_text="b.tape").click()
        expect(page.locator("body")).to_contain_text(PASSPHRASE)
        expect(page.locator("body")).to_contain_text("start `tapeproxy serve` again")
        expect(page.locator("body")).not_to_contain_text("Traceback")
        page.get_by_role("link", name="all tapes").click()
        for name in ("a.tape.jsonl.gz", "b.tape.jsonl.gz.enc"):
            page.get_by_label(f"compare {name}", exact=True).check()
        page.locator("a.compare").click()
        expect(page.locator("pre.bad")).to_contain_text(PASSPHRASE)
        monkeypatch.setenv(PASSPHRASE, "correct horse")
        page.reload()
        expect(page.locator(".verdict")).to_contain_text("nothing differs")
        page.get_by_role("link", name="tapes").click()
        page.locator("a", has_text="b.tape").click()
        page.get_by_role("button", name="verify").click()
        # What is no tape was once read as one that is intact. It was not checked: neither good nor bad.
        expect(page.locator(".badge:not(.bad):not(.good)")).to_contain_text("`tapeproxy verify` checks it")
