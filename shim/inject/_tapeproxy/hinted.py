"""What `tapeproxy.hints` asks of the shim: agents' names, messages, tools, values and what a run concluded.

Loaded when an agent uses hints. A tool's body runs in a lane of its own, a child of the caller's: so whatever it reads
and asks moves nothing in the caller's lane, and a replay that leaves the body out goes the same way as the recording.
"""

from __future__ import annotations

import sys

from . import callturns, channel, edges, jsonforms, settings, tapedcalls, values
from .callers import line_of
from .clock import REAL
from .lanes import LANE, Lane, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from types import CodeType
    from typing import Any

    Errors = tuple[type[Exception], type[Exception]]

LONGEST = 8 << 20
"""Bytes of JSON that a tape takes of one result."""
_OFF = settings.REPLAY and not tapedcalls.TAPED
_CANCELLED = ("CancelledError", "Cancelled", "GeneratorExit")
_VARARGS = 0x04  # inspect.CO_VARARGS
_now: Callable[[], int] = REAL.time_ns
_used: list[bool] = []
_agents: dict[str, str] = {}
_sent: dict[tuple[str, str], int] = {}
_got: dict[tuple[str, str], int] = {}


def use() -> None:
    """Tell, once in a process, that the agent uses hints."""
    if _used:
        return
    _used.append(True)
    if _OFF:
        channel.emit("note", what="hints", text="the tape was made without them: tools run")
    elif not settings.REPLAY or settings.FORK:
        channel.emit("note", what="hints", text="the agent uses hints")


def serves(lane: Lane) -> bool:
    """Whether calls of this lane get what is on the tape, and their bodies don't run."""
    return settings.REPLAY and tapedcalls.TOOLS != "live" and not _is_live(lane)


def _is_live(lane: Lane) -> bool:
    """Whether a lane of a fork has left the tape."""
    if not settings.FORK:
        return False
    from . import forkedtime

    return forkedtime.is_live(lane)


# --- agents, messages, conclusions ---


def enter_agent(name: str) -> Callable[[], object]:
    """Name the agent of the current lane; returns what ends that."""
    lane = LANE.get(None) or current()
    outer = _agents.get(lane.id)
    _name(lane, name)

    def leave() -> None:
        if outer is None:
            _agents.pop(lane.id, None)
        else:
            _name(lane, outer)

    return leave


def _name(lane: Lane, name: str) -> None:
    _agents[lane.id] = lane.name = name
    lane.told = True
    channel.emit("lane", id=lane.id, parent=lane.parent, kind=lane.kind, name=name, asked=lane.requests)


def agent_of(lane: Lane) -> str:
    """The agent that a lane belongs to: its own, or that of the nearest lane it descends from; else its id."""
    id = lane.id
    while id:
        if id in _agents:
            return _agents[id]
        id = id.rpartition("/")[0]
    return lane.id


def message(to: str, payload: object) -> None:
    """Tell of a message to an agent, and that what comes before it is its cause."""
    if _OFF:
        return
    lane = LANE.get(None) or current()
    sender = agent_of(lane)
    number = _count(_sent, sender, to)
    data = {"from": sender, "number": number, "asked": lane.requests}
    _emit("message", to, lane, _where(), _fitting(jsonforms.dump_loosely, payload), data=data)
    if settings.EDGES:
        edges.emit_out("message", _token(sender, to, number))


def received(from_: str) -> None:
    """Tell that the current agent has got the next message of another."""
    if _OFF:
        return
    lane = LANE.get(None) or current()
    receiver = agent_of(lane)
    number = _count(_got, from_, receiver)
    if settings.EDGES:
        edges.emit_in("message", _token(from_, receiver, number))


def final_state(state: object) -> None:
    """Tell what the run concluded."""
    if _OFF:
        return
    lane = LANE.get(None) or current()
    where = _where()
    try:
        content = _fitting(jsonforms.dump, state)
    except Exception as error:
        _note_untaped("final_state()", where, _reason(error))
        return
    _emit("final", "final", lane, where, content, data={"asked": lane.requests})


def _count(counts: dict[tuple[str, str], int], sender: str, to: str) -> int:
    number = counts.get((sender, to), 0)
    counts[sender, to] = number + 1
    return number


def _token(sender: str, to: str, number: int) -> str:
    """By what both ends of a message know it; the same in every run."""
    return f"message:{sender}>{to}#{number}"


# --- calls ---


class _Call:
    """One call of a tool, or for a value. `lane`: the one that its body runs in, `parent` the caller's."""

    __slots__ = ("args", "asked", "began", "lane", "name", "parent", "what", "where")

    def __init__(self, what: str, name: str, args: str) -> None:
        self.what = what
        self.name = name
        self.args = args
        parent = LANE.get(None) or current()
        self.parent = parent
        self.asked = parent.requests
        self.lane = parent.child("k", name)
        self.lane.tell()
        self.where = _where()
        self.began = _now()

    def __str__(self) -> str:
        return f"{self.name}()" if self.what == "tool" else f"value {self.name!r}"

    def tell(self, content: bytes | None, error: str | None = None, **data: Any) -> None:
        """Put what came of it on the tape."""
        facts = {"call": self.lane.id, "args": self.args, "asked": self.asked, "began": self.began, "ended": _now()}
        facts.update(data)
        _emit(self.what, self.name, self.parent, self.where, content, error=error, data=facts)
        self.back()

    def back(self) -> None:
        """The caller goes on, and knows what the body came to know: a replay tells that, too, where it did not run."""
        if settings.EDGES:
            edges.learn("call", edges.all_of(self.lane.id), self.parent)

    def tell_result(self, dump: Callable[[], str], error: str | None = None, **data: Any) -> None:
        """The same, where the result may have no form on a tape: the agent has it all the same."""
        try:
            content = _fitting(lambda _: dump(), None)
        except Exception as found:
            reason = _reason(found)
            self.tell(None, error, untaped=reason, **data)
            _note_untaped(str(self), self.where, reason)
            return
        self.tell(content, error, **data)

    def returned(self, result: Any, **data: Any) -> None:
        self.tell_result(lambda: jsonforms.dump(result), **data)

    def raised(self, error: BaseException, *, later: bool = False) -> None:
        """`later`: in a coroutine, where it may be a cancellation, which is somebody else's doing."""
        if later and _is_cancelled(error):
            self.tell(None, end="cancelled")
            return
        self.tell_result(lambda: jsonforms.dump_error(error), jsonforms.type_name(type(error)), end="raised")

    def find(self, errors: Errors) -> dict[str, Any]:
        """What the tape has for it. Raises the second of `errors` when it has nothing."""
        found, why, near = tapedcalls.take(self.what, self.name, self.parent.id, self.args)
        if found is None:
            self.refuse(errors, why, near)
        assert found is not None
        if "untaped" in found["data"]:
            self.refuse(errors, "untaped", found)
        return found

    def served(self, found: dict[str, Any]) -> None:
        """Tell that it gets what the tape has: what a fork tapes is this run's, and so are its moments."""
        found["served"] = True
        content = found.get("content")
        mine = {"call": self.lane.id, "args": self.args, "asked": self.asked, "began": self.began, "ended": _now()}
        facts = {**found["data"], **mine}
        taped = {"taped": found["n"], "taped_lane": found["lane"]}
        bytes_ = None if content is None else content.encode()
        _emit(self.what, self.name, self.parent, self.where, bytes_, error=found.get("error"), data=facts, **taped)
        if settings.FORK and "edited" in found["data"]:
            from . import forkedtime

            forkedtime.leave(self.parent)  # what follows goes by a value that is not on the tape

    def refuse(self, errors: Errors, why: str, near: dict[str, Any] | None) -> None:
        """Tell of a violation, and raise."""
        taped = {"taped": near["n"], "taped_lane": near["lane"]} if near is not None else {}
        fields = {"name": self.name, "lane": self.parent.id, "where": self.where, "args": self.args, "why": why}
        channel.emit("violation", what=self.what, **fields, **taped)
        raise errors[1](f"tapeproxy: {self} is not on the tape as it was called here; see the replay's report")

    def loaded(self, found: dict[str, Any], errors: Errors, load: Callable[[str], Any]) -> Any:
        """What `load` makes of the taped text."""
        try:
            return load(found.get("content") or "")
        except ValueError as error:
            self.refuse(errors, f"unreadable: {error}", found)


def call(what: str, name: str, function: Any, args: Any, kwargs: Any, errors: Errors) -> Any:
    """Call a function, or give what the tape has in its place."""
    if _OFF:
        return function(*args, **kwargs)
    one = _begin(what, name, function, args, kwargs)
    if serves(one.parent):
        found = one.find(errors)
        if found["data"].get("awaited"):
            return _finished_later(one, found, errors)
        callturns.wait(found)
        one.served(found)
        one.back()
        return _finish(one, found, errors)
    try:
        result = _within(one.lane, function, args, kwargs)
    except BaseException as error:
        one.raised(error)
        raise
    if hasattr(type(result), "__await__"):
        return _awaited(one, result)
    one.returned(result)
    return result


async def call_async(what: str, name: str, function: Any, args: Any, kwargs: Any, errors: Errors) -> Any:
    """The same for a coroutine function."""
    if _OFF:
        return await function(*args, **kwargs)
    one = _begin(what, name, function, args, kwargs)
    if serves(one.parent):
        return await _finished_later(one, one.find(errors), errors)
    return await _awaited(one, function(*args, **kwargs), awaited=False)


def generate(what: str, name: str, function: Any, args: Any, kwargs: Any, errors: Errors) -> Generator[Any, Any, Any]:
    """The same for a generator function; it is taped when it has ended."""
    if _OFF:
        return (yield from function(*args, **kwargs))
    one = _begin(what, name, function, args, kwargs)
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
    body = _within(one.lane, function, args, kwargs)
    step: Callable[[], Any] = body.__next__
    while True:
        try:
            item = _within(one.lane, step, (), {})
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
            _within(one.lane, body.close, (), {})
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
    if _OFF:
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
    one = _begin(what, name, function, args, kwargs)
    if serves(one.parent):
        found, taped = _generated(one, errors)
        try:
            await _turn()
            for item in taped["items"]:
                try:
                    yield item
                except Exception as error:
                    del error
                await _turn()
            if found["data"].get("end") == "cancelled":
                await _for_ever()
        finally:
            one.back()
        _end(one, found, taped, errors)
        return
    items = _Items(one)
    body = _within(one.lane, function, args, kwargs)
    step: Callable[[], Any] = body.__anext__
    while True:
        try:
            item = await _within_async(one.lane, step())
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
            await _within_async(one.lane, body.aclose())
            items.closed()
            raise
        except BaseException as error:
            step = _thrower(body.athrow, error)
        else:
            step = body.__anext__ if sent is None else _sender(body.asend, sent)


def _begin(what: str, name: str, function: Any, args: Any, kwargs: Any) -> _Call:
    return _Call(what, name, jsonforms.dump_loosely(_named(function, args, kwargs)))


def _named(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments by the names of the parameters they are for, so that it does not matter how they were passed."""
    code: CodeType | None = getattr(function, "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    out: dict[str, Any] = {}
    for name, item in zip(names, args):  # noqa: B905  # strict= is newer than 3.9
        out[name] = item
    if len(args) > len(names):
        varargs = code is not None and code.co_flags & _VARARGS
        place = code.co_argcount + code.co_kwonlyargcount if varargs and code is not None else -1
        out["*" + code.co_varnames[place] if varargs and code is not None else "*"] = list(args[len(names) :])
    out.update(kwargs)
    return dict(sorted(out.items()))


async def _awaited(one: _Call, result: Any, *, awaited: bool = True) -> Any:
    facts = {"awaited": True} if awaited else {}
    try:
        result = await _within_async(one.lane, result)
    except BaseException as error:
        one.raised(error, later=True)
        raise
    one.returned(result, **facts)
    return result


def _finish(one: _Call, found: dict[str, Any], errors: Errors) -> Any:
    """Do what the taped call did in the end."""
    if found["data"].get("end") == "raised":
        raise one.loaded(found, errors, lambda text: jsonforms.load_error(text, errors[0]))
    return one.loaded(found, errors, lambda text: jsonforms.load(text, errors[0]))


async def _finished_later(one: _Call, found: dict[str, Any], errors: Errors) -> Any:
    if found["data"].get("end") == "cancelled":
        try:
            await _for_ever()
        finally:
            one.served(found)
            one.back()
    await _turn()
    waited = 0
    while waited < callturns.TURNS and callturns.owes(found):
        await _turn()
        waited += 1
    one.served(found)
    for _ in range(callturns.AFTER if waited else 0):
        await _turn()
    one.back()
    return _finish(one, found, errors)


def _generated(one: _Call, errors: Errors) -> tuple[dict[str, Any], dict[str, Any]]:
    """A generator's call on the tape, and what it gave: `items`, and `value` or `error`."""
    found = one.find(errors)
    one.served(found)
    return found, one.loaded(found, errors, lambda text: jsonforms.load(text, errors[0]))


def _end(one: _Call, found: dict[str, Any], taped: dict[str, Any], errors: Errors) -> Any:
    """End as the generator did when it had given its items."""
    if found["data"].get("end") == "raised":
        raise taped["error"]
    if found["data"].get("end") == "closed":
        one.refuse(errors, "more", found)
    return taped.get("value")


class _Items:
    """What a generator has given so far."""

    def __init__(self, one: _Call) -> None:
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
        """See `_Call.raised`."""
        if later and _is_cancelled(error):
            self._tell(str, end="cancelled")
            return
        self._tell(lambda: f',"error":{jsonforms.dump(error)}', jsonforms.type_name(type(error)), end="raised")

    def _tell(self, rest: Callable[[], str], error: str | None = None, **data: Any) -> None:
        def dump() -> str:
            if self._wrong is not None:
                raise self._wrong
            return f'{{"items":[{",".join(self._texts)}]{rest()}}}'

        self._one.tell_result(dump, error, generator=True, **data)


def _within(lane: Lane, function: Any, args: Any, kwargs: Any) -> Any:
    before = LANE.get(None)
    LANE.set(lane)
    try:
        return function(*args, **kwargs)
    finally:
        if before is not None:
            LANE.set(before)


async def _within_async(lane: Lane, awaitable: Any) -> Any:
    before = LANE.get(None)
    LANE.set(lane)
    try:
        return await awaitable
    finally:
        if before is not None:
            LANE.set(before)


def _sender(send: Callable[[Any], Any], sent: Any) -> Callable[[], Any]:
    return lambda: send(sent)


def _thrower(throw: Callable[[BaseException], Any], error: BaseException) -> Callable[[], Any]:
    return lambda: throw(error)


def _running_loop() -> Any:
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            pass
    return None


class _Yield:
    """Awaited, it lets the other tasks of asyncio's loop have their turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def _turn() -> None:
    if _running_loop() is not None:
        await _Yield()


async def _for_ever() -> None:
    """Wait to be cancelled, as it was on the tape."""
    loop = _running_loop()
    if loop is not None:
        await loop.create_future()
    trio: Any = sys.modules.get("trio")
    if trio is not None:
        await trio.sleep_forever()


def _is_cancelled(error: BaseException) -> bool:
    return any(kind.__name__ in _CANCELLED and _is_known(kind.__module__) for kind in type(error).__mro__)


def _is_known(module: str) -> bool:
    return module.partition(".")[0] in ("asyncio", "builtins", "concurrent", "trio")


def _where() -> str:
    """The agent's line that led here."""
    frame: Any = sys._getframe(1)
    while frame is not None and (
        frame.f_globals.get("__package__") == __package__ or "__tapeproxy_hints__" in frame.f_globals
    ):
        frame = frame.f_back
    return line_of(frame)


def _fitting(dump: Callable[[Any], str], value: Any) -> bytes:
    content = dump(value).encode()
    if len(content) > LONGEST:
        raise TypeError(f"it has {len(content)} bytes of JSON, and a tape takes {LONGEST}")
    return content


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, TypeError) else repr(error)


def _note_untaped(what: str, where: str, reason: str) -> None:
    if not settings.REPLAY or settings.FORK:
        channel.emit("note", what="untaped-result", text=f"{what} at {where}: {reason}")


def _emit(
    what: str, name: str, lane: Lane, where: str, content: bytes | None, *, error: str | None = None, **fields: Any
) -> None:
    lane.tell()
    if content is not None:
        fields.update(length=len(content), digest=values.digest(content), content=content.decode())
    if error is not None:
        fields["error"] = error
    if _is_live(lane):
        fields["live"] = True
    channel.emit("value", lane=lane.id, n=values.number(lane.id), what=what, name=name, where=where, **fields)
