"""The page while a tape grows: a recording against the fake provider, with the line cut; and a fork that it orders."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import agentruns
import pytest
from authority import Authority
from browser import Watched, browser, needs_chromium
from clirun import KEYS, Cli
from halves import Halves, agent_of_halves
from origin import Gate, Origin
from playwright.sync_api import Browser, Route, expect
from recording import Recording
from viewserving import opened, viewing
from wstapes import records_of, socket_exchange

from tapeproxy.cli.browsing import leading_to
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.testing import FakeProvider

pytestmark = needs_chromium
NAME = "run.tape.jsonl.gz"
ASK = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "Tell me of tides"}]}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def test_a_recording_is_followed_through_a_lost_line(chromium: Browser, authority: Authority, tmp_path: Path) -> None:
    halves = Halves()
    with FakeProvider() as provider, Origin(halves) as origin, Recording(tmp_path, authority) as recording:
        url = f"{provider.url}/v1/chat/completions"
        with recording.client() as client:
            client.post(url, json=ASK)
            with viewing(tmp_path) as server, opened(chromium, server.address(f"tape/{NAME}")) as page:
                watched = Watched(page, "http://127.0.0.1")
                expect(page.locator(".row .words")).to_have_count(1)
                expect(page.locator(".bar .dim").first).to_contain_text("recording · 1 exchange")
                page.locator(".badge").click()
                badge = page.locator(".badge:not(.good):not(.bad)")
                expect(badge).to_contain_text("still recorded: the first")
                client.post(url, json=ASK)
                expect(page.locator(".row .what")).to_have_text(["gpt-4o", "gpt-4o"])
                expect(badge).to_contain_text("still recorded: the first")

                with client.stream("GET", f"{origin.url}/halves") as stream:
                    page.locator(".row", has_text="/halves").click()
                    page.keyboard.press("5")
                    expect(page.locator(".chunk pre")).to_have_text(["the first half"])
                    expect(page.locator(".detail header")).to_contain_text("unfinished")
                    assert watched.said == []

                    port = server.port
                    server.stop()
                    expect(page.locator(".bar .dim").first).to_contain_text("trying again")
                    client.post(url, json=ASK)
                    halves.second.open()
                    stream.read()
                    with viewing(tmp_path, port):
                        expect(page.locator(".row .what")).to_have_count(4)
                        expect(page.locator(".chunk pre")).to_have_text(["the first half", "the second half"])
                        expect(page.locator(".detail header")).not_to_contain_text("unfinished")
                        expect(page.locator(".row .what").last).to_have_text("gpt-4o")
                        client.post(url, json=ASK)
                        expect(page.locator(".row .what")).to_have_count(5)
                        recording.finish()
                        recording.join()
                        expect(page.locator(".bar .dim").first).to_contain_text("complete · 5 exchanges")
                        expect(page.locator(".badge")).to_have_text("verify")


@pytest.fixture
def cli(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return agent_of_halves(tmp_path, tmp_path_factory.mktemp("home"))


def test_a_fork_is_ordered_and_watched(chromium: Browser, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    halves = Halves()
    halves.second.open()
    for name, value in cli.environment(keys=True).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(cli.cwd)
    with FakeProvider() as provider, Origin(lambda call: halves(call)) as origin:
        maps = (f"--map=api.openai.com={provider.url}", f"--map=halves.test={origin.url}")
        done = cli.run("record", "-o", NAME, *maps, "--", sys.executable, "agent.py", keys=True)
        assert done.returncode == 0, done.stderr
        assert len(provider.requests) == 2
        halves.second = Gate()
        with (
            viewing(cli.cwd, extra=maps) as server,
            opened(chromium, f"{server.address(f'tape/{NAME}')}&e=1") as page,
        ):
            watched = Watched(page, "http://127.0.0.1")
            expect(page.locator(".message").first).to_be_visible()
            assert page.url.endswith(f"/tape/{NAME}#e=1"), "the token is not in the address"
            page.keyboard.press("f")
            page.locator(".forking textarea").fill("The moon does it.")
            page.locator(".plan").click()
            expect(page.locator(".planned")).to_contain_text("mutated 1")
            expect(page.locator(".planned")).to_contain_text("live 2, 3")
            page.locator(".run").click()
            with page.context.expect_page() as opening:
                page.locator("a.child").click()
            child = opening.value
            expect(child.locator(".row")).to_have_count(3)
            expect(child.locator(".row .dot.mutated")).to_have_count(1)
            expect(child.locator(".row .dot.live")).to_have_count(2)
            expect(child.locator(".bar .dim").first).to_contain_text("recording")
            expect(page.locator(".running")).to_contain_text("running")
            assert "The moon does it." in provider.requests[-1].body.decode()
            # Who loads the page anew finds the fork again, and can stop it.
            page.reload()
            page.keyboard.press("f")
            expect(page.locator(".running")).to_contain_text("running")
            expect(page.locator(".running .stop")).to_be_enabled()
            halves.second.open()
            expect(child.locator(".bar .dim").first).to_contain_text("exited · 3 exchanges")
            expect(page.locator(".running")).to_contain_text("ended with exit code 0")
            expect(page.locator(".output")).to_contain_text("the first halfthe second half")
            assert len(provider.requests) == 3
            assert watched.said == []
            page.goto(server.address())
            expect(page.locator("td.outcome")).to_have_text(["exit 0", "exit 0"])
            expect(page.locator("td.exchanges")).to_have_text(["3", "3"])
            expect(page.locator("td.command").first).to_contain_text("agent.py")
    assert KEYS["OPENAI_API_KEY"].encode() not in (cli.cwd / "run-fork1.tape.jsonl.gz").read_bytes()


def test_nothing_is_typed_before_the_answer_has_come(chromium: Browser, tmp_path: Path) -> None:
    agentruns.write_tape(tmp_path / NAME, agentruns.sample("m"))
    with viewing(tmp_path) as server, opened(chromium, f"{server.address(f'tape/{NAME}')}&e=1") as page:
        expect(page.locator(".message").first).to_be_visible()
        held: list[Route] = []
        page.route("**/api/tapes/*/exchanges/*", lambda route: held.append(route))
        page.keyboard.press("f")
        text = page.locator(".forking textarea")
        expect(text).to_be_disabled()
        expect(page.locator(".plan")).to_be_disabled()
        with page.expect_response("**/api/tapes/*/exchanges/1"):
            for route in held:
                route.continue_()
        expect(text).to_be_editable()
        expect(page.locator(".plan")).to_be_enabled()
        assert text.input_value()
        text.fill("The moon does it.")
        page.locator(".forking input").fill("NAME")
        expect(text).to_have_value("The moon does it.")


def test_an_answer_that_cannot_be_read_leaves_a_form_to_fill(chromium: Browser, tmp_path: Path) -> None:
    agentruns.write_tape(tmp_path / NAME, agentruns.sample("m"))
    with viewing(tmp_path) as server, opened(chromium, f"{server.address(f'tape/{NAME}')}&e=1") as page:
        expect(page.locator(".message").first).to_be_visible()
        page.route("**/api/tapes/*/exchanges/*", lambda route: route.fulfill(status=500, body="{}"))
        page.keyboard.press("f")
        expect(page.locator(".forking .error")).to_be_visible()
        page.locator(".forking textarea").fill("The moon does it.")
        expect(page.locator(".plan")).to_be_enabled()


def test_without_the_token_the_page_says_what_to_do_and_a_file_can_bring_it(chromium: Browser, tmp_path: Path) -> None:
    agentruns.write_tape(tmp_path / NAME, agentruns.sample("m"))
    with viewing(tmp_path) as server:
        for path in ("", f"tape/{NAME}"):
            with opened(chromium, server.address(path).partition("#")[0]) as page:
                expect(page.locator("body")).to_contain_text("open the address that `tapeproxy serve` printed")
                assert "18 degrees" not in page.content()
        with (
            leading_to(server.address(f"tape/{NAME}")) as file,
            opened(chromium, file.as_uri()) as page,
        ):
            expect(page.locator(".row")).to_have_count(4)
            assert page.url == server.address(f"tape/{NAME}").partition("#")[0]


def test_a_tape_that_is_replaced_while_it_is_followed_is_shown_anew(chromium: Browser, tmp_path: Path) -> None:
    first = TapeWriter(tmp_path / NAME, agentruns.HEAD)
    for record in agentruns.sample("m"):
        first.add(record)
    first.commit()
    with viewing(tmp_path) as server, opened(chromium, server.address(f"tape/{NAME}")) as page:
        expect(page.locator(".row")).to_have_count(4)
        later = replace(agentruns.HEAD, started_at="2026-02-02T03:04:05.000000Z")
        second = TapeWriter(tmp_path / NAME, later, force=True)
        for record in agentruns.exchange(1, "http://second.test/path"):
            second.add(record)
        second.commit()
        expect(page.locator(".row .what")).to_have_text(["GET /path"])
        expect(page.locator(".bar .dim").first).to_contain_text("recording · 1 exchange")
        # A WebSocket that is still open: what each side says comes in, and its last word stays in view.
        request, response, *frames, end = records_of(socket_exchange(">?", "<" + "a\n" * 99, ">And?", "<bye"), index=4)
        for record in (request, response, *frames[:2]):
            second.add(record)
        second.commit()
        page.locator(".row", has_text="/ws").click()
        expect(page.locator(".frame .who").last).to_have_text("server")
        second.add(frames[2])
        second.commit()
        expect(page.locator(".frame").last).to_contain_text("And?")
        expect(page.locator(".frame").last).to_be_in_viewport()
        second.add(frames[3])
        second.add(end)
        second.seal(trace="", outcome="exited")
        expect(page.locator(".frame").last).to_contain_text("bye")
        expect(page.locator(".bar .dim").first).to_contain_text("exited · 2 exchanges")
    first.seal(trace="", outcome="exited")
