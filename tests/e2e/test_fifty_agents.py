"""Fifty agents at one recorder for a long time, slow readers and clients that vanish among them.

Nothing that a client has heard is missing on the tape, and the recorder grows neither in memory nor in descriptors.
"""

import asyncio
import os
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from clirun import Cli

from tapeproxy.proxy.tapefile import read_entries
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.records import Chunks, End, Request

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it is measured as Linux does")

AGENTS = 50
PIECES = 12
PAUSE = 0.05
GROWTH = 24 << 20
"""Bytes by which the recorder may grow between the second fifth of the time and the last."""
TOKEN = re.compile(rb"<(\d+):(\d+)>")


@dataclass(slots=True)
class Heard:
    """What the agents know of a run: of each exchange the last piece that came, and the recorder's samples."""

    last: dict[int, int] = field(default_factory=dict[int, int])
    asked: int = 0
    rss: list[int] = field(default_factory=list[int])
    descriptors: list[int] = field(default_factory=list[int])


async def origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Streams numbered pieces with pauses between them, and does not mind if nobody listens."""
    with suppress(OSError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        number = head.split(b" ", 2)[1].rpartition(b"/")[2]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in range(PIECES):
            data = b"<%s:%d>" % (number, piece) + b"x" * 1000 + b"\n"
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
            await asyncio.sleep(PAUSE * random.random())
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    writer.close()


async def exchange(number: int, kind: int, proxy: int, upstream: int, heard: Heard) -> None:
    """One request: read at once (most), slowly, or left in the middle, with a close or a reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy, limit=2048)
    url = b"http://127.0.0.1:%d/%d" % (upstream, number)
    writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % url)
    rest = b""
    while data := await reader.read(700):
        rest = rest[-40:] + data
        for _, piece in TOKEN.findall(rest):
            heard.last[number] = max(int(piece), heard.last.get(number, -1))
        if kind == 8:
            await asyncio.sleep(0.03)
        elif kind == 9 and heard.last.get(number, -1) >= PIECES // 3:
            break
    if kind == 9 and number % 2:
        writer.transport.abort()
    writer.close()


async def agents(seconds: float, pid: int, proxy: int) -> Heard:
    """Let the agents work for so long, and look at the recorder meanwhile."""
    heard, until = Heard(), time.monotonic() + seconds
    server = await asyncio.start_server(origin, "127.0.0.1", 0)
    upstream = server.sockets[0].getsockname()[1]

    async def agent() -> None:
        while time.monotonic() < until:
            heard.asked += 1
            with suppress(ConnectionError):
                await exchange(heard.asked, heard.asked % 10, proxy, upstream, heard)

    async def watch() -> None:
        while time.monotonic() < until:
            status = Path(f"/proc/{pid}/status").read_text()
            heard.rss.append(int(status.partition("VmRSS:")[2].split()[0]) << 10)
            heard.descriptors.append(descriptors(pid))
            await asyncio.sleep(seconds / 100)

    async with server:
        await asyncio.gather(watch(), *(agent() for _ in range(AGENTS)))
    return heard


def descriptors(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def taped(path: Path) -> Iterator[tuple[int, int, bool]]:
    """Of each exchange on the tape its number, the last piece of its answer (-1: none), and whether it has an end."""
    numbers: dict[int, int] = {}
    last: Counter[int] = Counter()
    ended: set[int] = set()
    endings: list[Ending] = []
    for entry in read_entries(path, endings):
        match entry.record:
            case Request(url=url):
                numbers[entry.index] = int(url.rpartition(b"/")[2])
            case Chunks(of=of, parts=parts):
                text = b"".join(data for _, data in parts if isinstance(data, bytes))
                found = [int(piece) for _, piece in TOKEN.findall(text)]
                last[of] = max([last[of], *(piece + 1 for piece in found)])
            case End(of=of):
                ended.add(of)
            case _:
                pass
    assert endings[0].canonical
    return ((number, last[of] - 1, of in ended) for of, number in numbers.items())


def soaked(cli: Cli, seconds: float) -> None:
    running = cli.start("start", "-o", "t.jsonl.gz")
    assert running.stderr is not None
    proxy = int(re.findall(r"127\.0\.0\.1:(\d+)", running.stderr.readline())[0])
    before = descriptors(running.pid)
    heard = asyncio.run(agents(seconds, running.pid, proxy))
    until = time.monotonic() + 20
    while (left := descriptors(running.pid)) > before + 4 and time.monotonic() < until:
        time.sleep(0.1)
    running.terminate()
    _, said = running.communicate(timeout=400)  # the whole tape is read back
    assert running.returncode == 0, said
    exchanges = {number: (last, ended) for number, last, ended in taped(cli.cwd / "t.jsonl.gz")}
    lost = [number for number, last in heard.last.items() if exchanges.get(number, (-1, False))[0] < last]
    fifth = max(len(heard.rss) // 5, 1)
    growth = statistics.median(heard.rss[-fifth:]) - statistics.median(heard.rss[fifth : 2 * fifth])
    print(
        f"{heard.asked} exchanges, {len(exchanges)} taped; memory {heard.rss[fifth] >> 20} MB, grew by "
        f"{growth / 2**20:.1f} MB; descriptors {before}, at most {max(heard.descriptors)}, then {left}"
    )
    assert lost == []
    assert all(ended for _, ended in exchanges.values())
    assert len(heard.last) >= AGENTS
    assert left <= before + 4
    assert growth < GROWTH


def test_a_short_while(cli: Cli) -> None:
    soaked(cli, 3)


@pytest.mark.soak
def test_ten_minutes(cli: Cli) -> None:
    soaked(cli, float(os.environ.get("TAPEPROXY_SOAK_SECONDS", "600")))
