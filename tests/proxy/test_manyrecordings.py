"""Many recordings behind one wire: whose connection is whose, names, ports, ends. Real sockets, one event loop."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from origin import Call, Origin

from tapeproxy.proxy.manyrecordings import ManyRecordings
from tapeproxy.proxy.manyruns import ManySettings
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.credentials import RefusedError
from tapeproxy.tapes.exchanges import Tape


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


async def echo(call: Call) -> None:
    await call.reply(call.request.target.encode() + b" " + call.request.body)


class Client:
    """A bare connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, line: str, user: str | None = None, body: bytes = b"", *headers: str) -> tuple[int, bytes]:
        """Send a request, and hear the status and body of the answer."""
        said = [] if user is None else [f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}"]
        lines = [f"{line} HTTP/1.1", "Host: x", *said, *headers, *([f"Content-Length: {len(body)}"] if body else [])]
        self._writer.write("".join(f"{text}\r\n" for text in lines).encode() + b"\r\n" + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head.split()[1])
        length = head.partition("content-length: ")[2].partition("\r")[0]
        return status, await self._reader.readexactly(int(length or 0))

    async def ended(self) -> bool:
        return await self._reader.read(1) == b""

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class Many:
    """A proxy of many recordings, and the clients that it refused."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder / "tapes"
        self.refused: list[RefusedError] = []
        self.clients: list[Client] = []
        given = ManySettings(folder=self.folder, environment={}, cwd="/", **settings)  # type: ignore[arg-type]  # a row's
        self.lost: list[tuple[str, str]] = []
        self.runs = ManyRecordings(given, self.refused.append, lambda *said: self.lost.append(said))

    async def connect(self, port: int = 0) -> Client:
        self.clients.append(Client(*await asyncio.open_connection("127.0.0.1", port or self.runs.port)))
        return self.clients[-1]

    def tape(self, name: str) -> Tape:
        return load(self.folder / f"{name}.tape.jsonl.gz")[0]

    def asked(self, name: str) -> list[bytes]:
        return [exchange.request.url.rpartition(b"/")[2] for exchange in self.tape(name).exchanges]


@contextlib.asynccontextmanager
async def recording(folder: Path, **settings: object) -> AsyncIterator[Many]:
    many = Many(folder, **settings)
    await many.runs.start()
    try:
        yield many
    finally:
        for client in many.clients:
            await client.close()
        await many.runs.stop()


def test_a_connection_belongs_to_one_run(tmp_path: Path) -> None:
    async def main(origin: Origin) -> Many:
        async with recording(tmp_path) as many:
            first, second = await many.connect(), await many.connect()
            for n in range(3):  # the same host by both at once, on connections that are kept
                assert await first.ask(f"GET {origin.url}/a{n}", "a:x") == (200, b"/a%d " % n)
                assert await second.ask(f"POST {origin.url}/b{n}", "b:x", b"body") == (200, b"/b%d body" % n)
            status, body = await first.ask(f"GET {origin.url}/stray", "b:x")
            assert (status, b"belongs to the run a" in body) == (407, True)
            tunnel = await many.connect()
            assert await tunnel.ask(f"CONNECT 127.0.0.1:{origin.port}", "b:x") == (200, b"")
            # In a tunnel the header is the agent's own affair, and goes where the agent sends it.
            assert await tunnel.ask("GET /tunnelled", "whoever:y") == (200, b"/tunnelled ")
            third = await many.connect()
            assert (await third.ask(f"GET {origin.url}/stray"))[0] == 407
            return many

    with Origin(echo) as origin:
        many = asyncio.run(main(origin))
        assert [request.header("proxy-authorization") for request in origin.requests if "b" in request.target][:3] == [
            None
        ] * 3
    assert many.asked("a") == [b"a0", b"a1", b"a2"]
    assert many.asked("b") == [b"b0", b"b1", b"b2", b"tunnelled"]
    plain = [e for name in "ab" for e in many.tape(name).exchanges if e.request.url[-1:].isdigit()]
    assert not any(header.lower() == b"proxy-authorization" for e in plain for header, _ in e.request.headers)
    assert len(many.refused) == 2


def test_a_name_that_is_used_again_begins_another_tape(tmp_path: Path) -> None:
    async def main(origin: Origin) -> Many:
        async with recording(tmp_path) as many:
            for n in range(3):
                client = await many.connect()
                assert (await client.ask(f"GET {origin.url}/{n}", "a:"))[0] == 200
                ended = await many.runs.finish("a")
                assert ended is not None and ended.recorded is not None and ended.recorded.exchanges == 1
                assert await client.ended()
                assert await many.runs.finish("a") is None
            return many

    with Origin(echo) as origin:
        many = asyncio.run(main(origin))
    assert [many.asked(name) for name in ("a", "a-2", "a-3")] == [[b"0"], [b"1"], [b"2"]]


def test_what_is_under_way_when_a_run_ends_is_ended_on_its_own_tape(tmp_path: Path) -> None:
    async def main() -> Many:
        async with recording(tmp_path) as many:
            client, other = await many.connect(), await many.connect()
            asking = asyncio.create_task(client.ask(f"GET {origin.url}/slow", "a:x"))
            assert await other.ask(f"GET {origin.url}/quick", "b:x") == (200, b"")
            while not many.runs.status()[0].asked:
                await asyncio.sleep(0.01)
            await many.runs.finish("a")
            with pytest.raises(asyncio.IncompleteReadError):
                await asking
            assert await other.ask(f"GET {origin.url}/quick", "b:x") == (200, b"")
            return many

    async def answer(call: Call) -> None:
        if call.request.target == "/slow":
            await call.gone()
        else:
            await call.reply()

    with Origin(answer) as origin:
        many = asyncio.run(main())
    (exchange,) = many.tape("a").exchanges
    assert exchange.end is not None and exchange.end.how == "client-gone"
    assert many.asked("b") == [b"quick", b"quick"]


@pytest.mark.parametrize("name", ["../x", "..", "/etc/x", "%2e%2e", "a\0b", "x" * 300, "\u00fcber", "", "NUL"])
def test_hostile_names_make_no_file(tmp_path: Path, name: str) -> None:
    async def main(origin: Origin) -> Many:
        async with recording(tmp_path) as many:
            for line in (f"GET {origin.url}/", f"CONNECT 127.0.0.1:{origin.port}"):
                client = await many.connect()
                status, body = await client.ask(line, f"{name}:x")
                assert (status, b"name" in body) == (407, True)
            return many

    with Origin(echo) as origin:
        many = asyncio.run(main(origin))
        assert origin.requests == []
    assert len(many.refused) == 2
    assert not many.folder.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_a_refused_client_cannot_make_us_hold_a_large_body(tmp_path: Path) -> None:
    async def main() -> None:
        async with recording(tmp_path) as many:
            client = await many.connect()
            with pytest.raises(asyncio.IncompleteReadError):
                await client.ask("POST http://127.0.0.1:9/", None, b"", "Content-Length: 99999999999")
            assert len(many.refused) == 1

    asyncio.run(main())


def test_a_tape_that_cannot_be_made_refuses_its_client(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "tapes").touch()
        async with recording(tmp_path) as many:
            client = await many.connect()
            status, body = await client.ask("GET http://127.0.0.1:9/", "a:x")
            assert (status, b"cannot be written" in body) == (503, True)
            assert many.runs.status() == []

    asyncio.run(main())


def test_a_port_of_its_own_stands_for_a_run(tmp_path: Path) -> None:
    async def main(origin: Origin) -> Many:
        async with recording(tmp_path, ports=True) as many:
            urls = {name: (await many.runs.variables(name))["HTTPS_PROXY"] for name in ("a", "b")}
            assert all("@" not in url for url in urls.values())
            for name, url in urls.items():
                client = await many.connect(int(url.rpartition(":")[2]))
                assert (await client.ask(f"GET {origin.url}/{name}"))[0] == 200
                assert (await client.ask(f"GET {origin.url}/{name}", "c:x"))[0] == 407
            ports = {status.name: status.port for status in many.runs.status()}
            assert {name: url.endswith(f":{ports[name]}") for name, url in urls.items()} == {"a": True, "b": True}
            return many

    with Origin(echo) as origin:
        many = asyncio.run(main(origin))
    assert [many.asked(name) for name in ("a", "b")] == [[b"a"], [b"b"]]


def test_a_run_without_clients_ends_by_itself(tmp_path: Path) -> None:
    async def main(origin: Origin) -> Many:
        async with recording(tmp_path, idle=0.05) as many:
            staying, leaving = await many.connect(), await many.connect()
            assert (await staying.ask(f"GET {origin.url}/a", "a:x"))[0] == 200
            assert (await leaving.ask(f"GET {origin.url}/b", "b:x"))[0] == 200
            await leaving.close()
            ended: list[str] = []
            while not ended:
                await asyncio.sleep(0.02)
                ended = [run.name for run in await many.runs.finish_idle()]
            assert ended == ["b"]
            assert [run.name for run in many.runs.status()] == ["a"]
            return many

    with Origin(echo) as origin:
        many = asyncio.run(main(origin))
    assert many.tape("b").seal is not None


def test_a_tape_that_is_lost_is_told_at_once_and_no_other_is(tmp_path: Path) -> None:
    async def main(origin: Origin) -> Many:
        async with recording(tmp_path) as many:
            for name in ("a", "b", "a"):
                client = await many.connect()
                assert (await client.ask(f"GET {origin.url}/{name}", f"{name}:x"))[0] == 200
                if name == "b":
                    (many.folder / "a.tape.jsonl.gz").unlink()
            (told,) = {name for name, _ in many.lost}
            assert told == "a"
            ended = {name: await many.runs.finish(name) for name in ("a", "b")}
            whole = {name: run and run.recorded and run.recorded.failure is None for name, run in ended.items()}
            assert whole == {"a": False, "b": True}
            return many

    with Origin(echo) as origin:
        many = asyncio.run(main(origin))
    assert many.asked("b") == [b"b"]
