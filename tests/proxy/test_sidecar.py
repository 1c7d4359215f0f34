"""Sidecar files are followed line by line, and nothing in them is believed."""

import json
from pathlib import Path

import pytest

from tapeproxy.proxy.sidecar import Sidecars, find_folder, make_folder, to_record
from tapeproxy.tapes.records import Clock, Edge, Env, Lane, LaneEnd, Note
from tapeproxy.tapes.redaction import Redactor

KEY = bytes(range(32))
SECRET = "sk-proj-AbCdEf0123456789"
REDACTOR = Redactor(KEY, [SECRET])
EPOCH = 1_000


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ({"k": "clock", "lane": "m", "n": 3, "ns": 1_500}, Clock(t=9, lane="m", n=3, ns=500)),
        (
            {"k": "clock", "lane": "m", "n": 3, "ns": 1_500, "slept": True},
            Clock(t=9, lane="m", n=3, ns=500, slept=True),
        ),
        ({"k": "clock", "lane": "m", "n": 3, "ns": 900}, Clock(t=9, lane="m", n=3, ns=-100)),
        ({"k": "end", "lane": "m/t0", "reads": 4}, LaneEnd(t=9, lane="m/t0", reads=4)),
        ({"k": "lane", "id": "m/t0", "kind": "t", "name": "w"}, Lane(t=9, id="m/t0", what="thread", name="w")),
        ({"k": "env", "name": "HOME", "digest": "ab"}, Env(t=9, name="HOME", digest="ab")),
        ({"k": "env", "name": "HOME", "digest": None}, Env(t=9, name="HOME", digest=None)),
        (
            {"k": "edge", "what": "refused", "on": "m#a:0", "lane": "m/t0", "n": 4},
            Edge(t=9, what="refused", on="m#a:0", lane="m/t0", n=4),
        ),
        ({"k": "edge", "what": "refused", "on": "m#a:0", "lane": "m/t0", "n": -1}, None),
        (
            {"k": "edge", "what": "join", "on": "m/t0", "lane": "m", "n": 1, "asked": 2, "at": [3, 4]},
            Edge(t=9, what="join", on="m/t0", lane="m", n=1, asked=2, at=(3, 4)),
        ),
        (
            {"k": "edge", "what": "message", "on": "a>b", "lane": "m", "n": 0, "asked": 0, "out": True},
            Edge(t=9, what="message", on="a>b", lane="m", n=0, asked=0, out=True),
        ),
        (
            {"k": "edge", "what": "join", "on": "m/t0", "lane": "m", "n": 1, "asked": 2, "at": [3, "4"]},
            Edge(t=9, what="join", on="m/t0", lane="m", n=1, asked=2),
        ),
        ({"k": "edge", "what": "serve", "on": "@40000#0", "lane": "m", "n": 0, "asked": 0}, None),
        ({"k": "edge", "what": "join", "on": "m/t0", "lane": "m", "n": 0, "asked": -1}, None),
        (
            {"k": "lane", "id": "m/t0", "kind": "t", "name": "alice", "from": ["m", 1, 0]},
            Lane(t=9, id="m/t0", what="thread", name="alice", origin=("m", 1, 0)),
        ),
        ({"k": "lane", "id": "m/t0", "kind": "t", "from": ["m", 1]}, Lane(t=9, id="m/t0", what="thread")),
        ({"k": "note", "what": "x", "text": "y", "data": 1}, Note(t=9, what="x", text="y", data={"data": 1})),
        ({"k": "clock", "lane": "m", "n": "3", "ns": 1}, None),
        ({"k": "clock"}, None),
        ({"k": "something-new"}, None),
        ({"k": "end", "lane": 1, "reads": 2}, None),
    ],
)
def test_what_becomes_of_a_line(line: dict[str, object], record: object) -> None:
    assert to_record(line, 9, EPOCH, REDACTOR) == record


def test_no_secret_of_a_process_reaches_the_tape() -> None:
    line = {"k": "hello", "pid": 1, "lane": "m", "argv": ["agent", "--key", SECRET]}
    record = to_record(line, 9, EPOCH, REDACTOR)
    assert isinstance(record, Note)
    assert SECRET not in json.dumps(record.to_json())
    assert record.data["pid"] == 1


def test_files_are_followed_as_they_grow_and_only_whole_lines_count(tmp_path: Path) -> None:
    folder = tmp_path / "side"
    folder.mkdir()
    cars = Sidecars(folder)
    assert list(cars.drain()) == []
    one = (folder / "1.jsonl").open("ab", buffering=0)
    one.write(b'{"k":"hello","pid":1}\n{"k":"end","lane":"m"')
    assert [line["k"] for line in cars.drain()] == ["hello"]
    (folder / "2.jsonl").write_bytes(b'not json\n[1]\n{"k":7}\n{"k":"note","what":"x"}\n')
    (folder / "lane-x.0").touch()
    one.write(b',"reads":1}\n')
    assert sorted(line["k"] for line in cars.drain()) == ["end", "note"]
    assert list(cars.drain()) == []
    assert [hello["pid"] for hello in cars.processes] == [1]
    one.close()
    cars.close()
    assert not folder.exists()


def test_a_folder_that_is_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    cars = Sidecars(tmp_path / "none")
    assert list(cars.drain()) == []
    cars.close()


def test_a_folder_is_found_by_the_run_s_seed_whatever_the_tape_is_called(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a.gz", "0f" * 32)
    assert find_folder(tmp_path / "b.gz", "0f" * 32) == folder
    assert find_folder(tmp_path / "a.gz", "0e" * 32) is None


@pytest.mark.parametrize("seed", [None, "", "*", "0f", "../" * 8, "0f" * 32 + "/..", "\n" + "0f" * 32, "0F" * 32])
def test_a_seed_that_is_none_leads_nowhere(tmp_path: Path, seed: str | None) -> None:
    make_folder(tmp_path / "a.gz", "0f" * 32)
    (tmp_path / "x.sidecar-..").mkdir()
    assert find_folder(tmp_path / "a.gz", seed) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / f"a.sidecar-{'0f' * 8}").symlink_to("home")
    assert find_folder(tmp_path / "a.gz", "0f" * 32) is None
