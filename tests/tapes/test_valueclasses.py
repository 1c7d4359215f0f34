"""Our `dataclass` against the standard library's: the same classes, made by both, behave the same."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from tapeproxy.tapes import valueclasses

# Type checkers take both for the same; which is what is to be shown here.
Decorator = Callable[..., Any]
DECORATORS: dict[str, Decorator] = {"ours": valueclasses.dataclass, "library": dataclasses.dataclass}
KINDS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"slots": True, "eq": False},
]


def family(made: Decorator, options: dict[str, bool]) -> dict[str, Any]:
    """Classes that differ in nothing but who made them."""

    @made(**options)
    class Plain:
        """Has a bit of everything."""

        kind: ClassVar[str] = "plain"
        a: int
        b: "str | None"
        c: tuple[int, ...] = ()
        d: list[int] = field(default_factory=list)
        hidden: bytes = field(default=b"h", repr=False)
        loose: int = field(default=0, compare=False)
        late: int = field(init=False, default=7)
        made: list[int] = field(init=False, default_factory=list)

        def double(self) -> int:
            return self.a * 2

    @made(**options)
    class Child(Plain):
        a: int = 5  # in the place that it has in its parent
        b: str = "b"
        e: float = 1.5

    @made(**options)
    class Empty:
        pass

    @made(**options)
    class One:
        a: int

    @made(**options)
    class Ready:
        a: int
        twice: int = 0

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", self.a * 2)

    @made(**options)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    found: list[Any] = [Plain, Child, Empty, One, Ready, Own]
    return {one.__name__: one for one in found}


def tried(action: Callable[[], Any]) -> Any:
    """What an action gives: a value as text, or an error with its words."""
    try:
        return repr(action())
    except Exception as error:
        return type(error), str(error)


ACTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "repr": lambda c: c["Plain"](a=1, b="x"),
    "all given": lambda c: c["Plain"](a=1, b=None, c=(1,), d=[2], hidden=b"", loose=3),
    "in order": lambda c: c["Plain"](1, "x", (2,)),
    "too few": lambda c: c["Plain"](a=1),
    "too many": lambda c: c["One"](1, 2),
    "unknown": lambda c: c["One"](a=1, z=2),
    "not of init": lambda c: c["Plain"](a=1, b="", late=2),
    "fresh defaults": lambda c: c["Plain"](a=1, b="").d is c["Plain"](a=1, b="").d,
    "equal": lambda c: c["Plain"](a=1, b="x", loose=1) == c["Plain"](a=1, b="x", loose=2),
    "unequal": lambda c: c["Plain"](a=1, b="x") == c["Plain"](a=2, b="x"),
    "another class": lambda c: c["Plain"](a=1, b="x") == c["Child"](a=1, b="x"),
    "another thing": lambda c: c["One"](a=1) == (1,),
    "hash": lambda c: hash(c["One"](a=1)) == hash(c["One"](a=1)),
    "in a set": lambda c: len({c["One"](a=1), c["One"](a=1), c["One"](a=2)}),
    "unhashable field": lambda c: isinstance(hash(c["Plain"](a=1, b="x")), int),
    "child": lambda c: c["Child"](),
    "child in order": lambda c: c["Child"](1, "z"),
    "inherited": lambda c: (c["Child"]().double(), c["Child"].kind),
    "empty": lambda c: (c["Empty"](), c["Empty"]() == c["Empty"](), isinstance(hash(c["Empty"]()), int)),
    "post init": lambda c: c["Ready"](a=4),
    "own functions": lambda c: (c["Own"](a=1), c["Own"](a=1) == 3, hash(c["Own"](a=1))),
    "replace": lambda c: dataclasses.replace(c["Plain"](a=1, b="x"), a=2),
    "replace what is not of init": lambda c: dataclasses.replace(c["Plain"](a=1, b="x"), late=2),
    "asdict": lambda c: dataclasses.asdict(c["Child"]()),
    "fields": lambda c: [(one.name, one.kw_only, one.init) for one in dataclasses.fields(c["Child"])],
    "is one": lambda c: (dataclasses.is_dataclass(c["One"]), c["One"].__match_args__, c["Child"].__match_args__),
    "set": lambda c: setattr(c["One"](a=1), "a", 2),
    "delete": lambda c: delattr(c["One"](a=1), "a"),
    "set what is no field": lambda c: bool(tried(lambda: setattr(c["One"](a=1), "z", 2))),
    "has a dict": lambda c: hasattr(c["Child"](), "__dict__"),
    "slots": lambda c: (getattr(c["Plain"], "__slots__", None), getattr(c["Child"], "__slots__", None)),
    "defaults on the class": lambda c: (hasattr(c["Plain"], "a"), getattr(c["Plain"], "loose", 1) == 0),
    "copy": lambda c: (copy.copy(c["Plain"](a=1, b="x")), copy.deepcopy(c["Child"]())),
    "recursive": lambda c: (lambda one: (one.d.append(one), repr(one))[1])(c["Plain"](a=1, b="x")),
    "names": lambda c: (c["One"].__name__, c["One"].__qualname__, c["One"].__module__, c["Plain"].__doc__),
}


@pytest.mark.parametrize("options", KINDS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("action", ACTIONS)
def test_it_is_what_the_library_makes(action: str, options: dict[str, bool]) -> None:
    ours, library = (family(made, options) for made in DECORATORS.values())
    assert tried(lambda: ACTIONS[action](ours)) == tried(lambda: ACTIONS[action](library))


def test_without_options() -> None:
    ours, library = (made(type("A", (), {"__annotations__": {"a": int}, "a": 1})) for made in DECORATORS.values())
    assert repr(ours()) == repr(library()) == "A(a=1)"


@valueclasses.dataclass(frozen=True, slots=True)
class Kept:
    """Found by its name, as pickle needs it."""

    a: int
    b: list[int] = field(default_factory=list[int])


def test_pickle() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Kept(1, [2]), protocol)) == Kept(1, [2])


def test_a_frozen_one_is_not_changed() -> None:
    kept = Kept(1)
    with pytest.raises(FrozenInstanceError):
        kept.a = 2  # type: ignore[misc]
    assert kept.a == 1


def test_positional_patterns() -> None:
    match Kept(1, [2]):
        case Kept(a, [b]):
            assert (a, b) == (1, 2)


def test_what_a_replay_loads_was_made_by_ours() -> None:
    """The library's leave their parameters on a class."""
    code = (
        "import sys, tapeproxy.cli.replay, tapeproxy.proxy.guard, tapeproxy.proxy.replaying\n"
        "for name, module in [*sys.modules.items()]:\n"
        "    for one in vars(module).values() if name.startswith('tapeproxy') else ():\n"
        "        if isinstance(one, type) and '__dataclass_params__' in vars(one): print(one.__module__, one.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "", "these are quicker with tapeproxy.tapes.valueclasses"
