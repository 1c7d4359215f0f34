"""The order in which calls of tools come back that ran side by side: that of the tape, as far as a moment's wait goes.

Served at once, calls come back in the order in which they were made; but whoever takes results as they come (the
`as_completed` of threads or asyncio) had them in the order in which bodies ended. So a call waits for those that ended
while it ran. A thread waits in the replay's own time, which leaps when nobody is at work, and not for long where
somebody is; a coroutine lets the others have some turns.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from .clock import REAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TURNS = 64
"""Turns of an event loop that a coroutine waits at most."""
AFTER = 3
"""Turns in which whoever waits for a task hears of its end."""
_NAPS = 0.15
"""Seconds that a thread naps at most, each time for a moment, while nobody else in the process computes."""
_MOST_NAPS = 1.5
"""Seconds in all: who computes may do so for long, or may be starved by others on the machine."""
_NAP = 0.005
_WORK = 500_000  # ns of the processor in a nap that are work, and not our looking about
_SOON = 1_000_000  # ns
_MOST_VAIN = 4
_PROCESS = re.compile(r".*/[pfsx]\d+(?=/|$)")
_sleep, _used, _now = REAL.sleep, REAL.process_time_ns, REAL.perf_counter
_by_end: dict[str, tuple[list[int], list[dict[str, Any]]]] = {}
_vain = 0


def learn(calls: list[dict[str, Any]]) -> None:
    """Take note of the tape's calls; nothing waits before that."""
    for call in sorted(calls, key=lambda call: call["data"].get("ended") or 0):
        ends, found = _by_end.setdefault(_process(call["lane"]), ([], []))
        ends.append(call["data"].get("ended") or 0)
        found.append(call)


def wait(call: dict[str, Any]) -> None:
    """Wait, in a thread, for the calls that came back before this one, and for who made them to go on."""
    global _vain
    if _vain >= _MOST_VAIN or not _due(call):
        return
    from . import timeline

    naps = _Naps()
    end = timeline.now() + call["data"]["ended"] - call["data"]["began"]
    while not timeline.wait(end, naps.take, _never):
        if not owes(call) and timeline.is_still():
            return
        end = timeline.now() + _SOON
    _vain += 1


class _Naps:
    """Short naps, `_NAPS` in all of those in which nothing was done though the machine had time for us."""

    def __init__(self) -> None:
        self._left = _NAPS
        self._left_in_all = _MOST_NAPS
        self._used = _used()

    def take(self, seconds: float) -> bool:
        """Sleep; returns whether that was the last nap."""
        nap = min(seconds, _NAP)
        began = _now()
        _sleep(nap)
        slept = _now() - began
        before, self._used = self._used, _used()
        self._left_in_all -= nap
        if self._used - before < _WORK and slept < 2 * nap:
            self._left -= nap
        return self._left <= 0 or self._left_in_all <= 0


def _never() -> bool:
    return False


def owes(call: dict[str, Any]) -> bool:
    """Whether a call that came back before this one has still to come."""
    return any("served" not in one for one in _due(call))


def _due(call: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of other flows that ended while this one ran."""
    began, ended = call["data"].get("began") or 0, call["data"].get("ended") or 0
    ends, calls = _by_end.get(_process(call["lane"]), ([], []))
    found = calls[bisect_left(ends, began) : bisect_left(ends, ended)]
    return [one for one in found if not _is_one_flow(one["lane"], call["lane"])]


def _is_one_flow(a: str, b: str) -> bool:
    return a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/")


def _process(lane: str) -> str:
    found = _PROCESS.match(lane)
    return found[0] if found is not None else ""
