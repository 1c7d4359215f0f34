"""`kill -9` of the recorder at named points and at random moments: what an agent has received is on the tape."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import killing
import pytest
from clirun import KEYS, Cli
from origin import Call, Origin

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.repairing import beside, repair
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape

PROGRAMS = Path(__file__).parent / "programs"
CHUNKS = 12
ALL = 8 * 6 * CHUNKS
"""Chunks that the agents log when nobody dies."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tested on Linux")


def body(agent: str, request: str, chunk: int) -> bytes:
    """What the origin sends; of any size, and never the start of a secret, for which it would be held back."""
    rng = random.Random(f"{agent} {request} {chunk}")
    return f"{agent} {request} {chunk} ".encode() + rng.randbytes(rng.choice((5, 50, 3000))).hex().encode() + b"\n"


async def stream(call: Call) -> None:
    _, agent, request = call.request.target.rsplit("/", 2)
    await call.head("200 OK", "Transfer-Encoding: chunked", "Content-Type: text/event-stream")
    for chunk in range(CHUNKS):
        await call.chunk(body(agent, request, chunk))
        await asyncio.sleep(0)
    await call.last_chunk()


@dataclass
class Recorders:
    """Runs recorders, one after the other, and kills them."""

    process: "subprocess.Popen[str]"
    cli: Cli
    origin: Origin
    seen: int = 0
    lines: list[str] = field(default_factory=list)

    def run(self, tape: Path, *, point: str | None = None, at: int = 1, after: int | None = None) -> int:
        """Record the streaming agents until they are gone; returns the recorder's exit status. `lines`: their log.

        The recorder dies the `at`-th time at `point`, or once `after` lines were logged.
        """
        hold = tape.with_suffix(".fifo")
        os.mkfifo(hold)
        reader = os.open(hold, os.O_RDONLY | os.O_NONBLOCK)
        argv = [sys.executable, "-I", "-S", str(PROGRAMS / "streamers.py"), self.origin.url, str(killing.HOLD)]
        order = {"tape": str(tape), "argv": argv, "cwd": str(tape.parent), "hold": str(hold), "shim": False}
        order |= {"environment": self.cli.environment(keys=True), "point": point, "at": at}
        self.seen = len(self.origin.requests)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        os.set_blocking(reader, True)
        with os.fdopen(reader, encoding="ascii") as log:
            self.lines = list(self._watch(log, pid, after))
        return int(self.process.stdout.readline())

    def _watch(self, log: IO[str], pid: int, after: int | None) -> Iterator[str]:
        for number, line in enumerate(log, 1):
            if number == after:
                os.kill(pid, signal.SIGKILL)
            yield line

    def lost(self, tape: Tape) -> list[str]:
        """What agents or the origin have seen and is not on the tape."""
        taped = {exchange.request.url.decode(): exchange for exchange in tape.exchanges}
        lost = []
        for line in self.lines:
            agent, request, chunk = line.split()
            exchange = taped.get(f"{self.origin.url}/{agent}/{request}")
            have = [] if exchange is None else [one.data for one in exchange.chunks]
            if have[int(chunk) : int(chunk) + 1] != [body(agent, request, int(chunk))]:
                lost.append(line)
        asked = [seen.target for seen in self.origin.requests[self.seen :]]
        return lost + [target for target in asked if self.origin.url + target not in taped]


@pytest.fixture(scope="module")
def recorders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorders]:
    folder = tmp_path_factory.mktemp("killed")
    cli = Cli(folder, folder / "home")
    ca = CertificateAuthority.open(cli.home)
    assert ca.certificate.exists()
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with Origin(stream) as origin:
        program = [sys.executable, str(Path(killing.__file__))]
        with subprocess.Popen(program, env=cli.environment(), **options) as process:
            yield Recorders(process, cli, origin)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(30) == 0


def check(recorders: Recorders, tape: Path) -> Tape:
    """The tape can be read and has all that was received; and so has the one that `repair` makes of it."""
    found, ending = load(tape)
    assert recorders.lost(found) == []
    if not ending.sealed:
        out = beside(tape)
        repair(tape, out, KEYS)
        closed, whole = load(out)
        assert whole.canonical
        assert recorders.lost(closed) == []
    return found


def test_when_nobody_dies_all_is_there(recorders: Recorders, tmp_path: Path) -> None:
    assert recorders.run(tmp_path / "t.gz") == 0
    assert len(recorders.lines) == ALL
    found = check(recorders, tmp_path / "t.gz")
    assert found.seal is not None
    # And the check would see it: a tape without its last chunk, or its last exchange.
    found.exchanges[0].chunks.pop()
    assert len(recorders.lost(found)) == 1
    found.exchanges = found.exchanges[:-1]
    assert len(recorders.lost(found)) == 1 + CHUNKS + 1


NAMED = [
    *[
        (f"{name}-{side}", at)
        for name in ("write", "flush", "commit")
        for side in ("before", "after")
        for at in (9, 170)
    ],
    *[(f"{name}-{side}", at) for name in ("take", "forward") for side in ("before", "after") for at in (1, 120)],
    *[(f"{name}-{side}", 5) for name in ("add", "respond", "end", "drain") for side in ("before", "after")],
    *[(f"{name}-{side}", 1) for name in ("finish", "encode-seal", "close") for side in ("before", "after")],
]


@pytest.mark.parametrize(("point", "at"), NAMED)
def test_a_kill_at_a_named_point(recorders: Recorders, tmp_path: Path, point: str, at: int) -> None:
    status = recorders.run(tmp_path / "t.gz", point=point, at=at)
    assert status == -signal.SIGKILL, "it was not passed so often"
    found = check(recorders, tmp_path / "t.gz")
    sealed = point in ("close-before", "close-after", "finish-after")
    assert (found.seal is not None) == sealed


@pytest.mark.parametrize(("point", "size"), [("write-before", 0), ("create-before", None)])
def test_a_kill_before_there_is_a_head(recorders: Recorders, tmp_path: Path, point: str, size: int | None) -> None:
    tape = tmp_path / "t.gz"
    assert recorders.run(tape, point=point) == -signal.SIGKILL
    assert recorders.lines == []
    assert (tape.stat().st_size if tape.exists() else None) == size


@pytest.mark.parametrize("part", range(10))
def test_a_kill_at_a_random_moment(recorders: Recorders, tmp_path: Path, part: int) -> None:
    after = ALL * part // 10 + random.randrange(1, ALL // 10)
    assert recorders.run(tmp_path / "t.gz", after=after) in (0, -signal.SIGKILL)
    assert len(recorders.lines) >= after
    check(recorders, tmp_path / "t.gz")


@pytest.mark.soak
def test_two_hundred_kills_at_random_moments(recorders: Recorders, tmp_path: Path) -> None:
    killed = 0
    for number in range(200):
        tape = tmp_path / f"{number}.gz"
        killed += recorders.run(tape, after=random.randrange(1, ALL)) == -signal.SIGKILL
        check(recorders, tape)
    assert killed > 150
