"""Values and exceptions of the plain JSON that stands for them. Knows every form; what makes an exception does not."""

from __future__ import annotations

import sys

from . import jsontexts, madeagain
from .formtypes import PATHS, find_type, is_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def decode(form: Any, unknown: type[Exception]) -> Any:
    """The value that a form stands for. Raises ValueError."""
    if isinstance(form, list):
        return [decode(item, unknown) for item in form]
    if not isinstance(form, dict):
        return form
    if "$" not in form:
        return {key: decode(item, unknown) for key, item in form.items()}
    try:
        return _decode_form(form, unknown)
    except (KeyError, TypeError, AttributeError, ArithmeticError, ImportError) as error:
        raise ValueError(f"a {form['$']} of the tape cannot be made again: {error!r}") from None


def _decode_form(form: dict[str, Any], unknown: type[Exception]) -> Any:
    what = form["$"]
    if what == "error":
        return decode_error(form, unknown)
    if what in ("data", "named", "model", "enum"):
        return _decode_object(form, unknown)
    if what in _SEQUENCES:
        return _SEQUENCES[what]([decode(item, unknown) for item in form["items"]])
    if what == "dict":
        return {decode(key, unknown): decode(item, unknown) for key, item in form["items"]}
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

        return getattr(pathlib, form["type"] if form["type"] in PATHS else "PurePath")(form["is"])
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
        return tuple.__new__(kind, [decode(item, unknown) for item in form["items"]])
    if what == "model" and is_model(kind):
        return kind.model_validate_json(jsontexts.write(form["fields"]))
    if what == "data" and hasattr(kind, "__dataclass_fields__"):
        made = object.__new__(kind)
        for name, item in form["fields"].items():
            object.__setattr__(made, name, decode(item, unknown))
        return made
    raise ValueError(f"{form['type']} is no longer a type of that kind")


def decode_error(form: dict[str, Any], unknown: type[Exception]) -> BaseException:
    """The exception that a form of `encode_error` stands for. Raises ValueError."""
    name, text = str(form.get("type")), str(form.get("text", ""))
    args = [decode(item, unknown) for item in form.get("args", [])]
    error = madeagain.make_again(name, args, text, unknown)
    for key, item in form.get("state", {}).items():
        try:
            error.__dict__[key] = decode(item, unknown)
        except ValueError:
            continue
    return madeagain.saying(error, text)


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
