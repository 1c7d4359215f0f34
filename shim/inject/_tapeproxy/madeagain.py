"""Exceptions made again from what a tape says of them. Knows how an exception is made; reads no form."""

from __future__ import annotations

from .formtypes import find_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def make_again(name: str, args: list[Any], text: str, unknown: type[Exception]) -> BaseException:
    """An exception of the type of this name; a subclass of `unknown` where none is loaded, with `text` alone."""
    kind = find_type(name)
    if kind is None or not issubclass(kind, BaseException):
        module, _, path = name.partition(":")
        kind = type(path.rpartition(".")[2] or "ToolError", (unknown,), {"__module__": module})
        args = [text]
    return _make(kind, args)


def saying(error: BaseException, text: str) -> BaseException:
    """The exception itself where it says this text; else the same in a subclass that does."""
    if _says(error, text):
        return error
    kind: Any = type(error)
    looks = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__str__": lambda _: text}
    made: BaseException = _make(type(kind.__name__, (kind,), looks), list(error.args))
    made.__dict__.update(error.__dict__)
    return made


def _make(kind: Any, args: list[Any]) -> BaseException:
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
