"""Edits as they are written: `$.a=1`, `12:$.a+=2`, `status 503`, `clock +1h`. Knows words, not tapes.

A path begins with a root: `$` is the answer's JSON body, or what its stream adds up to; `$events[N]` an event of the
stream; `$text`, `$status`, `$headers.NAME` and `$body` what they say. A value is JSON if it parses, else a text.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from tapeproxy.tapes.edits import (
    BodyEdit,
    ClockEdit,
    Edit,
    EnvEdit,
    Event,
    HeaderEdit,
    JsonEdit,
    LaneSeed,
    ModelEdit,
    RequestEdit,
    StatusEdit,
    SystemEdit,
    TextEdit,
    ToolEdit,
)
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.jsonedits import Change, Operation
from tapeproxy.tapes.jsonpaths import JsonPath, Step, read_steps
from tapeproxy.tapes.jsonvalues import read_json

_EVENT: Final = r"(?P<event>\d{1,9}|last|[^\s:=$#]{1,200}#\d{1,9})"
_BEFORE_WORDS: Final = re.compile(rf"{_EVENT}:(?!:)\s*")
_BEFORE_TEXT: Final = re.compile(rf"{_EVENT}::")
_ROOT: Final = re.compile(r"\$(?P<root>[a-z]*)")
_HEADER: Final = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*(.*)", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SPAN: Final = re.compile(r"([+-])((?:\d+(?:\.\d+)?(?:ms|[dhms]))+)")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_NS: Final = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_LONGEST: Final = 100 * 365 * 86400 * 10**9
_PLACE: Final = re.compile(r"([^\s#=]{1,200})#(\d{1,9})=(.*)", re.DOTALL)
_HELP: Final = "write it like '$.choices[0].message.content=New', '12:$.a+=1' or 'status 503'; see docs/FORK.md"


def parse_edit(text: str) -> Edit:
    """Read an edit: `[EVENT:]PATH=VALUE`, `[EVENT:]PATH+=VALUE`, or a word (a key of `WORDS`) and what goes with it.

    Raises UsageError that says where it stops making sense.
    """
    event, rest = split_event(text)
    if rest.startswith("$"):
        return _placed(read_as("set", rest), event)
    word, _, argument = rest.partition(" ")
    if word not in WORDS:
        raise _wrong(text, f"{word!r} is no path and none of the words {', '.join(WORDS)}")
    return _placed(read_as(word, argument), event)


def read_as(word: str, argument: str) -> Edit:
    """Read what goes with a word; the event stands in front of it. Raises UsageError."""
    texts = word in _TEXTS
    event, rest = split_event(argument, texts=texts) if word not in _OF_THE_RUN else (None, argument)
    try:
        _utf8(argument)
        edit = WORDS[word](rest)
    except ValueError as error:
        raise _wrong(f"{word} {argument}", str(error)) from None
    return _placed(edit, event)


def split_event(text: str, *, texts: bool = False) -> tuple[str | None, str]:
    """The event that is named in front of an edit, and the edit. In front of a text, two colons stand between them."""
    match = None if text.startswith("$") and not texts else (_BEFORE_TEXT if texts else _BEFORE_WORDS).match(text)
    return (None, text) if match is None else (match["event"], text[match.end() :])


def body_edit(data: bytes, event: Event = None) -> BodyEdit:
    """A whole body that was read from somewhere else."""
    return BodyEdit(data, event)


def _placed(edit: Edit, event: str | None) -> Edit:
    if event is None:
        return edit
    if isinstance(edit, ClockEdit | LaneSeed | EnvEdit | ToolEdit):
        raise _wrong(event, "this edit is of the whole run: it names no exchange")
    return replace(edit, at=int(event) if event.isdecimal() else event)


def _wrong(text: str, what: str) -> UsageError:
    where = text.encode(errors="backslashreplace").decode()
    return UsageError(f"this edit cannot be read: {what}", where=where, fix=_HELP)


# --- paths ---------------------------------------------------------------------------------------------------------


def _read_set(text: str) -> Edit:
    root, steps, at = _read_path(text)
    sign = next((sign for sign in ("+=", "=") if text.startswith(sign, at)), None)
    if sign is None:
        raise ValueError(f"after the path {text[:at]!r} comes = or +=, but here is {text[at:][:40]!r}")
    written = text[at + len(sign) :]
    return _at_root(root, steps, Change("append" if sign == "+=" else "set", _value(written)), written)


def _read_delete(text: str) -> Edit:
    root, steps, at = _read_path(text)
    if at < len(text):
        raise ValueError(f"the path cannot be read from {text[at:][:40]!r} on")
    return _at_root(root, steps, Change("delete"), "")


def _read_path(text: str) -> tuple[str, tuple[Step, ...], int]:
    match = _ROOT.match(text)
    if match is None:
        raise ValueError("a path begins with $, as $.a, $events[0] or $headers.retry-after do")
    return match["root"], *read_steps(text, match.end())


def _at_root(root: str, steps: tuple[Step, ...], change: Change, written: str) -> Edit:
    match root:
        case "":
            return JsonEdit(JsonPath(steps), change)
        case "events":
            return JsonEdit(JsonPath(steps), change, events=True)
        case "headers":
            if len(steps) != 1 or not isinstance(name := steps[0].name, str) or not _NAME.fullmatch(name):
                raise ValueError("a header is named as in $headers.retry-after")
            return _header(name, change.operation, change.value if isinstance(change.value, str) else written)
    if root not in _WHOLE:
        known = ", ".join(f"${name}" for name in ("", "events", "headers", *_WHOLE))
        raise ValueError(f"${root} is no root of a path: there are {known}")
    if steps or change.operation != "set":
        raise ValueError(f"${root} can only be set, and whole: ${root}=VALUE")
    return _WHOLE[root](change.value if isinstance(change.value, str) else written)


def _value(text: str) -> Any:
    """A value as it is written."""
    value, readable = read_json(_utf8(text))
    return value if readable else text


def _utf8(text: str) -> bytes:
    """Raises ValueError for what came from the command line and is not UTF-8: no JSON could hold it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not UTF-8") from None


# --- words ---------------------------------------------------------------------------------------------------------


def _read_text(text: str) -> TextEdit:
    return TextEdit(text)


def _read_body(text: str) -> BodyEdit:
    if not text.startswith("@"):
        raise ValueError("here a body is given as @TEXT; --body reads a FILE, or - for standard input")
    return BodyEdit(_utf8(text[1:]))


def _read_status(text: str) -> StatusEdit:
    if not re.fullmatch(r"[2-9]\d\d", text.strip()):
        raise ValueError("a status is a number from 200 to 999")
    return StatusEdit(int(text))


def _read_header(text: str) -> HeaderEdit:
    match = _HEADER.fullmatch(text)
    if match is None:
        raise ValueError("a header is written as NAME: VALUE")
    return _header(match[1], "set", match[2].strip())


def _header(name: str, operation: Operation, value: Any) -> HeaderEdit:
    if re.search(r"[^\x20-\x7e\t\x80-\xff]", value or ""):
        raise ValueError("a header's value is one line of ISO-8859-1")
    return HeaderEdit(name, operation, value or "")


def _read_request_set(text: str) -> Edit:
    edit = _read_set(text)
    return _to_request(edit)


def _read_request_delete(text: str) -> Edit:
    return _to_request(_read_delete(text))


def _to_request(edit: Edit) -> RequestEdit:
    if not isinstance(edit, JsonEdit) or edit.events:
        raise ValueError("of a request the JSON body can be changed: its paths begin with $. or $[")
    return RequestEdit(edit.path, edit.change)


def _read_system(text: str) -> SystemEdit:
    return SystemEdit(text)


def _read_model(text: str) -> ModelEdit:
    if not text.strip():
        raise ValueError("a model has a name")
    return ModelEdit(text.strip())


def _read_clock(text: str) -> ClockEdit:
    text = text.strip()
    if match := _SPAN.fullmatch(text):
        span = sum(round(float(n) * _NS[unit]) for n, unit in _PART.findall(match[2]))
        if span > _LONGEST:
            raise ValueError("a clock is put on or back by a hundred years at most")
        return ClockEdit(-span if match[1] == "-" else span)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a clock is given as +1h, -30m, +1d12h, or as a moment like 2026-01-02T03:04:05Z") from None
    if moment.tzinfo is None:
        raise ValueError("the moment has no time zone: add Z, or an offset like +01:00")
    return ClockEdit(to=moment.isoformat())


def _read_lane_seed(text: str) -> LaneSeed:
    lane, equals, seed = text.rpartition("=")
    if not equals or not lane or re.search(r"\s", lane):
        raise ValueError("a lane's seed is given as LANE=HEX or LANE=new")
    if seed != "new" and not re.fullmatch(r"[0-9a-fA-F]{64}", seed):
        raise ValueError("a seed is 64 hex digits, or new")
    return LaneSeed(lane, None if seed == "new" else seed.lower())


def _read_env(text: str) -> EnvEdit:
    name, equals, value = text.partition("=")
    if not equals or not name or "\0" in text:
        raise ValueError("a variable is given as NAME=VALUE")
    return EnvEdit(name, value)


def _read_unset(text: str) -> EnvEdit:
    if not text or "=" in text or "\0" in text:
        raise ValueError("a variable to be taken away is given as NAME")
    return EnvEdit(text, None)


def _read_value(text: str) -> ToolEdit:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise ValueError("a tool's value is given as LANE#N=JSON")
    value, readable = read_json(_utf8(match[3]))
    if not readable:
        raise ValueError(f"the value is not JSON: {match[3][:40]!r}; a text stands in quotes")
    return ToolEdit(match[1], int(match[2]), value)


WORDS: Final[dict[str, Callable[[str], Edit]]] = {
    "set": _read_set,
    "delete": _read_delete,
    "text": _read_text,
    "body": _read_body,
    "status": _read_status,
    "header": _read_header,
    "request-set": _read_request_set,
    "request-delete": _read_request_delete,
    "system": _read_system,
    "model": _read_model,
    "clock": _read_clock,
    "lane-seed": _read_lane_seed,
    "env": _read_env,
    "unset": _read_unset,
    "value": _read_value,
}
"""How what goes with each word is read; what they raise is ValueError."""

_WHOLE: Final[dict[str, Callable[[str], Edit]]] = {
    "text": _read_text,
    "status": _read_status,
    "body": lambda text: BodyEdit(_utf8(text)),
}
_TEXTS: Final = frozenset({"text", "body", "system"})
_OF_THE_RUN: Final = frozenset({"clock", "lane-seed", "env", "unset", "value"})
