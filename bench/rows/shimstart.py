"""The shim: how much later a Python starts with it, on each interpreter that is found here."""

import time
from collections.abc import Iterator, Mapping

from bench.contest import OURS, Run, hold
from bench.figures import Bar, Bench, Line, Skipped
from bench.processes import run
from bench.pythons import environments, find

_VERSIONS = ("3.9", "3.12", "3.13", "3.14")


def shim_start(bench: Bench) -> Iterator[Line | Skipped]:
    """`python -c pass` with and without the shim, in turn; the first of each warms the caches up."""
    for version in _VERSIONS:
        what = f"shim: added start-up of `python{version} -c pass`"
        python = find(version)
        if python is None:
            yield Skipped(what, f"no Python {version}")
            continue
        bare, ours = environments(bench.folder)
        contest = hold(bench, "ms", _runs(python, bare, ours), 40)
        yield contest.added(what, "bare", Bar(15, "at most"))


def _runs(python: str, bare: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, Run]:
    return {"bare": lambda: _start_ms(python, bare), OURS: lambda: _start_ms(python, ours)}


def _start_ms(python: str, env: Mapping[str, str]) -> float:
    began = time.perf_counter()
    run([python, "-c", "pass"], env)
    return (time.perf_counter() - began) * 1000
