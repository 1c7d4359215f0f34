"""UUIDs of every version and of both Rust libraries: well-formed, in order, and the same in a replay."""

import uuid
from pathlib import Path

import pytest
from shimruns import Run, everywhere, run, with_packages

HEAD = "import json, sys, threading\ndef show(*values): print(json.dumps([str(value) for value in values]))\n"


def thrice(code: str, python: Path | str, sidecar: Path) -> tuple[Run, Run]:
    """A recording of the program and its replay; fails if two runs without the shim print the same."""
    bare = [run(HEAD + code, mode="bare", python=python, sidecar=sidecar).json for _ in range(2)]
    assert bare[0] != bare[1]
    recorded = run(HEAD + code, python=python, sidecar=sidecar)
    assert not recorded.of("note"), recorded.of("note")
    return recorded, run(HEAD + code, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)


@everywhere
@pytest.mark.parametrize(
    "code",
    [
        "uuid.uuid1()",
        "uuid.uuid1(node=5, clock_seq=7)",
        "uuid.uuid4()",
        "uuid.UUID(int=0, version=4), uuid.uuid1(), uuid.getnode()",
        "uuid.uuid3(uuid.NAMESPACE_DNS, 'a'), uuid.uuid5(uuid.NAMESPACE_DNS, 'a'), uuid.uuid4()",
    ],
)
def test_uuid(code: str, python: Path, sidecar: Path) -> None:
    recorded, replayed = thrice(f"import uuid; show({code})", python, sidecar)
    assert recorded.json == replayed.json


@everywhere
def test_uuid_versions_of_later_pythons(python: Path, sidecar: Path) -> None:
    code = "import uuid; show(*(getattr(uuid, name)() for name in ('uuid6', 'uuid7', 'uuid8') if hasattr(uuid, name)))"
    if not run(HEAD + code, python=python, sidecar=sidecar).json:
        return  # before 3.14
    recorded, replayed = thrice(code, python, sidecar)
    assert [uuid.UUID(text).version for text in recorded.json] == [6, 7, 8]
    assert recorded.json == replayed.json


LATER = """
import os, time
_last_timestamp_v7 = _last_counter_v7 = None
def uuid7():
    global _last_timestamp_v7, _last_counter_v7
    now = time.time_ns() // 1_000_000
    if _last_timestamp_v7 is None or now > _last_timestamp_v7:
        counter = int.from_bytes(os.urandom(5), "big")
    else:
        now, counter = _last_timestamp_v7, _last_counter_v7 + 1
    _last_timestamp_v7, _last_counter_v7 = now, counter
    return now << 80 | counter
"""


@everywhere
def test_the_counter_of_version_7_is_the_lanes(python: Path, sidecar: Path, tmp_path: Path) -> None:
    """3.14 counts within the process; this stands for it on those before, with the same two globals."""
    (tmp_path / "uuid.py").write_text(LATER)
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
import uuid
made = {{}}
def work(name): made[name] = [uuid.uuid7() for _ in range(300)]
threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert all(drawn == sorted(set(drawn)) for drawn in made.values())
uuid._last_timestamp_v7 = None
show(*made["a"], *made["b"], uuid.uuid7() & (1 << 40) - 1)
"""
    recorded, replayed = thrice(code, python, sidecar)
    assert recorded.json == replayed.json


@everywhere
def test_uuid1_keeps_what_it_promises(python: Path, sidecar: Path) -> None:
    """Unique and growing within a flow; the time is the clock's; no hardware address is given away."""
    code = """
import time, uuid
before = time.time_ns(); made = [uuid.uuid1() for _ in range(2000)]; after = time.time_ns()
times = [(made_one.time - 0x01B21DD213814000) * 100 for made_one in made]
assert times == sorted(set(times)) and before - 100 <= times[0] and times[-1] <= after
assert {made_one.version for made_one in made} == {1} and len({made_one.node for made_one in made}) == 1
show(bool(made[0].node >> 40 & 1), uuid.uuid1.__doc__ is not None)
"""
    assert run(HEAD + code, python=python, sidecar=sidecar).json == ["True", "True"]


@everywhere
def test_what_one_thread_makes_does_not_move_anothers(python: Path, sidecar: Path) -> None:
    """The library keeps the last time in the process; here each lane keeps its own."""
    code = """
import uuid
made = {}
def work(name, count): made[name] = [uuid.uuid1() for _ in range(count)]
threads = [threading.Thread(target=work, args=(name, 200)) for name in "ab"]
for thread in threads: thread.start()
for thread in threads: thread.join()
show(*made["a"], *made["b"])
"""
    recorded, replayed = thrice(code, python, sidecar)
    assert recorded.json == replayed.json
    assert len(set(recorded.json)) == 400


def test_uuid_utils(sidecar: Path) -> None:
    python = with_packages("uuid_utils")
    code = """
import pickle, uuid_utils, uuid_utils as u, uuid_utils.compat as c
made = [u.uuid1(), u.uuid4(), u.uuid6(), u.uuid7(), u.uuid8(), c.uuid1(), c.uuid4(), c.uuid6(), c.uuid7(), c.uuid8()]
assert [m.version for m in made] == [1, 4, 6, 7, 8] * 2 and len({str(m) for m in made}) == 10
assert type(made[0]) is u.UUID and type(made[5]).__module__ == "uuid"
run = [u.uuid7() for _ in range(500)]
assert run == sorted(run) and len(set(map(str, run))) == 500
for name in ("uuid1", "uuid4", "uuid6", "uuid7", "uuid8"):
    function = getattr(u, name)
    assert pickle.loads(pickle.dumps(function)) is function
class Keeps: make = u.uuid4
Keeps().make()
fixed = [u.uuid1(1, 2).node, u.uuid7(nanoseconds=1_700_000_000_123_456_789).timestamp]
fixed += [u.uuid8(1, 2, 3), u.uuid5(u.NAMESPACE_DNS, "a")]
show(*made, *run, *fixed, u.getnode())
"""
    recorded, replayed = thrice(code, python, sidecar)
    assert recorded.json == replayed.json
    fixed = recorded.json[-5:-1]
    assert fixed[:2] == ["1", "1700000000123"]
    assert fixed[2:] == [
        str(uuid.UUID("00000000-0001-8002-8000-000000000003")),
        str(uuid.uuid5(uuid.NAMESPACE_DNS, "a")),
    ]


def test_fastuuid(sidecar: Path) -> None:
    python = with_packages("fastuuid")
    code = """
import fastuuid as f
made = [f.uuid1(), f.uuid_v1mc(), f.uuid4(), *f.uuid4_bulk(3), f.uuid7(), *f.uuid7_bulk(3)]
texts = f.uuid4_as_strings_bulk(2) + f.uuid7_as_strings_bulk(2)
assert [m.version for m in made] == [1, 1, 4, 4, 4, 4, 7, 7, 7, 7] and {type(m) for m in made} == {f.UUID}
assert {type(text) for text in texts} == {str}
assert len(set(map(str, made)) | set(texts)) == 14
show(*made, *texts)
"""
    recorded, replayed = thrice(code, python, sidecar)
    assert recorded.json == replayed.json
