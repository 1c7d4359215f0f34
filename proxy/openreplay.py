"""One replay that is open: read on, run, ended, judged. What it shares with others is its wire's (`replaying`)."""

import asyncio
import gc
import subprocess
from typing import TYPE_CHECKING

from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.replayed import DRIFT, TIMEOUT, VIOLATION, Replayed, ReplaySettings
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shims import Shims
from tapeproxy.proxy.supervisor import Outcome, Stdio, StopSignal, end_leftovers, run_child
from tapeproxy.proxy.tapedrun import facts_here
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.tapes.errors import Place, TapeFormatError
from tapeproxy.tapes.outcomes import gaps
from tapeproxy.tapes.reading import taped_reading
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.replaying import Wire

_SILENT = Stdio(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)
_SLICE = 0.004
"""Seconds for which a tape is read on before requests are heard again."""
_SILENCE = 0.2
"""Seconds that the connections of a run may take to end after its processes have."""


class Replaying:
    """An open replay: programs that run with `environment` hear the tape."""

    def __init__(self, wire: "Wire", server: TapeServer, run: RunProcesses) -> None:
        self.wire = wire
        self.tape = wire.tape
        self.ending = wire.ending
        self.port = wire.port
        self.processes = run
        self.environment: dict[str, str] = {}
        self.shims: Shims | None = None
        self.server = server
        self.redactor = server.replayer.redactor
        self._replayer = server.replayer
        self._refusals = server.refusals
        self._leftovers: list[str] = []
        self._refused = wire.settings.guard.count_refused()

    async def read_on(self) -> None:
        """Read a tape that was opened early to its end, and give out what waits for it. Raises TapeFormatError."""
        loading, replayer = self.wire.loading, self._replayer
        if loading is None:
            return
        try:
            while loading.read_on(_SLICE):
                replayer.extend(loading.settled)
                self.server.look_again()
                await asyncio.sleep(0)
            self.ending = self.wire.ending = loading.ending
            replayer.complete(facts_here(self.tape, self.wire.settings))
        except ValueError as error:
            raise TapeFormatError(str(error), place=Place(str(self.wire.settings.tape))) from None
        gc.freeze()
        self.server.look_again()

    async def run(self, stop: StopSignal, stdio: Stdio | None = None) -> Outcome:
        """Run the agent to its end. Raises what `Wire.command` raises and the supervisor's errors."""
        settings = self.wire.settings
        return await run_child(
            self.wire.command(),
            self.environment,
            stop=stop,
            timeout=settings.timeout,
            confine=settings.guard.confinement(self.port, *self.wire.fronts.open),
            stdio=_SILENT if settings.call_sites else stdio,
        )

    async def end(self) -> None:
        """End the replay and keep the wire for another: no process of it is left, nor what it put into its TMPDIR."""
        try:
            if ended := await end_leftovers(self.processes):
                self._leftovers = [f"processes that outlived the agent were ended: {ended}"]
            await self.server.fall_silent(_SILENCE)
        finally:
            self._close(sweep=True)

    async def stop(self) -> None:
        """End the replay and the wire; processes that the agent left behind live on."""
        await self.wire.stop()
        self._close(sweep=False)

    def _close(self, *, sweep: bool) -> None:
        """Hear what the shims have still to say, and remove what was made for them."""
        if self.shims is not None:
            self.shims.finish(sweep=sweep)
        if refused := self.wire.settings.guard.count_refused() - self._refused:
            self._replayer.violate(_unseen(refused))
        for fault in [] if self._replayer.faults is None else self._replayer.faults.never():
            # A test of an agent's error handling that met no error proves nothing.
            self._replayer.drift(Drift(fault, "no request got this fault"))

    def verdict(self, settings: ReplaySettings, outcome: Outcome | None, took_ns: int) -> Replayed:
        """What came of it."""
        replayer = self._replayer
        hints = None if self.shims is None else self.shims.hints
        covered = frozenset[int]() if hints is None else hints.covered
        # A server of the run may or may not have been up when it was asked: its exchanges are compared, not counted.
        return Replayed(
            exit_code=_exit_code(replayer, settings, outcome),
            outcome=outcome,
            served=replayer.served,
            live=replayer.live,
            exchanges=len(self.tape.exchanges),
            taped_ns=self.tape.duration,
            took_ns=took_ns,
            violations=replayer.violations,
            drifts=replayer.drifts,
            unused=replayer.index.unused(without=covered),
            refusals=dict(self._refusals),
            notes=[
                *gaps(self.tape.notes),
                *self.wire.notes,
                *([] if self.shims is None else self.shims.notes()),
                *replayer.findings.soft_notes(),
                *(unsaid.to_text() for unsaid in replayer.unsaid()),
                *self._leftovers,
            ],
            injected=[] if replayer.faults is None else replayer.faults.injected,
            answered=replayer.index.used(),
            rules={str(rule): rule in replayer.reading.rules.used for rule in replayer.reading.rules.rules},
            reading=taped_reading(self.tape.head),
            tools=0 if hints is None else hints.served,
            covered=replayer.index.of_numbers(covered) if covered else (),
            unsaid=tuple(replayer.unsaid()),
        )


def _unseen(times: int) -> Violation:
    """Attempts that the shim did not see, or it would have refused them itself and named the line."""
    often = "once" if times == 1 else f"{times} times"
    what = f"a program of the run tried to reach the network past the proxy, {often}, and was refused"
    return Violation("egress", "a program without the shim (curl, Node, Go, python -I …)", what)


def _exit_code(replayer: Replayer, settings: ReplaySettings, outcome: Outcome | None) -> int:
    if replayer.violations:
        return VIOLATION
    if replayer.drifts and settings.on_drift == "fail":
        return DRIFT
    if outcome is None:
        return 0
    return TIMEOUT if outcome.stopped_by == "timeout" else outcome.exit_code
