"""What hints tell the launcher: lines of a lane, with JSON that a tape can take. Knows nothing of calls."""

from __future__ import annotations

import sys

from . import channel, settings, tapedcalls, values
from .callers import line_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .lanes import Lane

LONGEST = 8 << 20
"""Bytes of JSON that a tape takes of one result."""
OFF = settings.REPLAY and not tapedcalls.TAPED
"""In a replay of a tape that was made without hints: they do nothing."""


def is_live(lane: Lane) -> bool:
    """Whether a lane of a fork has left the tape."""
    if not settings.FORK:
        return False
    from . import forkedtime

    return forkedtime.is_live(lane)


def where() -> str:
    """The agent's line that led here."""
    frame: Any = sys._getframe(1)
    while frame is not None and (
        frame.f_globals.get("__package__") == __package__ or "__tapeproxy_hints__" in frame.f_globals
    ):
        frame = frame.f_back
    return line_of(frame)


def fitting(dump: Callable[[Any], str], value: Any) -> bytes:
    """The JSON of a value. Raises TypeError where it has none, or too much."""
    content = dump(value).encode()
    if len(content) > LONGEST:
        raise TypeError(f"it has {len(content)} bytes of JSON, and a tape takes {LONGEST}")
    return content


def reason_of(error: Exception) -> str:
    """Why something has no JSON, for people."""
    return str(error) if isinstance(error, TypeError) else repr(error)


def note_untaped(what: str, at: str, reason: str) -> None:
    """Tell that the tape lacks what something gave."""
    if not settings.REPLAY or settings.FORK:
        channel.emit("note", what="untaped-result", text=f"{what} at {at}: {reason}")


def emit(
    what: str, name: str, lane: Lane, at: str, content: bytes | None, *, error: str | None = None, **fields: Any
) -> None:
    """Tell of a value of a hint."""
    lane.tell()
    if content is not None:
        fields.update(length=len(content), digest=values.digest(content), content=content.decode())
    if error is not None:
        fields["error"] = error
    if is_live(lane):
        fields["live"] = True
    channel.emit("value", lane=lane.id, n=values.number(lane.id), what=what, name=name, where=at, **fields)
