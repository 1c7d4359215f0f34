"""`kill -9` of the recorder at named points and at random moments: what an agent has received is on the tape."""

import asyncio
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import killing
import pytest
from origin import Call, Origin
from recorders import Recorders, check, recorders

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
class Streaming:
    """Recorders of the streaming agents."""

    recorders: Recorders
    origin: Origin
    seen: int = 0

    @property
    def lines(self) -> list[str]:
        return self.recorders.lines

    def run(self, tape: Path, **when: Any) -> int:
        """Record the agents; see Recorders.run."""
        argv = [sys.executable, "-I", "-S", str(PROGRAMS / "streamers.py"), self.origin.url, str(killing.HOLD)]
        self.seen = len(self.origin.requests)
        return self.recorders.run(tape, argv, **when)

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
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streaming]:
    with Origin(stream) as origin, recorders(tmp_path_factory.mktemp("killed")) as several:
        yield Streaming(several, origin)


def test_when_nobody_dies_all_is_there(streaming: Streaming, tmp_path: Path) -> None:
    assert streaming.run(tmp_path / "t.gz") == 0
    assert len(streaming.lines) == ALL
    found = check(streaming.lost, tmp_path / "t.gz")
    assert found.seal is not None
    # And the check would see it: a tape without its last chunk, or its last exchange.
    found.exchanges[0].chunks.pop()
    assert len(streaming.lost(found)) == 1
    found.exchanges = found.exchanges[:-1]
    assert len(streaming.lost(found)) == 1 + CHUNKS + 1


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
def test_a_kill_at_a_named_point(streaming: Streaming, tmp_path: Path, point: str, at: int) -> None:
    status = streaming.run(tmp_path / "t.gz", point=point, at=at)
    assert status == -signal.SIGKILL, "it was not passed so often"
    found = check(streaming.lost, tmp_path / "t.gz")
    sealed = point in ("close-before", "close-after", "finish-after")
    assert (found.seal is not None) == sealed


@pytest.mark.parametrize(("point", "size"), [("write-before", 0), ("create-before", None)])
def test_a_kill_before_there_is_a_head(streaming: Streaming, tmp_path: Path, point: str, size: int | None) -> None:
    tape = tmp_path / "t.gz"
    assert streaming.run(tape, point=point) == -signal.SIGKILL
    assert streaming.lines == []
    assert (tape.stat().st_size if tape.exists() else None) == size


@pytest.mark.parametrize("part", range(10))
def test_a_kill_at_a_random_moment(streaming: Streaming, tmp_path: Path, part: int) -> None:
    after = ALL * part // 10 + random.randrange(1, ALL // 10)
    assert streaming.run(tmp_path / "t.gz", after=after) in (0, -signal.SIGKILL)
    assert len(streaming.lines) >= after
    check(streaming.lost, tmp_path / "t.gz")


@pytest.mark.soak
def test_two_hundred_kills_at_random_moments(streaming: Streaming, tmp_path: Path) -> None:
    killed = 0
    for number in range(200):
        tape = tmp_path / f"{number}.gz"
        killed += streaming.run(tape, after=random.randrange(1, ALL)) == -signal.SIGKILL
        check(streaming.lost, tape)
    assert killed > 150
