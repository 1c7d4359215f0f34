"""Values and exceptions made plain JSON, with a `$` for what JSON has no word for. The forms are in `jsonforms.py`."""

from __future__ import annotations

import sys

from . import jsontexts
from .formtypes import PATHS, find_type, is_model, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEEPEST = 100
"""So deep may values be nested."""
_EXACT = 1 << 53
_MISSING = object()


def encode(value: Any, path: str, left: int, *, lenient: bool) -> Any:
    """What stands for a value at `path`, `left` levels deep at most. See `jsonforms.dump` and `dump_loosely`."""
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return value if -_EXACT < value < _EXACT else {"$": "int", "is": hex(value)}
    if type(value) is float:
        return value if value - value == 0.0 else {"$": "float", "is": repr(value)}
    if not left:
        if lenient:
            return {"$": "deep"}
        raise TypeError(f"{_place(path)} is nested more than {DEEPEST} deep, or in itself")

    def inner(item: Any, name: str) -> Any:
        return encode(item, path + name, left - 1, lenient=lenient)

    form = _encode_container(value, inner)
    if form is not _MISSING:
        return form
    for encode_leaf in (_encode_plain, _encode_named):
        form = encode_leaf(value)
        if form is not _MISSING:
            return form
    if isinstance(value, BaseException):
        return {"$": "error", **encode_error(value, left - 1)}
    form = _encode_object(value, inner)
    if form is not _MISSING:
        return form
    if lenient:
        return {"$": "object", "type": type_name(type(value))}
    raise TypeError(f"{_place(path)} is a {type(value).__qualname__}, which has no form in JSON")


def _place(path: str) -> str:
    return f"its {path}" if path else "it"


def _encode_container(value: Any, inner: Callable[[Any, str], Any]) -> Any:
    kind = type(value)
    if kind is list:
        return [inner(item, f"[{at}]") for at, item in enumerate(value)]
    if kind is dict:
        if "$" not in value and all(type(key) is str for key in value):
            return {key: inner(item, f"[{key!r}]") for key, item in value.items()}
        return {"$": "dict", "items": [[inner(key, " key"), inner(item, f"[{key!r}]")] for key, item in value.items()]}
    if kind is tuple:
        return {"$": "tuple", "items": [inner(item, f"[{at}]") for at, item in enumerate(value)]}
    if kind in (set, frozenset):
        return {"$": kind.__name__, "items": sorted((inner(item, " item") for item in value), key=jsontexts.write)}
    return _MISSING


def _encode_plain(value: Any) -> Any:
    """Types of the standard library that a text says all about."""
    kind = type(value)
    if kind in (bytes, bytearray):
        return {"$": kind.__name__, **_bytes_form(bytes(value))}
    if kind is complex:
        return {"$": "complex", "is": repr(value)}
    name = f"{kind.__module__}.{kind.__name__}"
    if name == "datetime.datetime":
        return _datetime_form(value)
    if name in ("datetime.date", "datetime.time") and getattr(value, "tzinfo", None) is None:
        return {"$": kind.__name__, "is": value.isoformat()}
    if name == "datetime.timedelta":
        return {"$": "timedelta", "is": [value.days, value.seconds, value.microseconds]}
    if name in ("decimal.Decimal", "fractions.Fraction"):
        return {"$": kind.__name__.lower(), "is": str(value)}
    if name == "uuid.UUID":
        return {"$": "uuid", "is": str(value)}
    if kind.__module__.partition(".")[0] == "pathlib" and kind.__name__ in PATHS:
        return {"$": "path", "type": kind.__name__, "is": str(value)}
    return _MISSING


def _bytes_form(data: bytes) -> dict[str, str]:
    try:
        return {"is": data.decode()}
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {"b64": b2a_base64(data, newline=False).decode("ascii")}


def _datetime_form(value: Any) -> Any:
    form = {"$": "datetime", "is": value.isoformat()}
    if value.fold:
        form["fold"] = 1
    zone = value.tzinfo
    key = getattr(zone, "key", None)
    if isinstance(key, str) and type(zone).__name__ == "ZoneInfo":
        form["zone"] = key
        form["is"] = value.replace(tzinfo=None).isoformat()
    elif zone is not None and type(zone).__name__ != "timezone":
        return _MISSING
    return form


def _encode_named(value: Any) -> Any:
    """Members of enumerations, which a loaded module has under a name."""
    enum: Any = sys.modules.get("enum")
    if enum is None or not isinstance(value, enum.Enum) or find_type(type_name(type(value))) is not type(value):
        return _MISSING
    name = getattr(value, "_name_", None)
    return {"$": "enum", "type": type_name(type(value)), "is": name} if isinstance(name, str) else _MISSING


def _encode_object(value: Any, inner: Callable[[Any, str], Any]) -> Any:
    """Objects that are no more than their fields, of a type that can be found again."""
    kind = type(value)
    if find_type(type_name(kind)) is not kind:
        return _MISSING
    name = type_name(kind)
    if hasattr(kind, "__dataclass_fields__"):
        names = [field for field in _dataclass_fields(kind) if hasattr(value, field)]
        return {"$": "data", "type": name, "fields": {key: inner(getattr(value, key), f".{key}") for key in names}}
    if isinstance(value, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        return {"$": "named", "type": name, "items": [inner(item, f"[{at}]") for at, item in enumerate(value)]}
    if is_model(kind):
        return {"$": "model", "type": name, "fields": jsontexts.read(value.model_dump_json())}
    return _MISSING


def _dataclass_fields(kind: Any) -> list[str]:
    from dataclasses import fields

    return [field.name for field in fields(kind)]


def encode_error(error: BaseException, left: int) -> dict[str, Any]:
    """An exception's type, arguments and attributes. Asking one for its text may fail: then it has none."""
    try:
        text = str(error)
    except Exception:
        text = ""
    out: dict[str, Any] = {"type": type_name(type(error)), "text": text}
    out["args"] = [_or_text(item, left) for item in _arguments(error)]
    state: dict[str, Any] = {}
    for name, item in getattr(error, "__dict__", {}).items():
        try:
            state[name] = encode(item, "", max(left - 2, 0), lenient=False)
        except TypeError:
            continue
    return out | {"state": state} if state else out


def _arguments(error: BaseException) -> tuple[Any, ...]:
    """What an exception was made of. The names of files are in no OSError's `args`."""
    if isinstance(error, OSError) and error.filename is not None and len(error.args) == 2:
        return (*error.args, error.filename, None, error.filename2)
    return error.args


def _or_text(item: Any, left: int) -> Any:
    try:
        return encode(item, "", max(left - 2, 0), lenient=False)
    except TypeError:
        return f"<{type(item).__qualname__}>"
