"""Lanes that read their clock more often than on the tape: what a shim tells of them, and the drift that it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.violations import Drift

CLOCK_READS = "clock reads of the lane"
"""Where a drift differs that is a lane's reading on past its end on the tape."""
PAST_END = "clock-past-end"
"""What the shim calls it."""


@dataclass(slots=True)
class PastEnd:
    """A lane that read its clock more than the `taped` times. `lane`: what it is called in a report.

    `first`: its reads when it first did.

    `reads`: how often it read in all; None until the lane has ended.
    """

    id: str
    lane: str
    taped: int
    first: int
    where: str
    soft: bool = False
    reads: int | None = None

    @classmethod
    def read(cls, line: Mapping[str, Any], redact: Callable[[str], str]) -> Self | None:
        """What a line of the shim tells of it; None where it has another form."""
        match line.get("data"):
            case {"lane": str(lane), "reads": int(first), "taped": int(taped), **rest}:
                where = redact(str(rest.get("where") or ""))
                return cls(lane, redact(lane), taped, first, where, soft=rest.get("grade") == "soft")
            case _:
                return None

    def to_drift(self) -> Drift:
        """The drift. The number of the lane's request is not known here."""
        from tapeproxy.tapes.differences import Difference

        found = Difference(CLOCK_READS, str(self.taped), "more")
        return Drift(f"lane {self.lane}", self.to_text(), (found,), LaneTag(self.lane, -1, self.first))

    def to_text(self) -> str:
        known = f"{self.reads - self.taped}" if self.reads is not None and self.reads > self.taped else "at least once"
        times = {"1": "once", "at least once": known}.get(known, f"{known} times")
        tape = f"after the {self.taped} of the tape" if self.taped else "and has no reads on the tape"
        where = f", first at {self.where}" if self.where else ""
        return f"lane {self.lane} read its clock {times} {tape}: those were live values{where}"
