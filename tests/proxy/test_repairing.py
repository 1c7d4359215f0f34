"""Repairing files: what a killed recorder leaves behind becomes one tape, and nothing is overwritten unasked."""

import json
from dataclasses import replace
from pathlib import Path

import agentruns
import pytest

from tapeproxy.proxy.repairing import Repaired, beside, repair
from tapeproxy.proxy.sidecar import find_folder, make_folder
from tapeproxy.proxy.tapefile import TapeWriter, load, read_entries
from tapeproxy.tapes.encrypted import MAGIC
from tapeproxy.tapes.errors import NoTapeError, TapeExistsError, TapeFormatError, UsageError
from tapeproxy.tapes.records import Clock, Lane, LaneEnd, Note, Value

SEED = "ab" * 32
SECRET = "sk-proj-AbCdEf0123456789"
HEAD = replace(agentruns.HEAD, seed=SEED, secrets=("API_KEY",))
EPOCH = 1_767_323_045_000_000_000


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    return {"API_KEY": SECRET}


def interrupted(tmp_path: Path) -> Path:
    """A tape without a seal, with two readings of lane m on it."""
    records = [*agentruns.sample()[:7], Clock(t=5, lane="m", n=0, ns=0), Clock(t=6, lane="m", n=1, ns=10)]
    return agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", records, HEAD, sealed=False)


def leave_sidecar(tape: Path) -> Path:
    folder = make_folder(tape, SEED)
    lines = [
        {"k": "hello", "pid": 7, "argv": ["agent", "--key", SECRET], "lane": "m"},
        {"k": "clock", "lane": "m", "n": 0, "ns": EPOCH},
        {"k": "clock", "lane": "m", "n": 1, "ns": EPOCH + 10},
        {"k": "clock", "lane": "m", "n": 2, "ns": EPOCH + 20},
        {"k": "lane", "id": "m/t0", "kind": "t", "name": f"worker {SECRET}"},
        {"k": "value", "lane": "m", "n": 0, "what": "file", "name": "notes.txt", "content": f"key {SECRET}"},
        {"k": "end", "lane": "m", "reads": 3},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "7-1.jsonl").write_text(text + '{"k":"clock","la')
    return folder


def test_an_interrupted_tape_is_closed_and_the_original_kept(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = interrupted(tmp_path)
    before = tape.read_bytes()
    out = beside(tape)
    assert out.name == "x-repaired.tape.jsonl.gz"
    done = repair(tape, out, environment)
    assert done == Repaired(out, ("10 records kept", "1 of 1 exchange has no end"))
    assert tape.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, tape.name]
    whole, ending = load(out)
    assert ending.canonical
    assert whole.seal is not None
    assert whole.seal.outcome == "repaired"
    assert whole.exchanges[0].end is None
    assert whole.notes[-1].what == "repaired"
    # And once is enough.
    assert repair(out, beside(out), environment) == Repaired(out)


def test_what_the_shims_had_written_is_merged_once_and_redacted(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = interrupted(tmp_path)
    folder = leave_sidecar(tape)
    done = repair(tape, tmp_path / "out.gz", environment)
    assert "5 records of the shim added from its sidecar files" in done.facts
    assert "1 line of the shim left out (unfinished, or with secrets unknown here)" in done.facts
    assert folder.is_dir(), "the original is kept, with what belongs to it"
    added = [entry.record for entry in read_entries(tmp_path / "out.gz")][10:-2]
    assert [type(record) for record in added] == [Note, Clock, Lane, Value, LaneEnd]
    assert added[1] == Clock(t=added[1].t, lane="m", n=2, ns=20)  # type: ignore[union-attr]  # a Clock, as above
    assert SECRET not in str(added)
    assert "worker" in str(added)


def test_texts_that_can_not_be_redacted_any_more_are_left_out(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = interrupted(tmp_path)
    leave_sidecar(tape)
    done = repair(tape, tmp_path / "out.gz", dict.fromkeys(environment, ""))
    assert "3 records of the shim added from its sidecar files" in done.facts
    assert "3 lines of the shim left out (unfinished, or with secrets unknown here)" in done.facts
    added = [entry.record for entry in read_entries(tmp_path / "out.gz")][10:-2]
    assert [type(record) for record in added] == [Clock, Lane, LaneEnd]
    assert "worker" not in str(added)
    assert SECRET not in str(added)


def test_in_place_replaces_the_tape_and_removes_what_was_merged(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = interrupted(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(tape.name)
    leave_sidecar(tape)
    repair(link, link, environment)
    assert link.is_symlink()
    assert load(tape)[1].canonical
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "link", tape.name]


def test_another_run_s_sidecar_files_are_nothing_to_it(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = interrupted(tmp_path)
    other = make_folder(tape, "cd" * 32)
    (other / "1-1.jsonl").write_text('{"k":"clock","lane":"m","n":9,"ns":1}\n')
    assert find_folder(tape, SEED) is None
    assert find_folder(tape, None) is None
    repair(tape, tape, environment)
    assert other.is_dir()
    assert len(load(tape)[0].clocks) == 2


def test_a_damaged_tape_is_refused_and_kept_up_to_the_damage_if_wished(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    tape = agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", agentruns.sample())
    data = bytearray(tape.read_bytes())
    data[len(data) // 2] ^= 0x10
    tape.write_bytes(data)
    with pytest.raises(TapeFormatError) as caught:
        repair(tape, beside(tape), environment)
    good = caught.value.place.line - 1
    assert good > 0
    assert f"the {good} records before it are intact" in caught.value.fix
    assert not beside(tape).exists()
    done = repair(tape, beside(tape), environment, to_damage=True)
    assert done.facts[0] == f"{good} records kept"
    assert "is damaged: " in done.facts[1]
    whole, ending = load(beside(tape))
    assert ending.canonical
    assert whole.notes[-1].data["kept"] == good


def test_zeros_that_a_power_cut_left_are_damage(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = interrupted(tmp_path)
    whole = load(tape)[0]
    tape.write_bytes(tape.read_bytes() + bytes(4096))
    with pytest.raises(TapeFormatError, match="damaged near byte"):
        repair(tape, beside(tape), environment)
    assert repair(tape, beside(tape), environment, to_damage=True).facts[0] == "10 records kept"
    assert load(beside(tape))[0].exchanges == whole.exchanges


def test_a_record_that_belongs_to_nothing_is_damage_too(tmp_path: Path, environment: dict[str, str]) -> None:
    records = agentruns.sample()[:5]
    tape = agentruns.write_tape(
        tmp_path / "x.gz", [*records, *agentruns.exchange(77, "http://x/")[1:]], HEAD, sealed=False
    )
    with pytest.raises(TapeFormatError, match="answers record 77"):
        repair(tape, beside(tape), environment)
    assert repair(tape, beside(tape), environment, to_damage=True).facts[0] == "6 records kept"
    assert load(beside(tape))[1].canonical


def test_what_is_not_for_repair(tmp_path: Path, environment: dict[str, str]) -> None:
    sealed = agentruns.write_tape(tmp_path / "sealed.gz", agentruns.sample())
    assert repair(sealed, tmp_path / "out.gz", environment) == Repaired(sealed)
    with pytest.raises(NoTapeError):
        repair(tmp_path / "none.gz", tmp_path / "out.gz", environment)
    (tmp_path / "empty.gz").touch()
    with pytest.raises(TapeFormatError, match="this is not a tape"):
        repair(tmp_path / "empty.gz", tmp_path / "out.gz", environment, to_damage=True)
    assert not (tmp_path / "out.gz").exists()


def test_an_encrypted_tape_is_not_for_repair(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = tmp_path / "x.tape.jsonl.gz.enc"
    tape.write_bytes(MAGIC + bytes(100))
    with pytest.raises(UsageError, match="encrypted"):
        repair(tape, beside(tape), environment)


def test_a_file_that_is_there_is_never_replaced(tmp_path: Path, environment: dict[str, str]) -> None:
    tape = interrupted(tmp_path)
    (tmp_path / "out.gz").write_bytes(b"precious")
    with pytest.raises(TapeExistsError):
        repair(tape, tmp_path / "out.gz", environment)
    assert (tmp_path / "out.gz").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.gz", tape.name]


def test_a_tape_that_is_being_written_is_left_alone(tmp_path: Path, environment: dict[str, str]) -> None:
    writer = TapeWriter(tmp_path / "x.gz", HEAD)
    with pytest.raises(UsageError, match="still runs"):
        repair(tmp_path / "x.gz", tmp_path / "out.gz", environment)
    writer.seal(trace="", outcome="exited")
