"""Many replays behind one port: whose connection is whose, what there is; each has its own index and verdict."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from served import exchange

from tapeproxy.proxy.manyreplays import ManyReplays
from tapeproxy.proxy.manyruns import ManySettings
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.credentials import RefusedError
from tapeproxy.tapes.records import Chunks, End, Head, Response
from tapeproxy.tapes.violations import Drift, Violation


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


def write(folder: Path, name: str, *paths: str) -> None:
    """A tape with a GET of each path, answered with its own name."""
    folder.mkdir(exist_ok=True)
    tape = TapeWriter(folder / name, Head(started_at="2026-01-01T00:00:00Z"))
    for path in paths:
        of = tape.add(exchange(f"http://example.com{path}").request)
        tape.add(Response(t=1, of=of, status=200, reason=b"OK", headers=(), framing="length"))
        tape.add(Chunks(t=2, of=of, parts=((0, f"{name}{path}".encode()),)))
        tape.add(End(t=3, of=of, how="complete"))
    tape.seal(trace="", outcome="stopped")


class Many:
    def __init__(self, folder: Path, **settings: object) -> None:
        self.refused: list[RefusedError] = []
        self.noticed: list[tuple[str, Violation | Drift]] = []
        given = ManySettings(folder=folder, environment={}, cwd="/", **settings)  # type: ignore[arg-type]  # a row's
        self.runs = ManyReplays(given, self.refused.append, lambda *found: self.noticed.append(found))

    async def ask(self, *asked: tuple[str, str | None], port: int = 0, pieces: int = 1 << 16) -> list[bytes]:
        """Send GETs of (path, user) on one connection, whole or in pieces; the answers' bodies, or status and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port or self.runs.port)
        answers = []
        try:
            for path, user in asked:
                data = request(path, user)
                for at in range(0, len(data), pieces):
                    writer.write(data[at : at + pieces])
                    await asyncio.sleep(0)
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                body = await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0]))
                answers.append(body if " 200 " in head else head.split()[1].encode() + b" " + body)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        return answers


def request(path: str, user: str | None) -> bytes:
    said = "" if user is None else f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}\r\n"
    return f"GET http://example.com{path} HTTP/1.1\r\nHost: example.com\r\n{said}\r\n".encode()


@contextlib.asynccontextmanager
async def replaying(folder: Path, **settings: object) -> AsyncIterator[Many]:
    many = Many(folder, **settings)
    await many.runs.start()
    try:
        yield many
    finally:
        await many.runs.stop()


@pytest.mark.parametrize("pieces", [1, 7, 1 << 16])
def test_each_run_has_an_index_of_its_own(tmp_path: Path, pieces: int) -> None:
    async def main() -> None:
        folder = tmp_path / "tapes"
        write(folder, "a.tape.jsonl.gz", "/1", "/2")
        write(folder, "b.jsonl.gz", "/1", "/2")
        async with replaying(folder) as many:
            a, b = ("/1", "a:x"), ("/1", "b:x")
            at_once = await asyncio.gather(
                many.ask(a, ("/2", "a:y"), pieces=pieces), many.ask(b, ("/2", "b:y"), pieces=pieces)
            )
            assert at_once == [
                [b"a.tape.jsonl.gz/1", b"a.tape.jsonl.gz/2"],
                [b"b.jsonl.gz/1", b"b.jsonl.gz/2"],
            ]
            (used_up,) = await many.ask(b)
            assert used_up.startswith(b"470 ")
            assert [(name, found.kind) for name, found in many.noticed if isinstance(found, Violation)] == [
                ("b", "used-up")
            ]
            codes = {}
            for name in "ab":
                ended = await many.runs.finish(name)
                assert ended is not None and ended.replayed is not None
                codes[name] = ended.replayed.exit_code, ended.replayed.served
            assert codes == {"a": (0, 2), "b": (3, 2)}
            assert await many.ask(b) == [b"b.jsonl.gz/1"]
            assert await many.runs.finish("a") is None

    asyncio.run(main())


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ([("/1", None)], b"one of these names: a, b"),
        ([("/1", "c:x")], b"there is no tape 'c' here"),
        ([("/1", "../a:x")], b"there is no tape '../a' here"),
        ([("/1", "a.tape.jsonl.gz:x")], b"one of these names: a, b"),
        ([("/1", "a:x"), ("/1", "b:x")], b"belongs to the run a"),
    ],
)
def test_who_is_turned_away_hears_why(tmp_path: Path, asked: Sequence[tuple[str, str | None]], says: bytes) -> None:
    async def main() -> None:
        write(tmp_path / "tapes", "a.tape.jsonl.gz", "/1")
        write(tmp_path / "tapes", "b.tape.jsonl.gz", "/1")
        async with replaying(tmp_path / "tapes") as many:
            answer = (await many.ask(*asked))[-1]
            assert (answer[:4], says in answer) == (b"407 ", True), answer
            assert len(many.refused) == 1

    asyncio.run(main())


def test_the_only_tape_needs_no_name(tmp_path: Path) -> None:
    async def main() -> None:
        write(tmp_path / "tapes", "only.tape.jsonl.gz", "/1", "/2")
        async with replaying(tmp_path / "tapes", ports=True) as many:
            assert await many.ask(("/1", None)) == [b"only.tape.jsonl.gz/1"]
            url = (await many.runs.variables(""))["HTTPS_PROXY"]
            assert "@" not in url
            assert await many.ask(("/2", None), port=int(url.rpartition(":")[2])) == [b"only.tape.jsonl.gz/2"]

    asyncio.run(main())


def test_a_tape_that_cannot_be_read_turns_its_clients_away_and_no_others(tmp_path: Path) -> None:
    async def main() -> None:
        write(tmp_path / "tapes", "good.tape.jsonl.gz", "/1")
        (tmp_path / "tapes" / "bad.tape.jsonl.gz").write_bytes(b"no tape")
        async with replaying(tmp_path / "tapes") as many:
            for _ in range(2):
                (answer,) = await many.ask(("/1", "bad:x"))
                assert (answer[:4], b"bad.tape.jsonl.gz" in answer) == (b"503 ", True), answer
            assert await many.ask(("/1", "good:x")) == [b"good.tape.jsonl.gz/1"]
            assert [run.name for run in many.runs.status()] == ["good"]

    asyncio.run(main())


def test_a_head_without_an_end_is_not_read_forever(tmp_path: Path) -> None:
    async def main() -> None:
        write(tmp_path / "tapes", "a.tape.jsonl.gz", "/1")
        async with replaying(tmp_path / "tapes") as many:
            reader, writer = await asyncio.open_connection("127.0.0.1", many.runs.port)
            with contextlib.suppress(ConnectionError):
                for _ in range(40):
                    writer.write(b"x" * 16384)
                    await writer.drain()
                await reader.read()
            writer.close()
            while not many.refused:
                await asyncio.sleep(0.01)
            assert "no request" in many.refused[0].what

    asyncio.run(main())
