"""Each client, unmodified, asks the real host names: recorded, then replayed without provider, key or network."""

import gzip
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from clirun import Cli, maps
from matrix.clients import CLIENTS, HOSTS, KEYS, SCRIPT, Client
from matrix.results import Result, forget, keep, overlap
from matrix.runtimes import MissingError, command, version

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load, read_entries
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.shimrecords import LaneEnd
from tapeproxy.testing import FakeProvider

pytestmark = pytest.mark.soak

TAPE = "run.tape.jsonl.gz"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One authority for all, with the public roots as a user's has them."""
    return tmp_path_factory.mktemp("home")


@dataclass(frozen=True, slots=True)
class Bench:
    """One client's program with its options, and a folder for each of its runs."""

    argv: list[str]
    options: tuple[str, ...]
    home: Path
    folder: Path

    def cli(self, name: str) -> Cli:
        """Commands in a folder of that name, made when it is asked for first."""
        (self.folder / name).mkdir(exist_ok=True)
        return Cli(self.folder / name, self.home)

    def record(self, name: str) -> str:
        """Record a run against a provider that ends with it; gives what the agent printed."""
        tls = CertificateAuthority.open(self.home).server_context("127.0.0.1")
        with FakeProvider(SCRIPT, tls=tls) as provider:
            options = ["-o", TAPE, *maps(provider.url, HOSTS), *self.options]
            done = self.cli(name).run("record", *options, "--", *self.argv, env=KEYS)
        assert done.returncode == 0, done.stderr
        assert "come through the proxy" not in done.stderr
        return done.stdout

    def replay(self, name: str, output: str) -> None:
        """Replay there without a key: every answer is asked for, and the output is the same to the byte."""
        report = self.folder / name / "report.json"
        done = self.cli(name).run("replay", TAPE, "--require-all", "--report", str(report), "--", *self.argv)
        assert done.returncode == 0, done.stderr
        assert done.stdout == output
        assert json.loads(report.read_text())["trace"] == self.sealed(name)

    def sealed(self, name: str) -> str:
        """The trace hash of a tape that is whole, as its seal has it."""
        done = self.cli(name).run("verify", TAPE, "--json")
        assert done.returncode == 0, done.stderr
        trace: str = json.loads(done.stdout)["trace"]
        assert trace
        return trace


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_recorded_run_is_replayed(client: Client, tmp_path: Path, home: Path) -> None:
    forget(client.name)
    try:
        bench = Bench(command(client, tmp_path), client.options, home, tmp_path)
        told = version(client)
    except MissingError as missing:
        keep(client.name, Result(reason=str(missing)))
        pytest.skip(str(missing))
    output = bench.record("first")
    bench.record("again")
    assert output.count("\n") > 1
    tape = tmp_path / "first" / TAPE
    bench.replay("first", output)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tape, tmp_path / "elsewhere")
    bench.replay("elsewhere", output)
    keep(client.name, shown(told, tape, tmp_path / "again" / TAPE))


def shown(told: str, path: Path, again: Path) -> Result:
    """What there is on the tape of a run, and how much of it is other on that of a second one. Fails on a secret."""
    exchanges = load(path)[0].exchanges
    text = gzip.decompress(path.read_bytes())
    text += b"".join(exchange.request_body + exchange.response_body for exchange in exchanges)
    assert not [name for name, key in KEYS.items() if key.encode() in text]
    known, second = {_asked(exchange) for exchange in exchanges}, load(again)[0].exchanges
    return Result(
        version=told,
        exchanges=len(exchanges),
        hosts=tuple(dict.fromkeys(_host(exchange) for exchange in exchanges)),
        http=tuple(sorted({exchange.request.http for exchange in exchanges})),
        streamed=sum(_is_stream(exchange) for exchange in exchanges),
        overlapped=overlap(exchanges),
        tools=sum(exchange.request_body.count(b"rain") > 1 for exchange in exchanges),
        reads=sum(entry.record.reads for entry in read_entries(path, []) if isinstance(entry.record, LaneEnd)),
        others=sum(_asked(exchange) not in known for exchange in second),
        asked=len(second),
    )


def _asked(exchange: Exchange) -> tuple[bytes, bytes, bytes]:
    return exchange.request.method, exchange.request.url, exchange.request_body


def _host(exchange: Exchange) -> str:
    return exchange.request.url.split(b"/")[2].decode()


def _is_stream(exchange: Exchange) -> bool:
    headers = exchange.response.headers if exchange.response else ()
    return any(value.startswith(b"text/event-stream") for name, value in headers) and len(exchange.chunks) > 1
