"""Who is within a context: the flow that opened it and all that it starts. Everybody else sees what is real."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeproxy.shim.inject._tapeproxy.lanes import HERE, LANE, Lane, retire

OUTSIDE = retire(Lane("?outside"))
"""The lane of our own work, and of modules that are being imported: they are nobody's."""
_get: Any = LANE.get


def inside() -> bool:
    """Whether the code that runs now has a lane of an open context."""
    lane = _get(None)
    if lane:
        return True
    return lane is not OUTSIDE and bool(getattr(HERE, "lane", None))


@contextmanager
def outside() -> Iterator[None]:
    """What is done here belongs to nobody."""
    token = LANE.set(OUTSIDE)
    try:
        yield
    finally:
        LANE.reset(token)
