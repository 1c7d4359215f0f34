"""A new tape that waits beside an old one and takes its place: whole or not at all, whenever somebody is killed."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import CodeType

import inprocesstapes
import pytest

from tapeproxy.proxy import pending
from tapeproxy.proxy.pending import check_parent, clear, new_beside, open_pending, pending_in, replace_tape
from tapeproxy.proxy.tapefile import TapeWriter, load
from tapeproxy.tapes.errors import NoTapeError, UsageError
from tapeproxy.tapes.records import Head

_TOOL = sys.monitoring.DEBUGGER_ID


def make(folder: Path) -> tuple[Path, Path, bytes, bytes]:
    """An old tape and a new one that waits, with what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    new = inprocesstapes.gets(folder, "/one", "/two").rename(folder / "t.gz.new")
    old = inprocesstapes.gets(folder, "/one").rename(folder / "t.gz")
    return old, new, old.read_bytes(), new.read_bytes()


def killed_at(step: int, old: Path, new: Path) -> bool:
    """Replace a tape in a process that kills itself before the `step`-th line; whether it got so far."""
    pid = os.fork()
    if pid == 0:
        passed = 0

        def line(_code: CodeType, _number: int) -> None:
            nonlocal passed
            passed += 1
            if passed == step:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            events = sys.monitoring.events
            sys.monitoring.use_tool_id(_TOOL, "killing")
            sys.monitoring.register_callback(_TOOL, events.LINE, line)
            for function in (pending.replace_tape, pending._keep, pending._to_disk):
                sys.monitoring.set_local_events(_TOOL, function.__code__, events.LINE)
            replace_tape(old, new, keep=True)
        finally:
            os._exit(0 if sys.exception() is None else 70)
    status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return os.waitstatus_to_exitcode(status) != 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_whenever_one_is_killed_there_is_a_whole_tape_and_none_is_lost(tmp_path: Path) -> None:
    step, going = 0, True
    seen: set[bool] = set()
    while going:
        step += 1
        old, new, before, after = make(tmp_path / str(step))
        going = killed_at(step, old, new)
        found = old.read_bytes()
        assert found in (before, after)
        seen.add(found == after)
        kept = old.with_name("t.gz.bak")
        assert found == before or kept.read_bytes() == before
        assert found == after or new.read_bytes() == after
    assert step > 8
    assert seen == {True, False}


def test_the_old_one_is_kept_where_it_is_to_be(tmp_path: Path) -> None:
    old, new, before, after = make(tmp_path)
    old.chmod(0o640)
    replace_tape(old, new, keep=True)
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (after, 0o640)
    assert old.with_name("t.gz.bak").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.gz", "t.gz.bak"]
    new.write_bytes(before)
    replace_tape(old, new, keep=False)
    assert old.read_bytes() == before
    assert old.with_name("t.gz.bak").read_bytes() == before


def test_a_link_is_followed(tmp_path: Path) -> None:
    old, new, _, after = make(tmp_path / "there")
    link = tmp_path / "link.gz"
    link.symlink_to(old)
    assert new_beside(link) == new
    replace_tape(link, new, keep=True)
    assert link.is_symlink()
    assert old.read_bytes() == after


def test_tapes_with_a_new_one_are_found_by_their_names_and_in_folders(tmp_path: Path) -> None:
    old, new, _, _ = make(tmp_path / "a" / "b")
    alone = inprocesstapes.gets(tmp_path / "a", "/x")
    assert pending_in([tmp_path]) == pending_in([old]) == pending_in([new]) == [old]
    with pytest.raises(NoTapeError, match="no new tape waits beside this one"):
        pending_in([alone])


def test_a_new_tape_of_another_one_is_refused(tmp_path: Path) -> None:
    old, _, _, _ = make(tmp_path)
    with pytest.raises(UsageError, match="made of another one than is here now"):
        open_pending(old)
    tape, ending = load(old)
    tape.head = replace(tape.head, parent={"name": "t.gz", "last": ending.hash})
    check_parent(old, ending, tape)


def test_one_that_was_interrupted_or_is_being_written_is_left_alone(tmp_path: Path) -> None:
    old, new, _, _ = make(tmp_path)
    new.unlink()
    writer = TapeWriter(new, Head(started_at="2026-01-01T00:00:00Z"))
    for touch in (lambda: clear(new), lambda: open_pending(old)):
        with pytest.raises(UsageError, match=r"is running|is being written"):
            touch()
    writer._close()
    with pytest.raises(UsageError, match="was interrupted"):
        open_pending(old)
    clear(new)
    assert not new.exists()
