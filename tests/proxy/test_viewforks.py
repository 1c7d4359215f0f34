"""Forks that the page orders, without a page: their processes, their output, their end."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import agentruns
import pytest

from tapeproxy.proxy import viewforks
from tapeproxy.proxy.viewforks import ForkingFolder
from tapeproxy.tapes.errors import UsageError
from tapeproxy.web.library import ForkOrder, NotThereError

NAME = "one.tape.jsonl.gz"
ORDER = ForkOrder((("--at", "2"), ("--status", "500")))
WAITS = """
import signal, sys, time
def end(*_):
    print("interrupted", flush=True)
    raise SystemExit(130)
signal.signal(signal.SIGINT, end)
print("begun", *sys.argv[1:], flush=True)
while True:
    time.sleep(0.01)  # not signal.pause(), which a signal that comes right before it does not end
"""
STUBBORN = "import signal; signal.signal(2, signal.SIG_IGN); print('begun', flush=True); signal.pause()"


@pytest.fixture
def folder(tmp_path: Path) -> ForkingFolder:
    agentruns.write_tape(tmp_path / NAME, agentruns.sample("m"))
    return ForkingFolder(tmp_path)


def program(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Run this instead of `tapeproxy fork`."""
    monkeypatch.setattr(viewforks, "_command", lambda _parent, _order: [sys.executable, "-c", text])


def until(folder: ForkingFolder, number: int, what: str) -> Any:
    """Its state once it has printed `what`; empty: once it has ended."""
    while what not in (state := folder.fork_state(number))["output"] or (what == "" and state["running"]):
        assert state["running"], state
        os.sched_yield()
    return state


def descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_a_fork_is_stopped_and_keeps_nothing_open(folder: ForkingFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    program(monkeypatch, WAITS)
    before = descriptors()
    first, second = folder.fork(NAME, ORDER), folder.fork(NAME, ORDER)
    assert [first["child"], second["child"]] == ["one-fork1.tape.jsonl.gz", "one-fork2.tape.jsonl.gz"]
    for one in (first, second):
        state = until(folder, one["fork"], "begun")
        assert (state["running"], state["exit_code"], state["begun"]) == (True, None, False)
        folder.stop_fork(one["fork"])
        until(folder, one["fork"], "interrupted")
    folder.close()
    told = {"parent": NAME, "at": 2, "running": False, "exit_code": 130, "begun": False}
    assert folder.forks() == [one | told for one in (first, second)]
    state = folder.fork_state(first["fork"])
    assert (state["running"], state["exit_code"]) == (False, 130)
    assert state["output"].endswith("interrupted\n")
    assert descriptors() == before
    folder.stop_fork(first["fork"])


def test_the_end_waits_for_forks_and_ends_those_that_do_not(
    folder: ForkingFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewforks, "_PATIENCE", 0.1)
    program(monkeypatch, STUBBORN)
    number = folder.fork(NAME, ORDER)["fork"]
    until(folder, number, "begun")
    folder.close()
    assert folder.fork_state(number)["exit_code"] == -signal.SIGTERM


def test_only_some_run_at_a_time(folder: ForkingFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewforks, "_MOST", 1)
    program(monkeypatch, WAITS)
    number = folder.fork(NAME, ORDER)["fork"]
    until(folder, number, "begun")
    with pytest.raises(UsageError, match="1 forks run already"):
        folder.fork(NAME, ORDER)
    folder.stop_fork(number)
    folder.close()
    assert folder.fork(NAME, ORDER)["fork"] == number + 1
    folder.close()


def test_the_child_of_one_tape_alone_is_shown_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agentruns.write_tape(tmp_path / NAME, agentruns.sample("m"))
    folder = ForkingFolder(tmp_path / NAME)
    program(monkeypatch, f"import shutil, sys; shutil.copy({str(tmp_path / NAME)!r}, sys.argv[2])")
    assert len(folder.paths()) == 1
    one = folder.fork(NAME, ORDER)
    until(folder, one["fork"], "")
    folder.close()
    assert set(folder.paths()) == {NAME, one["child"]}
    assert folder.fork_state(one["fork"])["begun"]
    assert len(folder.open(one["child"]).look().tape.exchanges) == 4


def test_who_asks_for_what_is_not_there(folder: ForkingFolder) -> None:
    for ask in (folder.fork_state, folder.stop_fork):
        with pytest.raises(NotThereError):
            ask(1)
    for order in (folder.plan, folder.fork):
        with pytest.raises(NotThereError):
            order("other.jsonl.gz", ORDER)


@pytest.mark.parametrize("option", ["--body", "--env", "--map", "-o", "--timeout", "--", "--client-cert", "--edit"])
def test_the_page_changes_what_is_said_and_nothing_else(folder: ForkingFolder, option: str) -> None:
    for order in (folder.plan, folder.fork):
        with pytest.raises(UsageError, match="may not use"):
            order(NAME, ForkOrder(((option, "x"),)))


def test_a_body_is_a_text_and_no_file(folder: ForkingFolder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    for value in (str(tmp_path / "secret"), f"2::{tmp_path / 'secret'}", "-", "last::@x"):
        with pytest.raises(UsageError, match="may not use a file"):
            folder.plan(NAME, ForkOrder((("--body", value),)))
    assert folder.plan(NAME, ForkOrder((("--body", '2::@{"degrees": 3}'),)))["lanes"]


def test_a_dry_run_that_takes_too_long_is_ended(folder: ForkingFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewforks, "_PLAN_SECONDS", 0.1)
    program(monkeypatch, "import signal; signal.pause()")
    with pytest.raises(UsageError, match="the dry run took more than"):
        folder.plan(NAME, ORDER)
