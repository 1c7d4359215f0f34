"""What the page shows of one exchange, and of one among many: pictures, tools, events, causes, orders, prices."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agentruns
import pytest
from browser import Watched, browser, needs_chromium, until
from difftapes import MODEL, Ask, get, records, say, streamed
from playwright.sync_api import Browser, Page, expect
from wstapes import records_of, socket_exchange

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.records import Edge, Lane, Note, Record, Request, Value
from tapeproxy.web.singlefile import single_file

pytestmark = needs_chromium

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
AT_END = "(one => one.scrollHeight - one.scrollTop - one.clientHeight)(document.querySelector('.body')) < 24"
type Open = Callable[..., Page]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the single file of a run, with the network off; says afterwards if the page complained."""
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 800})
    told: list[Watched] = []

    def show(*asks: Ask, first: tuple[Record, ...] = (), edges: bool = False) -> Page:
        rules = {"edges": 1} if edges else {}
        head = agentruns.HEAD.__class__(
            **{name: getattr(agentruns.HEAD, name) for name in ("by", "started_at", "argv")}, rules=rules
        )
        (tmp_path / "t.tape.jsonl.gz").write_bytes(agentruns.tape_bytes(records(asks, first=first), head))
        loaded, ending = load(tmp_path / "t.tape.jsonl.gz")
        file = tmp_path / "run.html"
        raw = (tmp_path / "t.tape.jsonl.gz").read_bytes()
        file.write_bytes(b"".join(single_file(loaded, ending, "t.tape.jsonl.gz", raw)))
        page = context.new_page()
        told.append(Watched(page, file.as_uri()))
        page.goto(file.as_uri())
        expect(page.locator(".row")).to_have_count(len(asks) + sum(isinstance(record, Request) for record in first))
        return page

    yield show
    assert [said for one in told for said in one.said] == []
    context.close()


def chat(*messages: dict[str, Any]) -> Ask:
    answer = {"model": "gpt-4o", "choices": [{"message": {"role": "assistant", "content": "Seen."}}]}
    answer["usage"] = {"prompt_tokens": 1200, "completion_tokens": 30}
    asked = {"model": "gpt-4o", "messages": list(messages)}
    return Ask("m", MODEL, asked, json.dumps(answer).encode(), headers=(agentruns.JSON_TYPE,))


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_pictures_are_shown_where_the_tape_has_them(opened: Open) -> None:
    svg = "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"
    content = [image(f"data:image/png;base64,{PNG}"), image("https://example.com/cat.png"), image(svg)]
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    used = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "image", "source": source}]}
    talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": [used]}]
    asked = {"model": "claude", "max_tokens": 9, "messages": [*talk, {"role": "user", "content": [result]}]}
    shown = (b"Content-Type", b"image/png; q=1")
    scripted = (b"Content-Type", b"image/svg+xml")
    page = opened(
        chat({"role": "user", "content": content}),
        Ask("m", "https://api.anthropic.com/v1/messages", asked, b"{}", headers=(agentruns.JSON_TYPE,)),
        Ask("m", "https://service.test/cat.png", answer=base64.b64decode(PNG), headers=(shown,)),
        Ask("m", "https://service.test/cat.svg", answer=b"<svg onload=alert(1)>\xff", headers=(scripted,)),
    )
    one = "document.querySelector('.detail[data-number=\"{}\"] {} img')?.naturalWidth === 1"
    for number, inside in ((1, ".role-user"), (2, ".tool .tool"), (3, "")):
        page.keyboard.press("j")
        until(page, one.format(number, inside))
        expect(page.locator(".detail img")).to_have_count(1)
        if number == 1:
            expect(page.locator(".detail")).to_contain_text("https://example.com/cat.png")
    page.keyboard.press("3")
    until(page, one.format(3, ""))
    expect(page.locator(".detail pre")).to_contain_text("000000  89 50 4e 47")
    page.keyboard.press("j")
    expect(page.locator(".detail pre")).to_contain_text("000000  3c 73 76 67")
    expect(page.locator(".detail img")).to_have_count(0)


def test_results_of_tools_stand_with_their_calls(opened: Open) -> None:
    calls = [{"id": f"c{n}", "function": {"name": f"look_{n}", "arguments": "{}"}} for n in (1, 2)]
    page = opened(
        chat(
            {"role": "user", "content": "?"},
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c2", "content": "second"},
            {"role": "tool", "tool_call_id": "c1", "content": "first"},
            {"role": "tool", "tool_call_id": "c9", "content": "of nobody"},
        )
    )
    page.keyboard.press("j")
    nested = page.locator(".tool .tool")
    expect(nested).to_have_count(2)
    expect(nested.nth(0)).to_contain_text("first")
    expect(page.locator(".role-tool")).to_have_count(1)
    expect(page.locator(".role-tool")).to_contain_text("of nobody")


def test_a_message_of_mcp_says_what_was_called_and_what_came(opened: Open) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look", "arguments": {"q": "x"}}}
    shot = {"type": "image", "data": PNG, "mimeType": "image/png"}
    found = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "found <b>"}, shot]}}
    page = opened(Ask("m", "https://tools.test/mcp", message, json.dumps(found).encode()))
    expect(page.locator(".row .what")).to_have_text("tools/call look")
    expect(page.locator(".row .words")).to_have_text("found <b> [image]")
    page.keyboard.press("j")
    expect(page.locator(".mcp .facts")).to_have_text("MCP: tools/call")
    expect(page.locator(".mcp .message")).to_have_text(['look{ "q": "x" }', "resultfound <b> [image]"])
    until(page, "document.querySelector('.mcp img').naturalWidth === 1")


def test_events_of_a_stream_stand_beside_its_chunks(opened: Open) -> None:
    kind = ((b"Content-Type", b"text/event-stream"),)
    pieces = (b'event: a\ndata: {"x":', b" 1}\r\n\r\ndata: two\ndata: lines\r", b"\n\r\n: a comment\n\ndata: cut")
    page = opened(Ask("m", "https://service.test/s", headers=kind, stream=pieces))
    page.keyboard.press("j")
    page.keyboard.press("5")
    expect(page.locator(".chunk")).to_have_count(3)
    expect(page.locator(".event b")).to_have_text(["a", "message"])
    expect(page.locator(".chunk").nth(1).locator(".event pre")).to_have_text(['{\n  "x": 1\n}'])
    expect(page.locator(".chunk").nth(2).locator(".event pre")).to_have_text(["two\nlines"])
    page.get_by_role("button", name="chunks only").click()
    expect(page.locator(".event")).to_have_count(0)


def test_what_passed_on_a_websocket_is_shown_and_played(opened: Open) -> None:
    talk = socket_exchange('>{"type":"hi"}', "<<b>text</b>", b"<\x00\xff", "<!1001 going away", gap=20 * agentruns.MS)
    page = opened(first=tuple(records_of(talk)))
    page.keyboard.press("j")
    frames = page.locator(".frame")
    expect(frames.locator(".who")).to_have_text(["client", "server", "server", "server"])
    expect(frames.locator(".when")).to_have_text(["+40 ms", "+60 ms", "+80 ms", "+100 ms"])
    expect(frames.nth(0)).to_contain_text('hi{ "type": "hi" }')
    expect(frames.nth(1).locator("pre")).to_have_text("<b>text</b>")
    expect(frames.nth(2)).to_contain_text("binary 2 B000000  00 ff")
    expect(frames.nth(3)).to_contain_text("close 1001going away")
    page.keyboard.press("2")
    expect(frames.locator(".who")).to_have_text(["client"])
    page.keyboard.press("3")
    expect(frames.locator(".who")).to_have_text(["server"] * 3)
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.keyboard.press("5")
    expect(frames).to_have_count(4)
    expect(frames.nth(0).locator("pre")).to_have_text('{"type":"hi"}')
    page.keyboard.press("p")
    for after, count in ((0, 1), (19, 1), (1, 2), (20, 3), (20, 4)):
        page.clock.run_for(after)
        expect(frames).to_have_count(count)
    expect(page.locator(".play")).to_have_text("play")


def test_a_long_stream_is_there_whole_and_drawn_where_one_looks(opened: Open) -> None:
    pieces = tuple(b"piece %d\n" % at * (1 + at % 3) for at in range(4500))
    page = opened(Ask("m", "https://service.test/s", stream=pieces))
    page.keyboard.press("j")
    page.keyboard.press("5")
    expect(page.locator(".player")).to_contain_text("4500 of 4500 chunks")
    expect(page.locator(".chunk pre").first).to_have_text("piece 0\n")
    page.locator(".body").focus()
    page.keyboard.press("End")
    expect(page.locator(".chunk pre").last).to_have_text("piece 4499\n" * 3)
    until(page, "document.querySelector('.body').scrollTop > 100000")
    page.evaluate("document.querySelector('.body').scrollTop /= 2")
    until(page, "/^piece 2[0-9]{3}/.test(document.querySelectorAll('.chunk pre')[15].innerText)")
    assert page.locator(".chunk").count() < 200
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.get_by_role("button", name="10").click()
    for after, last in ((200, 200), (100, 300)):
        page.clock.run_for(after)
        expect(page.locator(".chunk pre").last).to_contain_text(f"piece {last}")
    page.locator(".body").hover()
    page.mouse.wheel(0, -1000)
    until(page, AT_END.replace("<", ">"))
    was = page.evaluate("document.querySelector('.body').scrollTop")
    page.clock.run_for(100)
    expect(page.locator(".player")).to_contain_text("401 of")
    assert page.evaluate("document.querySelector('.body').scrollTop") == was, "who reads on is left there"
    page.keyboard.press("End")
    until(page, AT_END)
    page.clock.run_for(100)
    expect(page.locator(".chunk pre").last).to_contain_text("piece 500")
    until(page, AT_END)


def test_bytes_are_a_table_and_json_can_be_read_as_it_came(opened: Open) -> None:
    binary = Ask("m", "https://service.test/b", answer=bytes(range(250, 256)) + b"end")
    page = opened(binary, get("m", "j", '{"a":[1,\t2]}'))
    page.keyboard.press("j")
    page.keyboard.press("3")
    expect(page.locator(".detail pre")).to_contain_text("000000  fa fb fc fd fe ff 65 6e 64")
    page.keyboard.press("j")
    expect(page.locator(".detail pre")).to_have_text('{\n  "a": [\n    1,\n    2\n  ]\n}')
    page.get_by_role("button", name="exact text").or_(page.get_by_role("button", name="set out in lines")).click()
    expect(page.locator(".detail pre")).to_have_text('{"a":[1,\t2]}')


def test_what_the_chosen_exchange_has_nothing_to_do_with_is_dimmed(opened: Open) -> None:
    lanes = tuple(Lane(t=1, id=lane, what="thread", origin=("m", 1, 0)) for lane in ("m/t0", "m/t1"))
    join = Edge(t=4, what="join", on="m/t0", lane="m", n=1, asked=1)
    page = opened(get("m", "1"), get("m/t0", "2"), get("m/t1", "3"), get("m", "4"), first=(*lanes, join), edges=True)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("h")
    until(page, "tp.lanes.causal !== null")
    apart = "tp.model.rows.filter(row => tp.lanes.apart(row)).map(row => row.number)"
    assert page.evaluate(apart) == [3]
    roles = page.evaluate("tp.model.edges.map(edge => [edge[0], edge[3], tp.lanes.role(edge)])")
    assert sorted(role for *_, role in roles) == ["", "future", "past"]
    page.keyboard.press("h")
    until(page, "tp.lanes.causal === null")


def test_a_mark_says_what_was_read(opened: Open) -> None:
    value = Value(t=50_000_000, lane="m", n=0, what="tool", name="look", content=b"1", length=1, digest="ab")
    page = opened(get("m", "x"), get("m", "y"), first=(Note(t=20_000_000, what="bypass", text="a tunnel"), value))
    until(page, "tp.lanes.seenMarks.length === 2")
    for at, words in ((0, "note: a tunnel"), (1, "tool: look")):
        x, y = page.evaluate(f"tp.lanes.seenMarks[{at}].slice(0, 2)")
        page.locator("canvas").hover(position={"x": x + 1, "y": y + 1})
        expect(page.locator(".hint")).to_contain_text(words)


def test_a_tape_without_times_is_laid_out_by_its_order(opened: Open) -> None:
    page = opened(get("m", "1"), get("m", "2"))
    page.evaluate(
        "() => { for (const row of tp.model.rows) row.at = row.end = row.first = 0; tp.model.tape.duration = 0;"
        "tp.model.timeless = true; tp.state.set({axis: 'order'}); tp.model.bump(); }"
    )
    expect(page.get_by_role("button", name="by order")).to_be_visible()
    page.keyboard.press("t")
    expect(page.get_by_role("button", name="by causal rank")).to_be_visible()
    page.keyboard.press("t")
    expect(page.get_by_role("button", name="by order")).to_be_visible()


def test_prices_are_the_users_own(opened: Open) -> None:
    page = opened(chat({"role": "user", "content": "?"}))
    total = page.locator(".sum")
    expect(total).to_have_text("1 call · 1,200 tokens in, 30 out")
    total.click()
    page.locator(".help textarea").fill("gpt 1 1\ngpt-4o 2.5 10\nnonsense\n")
    page.get_by_role("button", name="keep").click()
    expect(total).to_have_text("1 call · 1,200 tokens in, 30 out · costs 0.00330")
    page.keyboard.press("j")
    expect(page.locator(".facts")).to_contain_text("costs 0.00330")


def test_cached_tokens_are_said_apart_and_have_their_own_price(opened: Open) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90_000, "cache_creation_input_tokens": 1000}
    answer = {"type": "message", "role": "assistant", "model": "claude", "content": [], "usage": usage}
    answer["usage"] = usage | {"output_tokens": 100}
    asked = {"model": "claude", "messages": [{"role": "user", "content": "?"}]}
    url = "https://api.anthropic.com/v1/messages"
    page = opened(Ask("m", url, asked, json.dumps(answer).encode(), headers=(agentruns.JSON_TYPE,)))
    total, tokens = page.locator(".sum"), "91,010 tokens in (90,000 cached, 1,000 written to the cache), 100 out"
    for prices, said in (("claude 3 15 .3 3.75", "costs 0.03"), ("claude 3 15", "costs about 0.27")):
        total.click()
        page.locator(".help textarea").fill(prices)
        page.get_by_role("button", name="keep").click()
        expect(total).to_have_text(f"1 call · {tokens} · {said}")
    page.keyboard.press("j")
    expect(page.locator(".facts")).to_contain_text(f"{tokens} · costs about 0.27")


def test_the_place_of_an_exchange_has_its_hash_once_the_chain_is_checked(opened: Open) -> None:
    page = opened(say("m", "?"), streamed("m", "?", "a"))
    page.keyboard.press("j")
    page.keyboard.press("6")
    expect(page.locator(".hash")).to_contain_text("verify")
    page.locator(".badge").click()
    expect(page.locator(".badge.good")).to_contain_text("sealed")
    expect(page.locator(".hash")).to_have_text(page.evaluate("tp.hex(tp.model.hashes[1])"))


def test_all_can_be_reached_without_a_mouse(opened: Open) -> None:
    page = opened(get("m", "1"), get("m", "2"))
    names: list[str] = []
    for _ in range(12):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate(
                "(document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || '')"
            )
        )
    assert [name for name in names if name][:2] == ["verify", "filter"]
    assert {"search in bodies", "by time", "causes", "help", "exchanges"} <= set(names)
    page.locator(".list").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".row.chosen .n")).to_have_text("2")
    assert page.locator(".list").get_attribute("aria-activedescendant") == "row-2"
    expect(page.locator("[aria-live]")).to_contain_text("exchange 2, GET /2, 200, lane m")
