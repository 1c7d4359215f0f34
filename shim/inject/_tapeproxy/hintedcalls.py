"""Calls of functions and coroutine functions that are hinted: run and taped, or served with what the tape has."""

from __future__ import annotations

from . import callturns, jsonforms
from .hintcalls import Call, begin, serves
from .hintlines import OFF
from .lanebodies import within, within_async
from .loopturns import take_turn, wait_for_ever

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .hintcalls import Errors


def call(what: str, name: str, function: Any, args: Any, kwargs: Any, errors: Errors) -> Any:
    """Call a function, or give what the tape has in its place."""
    if OFF:
        return function(*args, **kwargs)
    one = begin(what, name, function, args, kwargs)
    if serves(one.parent):
        found = one.find(errors)
        if found["data"].get("awaited"):
            return _finished_later(one, found, errors)
        callturns.wait(found)
        one.served(found)
        one.back()
        return _finish(one, found, errors)
    try:
        result = within(one.lane, function, args, kwargs)
    except BaseException as error:
        one.raised(error)
        raise
    if hasattr(type(result), "__await__"):
        return _awaited(one, result)
    one.returned(result)
    return result


async def call_async(what: str, name: str, function: Any, args: Any, kwargs: Any, errors: Errors) -> Any:
    """The same for a coroutine function."""
    if OFF:
        return await function(*args, **kwargs)
    one = begin(what, name, function, args, kwargs)
    if serves(one.parent):
        return await _finished_later(one, one.find(errors), errors)
    return await _awaited(one, function(*args, **kwargs), awaited=False)


async def _awaited(one: Call, result: Any, *, awaited: bool = True) -> Any:
    facts = {"awaited": True} if awaited else {}
    try:
        result = await within_async(one.lane, result)
    except BaseException as error:
        one.raised(error, later=True)
        raise
    one.returned(result, **facts)
    return result


def _finish(one: Call, found: dict[str, Any], errors: Errors) -> Any:
    """Do what the taped call did in the end."""
    if found["data"].get("end") == "raised":
        raise one.loaded(found, errors, lambda text: jsonforms.load_error(text, errors[0]))
    return one.loaded(found, errors, lambda text: jsonforms.load(text, errors[0]))


async def _finished_later(one: Call, found: dict[str, Any], errors: Errors) -> Any:
    if found["data"].get("end") == "cancelled":
        try:
            await wait_for_ever()
        finally:
            one.served(found)
            one.back()
    await take_turn()
    waited = 0
    while waited < callturns.TURNS and callturns.owes(found):
        await take_turn()
        waited += 1
    one.served(found)
    for _ in range(callturns.AFTER if waited else 0):
        await take_turn()
    one.back()
    return _finish(one, found, errors)
