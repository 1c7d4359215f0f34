"""Checks of runs by real commands."""

import asyncio
import os
from pathlib import Path

import pytest

from tapeproxy.proxy.checks import ByCommand, ByPredicate, CheckError, Ran, by_exit
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.predicates import parse_predicate
from tapeproxy.tapes.records import Exit, Head

ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    (tmp_path / "out").write_text("poison")
    (tmp_path / "err").write_text("")
    tape = Tape(Head(), exit=Exit(t=1, code=7))
    return Ran(7, tmp_path / "out", tmp_path / "err", lambda: tape, lambda: tmp_path / "x.tape.jsonl.gz")


def check(command: str, ran: Ran) -> str:
    return asyncio.run(ByCommand(command, ENVIRONMENT)(ran))


@pytest.mark.parametrize(("code", "verdict"), [(0, "good"), (1, "bad"), (124, "bad"), (125, "skip")])
def test_a_command_judges_by_its_code(code: int, verdict: str, ran: Ran) -> None:
    assert check(f"exit {code}", ran) == verdict


def test_a_command_knows_the_run(ran: Ran) -> None:
    assert check('! grep -q poison "$TAPEPROXY_STDOUT"', ran) == "bad"
    assert check(f'test "$TAPEPROXY_EXIT" = 7 && test "$TAPEPROXY_TAPE" = {ran.tape_path()}', ran) == "good"
    assert check('test -f "$TAPEPROXY_STDERR"', ran) == "good"


@pytest.mark.parametrize("command", ["no-such-command-here", "kill -9 $$", "exit 128"])
def test_a_check_that_cannot_judge_ends_the_search(command: str, ran: Ran) -> None:
    with pytest.raises(CheckError, match="could not judge"):
        check(command, ran)


def test_by_exit_and_by_predicate(ran: Ran) -> None:
    assert asyncio.run(by_exit(ran)) == "bad"
    assert asyncio.run(ByPredicate(parse_predicate("$.exit=7"))(ran)) == "good"
    assert asyncio.run(ByPredicate(parse_predicate("$.exit=8"))(ran)) == "bad"
