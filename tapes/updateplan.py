"""The plan of an update: all of the tape is served; where a lane leaves it is found out while the agent runs.

Nobody changes an answer here: the agent has been changed, and what it asks now that is not on the tape is asked of the
world. From there on a lane has left the tape, and so has every lane that comes to know of it.
"""

from dataclasses import dataclass, field

from tapeproxy.tapes.cuts import lanes_of, rows_of
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.forkplan import ForkPlan, Rerun
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.refusals import is_refused

NOBODY = ""
"""In the place of a lane's id: who has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePlan(ForkPlan):
    """`offline`: nothing may go out, whatever is asked. `left`: lanes that have left the tape, and with which of their
    requests, from 0 (-1: before the first); it grows.
    """

    offline: bool = False
    left: dict[str, int] = field(default_factory=dict[str, int])

    def leave(self, lane: str, n: int) -> bool:
        """A lane has left the tape with its request `n`; whether that is news."""
        news = n < self.left.get(lane, n + 1)
        if news:
            self.left[lane] = n
        return news

    def is_past(self, tag: LaneTag | None) -> bool:
        """Whether a request is compared with the tape's: until its lane has left that."""
        return tag is not None and tag.lane in self.lanes and not self._has_left(tag)

    def may_be_live(self, tag: LaneTag | None) -> bool:
        """Whatever is not on the tape may."""
        return not self.offline

    def asks_anew(self, tag: LaneTag | None) -> bool:
        """Of requests without a lane nobody knows what came before them: the first change counts for all."""
        return self.rerun == "future" and (bool(self.left) if tag is None else self._has_left(tag))

    @property
    def borrows(self) -> bool:
        """Threads that were put in another order ask what is on the tape all the same."""
        return True

    @property
    def runs_tools(self) -> bool:
        """A tool's body may be what was changed."""
        return True

    def _has_left(self, tag: LaneTag) -> bool:
        first = self.left.get(tag.lane)
        return first is not None and tag.n >= first


def update_of(tape: Tape, *, rerun: Rerun = "changed", offline: bool = False) -> UpdatePlan:
    """Serve what is asked as on the tape, as far as the tape knows how it ended, and it was no refusal of ours."""
    served = frozenset(
        one.number
        for one in outlines(tape.exchanges)
        if one.end is not None and not one.request.inside and not is_refused(one.request)
    )
    return UpdatePlan(served=served, rerun=rerun, offline=offline, lanes=lanes_of(tape, rows_of(tape)))
