"""The tool calls that the tape holds, for a replay that serves them. Knows the launcher's file; calls nothing.

A line a call, with the text of its result: read at the first call of a process. A call finds the first one left of its
lane that has its name and its arguments.
"""

from __future__ import annotations

import os
import re
from _thread import allocate_lock
from collections import deque

from . import callturns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TAPED = os.environ.get("TAPEPROXY_HINTS", "")
"""Replay: the file with what hints had put on the tape; empty: the tape was made without them."""
TOOLS = os.environ.get("TAPEPROXY_TOOLS", "")
"""Replay: `live` if the bodies of tools are to run, `any` if a lane may have another's results, else its own.

`position`: its next one of that name, whatever the arguments, for `minimize`, whose trials change what these come from.
"""
# A secret's place on the tape (tapes/tokens.py): whatever stands there now is as good.
_TOKEN = re.compile(r"tpx([a-z2-7]{3})[a-z2-7]{8,}")
_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_lock = allocate_lock()
_found: dict[tuple[str, str], _Calls] | None = None


class _Calls:
    """The calls of one tool: by lane, and of each lane by arguments, all in the order in which they were made."""

    def __init__(self) -> None:
        self.lanes: dict[str, list[dict[str, Any]]] = {}
        self._left: dict[tuple[str, str], deque[dict[str, Any]]] = {}
        self._secret: dict[str, list[dict[str, Any]]] = {}  # with a secret in their arguments

    def add(self, call: dict[str, Any]) -> None:
        lane, arguments = _home(call["lane"]), _counting(call["data"].get("args", ""))
        self.lanes.setdefault(lane, []).append(call)
        self._left.setdefault((lane, arguments), deque()).append(call)
        if "tpx" in arguments:
            self._secret.setdefault(lane, []).append(call)

    def take(self, lane: str, arguments: str) -> dict[str, Any] | None:
        """The next call of a lane with these arguments, or the same but for what is secret."""
        left = self._left.get((lane, arguments))
        if left:
            return left.popleft()
        for call in self._like(lane, arguments):
            left = self._left[lane, call["data"]["args"]]
            if call in left:
                left.remove(call)
                return call
        return None

    def knows(self, lane: str, arguments: str) -> bool:
        """Whether there is such a call at all."""
        return (lane, arguments) in self._left or any(True for _ in self._like(lane, arguments))

    def _like(self, lane: str, arguments: str) -> Iterator[dict[str, Any]]:
        return (call for call in self._secret.get(lane, ()) if is_same(call["data"]["args"], arguments))


def take(what: str, name: str, lane: str, arguments: str) -> tuple[dict[str, Any] | None, str, dict[str, Any] | None]:
    """The taped call for this one; else None, why there is none, and the taped call that comes nearest.

    Why: `arguments` (the next one left has others), `used` (it was made before, as often as on the tape), `lane`
    (another lane's), or `name` (there is no call of that name).
    """
    home, arguments = _home(lane), _counting(arguments)
    with _lock:
        calls = _named(what, name)
        call = calls.take(home, arguments)
        if call is not None:
            call["taken"] = True
            return call, "", None
        if calls.knows(home, arguments):
            return None, "used", None
        mine = calls.lanes.get(home, [])
        left = [one for one in mine if not one.get("taken")]
        if not left and any(calls.knows(other, arguments) for other in calls.lanes):
            return None, "lane", None
        near = left[0] if left else mine[-1] if mine else None
        return None, "name" if near is None else "arguments", near


def _named(what: str, name: str) -> _Calls:
    """The calls of this name, or of one that is the same but for what is secret."""
    found = _load()
    if (what, name) in found:
        return found[what, name]
    return next((calls for (kind, taped), calls in found.items() if kind == what and is_same(taped, name)), _NONE)


def _home(lane: str) -> str:
    """Where a lane's calls are. Of lanes without a promised name, which one is which is chance."""
    return "" if TOOLS == "any" else "?" if lane.startswith("?") else lane


def _counting(arguments: str) -> str:
    """What of its arguments a call is found by."""
    return "" if TOOLS == "position" else arguments


def is_same(taped: str, now: str) -> bool:
    """Whether two texts are the same but for what is secret."""
    if taped == now:
        return True
    if "tpx" not in taped:
        return False
    parts: list[str] = []
    at = 0
    for start, end in _tokens(taped):
        parts += (re.escape(taped[at:start]), ".+?")
        at = end
    return re.fullmatch("".join((*parts, re.escape(taped[at:]))), now, re.DOTALL) is not None


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while True:
        found = _TOKEN.search(text, at)
        if found is None:
            return
        length = 0
        for digit in found[1]:
            length = length * 32 + _DIGITS.index(digit)
        at = found.start() + length if 14 <= length <= len(found[0]) else found.start() + 1
        if at > found.start() + 1:
            yield found.start(), at


def _load() -> dict[tuple[str, str], _Calls]:
    global _found
    if _found is None:
        import json

        found: dict[tuple[str, str], _Calls] = {}
        every: list[dict[str, Any]] = []
        with open(TAPED, encoding="utf-8") as file:
            for line in file:
                call = json.loads(line)
                every.append(call)
                found.setdefault((call["what"], call["name"]), _Calls()).add(call)
        _found = found
        callturns.learn(every)
    return _found


def _after_fork() -> None:
    global _lock
    _lock = allocate_lock()


_NONE = _Calls()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
