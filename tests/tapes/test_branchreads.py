from dataclasses import replace

import agentruns
import difftapes
from difftapes import get

from tapeproxy.tapes.branchreads import reads_apart
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Clock, Env, Record, Request, Value

HEAD = replace(agentruns.HEAD, seed="a" * 64)


def tape(*first: Record, seed: str = "a" * 64, reads: int | None = None) -> Tape:
    """A run that had read `first` before its only request."""
    made = difftapes.records([get("m", "a")], first=first)
    made = [replace(record, reads=reads) if isinstance(record, Request) else record for record in made]
    return difftapes.read(made, replace(HEAD, seed=seed))


def found(
    ours: Tape, theirs: Tape, lanes: dict[str, str] | None = None
) -> list[tuple[str, str, str | None, str | None]]:
    differences = reads_apart(ours, theirs, ours.exchanges[0], theirs.exchanges[0], lanes or {})
    return [(one.kind, one.what, one.ours, one.theirs) for one in differences]


def file(content: str, lane: str = "m", n: int = 0, name: str = "data.txt") -> Value:
    return Value(
        t=1,
        lane=lane,
        n=n,
        what="file",
        name=name,
        where="agent.py:3",
        length=len(content),
        digest=content * 4,
        content=content.encode(),
    )


def test_the_same_reads_say_nothing() -> None:
    one = tape(file("x"), Env(t=1, name="HOME", digest="d"), Clock(t=1, lane="m", n=0, ns=5), reads=1)
    assert found(one, one) == []


def test_files() -> None:
    assert found(tape(file("x")), tape(file("y"))) == [("value", "file data.txt, line 1", "x", "y")]
    assert found(tape(file("x")), tape()) == [("value", "file data.txt", "1 bytes", None)]
    assert found(tape(), tape(file("x"))) == [("value", "file data.txt", None, "1 bytes")]
    # In the lane that stands for the other one.
    assert found(tape(file("x", "m/t0")), tape(file("x", "m/t1")), {"m/t0": "m/t1"}) == []


def test_what_was_read_after_the_branch_point_is_no_matter() -> None:
    one = tape()
    late = difftapes.read([*difftapes.records([get("m", "a")], code=None), file("x")], HEAD)
    assert found(one, late) == []


def test_the_environment() -> None:
    one = tape(Env(t=1, name="A", digest="1" * 20), Env(t=1, name="B", digest=None), Env(t=1, name="C", digest="3"))
    other = tape(Env(t=1, name="A", digest="2" * 20), Env(t=1, name="B", digest="3" * 20))
    assert found(one, other) == [
        ("env", "A", "a value with the digest 111111111111", "a value with the digest 222222222222"),
        ("env", "B", "(not set)", "a value with the digest 333333333333"),
        ("env", "C", "a value with the digest 3", None),
    ]


def test_digests_by_two_keys_are_not_compared() -> None:
    one, other = tape(Env(t=1, name="A", digest="1")), tape(Env(t=1, name="A", digest="2"), seed="b" * 64)
    assert found(one, other) == [("chance", "the seed of all random numbers", "aaaaaaaaaaaa…", "bbbbbbbbbbbb…")]
    big = replace(file("x"), content=None, length=10**6)
    assert found(tape(big), tape(replace(big, digest="other"), seed="b" * 64))[1:] == []
    assert len(found(tape(big), tape(replace(big, digest="other")))) == 1


def test_the_clock() -> None:
    one = tape(Clock(t=1, lane="m", n=0, ns=5_000_000), reads=3)
    other = tape(Clock(t=1, lane="m", n=0, ns=7_000_000), Clock(t=2, lane="m", n=9, ns=10**12), reads=4)
    assert found(one, other) == [
        ("clock", "how often the lane had read the clock", "3", "4"),
        ("clock", "what it had read last", "2026-01-02 03:04:05.005000+00:00", "2026-01-02 03:04:05.007000+00:00"),
    ]
    strange = tape(Clock(t=1, lane="m", n=0, ns=2**63), reads=1)
    assert found(strange, strange) == []
