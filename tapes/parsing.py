"""From a JSON object to a typed record; knows what each field must look like and refuses everything else.

The tables at the end are the whole schema, which is why this is one long module: JSON field -> attribute, parser,
required. A parser takes a JSON value and returns the typed one, or raises ValueError saying what it must be. What this
version does not know is kept as it is.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any, get_args

from tapeproxy.tapes.records import (
    Body,
    Chunks,
    Clock,
    Done,
    Edge,
    End,
    Env,
    Exit,
    Frame,
    Framing,
    Head,
    Headers,
    How,
    Json,
    Lane,
    LaneEnd,
    Like,
    Note,
    Record,
    Request,
    Response,
    Seal,
    Side,
    Unknown,
    Value,
)
from tapeproxy.tapes.wsrecords import FrameType, Open

MAX_NESTING = 64
"""Arrays and objects inside each other, in the free-form parts of a record; orjson itself writes no more than 254."""


class RecordError(ValueError):
    """A JSON object is not the record it claims to be. The decoder adds the place and raises TapeFormatError."""

    def __init__(self, kind: str, name: str, wanted: str) -> None:
        self.kind, self.name, self.wanted = kind, name, wanted
        super().__init__(f"field {name!r} of a {kind!r} record must be {wanted}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def _natural(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("an integer from 0 to 2^63-1")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("an integer")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("true or false")
    return value


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise ValueError("an object")
    return _shallow(value)


def _shallow[T](value: T, left: int = MAX_NESTING) -> T:
    if isinstance(value, dict | list):
        if not left:
            raise ValueError(f"nested at most {MAX_NESTING} deep")
        for item in value.values() if isinstance(value, dict) else value:
            _shallow(item, left - 1)
    return value


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("valid base64") from None


def _native(value: Any) -> str:
    match value:
        case str():
            return value
        case {"b64": str(text)} if len(value) == 1:
            return _base64(text).decode(errors="surrogateescape")
    raise ValueError("a string, or an object with b64")


def _octets(value: Any) -> bytes:
    try:
        return _text(value).encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("a string of characters up to U+00FF") from None


def _list[T](parse: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    def parse_list(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise ValueError("a list")
        try:
            return tuple(map(parse, value))
        except ValueError as error:
            raise ValueError(f"a list, each item {error}") from None

    return parse_list


def _pairs(value: Any, wanted: str) -> list[Any]:
    # Headers and chunks are most of what is read: this form is four times faster than a generator.
    if type(value) is not list or not {*map(type, value)} <= {list} or not {*map(len, value)} <= {2}:
        raise ValueError(f"a list of {wanted} pairs")
    return value


def _headers(value: Any) -> Headers:
    pairs = _pairs(value, "[name, value]")
    try:
        return tuple([(name.encode("latin-1"), text.encode("latin-1")) for name, text in pairs])
    except (AttributeError, UnicodeEncodeError):
        raise ValueError("a list of [name, value] pairs of strings of characters up to U+00FF") from None


def _informational(value: Any) -> tuple[tuple[int, Headers], ...]:
    return tuple((_natural(status), _headers(headers)) for status, headers in _pairs(value, "[status, headers]"))


def parse_body(value: Any) -> Body:
    """Read the JSON form of a body. Raises ValueError."""
    if isinstance(value, str):
        return value.encode()
    match value:
        case {"b64": str(text)} if len(value) == 1:
            return _base64(text)
        case {"ref": of} if len(value) == 1:
            return Like(_natural(of), whole=True)
        case {"like": of, "head": head, "tail": tail, **rest} if rest.keys() <= {"mid"}:
            mid = parse_body(rest.get("mid", ""))
            if isinstance(mid, Like):
                raise ValueError("a body whose mid is text or b64")
            return Like(_natural(of), _natural(head), mid, _natural(tail))
    raise ValueError("text, or an object with b64, ref, or like/head/mid/tail")


def _bytes(value: Any) -> bytes:
    body = parse_body(value)
    if isinstance(body, Like):
        raise ValueError("text, or an object with b64")
    return body


def _parts(value: Any) -> tuple[tuple[int | None, Body], ...]:
    pairs = _pairs(value, "[nanoseconds, body]")
    return tuple([(None if dt is None else _natural(dt), parse_body(data)) for dt, data in pairs])


def _optional[T](parse: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else parse(value)


def _one_of(literal: Any) -> Callable[[Any], str]:
    words = get_args(literal.__value__)

    def parse(value: Any) -> str:
        if value not in words:
            raise ValueError("one of " + ", ".join(sorted(words)))
        return str(value)

    return parse


def _point(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("[requests, meetings]")
    return _natural(value[0]), _natural(value[1])


def _origin(value: Any) -> tuple[str, int, int]:
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError("[lane, requests, meetings]")
    return _text(value[0]), _natural(value[1]), _natural(value[2])


# kind -> JSON field -> (attribute, parser, required)
type _Table = Mapping[str, tuple[str, Callable[[Any], Any], bool]]

_TABLES: dict[Any, _Table] = {
    Head: {
        "tape": ("version", _natural, True),
        "must": ("must", _list(_text), False),
        "window": ("window", _optional(_natural), False),
        "by": ("by", _text, False),
        "started_at": ("started_at", _text, True),
        "argv": ("argv", _list(_native), False),
        "cwd": ("cwd", _native, False),
        "host": ("host", _text, False),
        "platform": ("platform", _text, False),
        "python": ("python", _text, False),
        "tz": ("tz", _optional(_native), False),
        "lang": ("lang", _optional(_native), False),
        "secrets": ("secrets", _list(_native), False),
        "seed": ("seed", _optional(_text), False),
        "origin": ("origin", _optional(_integer), False),
        "hash_seed": ("hash_seed", _optional(_text), False),
        "tmpdir": ("tmpdir", _optional(_native), False),
        "io": ("io", _flag, False),
        "threads": ("threads", _flag, False),
        "rules": ("rules", _object, False),
        "parent": ("parent", _optional(_object), False),
        "branch": ("branch", _optional(_object), False),
        "edit": ("edit", _optional(_object), False),
        "scrubbed": ("scrubbed", _optional(_object), False),
        "imported": ("imported", _optional(_object), False),
        "java": ("java", _flag, False),
        "led": ("led", _flag, False),
        "reverse": ("reverse", _list(_text), False),
        "no_tape": ("no_tape", _list(_text), False),
        "sealed_seed": ("sealed_seed", _optional(_text), False),
    },
    Request: {
        "t": ("t", _natural, True),
        "lane": ("lane", _optional(_text), False),
        "n": ("n", _optional(_natural), False),
        "reads": ("reads", _optional(_natural), False),
        "sleeps": ("sleeps", _natural, False),
        "awake": ("awake", _optional(_natural), False),
        "method": ("method", _octets, True),
        "url": ("url", _octets, True),
        "http": ("http", _text, False),
        "alpn": ("alpn", _optional(_text), False),
        "inside": ("inside", _flag, False),
        "source": ("source", _optional(_text), False),
        "headers": ("headers", _headers, True),
        "body": ("body", parse_body, True),
    },
    Response: {
        "t": ("t", _natural, True),
        "of": ("of", _natural, True),
        "status": ("status", _natural, True),
        "reason": ("reason", _octets, False),
        "http": ("http", _text, False),
        "framing": ("framing", _one_of(Framing), True),
        "informational": ("informational", _informational, False),
        "headers": ("headers", _headers, True),
    },
    Chunks: {
        "t": ("t", _natural, True),
        "of": ("of", _natural, True),
        "to": ("to", _one_of(Side), True),
        "parts": ("parts", _parts, True),
        "recoded": ("recoded", _flag, False),
    },
    Frame: {
        "t": ("t", _natural, True),
        "of": ("of", _natural, True),
        "n": ("n", _natural, True),
        "to": ("to", _one_of(Side), True),
        "type": ("type", _one_of(FrameType), True),
        "open": ("open", _optional(_one_of(Open)), False),
        "code": ("code", _optional(_natural), False),
        "data": ("data", _bytes, True),
    },
    End: {
        "t": ("t", _natural, True),
        "of": ("of", _natural, True),
        "how": ("how", _one_of(How), True),
        "error": ("error", _optional(_native), False),
        "trailers": ("trailers", _headers, False),
        "code": ("code", _optional(_natural), False),
    },
    Note: {
        "t": ("t", _natural, True),
        "what": ("what", _text, True),
        "text": ("text", _native, False),
        "data": ("data", _object, False),
    },
    Lane: {
        "t": ("t", _natural, True),
        "id": ("id", _text, True),
        "what": ("what", _text, False),
        "name": ("name", _optional(_native), False),
        "from": ("origin", _optional(_origin), False),
        "asked": ("asked", _optional(_natural), False),
    },
    Clock: {
        "t": ("t", _natural, True),
        "lane": ("lane", _text, True),
        "n": ("n", _natural, True),
        "ns": ("ns", _integer, True),
        "slept": ("slept", _flag, False),
    },
    LaneEnd: {
        "t": ("t", _natural, True),
        "lane": ("lane", _text, True),
        "reads": ("reads", _natural, True),
    },
    Done: {
        "t": ("t", _natural, True),
        "lane": ("lane", _text, True),
        "parent": ("parent", _text, True),
        "sleeps": ("sleeps", _natural, False),
    },
    Env: {
        "t": ("t", _natural, True),
        "name": ("name", _native, True),
        "digest": ("digest", _optional(_text), True),
    },
    Value: {
        "t": ("t", _natural, True),
        "lane": ("lane", _text, True),
        "n": ("n", _natural, True),
        "what": ("what", _text, True),
        "name": ("name", _native, True),
        "where": ("where", _native, False),
        "error": ("error", _optional(_text), False),
        "length": ("length", _optional(_natural), False),
        "digest": ("digest", _optional(_text), False),
        "content": ("content", _optional(_bytes), False),
        "data": ("data", _object, False),
    },
    Edge: {
        "t": ("t", _natural, True),
        "what": ("what", _text, True),
        "on": ("on", _native, True),
        "lane": ("lane", _text, True),
        "n": ("n", _natural, True),
        "asked": ("asked", _optional(_natural), False),
        "at": ("at", _optional(_point), False),
        "out": ("out", _flag, False),
    },
    Exit: {
        "t": ("t", _natural, True),
        "code": ("code", _optional(_integer), True),
        "signal": ("signal", _optional(_text), False),
        "duration": ("duration", _natural, False),
    },
    Seal: {
        "t": ("t", _natural, True),
        "records": ("records", _natural, True),
        "lanes": ("lanes", _object, False),
        "trace": ("trace", _text, True),
        "messages": ("messages", _optional(_text), False),
        "uploads": ("uploads", _optional(_text), False),
        "outcome": ("outcome", _text, True),
        "file": ("file", _text, True),
    },
}
_KINDS = {cls.kind: (cls, [(name, *field) for name, field in table.items()]) for cls, table in _TABLES.items()}
_ENVELOPE = ("k", "i", "h")
_ABSENT = object()


def parse_record(obj: Json) -> Record:
    """Build the typed record that a line's JSON object holds (with or without its `k`, `i`, `h` envelope).

    Unknown kinds give `Unknown`; unknown fields are kept in `extra`. Raises RecordError for anything else.
    """
    rest = obj.copy()
    kind = rest.get("k")
    if not isinstance(kind, str):
        raise RecordError("?", "k", "a string")
    for name in _ENVELOPE:
        rest.pop(name, None)
    if kind not in _KINDS:
        return Unknown(kind=kind, extra=_extra(kind, rest))
    cls, table = _KINDS[kind]
    values: dict[str, Any] = {}
    for name, attribute, parse, required in table:
        value = rest.pop(name, _ABSENT)
        if value is not _ABSENT:
            try:
                values[attribute] = parse(value)
            except ValueError as error:
                raise RecordError(kind, name, str(error)) from None
        elif required:
            raise RecordError(kind, name, "present")
    if rest:
        values["extra"] = _extra(kind, rest)
    record: Record = cls(**values)
    return record


def _extra(kind: str, rest: Json) -> Json:
    for name, value in rest.items():
        try:
            _shallow(value)
        except ValueError as error:
            raise RecordError(kind, name, str(error)) from None
    return rest
