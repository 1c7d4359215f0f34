"""Two runs in one picture: the documents, the server, and the page."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Watched, browser, needs_chromium
from difftapes import get, run, say, write
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from tapeproxy.proxy.viewforks import ForkingFolder
from tapeproxy.tapes.tapediff import diff_tapes
from tapeproxy.web.app import make_app
from tapeproxy.web.rundiff import RunDiff
from tapeproxy.web.singlefile import diff_file

HOST, TOKEN = "127.0.0.1:8123", "the-token"
BOTH = (say("m", "Plan."), get("m/t0", "a"), get("m", "wait"))
A = (*BOTH, say("m/t0", "Look.", answer="One."), say("m", "Sum up.", answer="One."))
B = (*BOTH, say("m/t0", "Look.", answer="Two."), get("m/t0", "new"))
NAMES = {"m/t0": "worker"}


def compared() -> RunDiff:
    return RunDiff(diff_tapes(run(*A, names=NAMES), run(*B, names=NAMES, code=1)), ("a.tape", "b.tape"))


def rows(document: dict[str, Any]) -> list[tuple[int, str, str]]:
    found, lanes = document["rows"], document["lanes"]
    return [
        (number, label, lanes[lane]["id"])
        for number, label, lane in zip(found["number"], found["label"], found["lane"], strict=True)
    ]


def test_lanes_that_stand_for_each_other_are_neighbours() -> None:
    made = compared().outline()
    assert [lane["id"] for lane in made["lanes"]] == ["A:m", "B:m", "A:m/t0", "B:m/t0"]
    assert rows(made)[3:7] == [(4, "A4", "A:m/t0"), (5, "A5", "A:m"), (6, "B1", "B:m"), (7, "B2", "B:m/t0")]
    assert {len(values) for name, values in made["rows"].items() if name != "hosts"} == {10}
    assert made["tape"]["name"] == "a.tape and b.tape"


def test_what_differs_is_told_by_the_numbers_of_the_page() -> None:
    told = compared().outline()["diff"]
    assert ["same", 1, 6, []] in told["events"]
    assert ["changed", 4, 9, ["response"]] in told["events"]
    assert ["missing", 5, None, []] in told["events"]
    assert ["extra", None, 10, []] in told["events"]
    assert told["events"][told["branch"]] == ["changed", 4, 9, ["response"]]
    assert told["outcome"] == [["exit", "code 0", "code 1", ""]]


def test_differences_of_an_event() -> None:
    diff = compared()
    at = diff.outline()["diff"]["branch"]
    (found,) = diff.differences(at)["response"]
    assert found == ["body $.choices[0].message.content", "One.", "Two.", found[3]]
    assert [one is not None for one in diff.all_differences()].index(True) == at
    for wrong in (-1, 99):
        with pytest.raises(KeyError):
            diff.differences(wrong)


def test_exchanges_of_both_go_by_the_numbers_of_the_page() -> None:
    diff = compared()
    assert diff.exchange(9)["exchange"]["number"] == 9
    assert diff.exchange(9)["call"]["answer"]["parts"][0]["text"] == "Two."
    assert set(diff.exchange(9)["clock"]) <= {"B:m", "B:m/t0"}
    assert len(list(diff.documents())) == 10
    assert sorted(diff.ranks()["number"]) == list(range(1, 11))
    assert diff.labels()["number"] == [1, 4, 5, 6, 9]
    with pytest.raises(KeyError):
        diff.exchange(11)


def test_lanes_that_nobody_knows_are_drawn_too() -> None:
    diff = RunDiff(diff_tapes(run(get(None, "a")), run(get("m", "a"))), ("a", "b"))
    assert [lane["id"] for lane in diff.outline()["lanes"]] == ["A:", "B:m"]
    assert rows(diff.outline()) == [(1, "A1", "A:"), (2, "B1", "B:m")]


def test_the_server_compares_two_of_its_tapes(tmp_path: Path) -> None:
    write(tmp_path / "a.tape.jsonl.gz", *A)
    write(tmp_path / "b.tape.jsonl.gz", *B)
    app = make_app(ForkingFolder(tmp_path), token=TOKEN, hosts=frozenset({HOST}))
    with TestClient(app, base_url=f"http://{HOST}", headers={"x-tapeproxy-token": TOKEN}) as client:
        names = "a=a.tape.jsonl.gz&b=b.tape.jsonl.gz"
        assert client.get(f"/diff?{names}").status_code == 200
        whole = client.get(f"/api/diff?{names}").json()
        assert [event[0] for event in whole["outline"]["diff"]["events"]].count("same") == 3
        assert client.get(f"/api/diff/exchanges/9?{names}").json()["exchange"]["number"] == 9
        at = whole["outline"]["diff"]["branch"]
        assert client.get(f"/api/diff/differences/{at}?{names}").json()["response"]
        assert client.get("/api/diff?a=a.tape.jsonl.gz").status_code == 404
        assert client.get("/api/diff?a=../x&b=b.tape.jsonl.gz").status_code == 404
        assert client.get(f"/api/diff/exchanges/99?{names}").status_code == 404
        assert client.get(f"/api/diff?{names}", headers={"x-tapeproxy-token": "no"}).status_code == 401


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    file = tmp_path_factory.mktemp("page") / "diff.html"
    file.write_bytes(b"".join(diff_file(compared(), "a and b")))
    with browser() as chromium:
        page = chromium.new_context(offline=True).new_page()
        watched = Watched(page, file.as_uri())
        page.goto(file.as_uri())
        yield page
        assert watched.said == []


@needs_chromium
def test_the_page_opens_at_the_branch_point(page: Page) -> None:
    expect(page.locator(".detail")).to_have_attribute("data-number", "4")
    tab = page.locator(".difference")
    expect(tab).to_contain_text("branch point")
    expect(tab).to_contain_text("changed: response")
    expect(tab.locator("del")).to_have_text("One")
    expect(tab.locator("ins")).to_have_text("Two")
    expect(tab).to_contain_text("code 1")
    assert page.evaluate("[[...tp.lanes.ringed].sort(), [...tp.lanes.branch].sort()]") == [[10, 4, 5, 9], [4, 9]]


@needs_chromium
def test_one_side_leads_to_the_other_and_what_differs_can_be_left_alone(page: Page) -> None:
    page.locator(".difference").get_by_role("button", name="B4").click()
    expect(page.locator(".detail")).to_have_attribute("data-number", "9")
    page.get_by_role("button", name="only what differs").click()
    expect(page.locator(".row .n")).to_have_text(["A4", "A5", "B4", "B5"])
    page.keyboard.press("j")
    expect(page.locator(".difference")).to_contain_text("only B has it")
    page.keyboard.press("1")
    expect(page.locator(".detail")).to_contain_text("This is no call of a model")
    page.keyboard.press("b")
    expect(page.locator(".detail")).to_have_attribute("data-number", "4")
    assert json.loads(page.evaluate("JSON.stringify(tp.state.get().number)")) == 4
    for keys, number in (("gB2", 7), ("ga5", 5), ("g3", 3), ("gb04", 9)):
        for key in (*keys, "Enter"):
            page.keyboard.press(key)
        expect(page.locator(".detail")).to_have_attribute("data-number", str(number))
