"""How an updated tape differs from the old one, in few lines, for pytest's summary. Pure; lines are safe to print."""

from collections.abc import Iterator
from itertools import islice

from tapeproxy.tapes.comparisons import Details
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.invisible import HOSTILE, escape
from tapeproxy.tapes.tapediff import TapeDiff

_EVENTS = 8
_DETAILS = 4
_WIDTH = 200
_SIGNS = {"moved": ">", "changed": "~", "missing": "-", "extra": "+"}


def change_lines(diff: TapeDiff) -> Iterator[str]:
    """The events that differ, and where."""
    found = diff.diverged()
    for event in found[:_EVENTS]:
        yield _line(f"  {_SIGNS[event.kind]} {event.request}  {diff.gist(event)}".rstrip())
        yield from islice(map(_line, _detail_lines(diff.details(event))), _DETAILS)
    if len(found) > _EVENTS:
        yield f"  and {len(found) - _EVENTS} more"


def _detail_lines(details: Details) -> Iterator[str]:
    for change in details.context:
        place = change.asked if change.asked is not None else change.taped
        yield f"      {change.kind} message {place} ({change.role}): {change.text}"
    if not details.context:
        yield from (f"      {_difference(found)}" for found in (*details.request, *details.response))


def _difference(found: Difference) -> str:
    return f"{found.where}: {found.words or f'{found.taped} -> {found.asked}'}"


def _line(text: str) -> str:
    safe = HOSTILE.sub(escape, text)
    return safe if len(safe) <= _WIDTH else safe[: _WIDTH - 1] + "…"
