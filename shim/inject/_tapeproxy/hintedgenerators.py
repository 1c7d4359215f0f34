"""Calls of generator functions that are hinted: the items are taped as they are given, and served in their order."""

from __future__ import annotations

from . import jsonforms
from .formtypes import type_name
from .hintcalls import Call, begin, serves
from .hintlines import LONGEST, OFF
from .lanebodies import within, within_async
from .loopturns import is_cancelled, take_turn, wait_for_ever

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

    from .hintcalls import Errors


def generate(what: str, name: str, function: Any, args: Any, kwargs: Any, errors: Errors) -> Generator[Any, Any, Any]:
    """The same for a generator function; it is taped when it has ended."""
    if OFF:
        return (yield from function(*args, **kwargs))
    one = begin(what, name, function, args, kwargs)
    if serves(one.parent):
        found, taped = _generated(one, errors)
        try:
            for item in taped["items"]:
                try:
                    yield item
                except Exception as error:  # what is thrown in was dealt with by the body, as the tape says
                    del error
        finally:
            one.back()
        return _end(one, found, taped, errors)
    items = _Items(one)
    body = within(one.lane, function, args, kwargs)
    step: Callable[[], Any] = body.__next__
    while True:
        try:
            item = within(one.lane, step, (), {})
        except StopIteration as stop:
            items.ended(stop.value)
            return stop.value
        except BaseException as error:
            items.raised(error)
            raise
        items.add(item)
        try:
            sent = yield item
        except GeneratorExit:
            within(one.lane, body.close, (), {})
            items.closed()
            raise
        except BaseException as error:
            step = _thrower(body.throw, error)
        else:
            step = body.__next__ if sent is None else _sender(body.send, sent)


async def generate_async(
    what: str, name: str, function: Any, args: Any, kwargs: Any, errors: Errors
) -> AsyncGenerator[Any, Any]:
    """The same for an asynchronous generator function."""
    if OFF:
        bare = function(*args, **kwargs)
        following: Callable[[], Any] = bare.__anext__
        try:
            while True:
                try:
                    item = await following()
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:
                    following = _thrower(bare.athrow, error)
                else:
                    following = bare.__anext__ if sent is None else _sender(bare.asend, sent)
        finally:
            await bare.aclose()
    one = begin(what, name, function, args, kwargs)
    if serves(one.parent):
        found, taped = _generated(one, errors)
        try:
            await take_turn()
            for item in taped["items"]:
                try:
                    yield item
                except Exception as error:  # what is thrown in was dealt with by the body, as the tape says
                    del error
                await take_turn()
            if found["data"].get("end") == "cancelled":
                await wait_for_ever()
        finally:
            one.back()
        _end(one, found, taped, errors)
        return
    items = _Items(one)
    body = within(one.lane, function, args, kwargs)
    step: Callable[[], Any] = body.__anext__
    while True:
        try:
            item = await within_async(one.lane, step())
        except StopAsyncIteration:
            items.ended(None)
            return
        except BaseException as error:
            items.raised(error, later=True)
            raise
        items.add(item)
        try:
            sent = yield item
        except GeneratorExit:
            await within_async(one.lane, body.aclose())
            items.closed()
            raise
        except BaseException as error:
            step = _thrower(body.athrow, error)
        else:
            step = body.__anext__ if sent is None else _sender(body.asend, sent)


def _generated(one: Call, errors: Errors) -> tuple[dict[str, Any], dict[str, Any]]:
    """A generator's call on the tape, and what it gave: `items`, and `value` or `error`."""
    found = one.find(errors)
    one.served(found)
    return found, one.loaded(found, errors, lambda text: jsonforms.load(text, errors[0]))


def _end(one: Call, found: dict[str, Any], taped: dict[str, Any], errors: Errors) -> Any:
    """End as the generator did when it had given its items."""
    if found["data"].get("end") == "raised":
        raise taped["error"]
    if found["data"].get("end") == "closed":
        one.refuse(errors, "more", found)
    return taped.get("value")


def _sender(send: Callable[[Any], Any], sent: Any) -> Callable[[], Any]:
    return lambda: send(sent)


def _thrower(throw: Callable[[BaseException], Any], error: BaseException) -> Callable[[], Any]:
    return lambda: throw(error)


class _Items:
    """What a generator has given so far."""

    def __init__(self, one: Call) -> None:
        self._one = one
        self._texts: list[str] = []
        self._left = LONGEST
        self._wrong: Exception | None = None

    def add(self, item: Any) -> None:
        """Keep an item as it is now."""
        if self._wrong is not None:
            return
        try:
            text = jsonforms.dump(item)
            self._left -= len(text)
            if self._left < 0:
                raise TypeError(f"its items have more than {LONGEST} bytes of JSON")
            self._texts.append(text)
        except Exception as error:
            self._wrong = error
            self._texts.clear()

    def ended(self, value: Any) -> None:
        self._tell(lambda: f',"value":{jsonforms.dump(value)}' if value is not None else "")

    def closed(self) -> None:
        self._tell(str, end="closed")

    def raised(self, error: BaseException, *, later: bool = False) -> None:
        """See `Call.raised`."""
        if later and is_cancelled(error):
            self._tell(str, end="cancelled")
            return
        self._tell(lambda: f',"error":{jsonforms.dump(error)}', type_name(type(error)), end="raised")

    def _tell(self, rest: Callable[[], str], error: str | None = None, **data: Any) -> None:
        def dump() -> str:
            if self._wrong is not None:
                raise self._wrong
            return f'{{"items":[{",".join(self._texts)}]{rest()}}}'

        self._one.tell_result(dump, error, generator=True, **data)
