"""A fork made ready: its edits checked, its seeds drawn, and told without the secrets in them. Runs nothing."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tapeproxy.proxy.forked import Parent
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.tapedrun import taped_redactor
from tapeproxy.tapes.addedmembers import additions
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.editlines import line_of
from tapeproxy.tapes.editplans import Fork, plan_edits
from tapeproxy.tapes.edits import Edit, Event, LaneSeed
from tapeproxy.tapes.forkplan import ForkPlan, Rerun
from tapeproxy.tapes.records import Json


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fork that can be run. `told`: its edits as the child's head has them, redacted. `begins`: 0, or an exchange.

    `added`: what edits put where there was nothing, a line each, redacted.
    """

    plan: ForkPlan
    told: Json
    begins: int
    causality: Causality
    added: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The edits, one a line."""
        return [line_of(document) for document in self.told["edits"]]


def prepare(
    parent: Parent,
    edits: Sequence[Edit],
    environment: Mapping[str, str],
    *,
    at: Event = None,
    rerun: Rerun = "future",
) -> Prepared:
    """Check the edits against the tape, and plan the fork. Raises what `plan_edits` raises."""
    causality = Causality.of(parent.tape)
    drawn = [_drawn(edit) for edit in edits]
    fork: Fork = plan_edits(parent.tape, causality, drawn, at, rerun)
    redactor = taped_redactor(parent.tape, ReplaySettings(tape=parent.path, environment=environment))
    added = tuple(map(redactor.text, additions(parent.tape, fork.edits)))
    return Prepared(fork.plan, fork.told(redactor), fork.begins, causality, added)


def _drawn(edit: Edit) -> Edit:
    if isinstance(edit, LaneSeed) and edit.seed is None:
        return replace(edit, seed=os.urandom(32).hex())
    return edit
