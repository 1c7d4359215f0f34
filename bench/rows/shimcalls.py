"""The shim: what a call of a shimmed function costs an agent that is being recorded, beside the bare function."""

from collections.abc import Iterator, Mapping

from bench.contest import OURS, Run, hold
from bench.figures import Bar, Bench, Line, Skipped
from bench.processes import run
from bench.pythons import environments, find

_VERSION = "3.12"
_NS = {"time.time()": 250, "random.random()": 100, "datetime.datetime.now()": 1300}
_UUID = "uuid.uuid4()"
_SCRIPT = """
import datetime, random, sys, time, timeit, uuid
count = int(sys.argv[1])
print(min(timeit.repeat(sys.argv[2], globals=globals(), number=count, repeat=5)) / count * 1e9)
"""


def shim_calls(bench: Bench) -> Iterator[Line | Skipped]:
    """Nanoseconds a call while recording: the smallest of five times many calls, in a process of its own each round."""
    python = find(_VERSION)
    if python is None:
        yield Skipped("shim: calls", f"no Python {_VERSION}")
        return
    count = 100 if bench.quick else 20_000
    for call in (*_NS, _UUID):
        contest = hold(bench, "ns", _runs(bench, python, call, count), 7)
        what = f"shim: a call of `{call}` while recording, Python {_VERSION}"
        if call in _NS:
            yield contest.beside(what, "bare", Bar(_NS[call], "at most"))
        else:
            yield contest.ratio(what, "bare", Bar(1.0, "at most"))


def _runs(bench: Bench, python: str, call: str, count: int) -> dict[str, Run]:
    bare, ours = environments(bench.folder)
    return {"bare": lambda: _ns(python, call, count, bare), OURS: lambda: _ns(python, call, count, ours)}


def _ns(python: str, call: str, count: int, env: Mapping[str, str]) -> float:
    return float(run([python, "-c", _SCRIPT, str(count), call], env))
