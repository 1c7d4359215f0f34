"""What a fork is asked for, and how it ended. Values; knows neither wire nor agent."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tapeproxy.proxy.guard import Guard, GuardPlan
from tapeproxy.proxy.recorded import Recorded, Within
from tapeproxy.proxy.replayed import DRIFT, TIMEOUT, VIOLATION
from tapeproxy.proxy.supervisor import Outcome, Stdio
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.forkplan import ForkPlan
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.violations import Drift, Violation

if TYPE_CHECKING:
    from tapeproxy.proxy.clientcerts import ClientCert
    from tapeproxy.proxy.unlocking import Secret
    from tapeproxy.tapes.fronts import Front


@dataclass(frozen=True, slots=True)
class Parent:
    """A tape that is loaded, and where it came from. Any number of forks may be made of one."""

    path: Path
    tape: Tape
    ending: Ending


@dataclass(frozen=True, slots=True)
class WayOut:
    """How live calls reach the world and clients the wire: as in `RecordSettings`. `fronts` None: the tape's.

    `no_tape`: hosts that pass by, the whole run; others of the tape's are refused.
    """

    upstream_proxy: str | None = None
    host_certs: "tuple[ClientCert, ...]" = ()
    fronts: "tuple[Front, ...] | None" = None
    no_tape: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSettings:
    """What to fork and how. `out`: the child tape. `argv` empty: the taped command. `environment` is the user's.

    `edit` is told in the child's head, redacted. `hosts` are --map rules, `upstream_ca` and
    `client_certs` as in a recording. `guard`: what keeps the agent, not the proxy, from the network. `keyless`: names
    of secret variables that the tape's run had and this one need not; they get placeholders, which are never sent.
    `max_violations`: the run is stopped at so many. `timeout` in seconds. `stdio`: the agent's, in place of ours.
    `shim`: where the tape has one. `within`: it is this interpreter that asks. `rules` come after the tape's own.
    `secret` encrypts the child.
    """

    parent: Parent
    plan: ForkPlan
    out: Path
    environment: Mapping[str, str]
    cwd: str
    argv: tuple[str, ...] = ()
    force: bool = False
    edit: Json | None = None
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    upstream_ca: Path | None = None
    client_certs: Path | None = None
    way: WayOut = field(default_factory=WayOut)
    guard: GuardPlan = field(default_factory=lambda: GuardPlan(Guard.NONE))
    keyless: frozenset[str] = frozenset()
    max_violations: int = 20
    on_drift: Literal["fail", "report"] = "fail"
    timeout: float | None = None
    stdio: Stdio | None = None
    shim: bool = True
    within: Within | None = None
    rules: tuple[Rule, ...] = ()
    secret: "Secret | None" = None


@dataclass(frozen=True, slots=True)
class Forked:
    """How a fork ended. `recorded` is the child tape, as a recording's; `exit_code` what the command exits with.

    `live_of`: how many live calls each lane made. `unasked`: exchanges of the tape whose answers nobody asked for,
    although they were to be served; `covered`: those that bodies of tools had asked for, which did not run.
    """

    exit_code: int
    recorded: Recorded
    reused: int
    mutated: int
    live: int
    live_of: Mapping[str, int] = field(default_factory=Counter[str])
    unasked: tuple[int, ...] = ()
    covered: tuple[int, ...] = ()
    violations: list[Violation] = field(default_factory=list[Violation])
    drifts: list[Drift] = field(default_factory=list[Drift])
    notes: list[str] = field(default_factory=list[str])

    @property
    def path(self) -> Path:
        """The child tape."""
        return self.recorded.path

    @property
    def outcome(self) -> Outcome | None:
        """How the agent ended."""
        return self.recorded.outcome

    def to_json(self) -> dict[str, Any]:
        """A report, for programs."""
        return {
            "exit_code": self.exit_code,
            "agent_exit_code": None if self.outcome is None else self.outcome.exit_code,
            "stopped_by": None if self.outcome is None else self.outcome.stopped_by,
            "child": str(self.path),
            "reused": self.reused,
            "mutated": self.mutated,
            "live": self.live,
            "live_of": dict(self.live_of),
            "unasked": list(self.unasked),
            "covered": list(self.covered),
            "violations": [violation.to_json() for violation in self.violations],
            "drifts": [drift.to_json() for drift in self.drifts],
            "notes": self.notes,
        }


def exit_code(settings: ForkSettings, recorded: Recorded, *, violations: bool, drifts: bool) -> int:
    """The code of a fork: a replay's for its past, a recording's for the rest."""
    if violations:
        return VIOLATION
    if drifts and settings.on_drift == "fail":
        return DRIFT
    if recorded.outcome is not None and recorded.outcome.stopped_by == "timeout":
        return TIMEOUT
    agents = 0 if recorded.outcome is None else recorded.outcome.exit_code
    return agents or (5 if recorded.failure is not None else 0)
