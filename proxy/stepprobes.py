"""Probes of a tape's events: the first so many are answered from the tape, the rest is asked anew, live.

Each probe is a fork (`proxy/hybrid.py`) with a plan of its own; its child tape is what a check looks at.
"""

import dataclasses
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.bisecting import Judged
from tapeproxy.proxy.checks import Check, Ran, by_exit
from tapeproxy.proxy.forked import Forked, ForkSettings
from tapeproxy.proxy.hybrid import run_fork
from tapeproxy.proxy.supervisor import Stdio
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.bisecting import Probe
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.stepevents import StepEvent, first_of, step_events

_NAME = "first-{place}{again}.tape.jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSettings:
    """What to probe. `fork` says how, but for its plan, output and stdio; child tapes and outputs go into `folder`."""

    fork: ForkSettings
    folder: Path
    check: Check = by_exit


class StepProbes:
    """Makes them. `events`: the tape's exchanges with the world and calls of tools, in causal order."""

    def __init__(self, settings: StepSettings) -> None:
        self._settings = settings
        self.tape = settings.fork.parent.tape
        self.causality = Causality.of(self.tape)
        self.events: Sequence[StepEvent] = step_events(self.tape, self.causality)

    def event(self, place: int) -> StepEvent:
        """The last event that is answered from the tape at a place from 1 on."""
        return self.events[place - 1]

    async def make(self, probe: Probe) -> Judged:
        """Run the agent, and judge. Raises what `run_fork` raises, and CheckError."""
        again = f"-{probe.attempt}" if probe.attempt > 1 else ""
        child = self._settings.folder / _NAME.format(place=probe.place, again=again)
        out, err = child.with_suffix(".stdout"), child.with_suffix(".stderr")
        with ExitStack() as files:
            stdout, stderr = (files.enter_context(path.open("wb")).fileno() for path in (out, err))
            nothing = files.enter_context(Path(os.devnull).open("rb")).fileno()
            plan = first_of(self.tape, self.causality, self.events, probe.place)
            stdio = Stdio(nothing, stdout, stderr)
            forked = await run_fork(dataclasses.replace(self._settings.fork, plan=plan, out=child, stdio=stdio))
        if why := _astray(forked):
            return Judged("skip", why)
        assert forked.outcome is not None  # it was run
        ran = Ran(forked.outcome.exit_code, out, err, lambda: _tape_at(child), lambda: child)
        return Judged(await self._settings.check(ran))


def _astray(forked: Forked) -> str:
    """Why a run says nothing: it did not go the tape's way as far as it should have. Empty: it did."""
    if forked.violations:
        found = forked.violations[0]
        return f"{found.what}: {found.request}"
    return forked.recorded.failure or ""


def _tape_at(path: Path) -> Tape:
    return load(path)[0]
