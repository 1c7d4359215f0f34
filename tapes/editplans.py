"""From edits to the plan of a fork: which exchange each is about, what becomes of it, what of the tape is kept. Pure.

An edit is checked here, against what is on the tape, before anything is run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from tapeproxy.tapes.editlines import redacted, tellable
from tapeproxy.tapes.edits import (
    ClockEdit,
    Edit,
    EnvEdit,
    Event,
    LaneSeed,
    ToolEdit,
    apply,
    edit_document,
    is_answer_edit,
    is_outgoing_edit,
    misfits,
    outgoing,
)
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.eventnames import find_event, find_lane
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.forkplan import CausalOrder, ClockJump, ForkPlan, Outgoing, Rerun, fork_at
from tapeproxy.tapes.hints import Bodies, calls
from tapeproxy.tapes.jsonedits import write_value
from tapeproxy.tapes.records import Json, Request
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.valuefutures import change_value

BEGINNING: Final = 0
"""The number of no exchange: the fork leaves its tape before the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A fork as it was asked for: its `plan`, its `edits` with their exchanges by number, and where it `begins`."""

    plan: ForkPlan
    edits: tuple[Edit, ...]
    begins: int

    def told(self, redactor: Redactor) -> Json:
        """The edits for the child's head and for people, redacted."""
        return {"edits": [tellable(redacted(edit_document(edit), redactor)) for edit in self.edits]}


def plan_edits(
    tape: Tape, causality: CausalOrder, edits: Sequence[Edit], at: Event = None, rerun: Rerun = "future"
) -> Fork:
    """Plan a fork with these edits. `at`: what edits are about that name no exchange, and where to leave the tape.

    Without it the tape is left at the first exchange that an edit names, or at its beginning where none does. Raises
    UsageError for an edit that does not fit what is on the tape, and what `fork_at` raises.
    """
    number = None if at is None else BEGINNING if at in (BEGINNING, "0") else find_event(tape, at)
    known = [_placed(tape, edit, number) for edit in edits]
    begins = _begins(causality, known) if number is None else number
    mutated: dict[int, Exchange] = {}
    _refuse_bodies(tape, {begins} - {BEGINNING} | _by_event(filter(is_answer_edit, known)).keys())
    for one, of_one in _by_event(filter(is_answer_edit, known)).items():
        mutated[one] = apply(tape.exchanges[one - 1], of_one)
    sent = _by_event(filter(is_outgoing_edit, known))
    for one, of_one in sent.items():
        if one != BEGINNING and (errors := misfits(tape.exchanges[one - 1].request, of_one)):
            raise errors[0]
    rewrites: Mapping[int, Outgoing] = {one: _rewriting(of_one) for one, of_one in sent.items()}
    values = [change_value(tape, one.lane, one.n, write_value(one.value)) for one in known if isinstance(one, ToolEdit)]
    if values and number == BEGINNING:
        raise UsageError("what a tool gave cannot be changed where everything runs live", fix="leave out --at 0")
    plan = fork_at(tape, causality, begins, mutated, rerun=rerun, outgoing=rewrites, values=values)
    return Fork(plan=_of_the_run(tape, plan, known), edits=tuple(known), begins=begins)


def _placed(tape: Tape, edit: Edit, default: int | None) -> Edit:
    """An edit with the number of its exchange, and the id of its lane."""
    match edit:
        case LaneSeed():
            return replace(edit, lane=find_lane(tape, edit.lane))
        case ToolEdit():
            return replace(edit, lane=find_lane(tape, edit.lane))
        case ClockEdit() | EnvEdit():
            return edit
    if edit.at is not None:
        return replace(edit, at=find_event(tape, edit.at))
    if not is_answer_edit(edit):
        return edit
    if not default:
        raise UsageError(
            "it is not said which answer is to be changed",
            where=str(edit_document(edit)["what"]),
            fix="name its exchange: --at N, or N: in front of the edit; see: tapeproxy show",
        )
    return replace(edit, at=default)


def _begins(causality: CausalOrder, edits: Sequence[Edit]) -> int:
    """The first exchange that an edit names, in causal order."""
    named = {at for edit in edits if isinstance(at := getattr(edit, "at", None), int)}
    if not edits:
        raise UsageError(
            "a fork needs something to change, or to ask anew",
            fix="give an edit, as --set '12:$.a=1', or --at N to have exchange N and what follows it asked anew",
        )
    return next((number for number in causality.order() if number in named), BEGINNING)


def _refuse_bodies(tape: Tape, numbers: Iterable[int]) -> None:
    """Raises UsageError for an exchange that the body of a tool call asked for: a fork serves the call up to there."""
    bodies = Bodies(tape)
    for number in sorted(numbers) if bodies else ():
        lane = bodies.call_of(tape.exchanges[number - 1].request.lane)
        call = next((call for call in calls(tape) if call.lane == lane), None)
        if call is not None:
            raise UsageError(
                f"exchange {number} was asked for within the call {call.title}, whose body does not run in a fork",
                fix=f"change what the call gave: --value '{call.value.lane}#{call.value.n}=JSON'",
            )


def _by_event(edits: Iterable[Edit]) -> dict[int, list[Edit]]:
    out: dict[int, list[Edit]] = {}
    for edit in edits:
        at = getattr(edit, "at", None)
        out.setdefault(at if isinstance(at, int) else BEGINNING, []).append(edit)
    return out


def _rewriting(edits: Sequence[Edit]) -> Callable[[Request], Request]:
    return lambda request: outgoing(request, edits)


def _of_the_run(tape: Tape, plan: ForkPlan, edits: Sequence[Edit]) -> ForkPlan:
    """The plan with what the agent's process begins with, or has from the cut on."""
    for edit in edits:
        match edit:
            case ClockEdit():
                plan = replace(plan, clock=_jump(edit))
            case EnvEdit():
                plan = replace(plan, environment={**plan.environment, edit.name: edit.value})
            case LaneSeed():
                if edit.seed is None:
                    raise UsageError(f"no seed was drawn for lane {edit.lane}")  # its maker's business: this is pure
                if tape.head.seed is None:
                    raise UsageError("the tape has no seed: it was recorded without the shim")
                plan = replace(plan, seeds={**plan.seeds, edit.lane: edit.seed})
            case _:
                pass
    return plan


def _jump(edit: ClockEdit) -> ClockJump:
    if edit.to is None:
        return ClockJump(edit.by or 0)
    moment = datetime.fromisoformat(edit.to)
    since = moment - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return ClockJump((since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000, absolute=True)
