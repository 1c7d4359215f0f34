"""Edits of a taped run, as a fork makes them: what they are, and how they are applied. Pure.

An edit changes the answer of one exchange, requests on their way out, or what the agent's process begins with: its
clock, a lane's seed, its environment, a local tool's value. How edits are written is `editwords.py`'s.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tapeproxy.tapes.answeredits import (
    Draft,
    change_body,
    change_events,
    change_header,
    change_json,
    change_status,
    change_text,
    close_draft,
    open_draft,
)
from tapeproxy.tapes.answers import flaw
from tapeproxy.tapes.editlines import line_of
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.jsonedits import Change, UnfitError
from tapeproxy.tapes.jsonpaths import JsonPath
from tapeproxy.tapes.recordfields import dump_body
from tapeproxy.tapes.records import Json, Request
from tapeproxy.tapes.requestedits import change_model, change_request, change_system, is_call

type Event = int | str | None
"""Which exchange an edit is about: its number, or until it is looked up what was written; None: the fork's own, or all
live calls."""

_KEPT: Final = 4096
"""Bytes of a new body that an edit's document holds; all of it is in the answer on the child tape."""


@dataclass(frozen=True, slots=True)
class JsonEdit:
    """The JSON body of an answer is changed, or what its stream adds up to; `events`: single events of the stream.

    Then the first step of `path` is the event's number.
    """

    path: JsonPath
    change: Change
    events: bool = False
    at: Event = None

    def to_json(self) -> Json:
        path = f"$events{str(self.path)[1:]}" if self.events else str(self.path)
        return {"what": self.change.operation, "path": path} | _value(self.change)


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The model says something else."""

    text: str
    at: Event = None

    def to_json(self) -> Json:
        return {"what": "text", "value": self.text}


@dataclass(frozen=True, slots=True)
class BodyEdit:
    """The answer has another body, whole, and then ends in order."""

    data: bytes
    at: Event = None

    def to_json(self) -> Json:
        out: Json = {"what": "body", "size": len(self.data)}
        return out | {"value": dump_body(self.data)} if len(self.data) <= _KEPT else out


@dataclass(frozen=True, slots=True)
class StatusEdit:
    """The answer has another status; where there was no answer, one without a body comes."""

    status: int
    at: Event = None

    def to_json(self) -> Json:
        return {"what": "status", "value": self.status}


@dataclass(frozen=True, slots=True)
class HeaderEdit:
    """A header of the answer is set, appended or deleted (`operation`)."""

    name: str
    operation: str
    value: str = ""
    at: Event = None

    def to_json(self) -> Json:
        out: Json = {"what": "header", "operation": self.operation, "name": self.name}
        return out if self.operation == "delete" else out | {"value": self.value}


@dataclass(frozen=True, slots=True)
class RequestEdit:
    """The JSON body of a request is changed before it is sent."""

    path: JsonPath
    change: Change
    at: Event = None

    def to_json(self) -> Json:
        return {"what": f"request-{self.change.operation}", "path": str(self.path)} | _value(self.change)


@dataclass(frozen=True, slots=True)
class SystemEdit:
    """A request to a model has another system prompt."""

    text: str
    at: Event = None

    def to_json(self) -> Json:
        return {"what": "system", "value": self.text}


@dataclass(frozen=True, slots=True)
class ModelEdit:
    """Another model is asked."""

    name: str
    at: Event = None

    def to_json(self) -> Json:
        return {"what": "model", "value": self.name}


@dataclass(frozen=True, slots=True)
class ClockEdit:
    """From the fork on the clock is `by` nanoseconds ahead, or goes on from the moment `to` (RFC 3339)."""

    by: int | None = None
    to: str | None = None

    def to_json(self) -> Json:
        return {"what": "clock"} | ({"by_ns": self.by} if self.to is None else {"to": self.to})


@dataclass(frozen=True, slots=True)
class LaneSeed:
    """A lane has another seed of chance: 32 bytes as hex, or None until a new one is drawn."""

    lane: str
    seed: str | None

    def to_json(self) -> Json:
        return {"what": "lane-seed", "lane": self.lane, "value": self.seed}


@dataclass(frozen=True, slots=True)
class EnvEdit:
    """The agent gets another environment variable, or None: it does not get it."""

    name: str
    value: str | None

    def to_json(self) -> Json:
        return {"what": "env", "name": self.name, "value": self.value}


@dataclass(frozen=True, slots=True)
class ToolEdit:
    """The `n`-th value of `lane` (docs/FORMAT.md, `value`), what a local tool gave, is another."""

    lane: str
    n: int
    value: Any

    def to_json(self) -> Json:
        return {"what": "value", "lane": self.lane, "n": self.n, "value": self.value}


type AnswerEdit = JsonEdit | TextEdit | BodyEdit | StatusEdit | HeaderEdit
type OutgoingEdit = RequestEdit | SystemEdit | ModelEdit
type RunEdit = ClockEdit | LaneSeed | EnvEdit | ToolEdit
type PlacedEdit = AnswerEdit | OutgoingEdit
type Edit = AnswerEdit | OutgoingEdit | RunEdit


def is_answer_edit(edit: Edit) -> bool:
    """Whether an edit changes a taped answer."""
    return isinstance(edit, JsonEdit | TextEdit | BodyEdit | StatusEdit | HeaderEdit)


def is_outgoing_edit(edit: Edit) -> bool:
    """Whether an edit changes requests on their way out."""
    return isinstance(edit, RequestEdit | SystemEdit | ModelEdit)


def placed(edit: PlacedEdit, at: int | None) -> PlacedEdit:
    """The same edit of the exchange with that number."""
    return replace(edit, at=at)


def apply(exchange: Exchange, edits: Iterable[Edit]) -> Exchange:
    """The exchange with its answer edited, in the order of `edits`; edits of anything else are skipped.

    Raises UsageError for one that does not fit, which says what is there instead.
    """
    draft = open_draft(exchange)
    where = f"exchange {exchange.number}"
    if exchange.frames and any(map(is_answer_edit, edits := list(edits))):
        raise UsageError("what was said on a WebSocket cannot be edited", where=where, fix="edit another exchange")
    for edit in edits:
        try:
            _edit(draft, edit)
        except UnfitError as error:
            raise _unfit(edit, str(error), where) from None
    edited = close_draft(draft)
    if (bad := flaw(edited)) is not None and flaw(exchange) is None:
        raise UsageError(f"the edited answer cannot be sent: {bad}", where=where)
    return edited


def _edit(draft: Draft, edit: Edit) -> None:
    match edit:
        case JsonEdit(events=True):
            change_events(draft, edit.path.steps, edit.change)
        case JsonEdit():
            change_json(draft, edit.path, edit.change)
        case TextEdit():
            change_text(draft, edit.text)
        case BodyEdit():
            change_body(draft, edit.data)
        case StatusEdit():
            change_status(draft, edit.status)
        case HeaderEdit():
            change_header(draft, edit.name, edit.operation, edit.value)
        case _:
            pass


def outgoing(request: Request, edits: Iterable[Edit]) -> Request:
    """A request as it is to be sent. An edit that does not fit it leaves it as it is: see `misfits`."""
    for edit in edits:
        try:
            request = _sent(request, edit)
        except UnfitError:
            continue
    return request


def misfits(request: Request, edits: Iterable[Edit]) -> list[UsageError]:
    """The edits that do not fit a request, each as an error that says why."""
    out: list[UsageError] = []
    for edit in edits:
        try:
            request = _sent(request, edit)
        except UnfitError as error:
            out.append(_unfit(edit, str(error), "the request"))
    return out


def _sent(request: Request, edit: Edit) -> Request:
    """An edit that is of all live calls passes by what is no request to a model."""
    match edit:
        case RequestEdit(at=None) | SystemEdit(at=None) | ModelEdit(at=None) if not is_call(request):
            return request
        case RequestEdit():
            return change_request(request, edit.path, edit.change)
        case SystemEdit():
            return change_system(request, edit.text)
        case ModelEdit():
            return change_model(request, edit.name)
        case _:
            return request


def edit_document(edit: Edit) -> Json:
    """An edit as JSON: `what` it is, `at` which exchange, and what becomes of it. Not redacted."""
    at = getattr(edit, "at", None)
    out = edit.to_json()
    return out if at is None else {"what": out.pop("what"), "at": at} | out


def describe(edits: Sequence[Edit]) -> list[str]:
    """Edits in a line each. Not redacted."""
    return [line_of(edit_document(edit)) for edit in edits]


def _value(change: Change) -> Json:
    return {} if change.operation == "delete" else {"value": change.value}


def _unfit(edit: Edit, why: str, where: str) -> UsageError:
    return UsageError(f"the edit does not fit: {why}", where=f"{where}: {line_of(edit.to_json())}")


def parse_edit(text: str) -> Edit:
    """Read an edit as it is written: see `editwords.parse_edit`. Raises UsageError."""
    from tapeproxy.tapes.editwords import parse_edit as read  # which knows the kinds of edits, as this does

    return read(text)
