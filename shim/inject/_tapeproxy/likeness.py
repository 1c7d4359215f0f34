"""Makes a replacement look like what it replaces: name, module, documentation, signature, and so pickling."""

from __future__ import annotations

import sys
from types import MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def resemble(replacement: Callable[..., Any], original: Any) -> Callable[..., Any]:
    """Give a function the looks of the function that it replaces, and return it. It pickles by reference.

    Its signature is found through `__wrapped__`, as functools.wraps leaves it.
    """
    _dress(replacement, original)
    replacement.__wrapped__ = original  # type: ignore[attr-defined]  # what inspect.signature follows
    return replacement


def stand_for(replacement: Callable[..., Any], original: Any, module: str = "", name: str = "") -> Callable[..., Any]:
    """Bind a function, whose first argument is of no use to it, in place of a builtin or a bound method.

    Those may be kept as an attribute of a class, where a function would take the instance for an argument. Pickles by
    reference; `module` and `name` say to what, where `original` doesn't.
    """
    _dress(replacement, original)
    replacement.__annotations__ = {}  # builtins have none
    replacement.__module__ = module or original.__module__
    replacement.__name__ = replacement.__qualname__ = name or original.__name__
    return MethodType(replacement, _Home(replacement.__module__))


def _dress(replacement: Callable[..., Any], original: Any) -> None:
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__text_signature__"):
        value = getattr(original, attribute, None)
        if value is not None:
            setattr(replacement, attribute, value)


class _Home:
    """What replacements of builtins are bound to: their module, in all that pickle, copy and the eye can see."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __reduce__(self) -> tuple[Any, ...]:
        from importlib import import_module

        return import_module, (self._module,)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules[self._module], name)

    def __deepcopy__(self, memo: object) -> _Home:
        return self

    def __repr__(self) -> str:
        return repr(sys.modules[self._module])
