"""Randomness: other values in every run without the shim, the same in record and replay with it."""

import random
import sys
from pathlib import Path

import pytest
from shimruns import everywhere, run, with_packages

DRAWS = {
    "random": "random.random()",
    "randint": "random.randint(0, 10**9)",
    "sample": "random.sample(range(10**6), 3)",
    "shuffle": "(lambda a: random.shuffle(a) or a)(list(range(30)))",
    "gauss": "random.gauss(0, 1)",
    "choices": "random.choices(range(10**6), k=2)",
    "getrandbits": "random.getrandbits(64)",
    "randbytes": "random.randbytes(8).hex()",
    "an instance": "random.Random().random()",
    "a subclass": "type('Mine', (random.Random,), {})().random()",
    "an instance seeded with None": "random.Random(None).random()",
    "SystemRandom": "random.SystemRandom().random()",
    "token": "secrets.token_hex(8)",
    "randbelow": "secrets.randbelow(10**9)",
    "urandom": "os.urandom(8).hex()",
    "a long urandom": "hashlib.md5(os.urandom(300_000)).hexdigest()",
    "getrandom": "os.getrandom(8).hex()",
    "posix": "posix.urandom(8).hex()",
    "uuid4": "str(uuid.uuid4())",
    "ssl": "ssl.RAND_bytes(8).hex()",
    "boundary": "email.generator._make_boundary()",
    "seed()": "random.seed() or random.random()",
    "state": "(lambda state: [random.random(), random.setstate(state), random.random()])(random.getstate())",
}
PROGRAM = "import email.generator, hashlib, json, os, posix, random, secrets, ssl, uuid\nprint(json.dumps({"
PROGRAM += "".join(f"{name!r}: {draw},\n" for name, draw in DRAWS.items()) + "}))"


@everywhere
def test_every_source(python: Path, sidecar: Path) -> None:
    bare = [run(PROGRAM, mode="bare", python=python, sidecar=sidecar).json for _ in range(2)]
    recorded, again = (run(PROGRAM, python=python, sidecar=sidecar) for _ in range(2))
    replayed = run(PROGRAM, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    other = run(PROGRAM, python=python, sidecar=sidecar, seed="ab" * 32)
    assert recorded.json == again.json == replayed.json, recorded.stderr
    for name in DRAWS:
        assert bare[0][name] != bare[1][name], name  # or the test could not fail
        assert recorded.json[name] != other.json[name], name


@everywhere
def test_a_million_draws_leave_no_line(python: Path, sidecar: Path) -> None:
    code = "import os, random\nfor _ in range(100_000): random.random(); os.urandom(8); random.randint(0, 9)"
    assert {line["k"] for line in run(code, python=python, sidecar=sidecar).lines} == {"hello"}


SEEDED = {
    "an int": "1234",
    "a float": "1.5",
    "a string": "'seed'",
    "bytes": "b'seed'",
    "version 1": "'seed', 1",
}


@everywhere
@pytest.mark.parametrize("seed", SEEDED.values(), ids=SEEDED)
def test_an_explicit_seed_keeps_its_meaning(seed: str, python: Path, sidecar: Path) -> None:
    code = f"""
import json, random
random.seed({seed}); a = [random.random(), random.choice("abcdef"), random.gauss(0, 1), random.getrandbits(70)]
mine = random.Random({seed.split(",")[0]}); b = [mine.random(), mine.randint(0, 99)]
state = random.getstate(); c = random.random(); random.setstate(state)
print(json.dumps([a, b, c, random.random(), random._inst.random()]))
"""
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar).json for mode in ("bare", "record"))
    assert bare == ours


@everywhere
def test_a_seed_reaches_the_lanes_made_after_it(python: Path, sidecar: Path) -> None:
    """They derive theirs: the same for the same seed, another for another, and each its own."""
    code = """
import json, random, sys, threading
out = {}
def work(name): out[name] = random.random()
random.seed(int(sys.argv[1]))
threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(out))
"""
    drawn = [run(code, arg, python=python, sidecar=sidecar, seed=seed * 32).json for arg, seed in ("1a", "1b", "2a")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0]["a"] != drawn[0]["b"]


@everywhere
def test_a_seed_set_before_asyncio_run_goes_on_in_it(python: Path, sidecar: Path) -> None:
    code = """
import asyncio, json, random
async def main(): return [random.random() for _ in range(3)]
random.seed(1234)
first = asyncio.run(main())
loop = asyncio.new_event_loop(); second = loop.run_until_complete(main()); loop.close()
print(json.dumps(first + second + [random.random()]))
"""
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar).json for mode in ("bare", "record"))
    random.seed(1234)
    assert bare == ours == [random.random() for _ in range(7)]


@everywhere
def test_urandom_is_called_as_ever(python: Path, sidecar: Path) -> None:
    code = """
import os
class Index:
    def __index__(self): return 3
class Holder: source = os.urandom
def fails(call):
    try: call()
    except Exception as error: return type(error).__name__ + str(error)
print([len(os.urandom(size)) for size in (0, 1, 16, True, 168, 169, 1344, 1345, 5000)], len(os.urandom(Index())))
print(len(Holder().source(4)), len(os.getrandom(5, 0)), len(os.getrandom(5, flags=1)))
print([fails(call) for call in (lambda: os.urandom(-1), lambda: os.urandom("x"), lambda: os.urandom(1.5))])
print(type(os.urandom(2)), len({os.urandom(16) for _ in range(5000)}))
"""
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar) for mode in ("bare", "record"))
    assert bare.stdout.splitlines()[:2] == ours.stdout.splitlines()[:2], ours.stderr
    assert bare.stdout.splitlines()[3] == ours.stdout.splitlines()[3]
    assert "ValueErrornegative argument not allowed" in ours.stdout
    assert ours.stdout.count("TypeError") == 2


@everywhere
def test_however_the_stream_is_cut_it_is_the_same(python: Path, sidecar: Path) -> None:
    code = """
import os, sys
sizes = [int(size) for size in sys.argv[1].split(",")]
print(b"".join(os.urandom(size) for size in sizes).hex())
"""
    cuts = [",".join(map(str, sizes)) for sizes in ([1000], [1] * 1000, [168, 832], [3] * 333 + [1], [0, 999, 1])]
    assert len({run(code, cut, python=python, sidecar=sidecar).stdout for cut in cuts}) == 1


def test_the_two_makers_of_shake_agree(sidecar: Path) -> None:
    """OpenSSL's, where the agent has loaded it, and CPython's own."""
    code = "import os, sys\nif sys.argv[1:]: import hashlib\nprint(os.urandom(900).hex(), '_hashlib' in sys.modules)"
    own, openssl = (run(code, *args, python=sys.executable, sidecar=sidecar).stdout.split() for args in ((), ("x",)))
    assert own[0] == openssl[0]
    assert (own[1], openssl[1]) == ("False", "True")


@everywhere
def test_threads_that_share_a_lane_never_draw_the_same_bytes(python: Path, sidecar: Path) -> None:
    code = """
import os, sys, threading
from _tapeproxy import lanes
sys.setswitchinterval(1e-6)
lane, drawn = lanes.current(), []
def work():
    lanes.LANE.set(lane)
    drawn.extend([os.urandom(8) for _ in range(3000)])
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(drawn), len(set(drawn)))
"""
    assert run(code, python=python, sidecar=sidecar).stdout.split() == ["12000", "12000"]


@everywhere
def test_a_forked_child_draws_its_own(python: Path, sidecar: Path) -> None:
    code = """
import json, os, random, uuid
random.random(); uuid.uuid4()
def draw(): return [random.random(), str(uuid.uuid4()), random.Random().random(), random._inst.random()]
out = []
for _ in range(2):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, json.dumps(draw()).encode()); os._exit(0)
    os.wait(); out.append(json.loads(os.read(read, 1000)))
print(json.dumps(out + [draw()]))
"""
    recorded, replayed = (run(code, mode=mode, python=python, sidecar=sidecar).json for mode in ("record", "replay"))
    assert recorded == replayed
    assert len({value for drawn in recorded for value in drawn}) == 12


LOOKS = """
import inspect, json, os, random
names = [name for name in random.__all__ if name[0].islower()]
looks = [[name, str(inspect.signature(getattr(random, name))), getattr(random, name).__doc__] for name in names]
looks += [str(inspect.signature(random.Random.seed)), str(inspect.signature(os.urandom)), os.urandom.__doc__]
print(json.dumps(looks))
"""
BEHAVES = """
import copy, pickle
for name in names:
    function = getattr(random, name)
    assert pickle.loads(pickle.dumps(function)) is function, name
    assert copy.deepcopy(function) == function == copy.copy(function), name
    assert function.__module__ == "random" and function.__name__ == function.__qualname__ == name
for function in (os.urandom, os.getrandom, random.Random.seed):
    assert pickle.loads(pickle.dumps(function)) is function
class Keeps:
    draw, pick, source = random.random, random.randint, os.urandom
keeps = Keeps()
assert keeps.draw() < 1
assert keeps.pick(1, 1) == 1
assert len(keeps.source(3)) == 3
"""


@everywhere
def test_random_looks_as_ever(python: Path, sidecar: Path) -> None:
    ours = run(LOOKS + BEHAVES, python=python, sidecar=sidecar)
    assert ours.stderr == ""
    assert ours.json == run(LOOKS, mode="bare", python=python, sidecar=sidecar).json


def test_numpy(sidecar: Path) -> None:
    python = with_packages("numpy")
    code = """
import json, threading
import numpy as np
out = {"default_rng": np.random.default_rng().random(), "rand": np.random.rand()}
out["state"] = np.random.RandomState().rand()
out["pcg"] = np.random.Generator(np.random.PCG64()).random()
def work(): out["thread"] = np.random.default_rng().random()
thread = threading.Thread(target=work); thread.start(); thread.join()
seeded = []
np.random.seed(5); seeded.append(np.random.rand()); seeded.append(np.random.default_rng(5).random())
print(json.dumps([out, seeded]))
"""
    bare = [run(code, mode="bare", python=python, sidecar=sidecar).json for _ in range(2)]
    ours = [run(code, mode=mode, python=python, sidecar=sidecar).json for mode in ("record", "replay")]
    assert ours[0] == ours[1]
    assert ours[0][1] == bare[0][1] == bare[1][1]
    assert all(bare[0][0][name] != bare[1][0][name] for name in bare[0][0])


def test_numpy_draws_the_same_whoever_imports_it(sidecar: Path) -> None:
    python = with_packages("numpy")
    code = """
import sys, threading
def load(): import numpy
if sys.argv[1] == "thread":
    thread = threading.Thread(target=load); thread.start(); thread.join()
import numpy; print(numpy.random.rand())
"""
    assert len({run(code, who, python=python, sidecar=sidecar).stdout for who in ("main", "thread")}) == 1
