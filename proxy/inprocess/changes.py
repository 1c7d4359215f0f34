"""Attributes of other people's modules that are ours while a context is open: made once, put on and taken off often.

Whoever makes the replacements (the shim's parts do) just sets them, under watch. Around each function stands a gate:
who is outside of every context gets the real one. What somebody else has put in place meanwhile is left to them.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from tapeproxy.proxy.inprocess.flows import inside
from tapeproxy.shim.inject._tapeproxy import lanes
from tapeproxy.shim.inject._tapeproxy.likeness import resemble, stand_for

MISSING: Any = object()
_UNGATED = {"run", "_bootstrap_inner"}
"""They run what was made within a context, perhaps in a thread that was there before."""
_NOT_WATCHED = {"_node"}
"""`uuid._node` is another one in each context."""
lanes.between.add(__name__)


class Change(NamedTuple):
    """An attribute of a module or class, as it is and as it is while a context is open."""

    owner: Any
    name: str
    real: Any
    ours: Any
    namespace: Any


class Changes:
    """All of them. While they are on, new ones are at once."""

    def __init__(self) -> None:
        self.all: list[Change] = []
        self.on = False
        self._made = set[int]()
        self._wanted: Callable[[Change], bool] | None = None

    def watch(self, owners: Iterable[Any], make: Callable[[], object]) -> None:
        """Call `make`, and take over what it has set in these modules and classes. Raises what it raises."""
        before = [(owner, dict(vars(owner))) for owner in owners]
        try:
            make()
        finally:
            for owner, was in before:
                self._take_over(owner, was)

    def _take_over(self, owner: Any, was: Mapping[str, Any]) -> None:
        for name, now in list(vars(owner).items()):
            real = was.get(name, MISSING)
            if now is not real and name in _NOT_WATCHED:
                _put(owner, name, real)
            elif now is not real:
                self._take(owner, name, real, now)

    def _take(self, owner: Any, name: str, real: Any, made: Any) -> None:
        if id(real) in self._made:  # a module that was imported meanwhile gets its real functions back: so it stays
            return
        ours = made if id(made) in self._made else _gated(owner, name, real, made)
        change = Change(owner, name, real, ours, vars(owner))
        self._made.add(id(change.ours))
        self.all.append(change)
        _put(owner, name, change.ours if self.on and self._is_wanted(change) else real)

    def _is_wanted(self, change: Change) -> bool:
        return self._wanted is None or self._wanted(change)

    def put_on(self, wanted: Callable[[Change], bool] | None = None) -> None:
        """Have all of ours in force, or those that are wanted."""
        self.on, self._wanted = True, wanted
        for change in self.all:
            owner, name, real, ours, namespace = change
            now = namespace.get(name, MISSING)
            if now is real and self._is_wanted(change):
                if namespace.__class__ is dict:
                    namespace[name] = ours
                else:
                    setattr(owner, name, ours)

    def take_off(self) -> None:
        """Have everything as it was, the very objects."""
        self.on = False
        for owner, name, real, ours, namespace in reversed(self.all):
            if namespace.get(name, MISSING) is ours:
                if namespace.__class__ is dict and real is not MISSING:
                    namespace[name] = real
                else:
                    _put(owner, name, real)

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """The functions of modules that are replaced, real and ours."""
        for owner, _, real, ours, _ in self.all:
            if isinstance(owner, ModuleType) and callable(real) and callable(ours):
                yield real, ours


def _put(owner: Any, name: str, value: Any) -> None:
    if value is MISSING:
        delattr(owner, name)
    elif isinstance(owner, ModuleType):
        vars(owner)[name] = value
    else:
        setattr(owner, name, value)


def _gated(owner: Any, name: str, real: Any, ours: Any) -> Any:
    if real is MISSING:
        real = getattr(ours, "__wrapped__", MISSING)
    if not callable(ours) or not callable(real) or isinstance(ours, type) or name in _UNGATED:
        return ours
    return gate(real, ours, method=isinstance(owner, type))


def gate(real: Any, ours: Any, *, method: bool = False) -> Any:
    """`ours` for who is within a context, `real` for all others. `method`: it stands in a class."""
    if method or isinstance(real, FunctionType):

        def choose(*args: Any, **kwargs: Any) -> Any:
            return (ours if inside() else real)(*args, **kwargs)

        if inspect.iscoroutinefunction(real):
            inspect.markcoroutinefunction(choose)
        return resemble(choose, real)

    def choose_bound(_: object, /, *args: Any, **kwargs: Any) -> Any:
        return (ours if inside() else real)(*args, **kwargs)

    return stand_for(choose_bound, real, getattr(ours, "__module__", "") or "", getattr(ours, "__name__", ""))
