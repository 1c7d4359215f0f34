"""Names of temporary files: each lane's own sequence. Knows how tempfile draws names; makes no file.

They have a stream of their own: a name that exists already is drawn again, and what other files lie in TMPDIR must not
move the lane's other random values.
"""

from __future__ import annotations

from . import hooks
from .lanes import LANE, current, system_urandom
from .likeness import resemble
from .randomness import derive, lane_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH = 8  # characters, as in tempfile


def install() -> None:
    """Wait for tempfile."""
    hooks.on_import("tempfile", _patch)


def _patch(module: Any) -> None:
    cls = module._RandomNameSequence
    characters = cls.characters
    original = cls.__next__

    # Other sequences than the module's own name what nobody sees: whether a folder can be written, tried by whichever
    # thread needs one first, and semaphores, which belong to the whole machine and would collide with another replay's.
    def draw(self: Any) -> str:
        drawn = _lane_bytes() if self is module._name_sequence else system_urandom(_LENGTH)
        return "".join([characters[byte % len(characters)] for byte in drawn])

    cls.__next__ = resemble(draw, original)


def _lane_bytes() -> bytes:
    lane = LANE.get(None) or current()
    number = lane.names
    lane.names = number + 1
    return derive(lane_key(lane, b"names"), number.to_bytes(8, "little"))[:_LENGTH]
