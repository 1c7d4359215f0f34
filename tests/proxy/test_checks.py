"""Checks of runs by real commands."""

import asyncio
import os
from pathlib import Path

import pytest

from tapeproxy.proxy.checks import ByCommand, ByPredicate, CheckError, Ran, by_exit, run_shell
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


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_a_cancelled_command_leaves_nothing_behind(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    async def cancelled() -> None:
        # The reader of the pipe is told that its writer, a grandchild, is gone.
        task = asyncio.create_task(run_shell(f"(exec 9>{fifo}; echo x >&9; sleep 60 & wait); true", ENVIRONMENT))
        reader = await asyncio.to_thread(open, fifo, "rb")
        with reader:
            assert await asyncio.to_thread(reader.readline) == b"x\n"
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.wait_for(asyncio.to_thread(reader.read), 10) == b""

    asyncio.run(cancelled())
