"""The page in a real browser: the single file from disk with the network off, and a tape that grows on a server."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import agentruns
import pytest
from browser import Watched, browser, needs_chromium
from difftapes import MODEL, Ask, get, records, run, say, streamed, write
from playwright.sync_api import Browser, Page, expect
from searchcases import ASKS as SEARCHED
from searchcases import SEARCHES
from wstapes import records_of, socket_exchange

from tapeproxy.cli.verify import examine
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.unlocking import ask_environment
from tapeproxy.tapes.records import Head, Lane, Note, Record, Value
from tapeproxy.tapes.tapediff import diff_tapes
from tapeproxy.web.assets import SCRIPTS
from tapeproxy.web.rundiff import RunDiff
from tapeproxy.web.singlefile import diff_file, single_file

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
    page.locator(".message pre").first.click()  # it has the focus now, and asks where its words come from at Enter
    expect(page.locator(".where")).to_have_count(1)
    page.locator(".where button", has_text="close").click()
    page.locator(".message pre").first.focus()
    for key in ("g", "2", "Enter"):
        page.keyboard.press(key)
    expect(chosen).to_have_attribute("data-number", "2")
    page.get_by_text("causes").focus()
    for key in ("g", "4", "Enter"):
        page.keyboard.press(key)
    expect(chosen).to_have_attribute("data-number", "4")
    assert not page.evaluate("tp.state.get().causal"), "Enter was not the button's"
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


def test_a_search_of_the_single_file_finds_what_the_server_finds(chromium: Browser, tmp_path: Path) -> None:
    tape = write(tmp_path / "t.tape.jsonl.gz", *SEARCHED)
    loaded, ending = load(tape)
    (tmp_path / "run.html").write_bytes(b"".join(single_file(loaded, ending, "t.tape.jsonl.gz", None)))
    page = chromium.new_page()
    page.goto((tmp_path / "run.html").as_uri())
    expect(page.locator(".row")).to_have_count(5)
    asked = [text for text, _ in SEARCHES if text]
    found = page.evaluate("asked => Promise.all(asked.map(text => tp.model.source.search(text)))", asked)
    assert list(zip(asked, found, strict=True)) == [(text, numbers) for text, numbers in SEARCHES if text]
    page.locator(".sought").fill("this and that")
    page.keyboard.press("Enter")
    expect(page.locator(".row .n")).to_have_text(["2"])
    page.close()


def test_a_stream_plays_as_it_came(page: Page) -> None:
    for key in "jj5":
        page.keyboard.press(key)
    chunks, so_far = page.locator(".chunk"), page.locator(".sofar")
    expect(chunks).to_have_count(5)
    expect(so_far).to_have_count(0)
    assert page.locator(".chunk .when").first.inner_text() == "+10 ms"
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.keyboard.press("p")
    expect(page.locator(".play")).to_have_text("stop")
    words = ("This", "This and", "This and that.")
    for after, count in ((0, 1), (9, 1), (1, 2), (9, 2), (1, 3)):
        page.clock.run_for(after)
        expect(chunks).to_have_count(count)
        expect(so_far).to_have_text(words[count - 1])
    page.keyboard.press("p")
    page.clock.run_for(1000)
    expect(chunks).to_have_count(3)
    page.get_by_role("button", name="10").click()
    for after, count in ((0, 1), (3, 1), (1, 5)):
        page.clock.run_for(after)
        expect(chunks).to_have_count(count)
    expect(page.locator(".play")).to_have_text("play")
    expect(so_far).to_have_text("This and that.")


def test_the_address_names_the_view_and_nothing_else(page: Page, file: Path) -> None:
    page.keyboard.press("j")
    page.keyboard.press("t")
    page.keyboard.press("6")
    expect(page.locator(".detail")).to_contain_text("causal rank")
    assert page.evaluate("location.hash") == "#e=1&tab=place&axis=rank"
    page.locator(".filter").fill("secret words")
    assert "secret" not in page.evaluate("location.href")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    expect(page.locator(".row.marked .n")).to_have_text(["1"])
    assert page.evaluate("location.hash") == "#e=1&tab=place&axis=rank&m=1"
    # What it names and there is not leaves the list and the exchange where they are.
    for view in ("fork", "constructor", "nothing"):
        page.goto(f"{file.as_uri()}#e=1&view={view}")
        expect(page.locator(".row")).to_have_count(4)
        expect(page.locator(".detail")).to_have_attribute("data-number", "1")
        page.goto("about:blank")
    page.goto(f"{file.as_uri()}#e=4&view=context&o=77")
    expect(page.locator(".context")).to_contain_text("There is no exchange 77 here.")
    page.goto("about:blank")
    page.goto(f"{file.as_uri()}#e=77")
    expect(page.locator(".detail")).to_contain_text("exchange 77 is not in this file")
    page.keyboard.press("J")
    expect(page.locator(".detail")).to_have_attribute("data-number", "1")
    page.goto("about:blank")
    page.goto(f"{file.as_uri()}#e=2&tab=stream&m=4")
    expect(page.locator(".detail")).to_have_attribute("data-number", "2")
    expect(page.locator(".row.marked .n")).to_have_text(["4"])
    expect(page.locator(".chunk")).to_have_count(5)


def test_the_chain_is_checked_in_the_browser(page: Page) -> None:
    page.locator(".badge").click()
    expect(page.locator(".badge")).to_contain_text("chain intact")
    expect(page.locator(".badge")).to_contain_text("sealed")


def variants(folder: Path) -> Iterator[bytes]:
    """A tape as it was written, cut anywhere, changed anywhere, appended to, compressed anew."""
    whole = (folder / "t.tape.jsonl.gz").read_bytes()
    yield whole
    yield from (whole[:size] for size in (*range(60, len(whole), len(whole) // 23), *range(len(whole) - 9, len(whole))))
    for at in (*range(12, len(whole), len(whole) // 31), len(whole) - 3):
        yield whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
    plain = gzip.decompress(whole)
    lines = plain.splitlines(keepends=True)
    for text in (plain, b"".join(lines[:5]), b"".join(lines[:5])[:-7], b"".join(lines[1:]), plain + lines[1]):
        yield gzip.compress(text, mtime=0)
    for more in (b"\x1f", b"more", gzip.compress(b"x"), gzip.compress(lines[1])):
        yield whole + more


def test_the_badge_says_of_a_tape_what_verify_says(page: Page, tmp_path: Path) -> None:
    kinds = {"intact": "good", "interrupted": "", "not-canonical": "", "damaged": "bad"}
    seen: Counter[str] = Counter()
    for number, content in enumerate(variants(tmp_path)):
        tape = tmp_path / f"{number}.tape.jsonl.gz"
        tape.write_bytes(content)
        finding = examine(tape, ask_environment).finding
        said = page.evaluate(
            "async text => tp.judged(await tp.verify(tp.unbase64(text)), false)", base64.b64encode(content).decode()
        )
        kind = "good" if said.get("good") else "bad" if said.get("bad") else ""
        assert kind == kinds[finding], f"variant {number}: {finding}, {said['text']}"
        assert finding in ("intact", "damaged") or finding.replace("-", " ") in said["text"]
        seen[finding] += 1
    assert all(seen[finding] > 0 for finding in kinds)
    assert seen["interrupted"] > 10


def test_a_tape_without_a_seal_is_neither_good_nor_bad(chromium: Browser, file: Path) -> None:
    text = file.read_text()
    before, _, rest = text.partition("id=tp-file>")
    packed, _, after = rest.partition("<")
    tape = base64.b64decode(packed)
    file.write_text(f"{before}id=tp-file>{base64.b64encode(tape[: len(tape) // 2]).decode()}<{after}")
    page = chromium.new_page()
    page.goto(file.as_uri())
    expect(page.locator(".row")).to_have_count(4)
    page.locator(".badge").click()
    expect(page.locator(".badge")).to_contain_text("interrupted: no seal; what is there is intact")
    expect(page.locator(".badge.bad, .badge.good")).to_have_count(0)
    page.close()


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "<!-- --> ]]> \x1b[31mred\x1b[0m \u202eevil\u202c \u2028 ${alert(4)} {{x}} javascript:alert(5) </textarea></title>"
    "<iframe srcdoc='<script>alert(6)</script>'></iframe><a href=javascript:alert(7)>x</a>"
    "<style>*{display:none}</style>"
)
IN_HEADER = HOSTILE.encode("ascii", "replace").replace(b"\x1b", b"?")


def hostile_records() -> list[Record]:
    """A run in which all that the world or the agent can choose is hostile."""
    call = {
        "model": HOSTILE,
        "messages": [
            {"role": HOSTILE, "content": HOSTILE},
            {"role": "assistant", "tool_calls": [{"id": HOSTILE, "function": {"name": HOSTILE, "arguments": HOSTILE}}]},
            {"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE},
            {"role": "user", "content": [{"type": HOSTILE}, {"type": "image_url", "image_url": {"url": HOSTILE}}]},
            {HOSTILE: HOSTILE, "role": "user", "content": "?"},
        ],
    }
    answer = {
        "model": HOSTILE,
        "choices": [{"message": {"role": "assistant", "content": HOSTILE}, "finish_reason": HOSTILE}],
    }
    svg = {"type": "image_url", "image_url": {"url": "data:image/svg+xml," + HOSTILE}}
    lane = "m/" + HOSTILE.replace("/", "|")
    page = ((b"Content-Type", b"text/html"), (b"X-" + IN_HEADER, IN_HEADER))
    events = ((b"Content-Type", b"text/event-stream"),)
    asks = (
        Ask("m", MODEL, call, json.dumps(answer).encode(), headers=(agentruns.JSON_TYPE,)),
        Ask(lane, MODEL, call | {"messages": [{"role": "user", "content": [svg]}]}, json.dumps(answer).encode()),
        get("m", "x?" + "".join(one for one in HOSTILE if one.isascii() and one.isprintable()), HOSTILE, headers=page),
        Ask("m", "https://service.test/s", headers=events, stream=(f"event: {HOSTILE}\ndata: {HOSTILE}\n\n".encode(),)),
        Ask("m", MODEL, call, json.dumps({"error": {"message": HOSTILE}}).encode(), 500, (agentruns.JSON_TYPE,)),
    )
    mcp = {"jsonrpc": "2.0", "id": 1, "method": HOSTILE, "params": {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}}
    found = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": HOSTILE}]}}
    asks = (*asks, get("m", "y", '{"<b onclick=alert(8)>": "\\ud800 alone"}', headers=(agentruns.JSON_TYPE,)))
    asks = (*asks, Ask("m", "https://service.test/mcp", mcp, json.dumps(found).encode()))
    first = (
        Lane(t=1, id="m", what=HOSTILE, name=HOSTILE),
        Lane(t=1, id=lane, what="thread", name=HOSTILE, origin=("m", 0, 0)),
        Note(t=2, what=HOSTILE, text=HOSTILE),
        Value(t=3, lane="m", n=0, what="tool", name=HOSTILE, content=b"1", length=1, digest="ab"),
    )
    made = records(asks, first=first, code=None)
    typed = json.dumps({"type": HOSTILE})
    talk = socket_exchange(f">{HOSTILE}", f"<{typed}", b"<\xff" + HOSTILE.encode(), f"<!1000 {HOSTILE}")
    return [*made, *records_of(talk, len(made) + 1)]


def hostile_tape(folder: Path) -> Path:
    head = Head(
        by=HOSTILE, started_at="2026-01-02T03:04:05.000000Z", argv=(HOSTILE, "\u202e", "/x/" + HOSTILE), cwd=HOSTILE
    )
    (folder / "t.tape.jsonl.gz").write_bytes(agentruns.tape_bytes(hostile_records(), head))
    return folder / "t.tape.jsonl.gz"


def look_at_all(page: Page) -> None:
    """Every exchange in every tab, and every view."""
    for _ in range(8):
        page.keyboard.press("j")
        for key in "123456c":
            page.keyboard.press(key)
            expect(page.locator(".detail .body, .context")).to_be_visible()
        page.keyboard.press("c")
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    for key in "tth":
        page.keyboard.press(key)
    for x, y in ((40, 30), (600, 30)):
        page.locator("canvas").hover(position={"x": x, "y": y})


ELEMENTS = "[...document.querySelectorAll('#app *')].map(one => one.localName)"
OURS = {
    *("div", "header", "h1", "h2", "h3", "h4", "span", "button", "input", "form", "canvas", "p", "section", "pre", "b"),
    *("nav", "kbd", "table", "tbody", "tr", "th", "td", "details", "summary", "ins", "del"),
}


def test_what_a_tape_says_is_text(chromium: Browser, tmp_path: Path) -> None:
    tape = hostile_tape(tmp_path)
    loaded, ending = load(tape)
    file = tmp_path / "run.html"
    file.write_bytes(b"".join(single_file(loaded, ending, HOSTILE, tape.read_bytes())))
    page = chromium.new_page()
    watched = Watched(page, file.as_uri())
    page.goto(file.as_uri())
    expect(page.locator(".row")).to_have_count(8)
    look_at_all(page)
    assert set(page.evaluate(ELEMENTS)) <= OURS
    page.evaluate("tp.state.set({number: 1, tab: 'conversation', view: ''})")
    message = page.locator(".message").first
    expect(message).to_contain_text("<img src=x onerror=alert(2)>")
    expect(message).to_contain_text("\\u{202e}evil\\u{202c} \\u{2028}")
    expect(message).to_contain_text("\\u{1b}[31mred")
    page.evaluate("tp.state.set({number: 6, tab: 'response'})")
    expect(page.locator(".detail pre")).to_contain_text("\\ud800 alone")
    scripts = page.evaluate("[...document.querySelectorAll('script:not([type])')].length")
    assert scripts == len(SCRIPTS) + 1
    assert watched.said == []
    page.close()


def test_what_two_tapes_say_is_text(chromium: Browser, tmp_path: Path) -> None:
    ours, _ = load(hostile_tape(tmp_path))
    theirs = run(say("m", HOSTILE + "2", answer=HOSTILE + "3"), get("m", "x", HOSTILE + "4"), names={"m": HOSTILE})
    file = tmp_path / "diff.html"
    file.write_bytes(b"".join(diff_file(RunDiff(diff_tapes(ours, theirs), (HOSTILE, HOSTILE)), HOSTILE)))
    page = chromium.new_page()
    watched = Watched(page, file.as_uri())
    page.goto(file.as_uri())
    expect(page.locator(".row")).to_have_count(10)
    for number in range(1, 11):
        page.evaluate(f"tp.state.set({{number: {number}, tab: 'difference', view: ''}})")
        expect(page.locator(f".detail[data-number='{number}'] .difference")).to_be_visible()
    assert set(page.evaluate(ELEMENTS)) <= OURS
    assert watched.said == []
    page.close()
