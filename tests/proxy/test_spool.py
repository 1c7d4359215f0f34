import errno
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tapesamples import read, written

from tapeproxy.proxy.shelving import Shelving
from tapeproxy.proxy.spool import Budget, Spool, SpooledExchanges, SpoolFile
from tapeproxy.tapes.answers import render
from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.exchanges import Exchange, assemble, outlines
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.records import Chunks, End, Head, Like, Record, Request, Response

OLD = b"The tide comes in at noon. " * 100
WINDOWED = Head(started_at="x", must=("like",), window=WINDOW)
ANY = Head(started_at="x", must=("like", "ref"))


def exchange(of: int, body: bytes | Like, *, answer: bytes = b"yes", ended: bool = True) -> list[Record]:
    records: list[Record] = [
        Request(t=of, method=b"POST", url=b"https://x.example/", headers=((b"a", b"\xe9"),), body=body, lane="m", n=of),
        Chunks(t=of, of=of, to="server", parts=((0, b"up"),)),
        Response(t=of, of=of, status=200, reason=b"OK"),
        Chunks(t=of, of=of, parts=((0, answer), (None, b"!"))),
    ]
    return [*records, End(t=of, of=of, how="complete", trailers=((b"b", b"c"),))] if ended else records


def conversation(turns: int) -> list[Record]:
    bodies = [OLD + b"".join(b"turn %d; " % n for n in range(turn)) + b"]}" for turn in range(turns)]
    return [record for turn, body in enumerate(bodies) for record in exchange(1 + 5 * turn, body)]


def both(data: bytes, budget: Budget) -> tuple[Sequence[Exchange], Sequence[Exchange]]:
    """The exchanges of a tape as they are in memory, and on a spool."""
    entries = read(data)[0]
    return assemble(entries).exchanges, assemble(entries, shelf=Spool(budget)).exchanges


NONE = Budget(0, 0)


@pytest.mark.parametrize("budget", [NONE, Budget(0, 10_000), Budget(10_000, 0), Budget(50_000, 50_000)])
@pytest.mark.parametrize(
    ("records", "head"),
    [
        (conversation(70), WINDOWED),
        (conversation(70), ANY),
        ([*exchange(1, b""), *exchange(6, os.urandom(3 << 20)), *exchange(11, b"a", ended=False)] * 1, WINDOWED),
        ([*exchange(1, OLD), *exchange(6, Like(1, 5, b"", 7)), *exchange(11, Like(6, whole=True))], ANY),
    ],
)
def test_what_is_on_the_spool_is_what_was_put_there(records: list[Record], head: Head, budget: Budget) -> None:
    kept, spooled = both(written(records, head), budget)
    assert [*spooled] == kept
    assert [spooled[at] for at in range(-len(kept), len(kept))] == [*kept, *kept]
    assert [*spooled[1::2]] == kept[1::2]
    assert budget.whole or isinstance(spooled, SpooledExchanges)
    with pytest.raises(IndexError):
        spooled[len(kept)]


def test_what_fits_the_budget_is_a_list() -> None:
    kept, spooled = both(written(conversation(5), WINDOWED), Budget(1 << 20, 0))
    assert (type(spooled), spooled) == (list, kept)


def test_a_body_by_reference_is_not_written_again() -> None:
    entries = read(written(conversation(200), WINDOWED))[0]
    spool = Spool(NONE)
    exchanges = assemble(entries, shelf=spool).exchanges
    in_all = sum(len(exchange.request_body) for exchange in exchanges)
    used = spool._file._written + len(spool._file._pending)
    assert used < in_all / 4


@settings(max_examples=30)
@given(st.lists(st.tuples(st.binary(max_size=50), st.integers(0, 60)), min_size=1, max_size=10))
def test_pieces_of_pieces_are_the_bytes(ends: list[tuple[bytes, int]]) -> None:
    records, whole = exchange(1, OLD[:200]), OLD[:200]
    for at, (mid, cut) in enumerate(ends):
        head, tail = min(cut, len(whole)), min(cut // 2, len(whole) - min(cut, len(whole)))
        records += exchange(6 + 5 * at, Like(1 + 5 * at, head, mid, tail))
        whole = whole[:head] + mid + whole[len(whole) - tail :]
    kept, spooled = both(written(records, ANY), NONE)
    assert spooled[-1].request_body == kept[-1].request_body == whole + b"up"


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from test_spool import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
records = [record for n in range(6) for record in exchange(1 + 5 * n, bytes([n]) * 700_000, answer=b"x" * n)]
kept, spooled = both(written(records, WINDOWED, commits=False), NONE)
assert [*spooled] == kept
print([type(item).__name__ for item in spooled._items], spooled._file.full)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files there")
@pytest.mark.parametrize("limit", [0, 1_500_000, 1_600_001])
def test_a_full_disk_is_no_error(limit: int) -> None:
    tests = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", FULL, tests, str(limit)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(tests).parent)},
    )
    assert done.returncode == 0, done.stderr
    types, full = done.stdout.strip().rsplit(" ", 1)
    assert full == "True"
    assert "'Exchange', 'Exchange'" in types


def test_a_shelf_becomes_a_spool_when_it_is_full() -> None:
    """Also in the middle of an exchange, and with one that does not end."""
    records = [
        *exchange(1, os.urandom(1 << 20)),
        *exchange(6, b"a", answer=os.urandom(1 << 20), ended=False),
        *exchange(10, b"b", answer=os.urandom(3 << 20)),
        *(record for n in range(12) for record in exchange(15 + 5 * n, os.urandom(1 << 20))),
    ]
    entries = read(written(records, WINDOWED))[0]
    found = assemble(entries, shelf=Shelving()).exchanges
    assert isinstance(found, SpooledExchanges)
    assert [*found] == [*assemble(entries).exchanges]
    few = assemble(entries[:6], shelf=Shelving()).exchanges
    assert isinstance(few, list)


def test_the_file_is_private_and_has_no_name(tmp_path: Path) -> None:
    script = """
import os, sys, tempfile
sys.path.insert(0, sys.argv[1])
from test_spool import *
tempfile.tempdir = sys.argv[2]
records = [record for n in range(3) for record in exchange(1 + 5 * n, os.urandom(700_000))]
spool = Spool(NONE)
exchanges = assemble(read(written(records, WINDOWED))[0], shelf=spool).exchanges
print(os.listdir(sys.argv[2]), oct(os.fstat(spool._file._file.fileno()).st_mode & 0o777))
"""
    tests = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", script, tests, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(tests).parent)},
    )
    assert (done.stdout, done.stderr) == ("[] 0o600\n", "")


def test_of_an_encrypted_tape_nothing_readable_is_on_disk() -> None:
    records = [record for n in range(3) for record in exchange(1 + 5 * n, b"%d The tide comes in. " % n * 50_001)]
    entries = read(written(records, WINDOWED))[0]
    spool = Spool(NONE, secret=True)
    exchanges = assemble(entries, shelf=spool).exchanges
    assert isinstance(exchanges, SpooledExchanges)
    assert [*exchanges] == [*assemble(entries).exchanges]
    file = spool._file._file
    assert file is not None
    file.seek(0)
    data = file.read()
    assert b"The tide" not in data
    assert len(data) > 1 << 20


def test_pieces_of_an_encrypted_file_come_back_wherever_they_begin() -> None:
    file = SpoolFile(secret=True)
    given = [os.urandom(size) for size in (5, 0, 1, 16, 3 << 20, 15, 17, 1 << 20, 100)]
    assert [*map(file.get, [file.put(data) for data in given])] == given


def test_a_spool_that_was_cut_off_is_an_error_and_no_other_body() -> None:
    records = [record for n in range(3) for record in exchange(1 + 5 * n, os.urandom(700_000))]
    spool = Spool(NONE)
    exchanges = assemble(read(written(records, WINDOWED))[0], shelf=spool).exchanges
    assert spool._file._file is not None
    spool._file._file.truncate(1000)
    with pytest.raises(OSError, match="shorter") as error:
        exchanges[0]
    assert error.value.errno == errno.EIO


@pytest.mark.parametrize("budget", [NONE, Budget(0, 10_000), Budget(10_000, 0)])
def test_outlines_are_the_exchanges_without_their_requests_bodies(budget: Budget) -> None:
    kept, spooled = both(written(conversation(30), WINDOWED), budget)
    found = [*outlines(spooled)]
    assert [(one.number, one.request.lane, one.response_body) for one in found] == [
        (one.number, one.request.lane, one.response_body) for one in kept
    ]
    assert [one.request.body for one in found[-2:]] == [Like(one.index, whole=True) for one in kept[-2:]]
    assert [*outlines(kept)] == kept


def test_a_large_body_is_on_disk_while_it_comes_and_while_it_is_sent() -> None:
    """64 MiB, of which a few are in memory at a time."""
    piece = 1 << 20

    def entries() -> Iterator[Entry]:
        records: Iterator[Record] = chain(
            [Head(started_at="x"), Request(t=1, method=b"GET", url=b"https://x.example/")],
            [Response(t=2, of=1, status=200, framing="chunked")],
            (Chunks(t=n, of=1, parts=((0, bytes([n]) * piece),)) for n in range(64)),
            [End(t=70, of=1, how="complete")],
        )
        return (Entry(index, b"", 0, record) for index, record in enumerate(records))

    tracemalloc.start()
    try:
        (one,) = assemble(entries(), shelf=Spool()).exchanges
        answer = render(one)
        assert answer.size == 64 * piece
        head, *_ = (part.data[:1] + part.data[-2:-1] for part in answer.parts)
        assert head == b"H\r"
        assert tracemalloc.get_traced_memory()[1] < 24 * piece
    finally:
        tracemalloc.stop()
    assert [chunk.size for chunk in one.chunks] == [piece] * 64
    assert all(chunk.data == bytes([n]) * piece for n, chunk in enumerate(one.chunks))


def test_a_large_body_that_was_put_out_whole_comes_back() -> None:
    pieces = [os.urandom(1 << 20) for _ in range(6)]
    records = exchange(1, b"")[:-1] + [Chunks(t=9, of=1, parts=((0, data),)) for data in pieces] + exchange(1, b"")[-1:]
    kept, spooled = both(written(records, ANY), NONE)
    assert kept[0].response_body == spooled[0].response_body
    assert [chunk.t for chunk in spooled[0].chunks] == [chunk.t for chunk in kept[0].chunks]


def test_several_threads_read_what_is_on_disk() -> None:
    """The page's server asks from many threads: the file has one place at which it is read."""
    # More than the megabyte that waits in memory to be written.
    records = [record for turn in range(80) for record in exchange(1 + 5 * turn, OLD, answer=bytes([turn]) * 20_000)]
    kept, spooled = both(written(records, WINDOWED), NONE)
    start, different = threading.Barrier(4), list[object]()

    def look() -> None:
        start.wait()
        for _ in range(3):
            try:
                different.extend(mine for mine, other in zip(spooled, kept, strict=True) if mine != other)
            except Exception as error:
                different.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert different == []
