"""Attributes that are ours for a while: who gets them, and what is there afterwards."""

import inspect
from types import ModuleType
from typing import Any

import pytest

from tapeproxy.proxy.inprocess.changes import Changes
from tapeproxy.shim.inject._tapeproxy.lanes import LANE, Lane, retire


def make_module() -> Any:
    module = ModuleType("changed")

    class Thing:
        def method(self) -> str:
            return "real"

    async def later() -> str:
        return "real"

    vars(module).update(function=lambda: "real", later=later, value=1, Thing=Thing)
    return module


def change(module: Any) -> None:
    async def later() -> str:
        return "ours"

    module.function = lambda: "ours"
    module.later = later
    module.value = 2
    module.added = 3
    module.Thing.method = lambda _: "ours"


@pytest.fixture
def module() -> Any:
    return make_module()


@pytest.fixture
def changes(module: Any) -> Changes:
    changes = Changes()
    changes.watch((module, module.Thing), lambda: change(module))
    return changes


def test_they_are_real_until_they_are_put_on(module: Any, changes: Changes) -> None:
    before = dict(vars(module)), vars(module.Thing)["method"]
    assert module.function() == module.Thing().method() == "real"
    assert module.value == 1
    assert not hasattr(module, "added")
    for _ in range(2):
        changes.put_on()
        assert (module.value, module.added) == (2, 3)
        changes.take_off()
        assert (dict(vars(module)), vars(module.Thing)["method"]) == before


def test_who_has_no_lane_gets_the_real_function(module: Any, changes: Changes) -> None:
    changes.put_on()
    assert module.function() == module.Thing().method() == "real"
    assert inspect.iscoroutinefunction(module.later)
    lane = Lane("m")
    token = LANE.set(lane)
    try:
        assert module.function() == module.Thing().method() == "ours"
        retire(lane)
        assert module.function() == "real"
    finally:
        LANE.reset(token)


def test_what_somebody_else_has_put_there_is_left(module: Any, changes: Changes) -> None:
    theirs = lambda: "theirs"  # noqa: E731 - an object to compare
    module.function = theirs
    changes.put_on()
    assert module.function is theirs
    module.value = 4
    changes.take_off()
    assert (module.function, module.value) == (theirs, 4)


def test_a_change_that_fails_half_way_is_undone_too(module: Any) -> None:
    real, changes = module.function, Changes()

    def fail() -> None:
        module.function = lambda: "ours"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        changes.watch((module,), fail)
    assert module.function is real


def test_the_functions_of_modules_are_known_by_pairs(module: Any, changes: Changes) -> None:
    known = [real for real, _ in changes.pairs()]
    assert module.function in known
    assert module.later in known
    assert len(known) == 2
