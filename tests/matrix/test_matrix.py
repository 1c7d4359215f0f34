"""Each client, unmodified, asks the real host names: recorded, then replayed without provider, key or network."""

import gzip
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from authority import Authority
from clirun import Cli
from matrix.clients import CLIENTS, KEYS, Client
from matrix.results import Result, keep, overlap
from matrix.runtimes import MissingError, command, version
from matrix.servers import serving

from tapeproxy.proxy.tapefile import load, read_entries
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.shimrecords import LaneEnd

pytestmark = pytest.mark.soak

TAPE = "run.tape.jsonl.gz"
STREAMS = (b"text/event-stream", b"application/vnd.amazon.eventstream", b"application/grpc")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One authority for all, with the public roots as a user's has them."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom a server trusts that takes its certificate from a file."""
    return Authority(tmp_path_factory.mktemp("authority"))


@dataclass(frozen=True, slots=True)
class Bench:
    """One client with its program's command line, and a folder for each of its runs."""

    client: Client
    argv: list[str]
    home: Path
    folder: Path
    authority: Authority

    def cli(self, name: str) -> Cli:
        """Commands in a folder of that name, made when it is asked for first."""
        (self.folder / name).mkdir(exist_ok=True)
        return Cli(self.folder / name, self.home)

    def record(self, name: str) -> str:
        """Record a run against a server that ends with it; gives what the agent printed."""
        with serving(self.client.server, self.home, self.authority) as leading:
            options = ["-o", TAPE, *leading, *self.client.options]
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
def test_a_recorded_run_is_replayed(client: Client, tmp_path: Path, home: Path, authority: Authority) -> None:
    keep(client.name, Result(reason="its test failed"))  # until the end of it
    try:
        bench = Bench(client, command(client, tmp_path), home, tmp_path, authority)
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
    result = shown(told, tape, tmp_path / "again" / TAPE)
    assert result.calls or client.server == "grpc"
    keep(client.name, result)


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
        calls=sum(map(_is_call, exchanges)),
    )


def _is_call(exchange: Exchange) -> bool:
    call = read_call(exchange)
    return call is not None and bool(call.model and call.messages and call.answer and call.answer.parts)


def _asked(exchange: Exchange) -> tuple[bytes, bytes, bytes]:
    return exchange.request.method, exchange.request.url, exchange.request_body


def _host(exchange: Exchange) -> str:
    return exchange.request.url.split(b"/")[2].decode()


def _is_stream(exchange: Exchange) -> bool:
    headers = exchange.response.headers if exchange.response else ()
    return len(exchange.chunks) > 1 and any(value.startswith(STREAMS) for _, value in headers)
