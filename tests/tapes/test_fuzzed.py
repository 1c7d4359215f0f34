"""The reader against random damage: in the file's bytes, in its text, and in records that are then chained anew.

Records or a TapeFormatError, and nothing else; in bounded time and memory. `make soak` goes on for ten minutes
(TAPEPROXY_FUZZ_SECONDS).
"""

import gzip
import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tapesamples import RECORDS, chained, pieces, written, zipped

from tapeproxy.tapes.decoder import Ending, Limits, TapeDecoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.exchanges import Tape, assemble
from tapeproxy.tapes.gzipping import stored_member
from tapeproxy.tapes.records import Clock, Done, Edge, Env, Lane, LaneEnd, Value
from tapeproxy.tapes.repairing import Kept, Losses, closing_note, rewritten
from tapeproxy.tapes.verdict import Witness

ALL = [
    *RECORDS[:-1],
    Lane(t=6, id="m/t0", what="thread", name="w"),
    Clock(t=6, lane="m", n=0, ns=5),
    LaneEnd(t=6, lane="m", reads=1),
    Done(t=6, lane="m", parent="m"),
    Env(t=6, name="HOME", digest="ab"),
    Edge(t=6, what="lock", on="x", lane="m", n=0),
    Value(t=6, lane="m", n=0, what="file", name="x", content=b"text", length=4, digest="ab"),
    RECORDS[-1],
]
WHOLE = written(ALL)
TEXT = gzip.decompress(WHOLE)
OBJECTS: list[dict[str, Any]] = [orjson.loads(line[:-73] + b"}") for line in TEXT.splitlines(keepends=True)]

HOSTILE: list[Any] = [
    *(None, True, -1, 0, 1, 3, 2**31, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63), 0.5, -0.0, 1e308),
    *("", "\0", "\x1b[2J", "\u2028", "\U0010ffff", "x" * 70_000, "http://[", "http://x:99999999/", "//", "\xff" * 9),
    *([], {}, [[]], [None, None], [[0, "x"]], [[-1, {}]], {"b64": "?"}, {"b64": "AAAA"}, {"b64": ""}, {"ref": 1}),
    *({"ref": 5}, {"like": 1, "head": 2**62, "tail": 2**62}, {"like": 1, "head": 3, "tail": 3, "mid": {"b64": "/w=="}}),
    *({"like": 5, "head": 0, "tail": 0, "mid": "z" * 999}, ["like", "ref"], ["x"], {"a": {"a": {"a": [1]}}}),
]
KINDS = [*sorted({obj["k"] for obj in OBJECTS}), "crash", "", "\0"]


def bytes_of(rng: random.Random, data: bytes) -> bytes:
    """`data` with a few bytes changed, cut out, doubled, put in or exchanged."""
    for _ in range(rng.randint(1, 4)):
        a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + rng.choice((1, 2, 8, 100, len(data))))
        new = rng.choice((b"", data[a:b] * 2, data[a:b][::-1], rng.randbytes(b - a), bytes(b - a), rng.randbytes(3)))
        data = data[:a] + new + data[b:]
    return data


def packed(rng: random.Random, lines: list[bytes]) -> bytes:
    """The lines in one member or several."""
    at = rng.randrange(len(lines) + 1)
    first, second = b"".join(lines[:at]), b"".join(lines[at:])
    return rng.choice((zipped(first, second), zipped(first) + zipped(second), zipped(first) + stored_member(second)))


def damaged_file(rng: random.Random) -> bytes:
    return bytes_of(rng, WHOLE)


def damaged_text(rng: random.Random) -> bytes:
    return packed(rng, bytes_of(rng, TEXT).splitlines(keepends=True))


def wrong_records(rng: random.Random) -> bytes:
    """Objects with fields that are missing or hold something else, moved about, and with hashes that fit."""
    objects = [dict(obj) for obj in OBJECTS]
    for _ in range(rng.randint(1, 5)):
        obj = rng.choice(objects)
        name = rng.choice([*obj, "extra", "t", "of", "body", "parts", "must"])
        match rng.randrange(6):
            case 0:
                obj.pop(name, None)
            case 1:
                obj["k"] = rng.choice(KINDS)
            case 2:
                objects.insert(rng.randrange(len(objects) + 1), dict(obj))
            case 3:
                objects.remove(obj)
                objects = objects or [dict(OBJECTS[0])]
            case _:
                obj[name] = rng.choice(HOSTILE)
    numbered = [obj if rng.random() < 0.01 else obj | {"i": index} for index, obj in enumerate(objects)]
    return packed(rng, chained(*numbered))


def read_whole(data: bytes, step: int) -> Tape | TapeFormatError:
    """Read as every command does, and judge. Raises whatever is not a TapeFormatError."""
    witness, decoder = Witness(), TapeDecoder("t", Limits(free=1 << 20, bodies=1 << 20))
    try:
        tape = assemble(witness.see(entry) for piece in pieces(data, step) for entry in decoder.feed(piece))
        ending = decoder.finish()
    except TapeFormatError as error:
        assert witness.judge_damage(error).finding == "damaged"
        assert str(error).isprintable() or "\n" in str(error)
        return error
    assert isinstance(ending, Ending)
    verdict = witness.judge(ending)
    assert verdict.finding != "damaged"
    assert not verdict.good or ending.canonical
    if not ending.sealed:
        check_repair(data)
    return tape


def check_repair(data: bytes) -> None:
    """What reads as interrupted can be repaired, unless a request in it has no identity."""
    kept, decoder = Kept("t"), TapeDecoder("t")
    try:
        for entry in decoder.feed(data):
            kept.see(entry)
    except TapeFormatError:
        return
    out = b"".join(rewritten([data], kept, [closing_note(kept, Losses(), 0)]))
    again = TapeDecoder("t")
    assert len([*again.feed(out)]) == kept.records + 2
    assert again.finish().canonical


def fuzz(seed: int) -> Tape | TapeFormatError:
    rng = random.Random(seed)
    make: Callable[[random.Random], bytes] = rng.choice((damaged_file, damaged_text, wrong_records, wrong_records))
    data = make(rng)
    begun = time.process_time()
    try:
        return read_whole(data, rng.choice((0, 0, 1, 97)))
    except Exception as error:
        error.add_note(f"seed {seed}, {make.__name__}")
        raise
    finally:
        assert time.process_time() - begun < 5, seed


def test_random_damage_gives_a_tape_or_a_named_error() -> None:
    found = [fuzz(seed) for seed in range(1500)]
    errors = {str(error).splitlines()[0] for error in found if isinstance(error, TapeFormatError)}
    assert len(errors) > 200, "it gets past the hashes, into every check"
    assert sum(isinstance(one, Tape) for one in found) > 50


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="needs getrusage")
def test_random_damage_for_long() -> None:
    import resource

    until = time.monotonic() + float(os.environ.get("TAPEPROXY_FUZZ_SECONDS", "600"))
    for seed in range(2000):
        fuzz(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rng = random.Random()
    while time.monotonic() < until:
        fuzz(rng.getrandbits(64))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "KiB"


# --- tapes that hypothesis builds of records, changes in their fields and chains anew; it makes small what it finds ---

NAMES = sorted({name for obj in OBJECTS for name in obj} - {"h"})
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=9)
)
VALUES = st.sampled_from(HOSTILE) | st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
)
"""What may stand in a field: what is known to be hostile, or any JSON."""


@st.composite
def tapes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records in about the order of a tape: a head, exchanges that refer to each other, and what else there is."""
    rest = draw(st.lists(st.sampled_from(OBJECTS[1:]), max_size=12))
    objects = [dict(OBJECTS[0]), *map(dict, rest)]
    asked = [0]
    for index, obj in enumerate(objects):
        if "of" in obj:
            obj["of"] = draw(st.sampled_from(asked))
        if obj["k"] == "request":
            asked.append(index)
            body = {"like": asked[-2], "head": draw(st.integers(0, 9)), "mid": "new", "tail": draw(st.integers(0, 9))}
            obj["body"] = draw(st.sampled_from([obj["body"], body, {"ref": asked[-2]}]))
    for at, name, value in draw(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(NAMES), VALUES), max_size=3)):
        objects[at % len(objects)][name] = value
    if draw(st.booleans()):
        objects[draw(st.integers(0, 12)) % len(objects)]["k"] = draw(st.sampled_from(KINDS))
    return [{"i": index} | obj | {"i": index} for index, obj in enumerate(objects)]


@given(tapes(), st.sampled_from([0, 1, 97]))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_records_give_a_tape_or_a_named_error(objects: list[dict[str, Any]], step: int) -> None:
    read_whole(zipped(*chained(*objects)), step)
