"""An update of a tape: the agent is run from it, what it asks anew is asked of the world, and the two are compared.

Knows the order of things, not who looks at the difference: the new tape waits beside the old one (`pending.py`).
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tapeproxy.proxy.followed import Lost, unheard
from tapeproxy.proxy.forked import Forked, ForkSettings, Parent, WayOut
from tapeproxy.proxy.guard import Guard, GuardPlan
from tapeproxy.proxy.hybrid import Noticed, open_parent, run_fork
from tapeproxy.proxy.pending import Pending, clear, is_signed, new_beside
from tapeproxy.proxy.replayed import VIOLATION
from tapeproxy.proxy.supervisor import Outcome, Stdio
from tapeproxy.proxy.tapedrun import placeholders
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.unlocking import Ask, ask_environment, ask_with
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.forkplan import Rerun
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.secretvars import placeholder_names
from tapeproxy.tapes.tapediff import TapeDiff, diff_tapes
from tapeproxy.tapes.updateplan import update_of

if TYPE_CHECKING:
    from tapeproxy.proxy.unlocking import Secret
    from tapeproxy.tapes.encrypted import Kind

NOT_WRITTEN = 1
"""Exit code: something changed, and the tape is as it was."""
_MISSES = frozenset({"miss", "used-up", "lane"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSettings:
    """Which tape to update and how. `argv` empty: the taped command. `out`: where to write the new tape, if not there.

    `rerun`: what is asked anew behind the first change. `offline`: nothing is, it is only said what would be. `ask`:
    who knows the passphrase of an encrypted tape. The rest as in `ForkSettings`.
    """

    tape: Path
    environment: Mapping[str, str]
    cwd: str
    argv: tuple[str, ...] = ()
    out: Path | None = None
    rerun: Rerun = "changed"
    offline: bool = False
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    upstream_ca: Path | None = None
    client_certs: Path | None = None
    way: WayOut = field(default_factory=WayOut)
    guard: GuardPlan = field(default_factory=lambda: GuardPlan(Guard.NONE))
    timeout: float | None = None
    stdio: Stdio | None = None
    rules: tuple[Rule, ...] = ()
    ask: Ask = ask_environment


@dataclass(frozen=True, slots=True)
class Updated:
    """How an update went. `pending`: the new tape, None where there is none to be written; `why`: why not.

    `same`: nothing changed. `failed`: the agent ended otherwise than on the tape, and not well. `exit_code` is what the
    command exits with, if what is pending is written.
    """

    exit_code: int
    forked: Forked
    parent: Parent
    pending: Pending | None = None
    diff: TapeDiff | None = None
    why: str = ""
    same: bool = False
    failed: bool = False

    @property
    def dropped(self) -> tuple[int, ...]:
        """Exchanges of the old tape that nobody asked for, nor for anything in their place, as far as that is known."""
        if self.diff is None:
            return self.forked.unasked
        return tuple(sorted(event.ours for event in self.diff.events() if event.kind == "missing" and event.ours))

    @property
    def missing(self) -> int:
        """Of an offline one: how many requests are not on the tape, as far as that can be known."""
        return sum(found.kind in _MISSES for found in self.forked.violations)

    def to_json(self) -> dict[str, Any]:
        """The counts, for programs."""
        outcome, forked = self.forked.outcome, self.forked
        return {
            "agent_exit_code": None if outcome is None else outcome.exit_code,
            "stopped_by": None if outcome is None else outcome.stopped_by,
            "changed": not self.same,
            "reused": forked.reused,
            "live": forked.live,
            "live_of": dict(forked.live_of),
            "dropped": list(self.dropped),
            "why": self.why,
            "violations": [found.to_json() for found in forked.violations],
            "drifts": [drift.to_json() for drift in forked.drifts],
            "notes": forked.notes,
        }


async def update(settings: UpdateSettings, noticed: Noticed = lambda _: None, lost: Lost = unheard) -> Updated:
    """Run the agent from its tape, and leave the new tape beside it, unless nothing changed or it is of no use.

    `noticed` hears of violations and drifts as they happen, `lost` when the new tape stops being whole. Raises what
    `record` and `replay` raise, and UsageError where another update of the tape is running.
    """
    asked: list[Secret] = []

    def ask(kind: "Kind", source: str) -> "Secret":
        asked.append(settings.ask(kind, source))
        return asked[-1]

    parent = open_parent(settings.tape, ask)
    secret = asked[-1] if asked else None
    if settings.offline:
        with tempfile.TemporaryDirectory(prefix="tapeproxy-update-") as folder:
            forked = await run_fork(_fork(settings, parent, Path(folder, "new.gz"), secret), noticed, lost)
        return _judged_offline(forked, parent)
    new = new_beside(settings.out or settings.tape)
    clear(new)
    forked = await run_fork(_fork(settings, parent, new, secret), noticed, lost)
    if why := _astray(forked, parent.tape, settings.environment):
        new.unlink(missing_ok=True)
        return Updated(forked.exit_code or NOT_WRITTEN, forked, parent, why=why)
    return _judged(forked, parent, load(new, ask_with(secret))[0], settings.out or settings.tape)


def _fork(settings: UpdateSettings, parent: Parent, new: Path, secret: "Secret | None") -> ForkSettings:
    # Nobody knows whether a live call will want a key: one that holds a placeholder is not sent.
    keyless = {*placeholders(parent.tape), *placeholder_names(settings.environment)}
    return ForkSettings(
        parent=parent,
        plan=update_of(parent.tape, rerun=settings.rerun, offline=settings.offline),
        out=new,
        environment=settings.environment,
        cwd=settings.cwd,
        argv=settings.argv,
        hosts=settings.hosts,
        upstream_ca=settings.upstream_ca,
        client_certs=settings.client_certs,
        way=settings.way,
        guard=settings.guard,
        keyless=frozenset(keyless),
        on_drift="report",
        timeout=settings.timeout,
        stdio=settings.stdio,
        rules=settings.rules,
        secret=secret,
    )


def _judged_offline(forked: Forked, parent: Parent) -> Updated:
    """What a dry run says: whether the tape has all that the agent asks, and no more."""
    if any(found.kind not in _MISSES for found in forked.violations):
        return Updated(VIOLATION, forked, parent, why="the run did what no tape can have")
    if forked.violations:
        return Updated(NOT_WRITTEN, forked, parent, why="not everything is on the tape")
    if stopped := _stopped(forked):
        return Updated(forked.exit_code, forked, parent, why=stopped)
    same = not (forked.unasked or forked.drifts or _ended_otherwise(parent.tape, forked.outcome))
    why = "" if same else "the tape would be another one"
    return Updated(0 if same else NOT_WRITTEN, forked, parent, why=why, same=same)


def _judged(forked: Forked, parent: Parent, tape: Tape, target: Path) -> Updated:
    """What a whole run says: the new tape waits, or is removed where it says nothing new."""
    new = forked.path
    other = _ended_otherwise(parent.tape, forked.outcome)
    diff = diff_tapes(parent.tape, tape)
    if diff.same and not (forked.live or forked.drifts or other):
        new.unlink(missing_ok=True)
        return Updated(0, forked, parent, diff=diff, same=True)
    code = forked.outcome.exit_code if other and forked.outcome is not None else 0
    pending = Pending(target, new, tape, parent.path, parent.tape, is_signed(target))
    return Updated(code, forked, parent, pending, diff, failed=code != 0)


def _astray(forked: Forked, tape: Tape, environment: Mapping[str, str]) -> str:
    """Why the new tape is none to replay: it lacks what was refused, or what would have come. Empty: it is one."""
    if any(found.kind == "placeholder" for found in forked.violations):
        unset = [name for name in placeholders(tape) if not environment.get(name)]
        named = ", ".join(dict.fromkeys((*unset, *placeholder_names(environment))))
        return f"what changed has to be asked of the world, with a key that is not set here: {named}"
    if forked.violations:
        return "something was refused"
    if forked.recorded.failure is not None:
        return forked.recorded.failure
    return _stopped(forked)


def _stopped(forked: Forked) -> str:
    outcome = forked.outcome
    if outcome is not None and (outcome.stopped_by is not None or outcome.signalled):
        return "the run was stopped"
    return ""


def _ended_otherwise(tape: Tape, outcome: Outcome | None) -> bool:
    """Whether the agent ended with another code or signal than on the tape, as far as that knows."""
    if tape.exit is None or outcome is None:
        return outcome is not None and outcome.exit_code != 0
    return (tape.exit.code, tape.exit.signal) != (outcome.code, outcome.signal)
