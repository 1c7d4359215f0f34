"""The course of a replay: who asked what, and which exchange answered. Pure."""

from typing import NamedTuple

from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.matching import Ask


class Step(NamedTuple):
    """A request, redacted, lane tag apart, and the number of the exchange that answered it (None: nothing did)."""

    exchange: int | None
    tag: LaneTag | None
    ask: Ask

    @property
    def lane(self) -> str | None:
        """Whose request it was; None where the client does not say."""
        return None if self.tag is None else self.tag.lane


type Course = tuple[Step, ...]
