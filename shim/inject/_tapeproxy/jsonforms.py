"""Values and exceptions as JSON, and back: what a hint puts on the tape. Knows forms; imports no module for a tape.

Plain JSON stands for itself. What JSON has no word for is an object whose `$` says what it is: tuples, sets, bytes,
dates, decimals, UUIDs, paths, enumerations, dataclasses, named tuples, models of pydantic, exceptions. A type is named
`module:qualname`, and is only looked for in modules that are loaded.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DEEPEST = 100
_EXACT = 1 << 53
_PATHS = ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath", "Path", "PurePath")
_MISSING = object()


def dump(value: Any) -> str:
    """The JSON text of a value. Raises TypeError, which says where in it something has no form."""
    return _text(_encode(value, "", _DEEPEST, lenient=False))


def dump_loosely(value: Any) -> str:
    """The same, where what has no form is told by its type alone: such a text can be compared, not read back."""
    return _text(_encode(value, "", _DEEPEST, lenient=True))


def dump_error(error: BaseException) -> str:
    """The JSON text of an exception. Parts of it that have no form are left out."""
    return _text(_encode_error(error, _DEEPEST))


def load(text: str, unknown: type[Exception] = Exception) -> Any:
    """The value that a text of `dump` stands for. Raises ValueError when it can't be made again."""
    return _decode(_parse(text), unknown)


def load_error(text: str, unknown: type[Exception]) -> BaseException:
    """The exception of `dump_error`. A type that is not loaded becomes a subclass of `unknown`. Raises ValueError."""
    form = _parse(text)
    if not isinstance(form, dict):
        raise ValueError("not an exception")
    return _decode_error(form, unknown)


def type_name(kind: type) -> str:
    """How a type is called on a tape."""
    return f"{kind.__module__}:{kind.__qualname__}"


def find_type(name: Any) -> Any:
    """The type of this name in a module that is loaded; None where there is none."""
    module, _, path = str(name).partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def _text(form: Any) -> str:
    import json

    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(form, separators=(",", ":"))
    return text


def _parse(text: str) -> Any:
    import json

    return json.loads(text)


# --- encoding ---


def _encode(value: Any, path: str, left: int, *, lenient: bool) -> Any:
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return value if -_EXACT < value < _EXACT else {"$": "int", "is": hex(value)}
    if type(value) is float:
        return value if value - value == 0.0 else {"$": "float", "is": repr(value)}
    if not left:
        if lenient:
            return {"$": "deep"}
        raise TypeError(f"{_place(path)} is nested more than {_DEEPEST} deep, or in itself")

    def inner(item: Any, name: str) -> Any:
        return _encode(item, path + name, left - 1, lenient=lenient)

    form = _encode_container(value, inner)
    if form is not _MISSING:
        return form
    for encode in (_encode_plain, _encode_named):
        form = encode(value)
        if form is not _MISSING:
            return form
    if isinstance(value, BaseException):
        return {"$": "error", **_encode_error(value, left - 1)}
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
        return {"$": kind.__name__, "items": sorted((inner(item, " item") for item in value), key=_text)}
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
    if kind.__module__.partition(".")[0] == "pathlib" and kind.__name__ in _PATHS:
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
    if _is_model(kind):
        return {"$": "model", "type": name, "fields": _parse(value.model_dump_json())}
    return _MISSING


def _dataclass_fields(kind: Any) -> list[str]:
    from dataclasses import fields

    return [field.name for field in fields(kind)]


def _is_model(kind: Any) -> bool:
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_dump_json")


def _encode_error(error: BaseException, left: int) -> dict[str, Any]:
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
            state[name] = _encode(item, "", max(left - 2, 0), lenient=False)
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
        return _encode(item, "", max(left - 2, 0), lenient=False)
    except TypeError:
        return f"<{type(item).__qualname__}>"


# --- decoding ---


def _decode(form: Any, unknown: type[Exception]) -> Any:
    if isinstance(form, list):
        return [_decode(item, unknown) for item in form]
    if not isinstance(form, dict):
        return form
    if "$" not in form:
        return {key: _decode(item, unknown) for key, item in form.items()}
    try:
        return _decode_form(form, unknown)
    except (KeyError, TypeError, AttributeError, ArithmeticError, ImportError) as error:
        raise ValueError(f"a {form['$']} of the tape cannot be made again: {error!r}") from None


def _decode_form(form: dict[str, Any], unknown: type[Exception]) -> Any:
    what = form["$"]
    if what == "error":
        return _decode_error(form, unknown)
    if what in ("data", "named", "model", "enum"):
        return _decode_object(form, unknown)
    if what in _SEQUENCES:
        return _SEQUENCES[what]([_decode(item, unknown) for item in form["items"]])
    if what == "dict":
        return {_decode(key, unknown): _decode(item, unknown) for key, item in form["items"]}
    if what in ("bytes", "bytearray"):
        from binascii import a2b_base64

        data = a2b_base64(form["b64"]) if "b64" in form else form["is"].encode()
        return data if what == "bytes" else bytearray(data)
    if what in _TEXTS:
        return _TEXTS[what](form["is"])
    if what in ("datetime", "date", "time", "timedelta"):
        return _decode_moment(what, form)
    if what == "path":
        import pathlib

        return getattr(pathlib, form["type"] if form["type"] in _PATHS else "PurePath")(form["is"])
    raise ValueError(f"the tape has a form that is not known here: {what!r}")


def _decode_moment(what: str, form: dict[str, Any]) -> Any:
    import datetime

    if what == "timedelta":
        return datetime.timedelta(*form["is"])
    moment = getattr(datetime, what).fromisoformat(form["is"])
    if "zone" in form:
        from zoneinfo import ZoneInfo

        moment = moment.replace(tzinfo=ZoneInfo(form["zone"]))
    return moment.replace(fold=1) if form.get("fold") else moment


def _decode_object(form: dict[str, Any], unknown: type[Exception]) -> Any:
    what, kind = form["$"], find_type(form["type"])
    if kind is None:
        raise ValueError(f"the type {form['type']} of the tape is not loaded")
    if what == "enum" and issubclass(kind, sys.modules["enum"].Enum):
        return kind[form["is"]]
    if what == "named" and issubclass(kind, tuple):
        return tuple.__new__(kind, [_decode(item, unknown) for item in form["items"]])
    if what == "model" and _is_model(kind):
        return kind.model_validate_json(_text(form["fields"]))
    if what == "data" and hasattr(kind, "__dataclass_fields__"):
        made = object.__new__(kind)
        for name, item in form["fields"].items():
            object.__setattr__(made, name, _decode(item, unknown))
        return made
    raise ValueError(f"{form['type']} is no longer a type of that kind")


def _decode_error(form: dict[str, Any], unknown: type[Exception]) -> BaseException:
    name, text = str(form.get("type")), str(form.get("text", ""))
    kind = find_type(name)
    args = [_decode(item, unknown) for item in form.get("args", [])]
    if kind is None or not issubclass(kind, BaseException):
        module, _, path = name.partition(":")
        kind = type(path.rpartition(".")[2] or "ToolError", (unknown,), {"__module__": module})
        args = [text]
    error = _make_error(kind, args)
    for key, item in form.get("state", {}).items():
        try:
            error.__dict__[key] = _decode(item, unknown)
        except ValueError:
            continue
    return error if _says(error, text) else _saying(kind, error, text)


def _make_error(kind: Any, args: list[Any]) -> BaseException:
    """An exception, without its own `__init__` where that is the agent's: it may want what is not on the tape."""
    if kind.__module__ == "builtins":
        try:
            made: BaseException = kind(*args)
            return made
        except TypeError:
            pass
    made = kind.__new__(kind, *args)
    if not isinstance(made, OSError):
        made.args = tuple(args)
    return made


def _says(error: BaseException, text: str) -> bool:
    try:
        return str(error) == text
    except Exception:
        return False


def _saying(kind: Any, error: BaseException, text: str) -> BaseException:
    """The same exception in a subclass that says the taped text."""
    looks = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__str__": lambda _: text}
    made: BaseException = _make_error(type(kind.__name__, (kind,), looks), list(error.args))
    made.__dict__.update(error.__dict__)
    return made


def _of_text(module: str, name: str) -> Callable[[Any], Any]:
    def make(text: Any) -> Any:
        return getattr(__import__(module), name)(text)

    return make


_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_TEXTS: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": float,
    "complex": complex,
    "decimal": _of_text("decimal", "Decimal"),
    "fraction": _of_text("fractions", "Fraction"),
    "uuid": _of_text("uuid", "UUID"),
}
