"""The shims of a fork: told where each lane leaves the tape; what they report is taped, and heard as in a replay."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import orjson

from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shimming import IoSettings, shim_environment
from tapeproxy.proxy.shims import Shims
from tapeproxy.proxy.sidecar import Line
from tapeproxy.proxy.strangers import Strangers
from tapeproxy.tapes.branches import inherited, seeds_of
from tapeproxy.tapes.cuts import UNLANED
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.forkplan import ForkPlan
from tapeproxy.tapes.lanes import EDGE_RULES, START, edge_rules
from tapeproxy.tapes.records import Head, Json
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.updateplan import UpdatePlan

_NEVER = 1 << 62


class ForkShims(Shims):
    """The shims of one fork of a tape. Their lines are followed by who tapes them, and told to `hear`."""

    def __init__(
        self, parent: Tape, plan: ForkPlan, replayer: Replayer, redactor: Redactor, strangers: Strangers
    ) -> None:
        super().__init__(parent, replayer, redactor, strangers, io="live", tools="live" if plan.runs_tools else "tape")
        self._plan = plan
        self._leavings = self._folder / "fork"

    def fork_variables(self, parent: Mapping[str, str], proxy: str, sidecar: Path) -> dict[str, str]:
        """The variables for the agent's processes, which write to the folder `sidecar`."""
        fork = self._leavings
        fork.touch(mode=0o600)
        fork.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in fork_lines(self._plan)))
        seeds = seeds_of(Head(branch=inherited(self._tape.head, self._plan)))
        told = replace(
            self.settings(parent, proxy),
            mode="fork",
            edges=edge_rules(self._tape.head) or EDGE_RULES,
            sidecar=sidecar.absolute(),
            fork=fork,
            seeds=seeds,
        )
        return shim_environment(parent, told)

    def _io_settings(self) -> IoSettings | None:
        """What the agent reads past the wire it reads for real, and that is taped; process numbers are the tape's."""
        if not self._tape.head.io:
            return None
        from tapeproxy.proxy.iovalues import write_values

        values = self._folder / "values"
        write_values(self._tape, values)
        return IoSettings(mode="record", base=str(Path.cwd()), values=values)

    def hear(self, line: Line) -> None:
        """Take a line of the shims."""
        self._take(line)
        match line:
            case {"k": "left", "lane": str(lane), "request": int(request)}:
                self.leave(lane, request)
            case {"k": "edge", "what": what, "on": str(on), "lane": str(lane), "asked": int(asked)} if what == START:
                if asked > self._left().get(lane, asked):
                    self.leave(on, -1)  # a process, begun by a lane that had left
            case _:
                pass

    def leave(self, lane: str, n: int) -> None:
        """A lane has left the tape of an update with its request `n`; -1: it was begun by one that had."""
        if isinstance(self._plan, UpdatePlan) and self._plan.leave(lane, n):
            with self._leavings.open("ab", buffering=0) as file:
                file.write(orjson.dumps({"left": lane, "request": n}) + b"\n")

    def _begin_past(self, line: Line) -> None:
        """Reading on past the tape's end is what a lane of the future is there for."""
        data = line.get("data")
        lane = str(data.get("lane")) if isinstance(data, dict) else ""
        if lane in self._plan.lanes and lane not in self._plan.cut and lane not in self._left():
            super()._begin_past(line)

    def _left(self) -> Mapping[str, int]:
        return self._plan.left if isinstance(self._plan, UpdatePlan) else {}


def fork_lines(plan: ForkPlan) -> Iterator[Json]:
    """What the shim is told: one object a line. Of an update, more are added while it runs."""
    if isinstance(plan, UpdatePlan):
        yield {"update": True}
    for lane, cut in plan.cut.items():
        if lane != UNLANED:
            meetings = -1 if cut.meetings is None else cut.meetings
            yield {"lane": lane, "requests": cut.requests, "reads": cut.reads, "meetings": meetings}
    for lane in plan.stays:
        yield {"lane": lane, "requests": _NEVER, "reads": 0, "meetings": 0}
    if plan.clock is not None:
        yield {"clock": plan.clock.ns, "absolute": plan.clock.absolute}
