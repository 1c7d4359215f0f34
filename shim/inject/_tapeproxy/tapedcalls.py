"""The tool calls that the tape holds, for a replay that serves them. Knows the launcher's file; calls nothing.

A line a call, with the text of its result: read at the first call of a process. A call finds the first one left of its
lane that has its name and its arguments.
"""

from __future__ import annotations

import os
import re
from _thread import allocate_lock

from . import callturns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TAPED = os.environ.get("TAPEPROXY_HINTS", "")
"""Replay: the file with what hints had put on the tape; empty: the tape was made without them."""
TOOLS = os.environ.get("TAPEPROXY_TOOLS", "")
"""Replay: `live` if the bodies of tools are to run, `any` if a lane may have another's results, else its own."""
# A secret's place on the tape (tapes/tokens.py): whatever stands there now is as good.
_TOKEN = re.compile(r"tpx([a-z2-7]{3})[a-z2-7]{8,}")
_DIGITS = "abcdefghijklmnopqrstuvwxyz234567"
_lock = allocate_lock()
_found: dict[tuple[str, str], list[dict[str, Any]]] | None = None


def take(what: str, name: str, lane: str, arguments: str) -> tuple[dict[str, Any] | None, str, dict[str, Any] | None]:
    """The taped call for this one; else None, why there is none, and the taped call that comes nearest.

    Why: `arguments` (the next one left has others), `used` (it was made before, as often as on the tape), `lane`
    (another lane's), or `name` (there is no call of that name).
    """
    with _lock:
        all_of_it = _load().get((what, name), [])
        mine = [call for call in all_of_it if TOOLS == "any" or is_lanes(call["lane"], lane)]
        alike = [call for call in mine if is_same(call["data"].get("args", ""), arguments)]
        for call in alike:
            if not call.get("taken"):
                call["taken"] = True
                return call, "", None
        if alike:
            return None, "used", None
        left = [call for call in mine if not call.get("taken")]
        if left:
            return None, "arguments", left[0]
        if any(is_same(call["data"].get("args", ""), arguments) for call in all_of_it if call not in mine):
            return None, "lane", None
        return None, "arguments" if mine else "name", mine[-1] if mine else None


def is_lanes(taped: str, lane: str) -> bool:
    """Whether a call of the lane `taped` is this lane's. Of lanes without a promised name, which is which is chance."""
    return taped == lane or (taped.startswith("?") and lane.startswith("?"))


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


def _load() -> dict[tuple[str, str], list[dict[str, Any]]]:
    global _found
    if _found is None:
        import json

        calls: dict[tuple[str, str], list[dict[str, Any]]] = {}
        with open(TAPED, encoding="utf-8") as file:
            for line in file:
                call = json.loads(line)
                calls.setdefault((call["what"], call["name"]), []).append(call)
        _found = calls
        callturns.learn([call for found in calls.values() for call in found])
    return _found
