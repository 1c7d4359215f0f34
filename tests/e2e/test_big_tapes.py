"""A tape that takes long to read is served while it is read; what is wrong with it fails the run all the same."""

import asyncio
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from clirun import Cli

from tapeproxy.proxy.decisions import Asked
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replaying import Wire
from tapeproxy.proxy.tapefile import TapeWriter, is_big, read_entries
from tapeproxy.tapes.answers import Answer
from tapeproxy.tapes.records import Chunks, End, Head, Request, Response
from tapeproxy.tapes.trace import trace_hash

FORM = ((b"Content-Type", b"application/octet-stream"),)
URL = "http://big.example/"
COUNT = 24
AGENT = """
import sys, urllib.error, urllib.request
for word in sys.argv[1:]:
    request = urllib.request.Request("http://big.example/" + word, b"ask " + word.encode())
    request.add_header("Content-Type", "application/octet-stream")
    try: print(urllib.request.urlopen(request).read()[:9].decode(), flush=True)
    except urllib.error.HTTPError as error: print(error.code, flush=True)
    except OSError as error: print("lost", flush=True)
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed tape of twenty-four answers, each of 200 KB that can't be compressed."""
    path = tmp_path_factory.mktemp("big") / "t.jsonl.gz"
    chance = random.Random(5)
    writer = TapeWriter(path, Head(started_at="2026-01-02T03:04:05Z"))
    for number in range(1, COUNT + 1):
        url, body = f"{URL}{number}".encode(), b"ask %d" % number
        of = writer.add(Request(t=number, method=b"POST", url=url, headers=FORM, body=body))
        writer.add(Response(t=number, of=of, status=200))
        writer.add(Chunks(t=number, of=of, parts=((0, b"answer %d " % number), (0, chance.randbytes(200_000)))))
        writer.add(End(t=number, of=of, how="complete"))
        writer.commit()
    writer.seal(trace=trace_hash((entry.index, entry.record) for entry in read_entries(path)), outcome="exited")
    assert is_big(path)
    return path


@pytest.fixture
def replayed(cli: Cli) -> Callable[..., tuple[int, list[str], str]]:
    """Replays a tape with the agent that asks for the numbered answers; gives the code, its output and ours."""
    (cli.cwd / "agent.py").write_text(AGENT)

    def run(tape: Path, *words: str, options: tuple[str, ...] = ()) -> tuple[int, list[str], str]:
        done = cli.run("replay", str(tape), *options, "--", sys.executable, "agent.py", *words)
        return done.returncode, done.stdout.splitlines(), done.stderr

    return run


def test_answers_come_from_everywhere_on_it(big: Path, replayed: Callable[..., tuple[int, list[str], str]]) -> None:
    code, said, told = replayed(big, "1", str(COUNT), "2", "7")
    assert (code, said) == (0, ["answer 1 ", "answer 24", "answer 2 ", "answer 7 "])
    assert f"4 of {COUNT} exchanges served, 0 violations" in told


def test_a_request_that_is_not_on_it_is_explained_by_all_of_it(
    big: Path, replayed: Callable[..., tuple[int, list[str], str]], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    code, said, told = replayed(big, "1", "25", "1", options=("--report", str(report)))
    assert (code, said[1:]) == (3, ["470", "470"])
    first, second = json.loads(report.read_text())["violations"]
    assert (first["kind"], second["kind"]) == ("miss", "used-up")
    assert f"1 of {COUNT} exchanges served, 2 violations, {COUNT - 1} unused" in told


def test_damage_at_its_end_fails_a_run_that_has_heard_all_before(
    big: Path, replayed: Callable[..., tuple[int, list[str], str]], tmp_path: Path
) -> None:
    data = bytearray(big.read_bytes())
    data[len(data) - 150_000] ^= 1
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(data)
    code, said, told = replayed(damaged, "1", "2", str(COUNT))
    assert code == 5
    assert "answer 24" not in said, "what is behind the damage is not given out"
    assert "damaged" in told or "does not fit" in told
    assert "exchanges served" not in told


def test_one_that_was_interrupted_says_so_once_its_end_is_known(
    big: Path, replayed: Callable[..., tuple[int, list[str], str]], tmp_path: Path
) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(big.read_bytes()[:-60_000])
    code, said, told = replayed(cut, "1")
    assert (code, len(said)) == (0, 1)
    assert told.count("the tape was interrupted") == 1


def test_what_is_read_is_given_out_and_the_rest_is_waited_for(big: Path, home: Path) -> None:
    asyncio.run(served_early(big, home))


async def served_early(big: Path, home: Path) -> None:
    settings = ReplaySettings(tape=big, environment={"TAPEPROXY_HOME": str(home)})
    wire = Wire.open_early(settings)
    session = await wire.begin(lambda found: pytest.fail(str(found)))
    replayer, loading = session.server.replayer, wire.loading
    try:
        assert loading is not None and session.ending is None
        assert [replayer.is_certain(asked(number)) for number in (1, COUNT)] == [False, False]
        while not loading.settled:
            assert loading.read_on(0)
        replayer.extend(loading.settled)
        assert [replayer.is_certain(asked(number)) for number in (1, COUNT, COUNT + 1)] == [True, False, False]
        assert isinstance(replayer.decide(asked(1)), Answer)
        looked: list[int] = []
        session.server.waiting.append(lambda: looked.append(loading.settled))
        await session.read_on()
        assert len(looked) == 1, "whoever waits looks again after each slice"
        assert session.ending is not None and session.ending.canonical
        assert all(replayer.is_certain(asked(number)) for number in (1, COUNT, COUNT + 1))
        assert isinstance(replayer.decide(asked(COUNT)), Answer)
        assert [exchange.number for exchange in replayer.index.used()] == [1, COUNT]
    finally:
        await session.stop()


def asked(number: int) -> Asked:
    return Asked(b"POST", f"{URL}{number}".encode(), FORM, b"ask %d" % number)


def test_an_agent_that_cannot_be_started_is_told_alone(big: Path, cli: Cli) -> None:
    done = cli.run("replay", str(big), "--", "./no-such-program")
    assert (done.returncode, done.stdout) == (127, "")
    assert "no-such-program" in done.stderr
    assert "Task" not in done.stderr
