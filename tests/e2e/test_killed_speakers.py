"""`kill -9` of a recorder of HTTP/2, gRPC and WebSockets: what was received is on the tape, and is replayed."""

import asyncio
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import killing
import pytest
import wsproto.events as ws
from origin import Origin
from origin2 import Call, Origin2
from recorders import Recorders, check, recorders
from speaking import PIECES, ROUNDS, STREAMS, text
from wstalks import ServerEnd, accepting

from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.messages import read_frames

PROGRAM = Path(__file__).parent / "programs" / "speakers.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tested on Linux")


@dataclass
class Speaking:
    """Recorders of the speaking agent, and its servers. `heard`: bytes or messages that a server had, by path."""

    recorders: Recorders
    heard: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    h2: Origin2 = field(init=False)
    ws: Origin = field(init=False)

    def argv(self, log: int) -> list[str]:
        return [sys.executable, str(PROGRAM), str(self.h2.port), str(self.ws.port), str(log)]

    def run(self, tape: Path, **when: Any) -> int:
        self.heard.clear()
        return self.recorders.run(tape, self.argv(killing.HOLD), **when)

    def received(self) -> dict[str, int]:
        """What the agent has received at most, by path."""
        return latest(self.recorders.lines)

    def lost(self, tape: Tape) -> list[str]:
        """What the agent or a server has received and is not on the tape."""
        taped = {one.request.url.decode().partition("1:")[2].partition("/")[2]: one for one in tape.exchanges}
        wanted = [(path, "client", count) for path, count in self.received().items()]
        wanted += [(path, "server", count) for path, count in self.heard.items()]
        return [
            f"{path} to the {to}: {count}"
            for path, to, count in wanted
            if path[1:] not in taped or not has(taped[path[1:]], path, to, count)
        ]

    # --- the servers ----------------------------------------------------------------------------------------------

    async def answer(self, call: Call) -> None:
        await call.head(200, ("content-type", "application/grpc" if "/grpc/" in call.path else "text/event-stream"))
        if "/grpc/" not in call.path:
            self.heard[call.path] += 0
            for piece in range(PIECES):
                await call.data(text(call.path, piece).encode())
                await asyncio.sleep(0)
            await call.data(b"", end=True)
            return
        had = b""
        while (piece := await call.pieces.get()) is not None:
            self.heard[call.path] += len(piece)
            had += piece
            while len(had) >= 5 and len(had) >= (size := 5 + int.from_bytes(had[1:5])):
                message, had = had[5:size], had[size:]
                await call.data(b"\0" + (len(message) + 3).to_bytes(4) + b"re:" + message)
        await call.trailers(("grpc-status", "0"))

    async def talk(self, end: ServerEnd) -> None:
        path, said = end.call.request.target, ""
        while True:
            match await end.hear():
                case ws.TextMessage() as message:
                    said += message.data
                    if message.message_finished:
                        self.heard[path] += 1
                        await end.say(ws.TextMessage(said), ws.TextMessage(said[::-1]))
                        said = ""
                case ws.CloseConnection() as closing:
                    if closing.code != 1006:
                        await end.say(closing.response())
                    end.call.close()
                    return


def latest(lines: list[str]) -> dict[str, int]:
    return {path: int(count) for path, count in map(str.split, lines)}


def has(exchange: Exchange, path: str, to: str, count: int) -> bool:
    """Whether so much of what is said there is on the tape."""
    pieces = [text(path, piece) for piece in range(PIECES)]
    if path.startswith("/ws/"):
        said = [m.data.decode() for m in read_frames(exchange.frames) if m.whole and m.type == "text" and m.to == to]
        all_ = pieces if to == "server" else [one for piece in pieces for one in (piece, piece[::-1])]
        return len(said) >= count and said == all_[: len(said)]
    if path.startswith("/grpc/"):
        mark = b"re:" if to == "client" else b""
        whole = b"".join(b"\0" + (len(mark) + len(one)).to_bytes(4) + mark + one.encode() for one in pieces)
    else:
        whole = "".join(pieces).encode()
    chunks = exchange.chunks if to == "client" else exchange.uploads
    body = b"".join(chunk.data for chunk in chunks)
    return len(body) >= count and whole.startswith(body)


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Speaking]:
    with recorders(tmp_path_factory.mktemp("killed")) as several:
        one = Speaking(several)
        with Origin2(one.answer) as one.h2, Origin(accepting(one.talk, deflate=True)) as one.ws:
            yield one


def test_when_nobody_dies_all_is_there(speaking: Speaking, tmp_path: Path) -> None:
    assert speaking.run(tmp_path / "t.gz") == 0
    assert len(speaking.received()) == ROUNDS * (STREAMS + 2)
    assert len(speaking.heard) == ROUNDS * (STREAMS + 2)
    assert {speaking.received()[f"/ws/{turn}"] for turn in range(ROUNDS)} == {2 * PIECES}
    found = check(speaking.lost, tmp_path / "t.gz")
    assert found.seal is not None
    # And the check would see it: a tape without the last chunk, frame or message of each.
    for exchange in found.exchanges:
        (exchange.frames or exchange.chunks).pop()
    assert len(speaking.lost(found)) >= ROUNDS * (STREAMS + 1)


NAMED = [
    *[("write-before", 120), ("commit-after", 120), ("forward-after", 90), ("respond-after", 5), ("end-after", 5)],
    *[(f"{name}-{side}", 40) for name in ("take", "hear") for side in ("before", "after")],
]


@pytest.mark.parametrize(("point", "at"), NAMED)
def test_a_kill_at_a_named_point(speaking: Speaking, tmp_path: Path, point: str, at: int) -> None:
    status = speaking.run(tmp_path / "t.gz", point=point, at=at)
    assert status == -signal.SIGKILL, "it was not passed so often"
    assert check(speaking.lost, tmp_path / "t.gz").seal is None


@pytest.mark.soak
def test_two_hundred_kills_at_random_moments(speaking: Speaking, tmp_path: Path) -> None:
    killed = 0
    for number in range(200):
        tape = tmp_path / f"{number}.gz"
        killed += speaking.run(tape, after=random.randrange(1, 200)) == -signal.SIGKILL
        check(speaking.lost, tape)
    assert killed > 150


@pytest.mark.parametrize("at", [90, pytest.param(None, marks=pytest.mark.soak)], ids=["there", "anywhere"])
def test_what_was_taped_is_replayed(speaking: Speaking, tmp_path: Path, at: int | None) -> None:
    tape = tmp_path / "t.gz"
    assert speaking.run(tape, after=at or random.randrange(60, 120)) == -signal.SIGKILL
    check(speaking.lost, tape)
    done = speaking.recorders.cli.run("replay", str(tape), "--no-shim", "--", *speaking.argv(1))
    assert done.returncode == 3, done.stderr
    assert "the tape was interrupted during exchange" in done.stderr
    replayed = latest(done.stdout.splitlines())
    assert {path: count for path, count in speaking.received().items() if replayed.get(path, 0) < count} == {}
