"""The record wire as a whole: how it starts, where it listens, what it trusts, how it ends, and that it is silent."""

import asyncio
import contextlib
import logging
import socket
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from authority import Authority
from origin import PATIENCE, Call, Origin
from recording import KEY, Recording

from tapeproxy.proxy.recordwire import RecordWire
from tapeproxy.proxy.tapefile import TapeWriter, load
from tapeproxy.proxy.wireoptions import WireError, WireOptions
from tapeproxy.tapes.errors import PortInUseError, TapeproxyError, UsageError
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redaction import Redactor


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[TapeWriter]:
    writer = TapeWriter(tmp_path / "run.tape.jsonl.gz", Head())
    yield writer
    writer.seal(trace="", outcome="complete")


async def hello(call: Call) -> None:
    await call.reply(b"hello")


def run(work: Callable[[], Awaitable[None]]) -> None:
    anyio.run(work)


def test_it_listens_where_it_is_told_and_nowhere_afterwards(authority: Authority, writer: TapeWriter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def main() -> None:
        wire = RecordWire(WireOptions(confdir=authority.folder, port=port), writer, Redactor(KEY))
        assert await wire.start() == port == wire.port
        stream = await anyio.connect_tcp("127.0.0.1", port)
        await stream.aclose()
        await wire.drain()
        await wire.stop()
        with pytest.raises(OSError, match=r"All connection attempts failed"):
            await anyio.connect_tcp("127.0.0.1", port)

    run(main)


def test_a_port_in_use_is_named_and_leaves_the_process_as_it_was(authority: Authority, writer: TapeWriter) -> None:
    logger = logging.getLogger("mitmproxy")
    before = (list(logging.getLogger().handlers), list(logger.handlers), logger.level, logger.propagate)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def main() -> None:
            with pytest.raises(PortInUseError) as caught:
                async with RecordWire(WireOptions(confdir=authority.folder, port=port), writer, Redactor(KEY)):
                    pass
            assert caught.value.port == port and str(port) in str(caught.value)
            async with RecordWire(WireOptions(confdir=authority.folder), writer, Redactor(KEY)) as wire:
                assert wire.port not in (0, port)

        run(main)
    assert before == (list(logging.getLogger().handlers), list(logger.handlers), logger.level, logger.propagate)


def test_an_address_that_is_not_here_is_a_wire_error(authority: Authority, writer: TapeWriter) -> None:
    async def main() -> None:
        wire = RecordWire(WireOptions(confdir=authority.folder, host="192.0.2.1", port=1), writer, Redactor(KEY))
        with pytest.raises(WireError, match=r"192\.0\.2\.1:1"):
            await wire.start()

    run(main)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"confdir": Path("/nonexistent")}, WireError, "/nonexistent/mitmproxy-ca.pem"),
        ({"upstream_ca": Path("/nonexistent.pem")}, UsageError, "/nonexistent.pem: .*no such file"),
        ({"upstream_ca": Path(__file__)}, UsageError, "holds no PEM certificate"),
        ({"upstream_ca": Path(__file__).with_name("broken.pem")}, UsageError, "certificate that can't be read"),
        ({"client_certs": Path("/nonexistent.pem")}, UsageError, "/nonexistent.pem"),
        ({"hosts": {"a": "b"}}, UsageError, "a=b"),
        ({"upstream": "socks5://proxy:1080"}, UsageError, "socks5"),
    ],
)
def test_a_setting_that_cannot_be(
    authority: Authority, writer: TapeWriter, options: dict[str, Any], error: type[TapeproxyError], message: str
) -> None:
    async def main() -> None:
        given: dict[str, Any] = {"confdir": authority.folder, **options}
        wire = RecordWire(WireOptions(**given), writer, Redactor(KEY))
        with pytest.raises(error, match=message):
            await wire.start()

    run(main)


def test_a_broken_authority_is_noticed_at_the_start(tmp_path: Path, writer: TapeWriter) -> None:
    (tmp_path / "mitmproxy-ca.pem").write_text("-----BEGIN NOTHING-----\n")

    async def main() -> None:
        wire = RecordWire(WireOptions(confdir=tmp_path), writer, Redactor(KEY))
        with pytest.raises(WireError, match="could not start"):
            await wire.start()

    run(main)


def test_one_after_another_on_one_loop(authority: Authority, writer: TapeWriter) -> None:
    with Origin(hello) as origin:

        async def main() -> None:
            for _ in range(3):
                async with RecordWire(WireOptions(confdir=authority.folder), writer, Redactor(KEY)) as wire:
                    proxy = f"http://127.0.0.1:{wire.port}"
                    async with httpx.AsyncClient(proxy=proxy, trust_env=False) as client:
                        assert (await client.get(origin.url)).content == b"hello"
                    assert wire.failures.count == 0

        run(main)
    assert len(load_unsealed(writer)) == 3


def test_two_at_once_are_refused(authority: Authority, writer: TapeWriter) -> None:
    async def main() -> None:
        async with RecordWire(WireOptions(confdir=authority.folder), writer, Redactor(KEY)) as first:
            second = RecordWire(WireOptions(confdir=authority.folder), writer, Redactor(KEY))
            with pytest.raises(RuntimeError, match="is running"):
                await second.start()
            await second.stop()
            stream = await anyio.connect_tcp("127.0.0.1", first.port)
            await stream.aclose()

    run(main)


def load_unsealed(writer: TapeWriter) -> list[Any]:
    return [*load(writer.path)[0].exchanges]


def test_cancelling_its_host_still_tapes_how_exchanges_ended(authority: Authority, writer: TapeWriter) -> None:
    """As when the user presses Ctrl-C: the task group that hosts the wire is cancelled."""

    async def endless(call: Call) -> None:
        await call.head("200 OK", "Transfer-Encoding: chunked")
        await call.chunk(b"part")
        await call.gone()

    with Origin(endless) as origin:

        async def host(ready: anyio.Event, ports: list[int]) -> None:
            async with RecordWire(WireOptions(confdir=authority.folder), writer, Redactor(KEY)) as wire:
                ports.append(wire.port)
                ready.set()
                await anyio.sleep_forever()

        async def main() -> None:
            ready, ports, streams = anyio.Event(), list[int](), list[SocketStream]()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host, ready, ports)
                await ready.wait()
                stream = await anyio.connect_tcp("127.0.0.1", ports[0])
                streams.append(stream)
                await stream.send(f"GET {origin.url}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                got = b""
                while not got.endswith(b"part\r\n"):
                    got += await stream.receive()
                tasks.cancel_scope.cancel()
            await streams[0].aclose()  # only now: it was the wire that closed the connection

        run(main)
    (exchange,) = load_unsealed(writer)
    assert exchange.end is not None and exchange.end.how == "client-gone"
    assert exchange.response_body == b"part"


def test_nothing_is_printed_whatever_goes_wrong(
    tmp_path: Path, authority: Authority, capfd: pytest.CaptureFixture[str]
) -> None:
    async def cut(call: Call) -> None:
        await call.send(b"\x00\x01garbage\r\n\r\n")
        call.close()

    with Origin(cut) as origin, Recording(tmp_path, authority) as recording:
        with recording.client() as client:
            for url in (origin.url, "http://127.0.0.1:9/", "https://127.0.0.1:9/"):
                with contextlib.suppress(httpx.TransportError):
                    client.get(url)
        with contextlib.suppress(ssl.SSLError):
            recording.tunnel("localhost", 9, ssl.create_default_context())
        with recording.connect() as sock:
            sock.sendall(b"nonsense\r\n\r\n")
            assert sock.recv(1000).startswith(b"HTTP/1.1 400 ")
        logging.getLogger("mitmproxy.proxy.server").error("an error that mitmproxy logs")
    assert capfd.readouterr() == ("", "")
    assert recording.wire.failures.count == 1 and "mitmproxy logs" in str(recording.wire.failures.first)


def test_public_roots_stay_trusted_beside_the_users_own(tmp_path: Path, authority: Authority) -> None:
    given = WireOptions(confdir=authority.folder, upstream_ca=authority.cert)

    async def main() -> None:
        wire = RecordWire(given, TapeWriter(tmp_path / "a.gz", Head()), Redactor(KEY))
        await wire.start()
        try:
            from mitmproxy import ctx

            roots = Path(ctx.options.ssl_verify_upstream_trusted_ca)
            context = ssl.create_default_context(cafile=str(roots))
            subjects = [str(one.get("subject")) for one in context.get_ca_certs()]
            assert any("test CA" in one for one in subjects) and len(subjects) > 50
        finally:
            await wire.stop()
        assert roots.parent == authority.folder  # kept for the next wire, not left in a temporary folder

    run(main)


def test_a_client_certificate_is_shown_to_a_server_that_asks(tmp_path: Path, authority: Authority) -> None:
    tls = authority.serving("127.0.0.1")
    tls.load_verify_locations(authority.cert)
    tls.verify_mode = ssl.CERT_REQUIRED
    certificate = authority.issue("me.example.com")
    with (
        Origin(hello, tls=tls) as origin,
        Recording(tmp_path, authority, upstream_ca=authority.cert, client_certs=certificate) as recording,
        recording.client() as client,
    ):
        assert client.get(origin.url).content == b"hello"


def test_a_silent_stream_is_not_given_up(tmp_path: Path, authority: Authority) -> None:
    """mitmproxy's own limit is ten minutes; ours has to outlast any model."""
    with Recording(tmp_path, authority):
        from mitmproxy import ctx

        assert ctx.options.tcp_timeout >= 24 * 3600


def test_the_wire_does_not_change_its_hosts_event_loop(authority: Authority, writer: TapeWriter) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        before = (loop.get_task_factory(), loop.get_exception_handler())
        async with RecordWire(WireOptions(confdir=authority.folder), writer, Redactor(KEY)):
            assert (loop.get_task_factory(), loop.get_exception_handler()) == before

    run(main)


_IMPORTS = """
import sys
from tapeproxy.proxy.recordwire import RecordWire
from tapeproxy.proxy.wireoptions import WireOptions
assert not any(name.split(".")[0] == "mitmproxy" for name in sys.modules), "imported before a wire starts"
import anyio, pathlib
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redaction import Redactor
async def main():
    confdir, tape = map(pathlib.Path, sys.argv[1:])
    wire = RecordWire(WireOptions(confdir=confdir), TapeWriter(tape, Head()), Redactor(bytes(32)))
    await wire.start()
    await wire.stop()
anyio.run(main)
for heavy in ("flask", "ldap3", "mitmproxy.addons.serverplayback", "mitmproxy.addons.view"):
    assert heavy not in sys.modules, heavy
"""

_MISSING = """
import sys
sys.modules["mitmproxy"] = None
from tapeproxy.proxy import mitm
from tapeproxy.tapes.errors import UsageError
try:
    mitm.slim_imports()
except UsageError as error:
    print(error)
"""


def python(code: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_mitmproxy_is_imported_late_and_without_its_other_addons(tmp_path: Path, authority: Authority) -> None:
    python(_IMPORTS, str(authority.folder), str(tmp_path / "x.gz"))


def test_without_mitmproxy_it_says_what_to_install() -> None:
    assert "'.[record]'" in python(_MISSING)
