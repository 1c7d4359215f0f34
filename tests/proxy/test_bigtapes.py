"""Big tapes in little memory: what a process that reads one grows by, against what one that reads a small one needs."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tapeproxy.proxy.tapefile import TapeWriter, read_entries
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.records import Chunks, End, Head, Request, Response
from tapeproxy.tapes.trace import trace_hash

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it is measured as Linux does")

PEAK = """
import sys
from pathlib import Path
# A process inherits its parent's ru_maxrss; this is its own.
def peak(): return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) << 10
def verify(path):
    from tapeproxy.cli.verify import examine
    from tapeproxy.proxy.unlocking import ask_environment
    verdict = examine(path, ask_environment)
    assert verdict.good, verdict
def sizes(path):
    from tapeproxy.proxy.tapefile import weigh_entries
    from tapeproxy.tapes.sizes import Survey
    survey = Survey(10)
    for entry, file in weigh_entries(path): survey.feed(entry, file)
    assert survey.total().bodies
def ls(path):
    from tapeproxy.cli.ls import look
    assert look(path).sealed
def show(path):
    from tapeproxy.cli.documents import tape_document
    from tapeproxy.proxy.tapefile import load
    assert tape_document("t", *load(path))["exchanges"]
def diff(path):
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.tapediff import diff_tapes
    assert diff_tapes(load(path)[0], load(path)[0]).same
def repair(path):
    from tapeproxy.proxy.repairing import repair
    cut, out = path.with_name("cut"), path.with_name("repaired")
    cut.write_bytes(path.read_bytes()[:-500])  # into the seal
    assert repair(cut, out, {}).facts
    out.unlink()
def scrub(path):
    from tapeproxy.proxy.scrubs import ScrubSettings, scrub_tape
    settings = ScrubSettings(tape=path, output=path.with_name("clean"), environment={}, force=True)
    assert not scrub_tape(settings).scrubbed.found
def export(path):
    from tapeproxy.cli.export import FORMATS
    from importlib import import_module
    from tapeproxy.proxy.tapefile import load
    for name in ("har", "vcr", "markdown", "otlp"):
        pieces = import_module("tapeproxy." + FORMATS[name].module).export(load(path)[0], "t", lambda _: None)
        assert sum(map(len, pieces))
def replay(path):
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.matching import Ask, Hit, Index
    from tapeproxy.tapes.answers import render
    tape, _ = load(path)
    index = Index(tape.exchanges)
    for exchange in tape.exchanges:
        request = exchange.request
        found = index.take(Ask(request.method, request.url, request.headers, exchange.request_body))
        assert isinstance(found, Hit) and found.exchange.number == exchange.number
        assert b"".join(part.data for part in render(found.exchange).parts).endswith(b"%d" % exchange.number)
    assert sum(1 for _ in index.used()) == len(tape.exchanges)
job = globals()[sys.argv[1]]
job(Path(sys.argv[2]))
before = peak()
job(Path(sys.argv[3]))
print((peak() - before) >> 20)
"""


def texts(count: int, size: int) -> Iterator[bytes]:
    """Bodies that share nothing, deflate to a third, and cost no time to make."""
    words = [b"%04x " % (n * 40_503 % 65_536) for n in range(65_536)]
    for turn in range(count):
        yield b"turn %d: " % turn + b"".join((words[turn * 97 % 60_000 :] + words)[: size // 5])


def write(path: Path, bodies: Iterator[bytes], head: Head) -> Path:
    writer = TapeWriter(path, head)
    for number, body in enumerate(bodies, 1):
        of = writer.add(Request(t=number, method=b"POST", url=b"https://x.example/", body=body))
        writer.add(Response(t=number, of=of, status=200))
        writer.add(Chunks(t=number, of=of, parts=((0, b"%d" % number),)))
        writer.add(End(t=number, of=of, how="complete"))
        writer.commit()
    trace = trace_hash((entry.index, entry.record) for entry in read_entries(path))
    writer.seal(trace=trace, outcome="exited")
    return path


def growth_mb(job: str, small: Path, big: Path) -> int:
    """MiB by which a process that has read a small tape grows when it reads a big one."""
    done = subprocess.run([sys.executable, "-c", PEAK, job, small, big], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


WHOLE = Head(started_at="2026-01-02T03:04:05Z")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("small") / "small.tape.jsonl.gz", texts(5, 100_000), WHOLE)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("big") / "big.tape.jsonl.gz", texts(600, 100_000), WHOLE)


@pytest.mark.parametrize(("job", "most"), [("verify", 16), ("replay", 36)])
def test_60_mb_are_read_in_little_memory(job: str, most: int, small: Path, big: Path) -> None:
    assert growth_mb(job, small, big) < most


@pytest.fixture(scope="module")
def expanding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some kilobytes that hold 90 MB of bodies: each but the first is mostly an earlier one."""
    bodies = (b"0" * (1 << 20) + b"%d" % n for n in range(90))
    head = replace(WHOLE, must=("like",), window=WINDOW)
    return write(tmp_path_factory.mktemp("expanding") / "expanding.tape.jsonl.gz", bodies, head)


@pytest.mark.parametrize(
    "job", ["show", "replay", "diff", "export", "repair", pytest.param("scrub", marks=pytest.mark.soak)]
)
def test_a_short_file_with_much_in_it_is_read_in_little_memory(job: str, small: Path, expanding: Path) -> None:
    assert expanding.stat().st_size < 1 << 17
    assert growth_mb(job, small, expanding) < 64


@pytest.mark.soak
@pytest.mark.parametrize("job", ["verify", "sizes", "ls", "show", "replay", "diff", "export", "repair", "scrub"])
@pytest.mark.parametrize("window", [None, WINDOW])
def test_1_gb_is_read_in_less_than_100_mb_more(job: str, window: int | None, small: Path, tmp_path: Path) -> None:
    head = replace(WHOLE, must=("like",), window=window)
    assert growth_mb(job, small, write(tmp_path / "huge.tape.jsonl.gz", texts(10_000, 100_000), head)) < 100
