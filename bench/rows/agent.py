"""An agent on httpx, recorded and replayed: how much faster its calls are, and how ours does beside other tools.

Whole processes are not compared here: an interpreter and its imports take the same time with every tool.
"""

import dataclasses
from collections.abc import Callable, Iterator

from bench import tools
from bench.contest import OURS, Contest, Run, hold, warm
from bench.figures import Bar, Bench, Line, Skipped, Unit
from bench.servers import origin

_THINKING = 0.4
_SECONDS = 30.0
"""For the rounds: recording them all once took the rest."""
_TITLES = {
    "vcrpy": "vcrpy, matching bodies, in the agent",
    "cassetter": "cassetter, matching bodies, in the agent",
    "reeltime": "reeltime, in the agent",
    "timefork": "timefork, a reverse proxy over plain HTTP",
}


def agent(bench: Bench) -> Iterator[Line | Skipped]:
    """Eight turns with a model that thinks for 400 ms: recorded against replayed, and the replay beside others."""
    turns, thinking = (2, 0.01) if bench.quick else (8, _THINKING)
    recorded = f"{OURS} record"
    contest = _held(bench, (1, turns, thinking), "ms", lambda seconds: seconds * 1000, recorded)
    what = f"agent of {turns} turns, a model that takes {thinking * 1000:.0f} ms"
    yield contest.ratio(f"{what}: recording it against replaying it", OURS, Bar(100, "at least"), ours=recorded)
    for peer, title in _TITLES.items():
        yield contest.ratio(f"{what}: replay, against {title}", peer)


def client(bench: Bench) -> Iterator[Line | Skipped]:
    """Many large requests one after the other: the client, httpx, is part of what is measured."""
    conversations, turns = (1, 2) if bench.quick else (1, 40)
    requests = conversations * turns
    contest = _held(bench, (conversations, turns, 0.0), "/s", lambda seconds: requests / seconds)
    for peer, title in _TITLES.items():
        yield contest.ratio(f"replay: requests/s of one httpx client, against {title}", peer)


def _held(
    bench: Bench, size: tuple[int, int, float], unit: Unit, figure: Callable[[float], float], recorded: str = ""
) -> Contest:
    conversations, turns, thinking = size
    with origin(bench.folder, thinking) as server:
        played = tools.Agent(bench.folder, server, conversations, turns)
        runs = {name: _replays(make, played, figure) for name, make in {OURS: tools.tapeproxy, **tools.PEERS}.items()}
        out = warm(bench, unit, runs)  # and recorded
        if recorded:
            runs[recorded] = lambda: figure(tools.tapeproxy(played).record())
        return hold(dataclasses.replace(bench, seconds=_SECONDS), unit, runs, 5, out)


def _replays(make: Callable[[tools.Agent], tools.Tool], played: tools.Agent, figure: Callable[[float], float]) -> Run:
    return lambda: figure(make(played).replay())
