"""Tapes as the page's server looks at them: while they grow, when they are replaced or damaged, and in a list."""

import contextlib
import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import agentruns
import pytest

from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.proxy.viewing import TapeFolder
from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.exchanges import assemble
from tapeproxy.web.library import Looked, NotThereError

NAME = "one.tape.jsonl.gz"
SAMPLE = agentruns.sample("m")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def folder(path: Path) -> TapeFolder:
    return TapeFolder(path.parent)


def writer(path: Path, *, force: bool = False) -> TapeWriter:
    return TapeWriter(path, agentruns.HEAD, force=force)


def add(tape: TapeWriter, count: int, start: int = 0) -> None:
    for record in SAMPLE[start : start + count]:
        tape.add(record)
    tape.commit()


def test_who_follows_is_told_what_is_new_and_at_the_end_everything(path: Path) -> None:
    tape = writer(path)
    shown = folder(path).open(NAME)
    serial, numbers, looked = shown.since(0)
    assert (numbers, looked.tape.exchanges, looked.ending) == (None, [], None)
    assert shown.since(serial)[:2] == (serial, frozenset())
    add(tape, 1)
    second, numbers, _ = shown.since(serial)
    assert (second > serial, numbers) == (True, {1})
    add(tape, len(SAMPLE) - 1, 1)
    assert shown.since(second)[1] == {1, 2, 3, 4}
    assert shown.since(serial)[1] == {1, 2, 3, 4}, "another page knows less"
    tape.seal(trace="", outcome="exited")
    last, numbers, looked = shown.since(second)
    assert numbers is None
    assert looked.ending is not None
    assert looked.ending.sealed
    assert shown.since(last)[:2] == (last, frozenset())
    assert looked.tape == assemble(TapeDecoder("t").feed(path.read_bytes()))


@contextmanager
def being_written(path: Path) -> Iterator[None]:
    """What a tape is while its recorder lives. Left: killed."""
    with path.open("ab") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def test_a_recorder_that_was_killed_leaves_an_interrupted_tape(path: Path) -> None:
    agentruns.write_tape(path, SAMPLE[:6], sealed=False)
    shown = folder(path).open(NAME)
    with being_written(path):
        serial, _, looked = shown.since(0)
        assert looked.ending is None
    _, numbers, looked = shown.since(serial)
    assert numbers is None
    assert looked.ending is not None
    assert not looked.ending.sealed


def replaced(path: Path) -> None:
    agentruns.write_tape(path.with_name("other"), agentruns.exchange(1, "http://other.test/"), sealed=False)
    path.with_name("other").replace(path)


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-50])


def damaged(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\xff" * 40)


@pytest.mark.parametrize("what", [replaced, shortened, damaged, Path.unlink])
@pytest.mark.parametrize("ended", [False, True], ids=["growing", "ended"])
def test_a_tape_that_is_no_longer_the_same(path: Path, what: Callable[[Path], None], ended: bool) -> None:
    agentruns.write_tape(path, SAMPLE[:6], sealed=ended)
    shown = folder(path).open(NAME)
    with contextlib.nullcontext() if ended else being_written(path):
        serial = shown.since(0)[0]
        what(path)
        if not ended or what not in (replaced, shortened):  # those can be read: another tape, one without a seal
            with pytest.raises(TapeFormatError):
                shown.look()
    agentruns.write_tape(path, agentruns.exchange(1, "http://new.test/"))
    later, numbers, looked = shown.since(serial)
    assert (later > serial, numbers) == (True, None), "of another tape all is new"
    assert [one.request.url for one in looked.tape.exchanges] == [b"http://new.test/"]
    assert shown.causality().order()


def test_many_look_at_a_tape_while_it_grows(path: Path) -> None:
    tape = writer(path)
    library, seen, failures = folder(path), [set[int](), set[int](), set[int]()], list[Exception]()

    def follow(mine: set[int]) -> None:
        serial = 0
        try:
            while True:
                serial, numbers, looked = library.open(NAME).since(serial)
                mine |= numbers or set(range(1, len(looked.tape.exchanges) + 1))
                library.open(NAME).causality()
                if looked.ending is not None:
                    return
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=follow, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for at in range(len(SAMPLE)):
        add(tape, 1, at)
    tape.seal(trace="", outcome="exited")
    for thread in threads:
        thread.join()
    assert failures == []
    assert seen == [{1, 2, 3, 4}] * 3


def test_the_list(path: Path) -> None:
    agentruns.write_tape(path, SAMPLE)
    agentruns.write_tape(path.with_name("cut.jsonl.gz"), SAMPLE[:6], sealed=False)
    path.with_name("bad.jsonl.gz").write_bytes(path.read_bytes()[:-60] + bytes(60))
    path.with_name("none.jsonl.gz").write_bytes(b"no tape")
    path.with_name("notes.txt").write_bytes(b"no tape")
    agentruns.write_tape(path.with_name("grows.jsonl.gz"), SAMPLE[:6], sealed=False)
    library = folder(path)
    with being_written(path.with_name("grows.jsonl.gz")):
        found = {row.name: (row.recording, library.about(row.name)) for row in library.listed()}
    told = {name: (recording, about.outcome, about.exchanges) for name, (recording, about) in found.items()}
    assert told == {
        NAME: (False, "exit 3", 4),
        "cut.jsonl.gz": (False, "interrupted", 1),
        "bad.jsonl.gz": (False, "damaged", None),
        "none.jsonl.gz": (False, "damaged", None),
        "grows.jsonl.gz": (True, "recording", None),
    }
    assert found[NAME][1].tokens_in == 40
    assert found["grows.jsonl.gz"][1].argv == agentruns.HEAD.argv
    assert library.about(NAME) is found[NAME][1], "it is read once"
    agentruns.write_tape(path, SAMPLE[:6])
    assert library.about(NAME).exchanges == 1


@pytest.mark.parametrize("name", ["other.jsonl.gz", "../one.tape.jsonl.gz", "", ".", "notes.txt"])
def test_only_what_is_listed_is_opened(path: Path, name: str) -> None:
    agentruns.write_tape(path, SAMPLE)
    path.with_name("notes.txt").touch()
    for ask in (folder(path).open, folder(path).about):
        with pytest.raises(NotThereError):
            ask(name)


def test_one_tape_alone_has_no_neighbours(path: Path) -> None:
    agentruns.write_tape(path, SAMPLE)
    agentruns.write_tape(path.with_name("next.jsonl.gz"), SAMPLE)
    assert [*TapeFolder(path).paths()] == [NAME]


def test_what_was_told_of_a_tape_that_ended_is_remembered_until_it_is_another_one(path: Path) -> None:
    tape = writer(path)
    add(tape, 1)
    shown, made = folder(path).open(NAME), 0

    def tell(looked: Looked) -> str:
        nonlocal made
        made += 1
        return f"{len(looked.tape.exchanges)}, {made}"

    assert [shown.kept("count", tell) for _ in range(2)] == ["1, 1", "1, 2"], "it may grow"
    add(tape, len(SAMPLE) - 1, 1)
    tape.seal(trace="", outcome="exited")
    assert [shown.kept("count", tell) for _ in range(2)] == ["4, 3", "4, 3"]
    assert shown.kept("other", tell) == "4, 4"
    replaced(path)
    assert shown.kept("count", tell) == "1, 5"
