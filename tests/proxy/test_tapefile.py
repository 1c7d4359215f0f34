import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tapesamples import HEAD, RECORDS, written

from tapeproxy.proxy.tapefile import TapeWriter, is_being_written, load, read_entries, started_at, weigh_entries
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import TapeFormatError, TapeWriteError
from tapeproxy.tapes.records import Head, Note, Record, Request


def records_of(path: Path) -> tuple[list[Record], Ending]:
    endings: list[Ending] = []
    records = [entry.record for entry in read_entries(path, endings)]
    return records, endings[0]


def test_a_tape_is_on_disk_after_every_commit(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.tape.jsonl.gz"
    writer = TapeWriter(path, HEAD)
    assert records_of(path)[0] == [HEAD]
    for index, record in enumerate(RECORDS, 1):
        assert writer.add(record) == index
        writer.commit()
        assert len(records_of(path)[0]) == index + 1
        assert not records_of(path)[1].sealed
    size = path.stat().st_size
    writer.commit()
    assert path.stat().st_size == size
    writer.seal(trace="t", outcome="exit")
    records, ending = records_of(path)
    assert ending.sealed
    assert ending.canonical
    assert records[-1].to_json()["outcome"] == "exit"
    assert path.stat().st_mode & 0o777 == 0o600
    assert writer.failure is None


def test_load_gives_exchanges(tmp_path: Path) -> None:
    path = tmp_path / "a.tape.jsonl.gz"
    path.write_bytes(written())
    tape, ending = load(path)
    assert [exchange.request_body for exchange in tape.exchanges] == [b"hello, world", b"hello, w\xffrld"]
    assert tape.exchanges[0].response_body == b"one\xff\x00"
    assert ending.canonical


def test_times(tmp_path: Path) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", started_at())
    writer = TapeWriter(tmp_path / "a", HEAD)
    first, second = writer.now(), writer.now()
    assert 0 <= first <= second < 60 * 10**9


def test_nothing_happens_after_the_seal_even_to_a_file_that_got_the_same_descriptor(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "other"
    writer = TapeWriter(path, HEAD)
    writer.seal(trace="", outcome="exit")
    data = path.read_bytes()
    with other.open("wb") as file:
        assert writer.add(RECORDS[0]) < writer.add(RECORDS[1])
        writer.commit()
        writer.seal(trace="", outcome="exit")
        file.write(b"mine")
    assert (path.read_bytes(), other.read_bytes()) == (data, b"mine")
    assert writer.failure is None


def test_a_discarded_tape_is_gone_and_stays_gone(tmp_path: Path) -> None:
    writer = TapeWriter(tmp_path / "a", HEAD)
    writer.discard()
    writer.add(RECORDS[0])
    writer.commit()
    writer.seal(trace="", outcome="exit")
    assert [*tmp_path.iterdir()] == []


def test_a_record_that_no_line_can_hold_leaves_the_tape_whole(tmp_path: Path) -> None:
    writer = TapeWriter(tmp_path / "a", HEAD)
    with pytest.raises(ValueError, match="64-bit"):
        writer.add(Note(t=2**64, what="x"))
    writer.seal(trace="", outcome="exit")
    assert records_of(tmp_path / "a")[1].canonical


def test_a_tape_that_exists_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"precious")
    with pytest.raises(TapeWriteError, match="exists already") as caught:
        TapeWriter(path, HEAD)
    assert str(caught.value) == (f"{path}: the file exists already\n  name another, or replace it with --force")
    assert path.read_bytes() == b"precious"


def test_force_replaces_a_tape_and_goes_on_writing_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"precious")
    writer = TapeWriter(path, HEAD, force=True)
    assert records_of(path)[0] == [HEAD]
    writer.add(RECORDS[0])
    writer.commit()
    writer.seal(trace="", outcome="exit")
    assert len(records_of(path)[0]) == 3
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]


def test_force_makes_a_tape_where_there_was_none(tmp_path: Path) -> None:
    TapeWriter(tmp_path / "new" / "a", HEAD, force=True).seal(trace="", outcome="exit")
    assert [*(tmp_path / "new").iterdir()] == [tmp_path / "new" / "a"]


def test_force_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "a").symlink_to("target")
    TapeWriter(tmp_path / "a", HEAD, force=True).seal(trace="", outcome="exit")
    assert (tmp_path / "target").read_bytes() == b"precious"
    assert records_of(tmp_path / "a")[1].sealed


def fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("make", [Path.mkdir, fifo], ids=["folder", "fifo"])
def test_what_is_not_a_file_is_never_replaced(tmp_path: Path, make: Callable[[Path], None], force: bool) -> None:
    path = tmp_path / "a"
    make(path)
    mode = path.stat().st_mode
    with pytest.raises(TapeWriteError, match="not a file" if force else "exists already"):
        TapeWriter(path, HEAD, force=force)
    assert path.stat().st_mode == mode
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("force", [True, False])
def test_a_path_through_a_file_is_one_clear_line(tmp_path: Path, force: bool) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TapeWriteError, match="the tape cannot be written: not a directory"):
        TapeWriter(tmp_path / "file" / "a", HEAD, force=force)


def test_a_head_that_no_line_can_hold_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        TapeWriter(tmp_path / "a", Head(started_at="\ud800"))
    assert [*tmp_path.iterdir()] == []


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize(
    ("do", "why"),
    [(Path.unlink, "removed or replaced"), (shorten, "something else shortened it"), (lengthen, "else wrote to it")],
)
def test_a_file_that_somebody_else_touches_is_given_up_at_once_and_left_as_it_is(
    tmp_path: Path, do: Callable[[Path], None], why: str
) -> None:
    path, failures = tmp_path / "a", list[TapeWriteError]()
    writer = TapeWriter(path, HEAD, failed=failures.append)
    do(path)
    size = path.stat().st_size if path.exists() else -1
    writer.add(RECORDS[0])
    writer.commit()
    assert failures == [writer.failure]
    assert why in str(writer.failure)
    writer.commit()
    writer.seal(trace="", outcome="exit")
    assert len(failures) == 1
    assert (path.stat().st_size if path.exists() else -1) == size


def test_a_tape_that_was_moved_is_only_missed_when_its_place_is_looked_at(tmp_path: Path) -> None:
    writer = TapeWriter(tmp_path / "a", HEAD, fsync=True)
    writer.check_place()
    (tmp_path / "a").rename(tmp_path / "b")
    writer.add(RECORDS[0])
    writer.commit()
    assert writer.failure is None
    assert len(records_of(tmp_path / "b")[0]) == 2
    writer.check_place()
    assert "moved away or replaced" in str(writer.failure)


# In a child process: a limit on the size of files is the one kind of full disk that needs no privileges, and a test
# that runs as root gives its rights up.
CHILD = """
import fcntl, os, resource, sys
import tapeproxy.tapes.encoder  # which, as fcntl, a process that gave its rights up may not be able to read
from pathlib import Path
from tapeproxy.proxy.tapefile import TapeWriter, load
from tapeproxy.tapes.errors import TapeproxyError
from tapeproxy.tapes.records import Head, Note
path = Path(sys.argv[1])
def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
def drop():
    if os.geteuid() == 0: os.seteuid(65534)
HEAD = Head(started_at="x")
try:
    exec(sys.argv[2])
except TapeproxyError as error:
    print(type(error).__name__, error)
"""


def run(path: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHILD, str(path), code], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout


def test_a_full_disk_ends_the_tape_at_its_last_flush_and_not_the_run(tmp_path: Path) -> None:
    path = tmp_path / "a"
    said = run(
        path,
        """
import random
limit(8000)
writer, whole = TapeWriter(path, HEAD), 0
for n in range(100):
    writer.add(Note(t=n, what="x", text=random.Random(n).randbytes(500).hex()))
    writer.commit()
    whole += writer.failure is None
print(whole, writer.failure)
writer.seal(trace="", outcome="exit")
print(writer.add(Note(t=1, what="x")) > whole)
# Nothing is piled up for a tape that is closed.
import tracemalloc
tracemalloc.start()
for n in range(200):
    writer.add(Note(t=n, what="x", text=random.Random(n).randbytes(5000).hex()))
print(tracemalloc.get_traced_memory()[0] < 100_000)
""",
    )
    first, fix, *rest = said.splitlines()
    whole = int(first.split()[0])
    assert 5 < whole < 50
    assert first.endswith(f"{path}: the tape cannot be written: file too large")
    assert fix == "  name a tape in a folder you can write with -o"
    assert rest == ["True", "True"]
    records, ending = records_of(path)
    assert len(records) == whole + 1
    assert (ending.sealed, ending.lost) == (False, 0)


@pytest.mark.parametrize("force", [True, False])
def test_where_not_even_the_head_fits_there_is_no_tape(tmp_path: Path, force: bool) -> None:
    said = run(tmp_path / "a", f"limit(20); TapeWriter(path, HEAD, force={force})")
    assert said.startswith(f"TapeWriteError {tmp_path / 'a'}: the tape cannot be written: file too large\n")
    assert [*tmp_path.iterdir()] == []


def test_force_keeps_the_old_tape_until_the_new_one_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"precious")
    assert "file too large" in run(path, "limit(20); TapeWriter(path, HEAD, force=True)")
    assert path.read_bytes() == b"precious"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("force", [True, False])
def test_a_folder_that_may_not_be_written(tmp_path: Path, force: bool) -> None:
    tmp_path.chmod(0o555)
    said = run(tmp_path / "a", f"drop(); TapeWriter(path, HEAD, force={force})")
    assert said == (
        f"TapeWriteError {tmp_path / 'a'}: the tape cannot be written: permission denied\n"
        "  name a tape in a folder you can write with -o\n"
    )


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root, to make a file that is another's")
def test_where_the_old_tape_may_not_be_replaced_nothing_is_left_behind() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o1777)  # sticky, as /tmp is: only the owner renames over a file
        (folder / "a").write_bytes(b"precious")
        said = run(folder / "a", "drop(); TapeWriter(path, HEAD, force=True)")
        assert said.startswith(f"TapeWriteError {folder / 'a'}: the tape cannot be written: operation not permitted")
        assert [*folder.iterdir()] == [folder / "a"]
        assert (folder / "a").read_bytes() == b"precious"


def test_a_tape_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(written())
    path.chmod(0)
    assert run(path, "drop(); load(path)") == f"TapeFormatError {path}: the tape cannot be opened: permission denied\n"


def test_a_tape_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TapeFormatError, match="cannot be opened: no such file") as caught:
        load(tmp_path / "a")
    assert "tapeproxy ls" in caught.value.fix


def test_a_folder_is_not_a_tape(tmp_path: Path) -> None:
    with pytest.raises(TapeFormatError, match="cannot be opened: is a directory"):
        load(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc for a file that fails to read")
def test_a_file_that_fails_while_it_is_read() -> None:
    with pytest.raises(TapeFormatError, match="cannot be read: input/output error"):
        load(Path("/proc/self/mem"))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "cut before its first record"),
        (b"{}", "not gzip"),
        (written()[:30], "cut before its first record"),
        (written() + written(), "a record after the seal"),
    ],
)
def test_a_file_that_is_no_tape_is_named(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(data)
    with pytest.raises(TapeFormatError, match=what) as caught:
        load(path)
    assert caught.value.place.source == str(path)


WRITER = """
import itertools, sys
from pathlib import Path
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.records import Head, Note
writer = TapeWriter(Path(sys.argv[1]), Head(started_at="x"))
for n in itertools.count(1):
    writer.add(Note(t=n, what="x", text="y" * (n * 37 % 4000)))
    writer.commit()
    print(n, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 2, 3, 10, 40, 300])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, acknowledged: int) -> None:
    path = tmp_path / "a"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for n in range(1, acknowledged + 1):
            assert int(child.stdout.readline()) == n
        child.send_signal(signal.SIGKILL)
    records, ending = records_of(path)
    assert len(records) >= acknowledged + 1
    assert [record.to_json()["t"] for record in records[1:]] == [*range(1, len(records))]
    assert not ending.sealed


@pytest.mark.parametrize("bodies", [(b"a" * 100_000, b"b"), (os.urandom(60_000), b"c" * 60_000, b""), ()])
def test_records_weigh_what_the_file_has(tmp_path: Path, bodies: tuple[bytes, ...]) -> None:
    path = tmp_path / "a.tape.jsonl.gz"
    writer = TapeWriter(path, Head(started_at="x"))
    for body in bodies:
        writer.add(Request(t=1, method=b"PUT", url=b"https://x.example/", body=body))
        writer.commit()
    writer.seal(trace="", outcome="exit")
    weighed = [*weigh_entries(path)]
    assert [entry for entry, _ in weighed] == [*read_entries(path)]
    assert sum(share for _, share in weighed) == pytest.approx(path.stat().st_size)
    assert min(share for _, share in weighed) > 0
    if len(bodies) == 3:  # what does not compress weighs what it has
        assert 60_000 < weighed[1][1] < 65_000
        assert weighed[2][1] < 2_000


def test_a_tape_is_locked_before_anything_is_on_it_though_somebody_asks_just_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock, sizes = tmp_path / "t", fcntl.flock, list[int]()

    def asked(fd: int, how: int) -> None:
        sizes.append(path.stat().st_size)
        if len(sizes) == 1:
            raise BlockingIOError
        flock(fd, how)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", asked)
        writer = TapeWriter(path, HEAD)
    assert sizes == [0, 0]
    assert is_being_written(path)
    writer.seal(trace="", outcome="exited")
    assert not is_being_written(path)
