"""What a replay is asked for, and how it ended. Values; knows neither wire nor agent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tapeproxy.proxy.guard import Guard, GuardPlan
from tapeproxy.proxy.shimming import IoMode
from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.fronts import Front
from tapeproxy.tapes.reading import PLAIN, Reading
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.trace import join_parts, part_of
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.conversation import Unsaid
    from tapeproxy.proxy.hintvalues import ToolMode
    from tapeproxy.tapes.faults import Fault, Injected
    from tapeproxy.tapes.provenance import Provenance


VIOLATION, DRIFT, TIMEOUT = 3, 4, 124
"""Exit codes of a replay that went wrong (docs/CLI.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What to replay and how. `argv` empty: the taped command. `speed`: None at once, 1.0 as recorded.

    `proxy`: the URL of a proxy that has accepted the connections and hands them over; empty: listen on `port`.
    `max_violations`: the run is stopped at so many. `timeout` in seconds. `threads`: keep the tape's order of locks;
    None: if it has one. `edges`: compare where lanes learned of each other. `rules` are added to the tape's own, which
    `taped_rules` False leaves out. `call_sites`: the agent runs silently, and the shim tells of every read, also if the
    tape was recorded without it. `ask`: who knows the passphrase of an encrypted tape. `match`: whose answers a lane
    may have; `position-not-content` compares no requests at all, and is for `minimize` alone.
    `fronts`: base URLs that get a port in front of them; None: those that had one while recording. `java`: Java is led
    here too, as if recorded so.
    """

    tape: Path
    environment: Mapping[str, str]
    argv: tuple[str, ...] = ()
    speed: float | None = None
    port: int = 0
    proxy: str = ""
    timeout: float | None = None
    max_violations: int = 20
    on_drift: Literal["fail", "report"] = "fail"
    guard: GuardPlan = field(default_factory=lambda: GuardPlan(Guard.NONE))
    match: Literal["lane", "any", "position-not-content"] = "lane"
    shim: bool = True
    java: bool = False
    threads: bool | None = None
    edges: bool = True
    rules: tuple[Rule, ...] = ()
    taped_rules: bool = True
    faults: "tuple[Fault, ...]" = ()
    call_sites: bool = False
    io: IoMode | None = None
    tools: "ToolMode" = "tape"
    ask: Ask = ask_environment
    fronts: tuple[Front, ...] | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay ended. `exit_code` is what the command exits with; times in nanoseconds.

    `tools`: how many calls of tools got what is on the tape; `covered`: what their bodies had asked for, and did not.
    `unsaid`: the WebSockets on which the client said less than on the tape.
    """

    exit_code: int
    outcome: Outcome | None
    served: int
    live: int
    exchanges: int
    taped_ns: int
    took_ns: int
    violations: list[Violation] = field(default_factory=list[Violation])
    drifts: list[Drift] = field(default_factory=list[Drift])
    unused: Sequence[Exchange] = field(default=(), repr=False)  # asyncio takes reprs of results
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    injected: "list[Injected]" = field(default_factory=list)
    answered: Sequence[Exchange] = field(default=(), repr=False)
    provenance: "tuple[Provenance, ...]" = ()
    rules: Mapping[str, bool] = field(default_factory=dict[str, bool])
    reading: Reading = field(default=PLAIN, repr=False)
    tools: int = 0
    covered: Sequence[Exchange] = field(default=(), repr=False)
    unsaid: "Sequence[Unsaid]" = ()

    def trace(self) -> str:
        """The trace hash of the answers that were given out, and of those that calls of tools stand for: the one in the
        tape's seal, where that is all."""
        return join_parts(part_of(exchange, self.reading) for exchange in (*self.answered, *self.covered))

    def to_json(self, trace: str | None = None) -> dict[str, Any]:
        """The report of `--report`; `trace`: what `trace()` gives, where it is known already."""
        from tapeproxy.tapes.usage import usage_of  # reads answers of models: a replay alone never does

        return {
            "exit_code": self.exit_code,
            "agent_exit_code": None if self.outcome is None else self.outcome.exit_code,
            "stopped_by": None if self.outcome is None else self.outcome.stopped_by,
            "exchanges": self.exchanges,
            "served": self.served,
            "live": self.live,
            "tools": self.tools,
            "covered": [exchange.number for exchange in self.covered],
            "taped_ns": self.taped_ns,
            "took_ns": self.took_ns,
            "usage": [one.to_json() for one in usage_of((*self.answered, *self.covered))],
            "violations": [violation.to_json() for violation in self.violations],
            "drifts": [drift.to_json() for drift in self.drifts],
            "unused": [exchange.number for exchange in self.unused],
            "unsaid": [{"exchange": one.exchange, "heard": one.heard, "taped": one.client} for one in self.unsaid],
            "trace": trace or self.trace(),
            "refused_certificate": dict(self.refusals),
            "notes": self.notes,
            "injected": [one.to_json() for one in self.injected],
            "provenance": [found.to_json() for found in self.provenance],
            "rules": [{"rule": rule, "matched": matched} for rule, matched in self.rules.items()],
        }
