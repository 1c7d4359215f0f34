"""Hints: what an agent's code may tell tapeproxy of itself. Does nothing in a run that is not taped.

Names of agents, messages between them, tools that a replay does not run again, and what a run concluded. One file,
standard library only, for CPython 3.9 to 3.14: import it as `tapeproxy.hints`, or copy it into your project under any
name. It talks to the shim that tapeproxy puts into the agent's process, and to nothing else. See docs/HINTS.md.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes longer to load than all of this
    from collections.abc import AsyncGenerator, Callable, Generator
    from types import TracebackType
    from typing import Any, TypeVar, overload

    F = TypeVar("F", bound=Callable[..., Any])
    T = TypeVar("T")

__all__ = ["NotOnTapeError", "ToolError", "agent", "final_state", "message", "received", "tool", "value"]

__tapeproxy_hints__ = 1
"""The version of what is asked of the shim; by this name it knows our frames from the agent's."""

_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80, 0x20, 0x200  # inspect.CO_*; inspect takes 5 ms to load


class ToolError(Exception):
    """An exception from the tape whose own type is not there in a replay; its class is called as that was."""


class NotOnTapeError(ToolError):
    """In a replay: this call is not on the tape, so there is nothing to give for it. The run fails whatever comes."""


def _shim() -> Any:
    """The shim's side; None where nothing is taped or replayed."""
    loaded = sys.modules.get("_tapeproxy.hinted")
    if loaded is not None:
        return loaded
    if "_tapeproxy" not in sys.modules:
        return None
    try:
        return __import__("_tapeproxy.hinted", fromlist=["hinted"])
    except ImportError:  # a shim that is older than hints
        return None


class agent:  # noqa: N801  # used like a function
    """Name the agent that the code of a block, or of a function, belongs to.

    `with agent("planner"):`, `async with`, or `@agent("planner")` before a function or coroutine function. The lane of
    the run that enters it has that name on the tape; threads and tasks begun inside belong to the same agent until they
    name another. What is entered twice at a time, or by several flows, is fine.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._left: list[Callable[[], object]] = []

    def __enter__(self) -> agent:
        shim = _shim()
        if shim is not None:
            self._left.append(shim.enter_agent(self.name))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._left:
            self._left.pop()()

    async def __aenter__(self) -> agent:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        name, flags = self.name, _flags(function)
        if flags & _COROUTINE:

            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                with agent(name):
                    return await function(*args, **kwargs)

            return _dressed(coroutine, function)

        def call(*args: Any, **kwargs: Any) -> Any:
            with agent(name):
                return function(*args, **kwargs)

        return _dressed(call, function)


def message(to: str, payload: object = None) -> None:
    """Say that the current agent sends the agent `to` a message, by whatever way: what comes before it is its cause.

    `payload` is on the tape, redacted; what JSON has no form for is described by its type.
    """
    shim = _shim()
    if shim is not None:
        shim.message(to, payload)


def received(from_: str) -> None:
    """Say that the current agent has got the next message of the agent `from_`, in this process or another."""
    shim = _shim()
    if shim is not None:
        shim.received(from_)


def final_state(state: object) -> None:
    """Put what the run concluded on the tape. A replay that concludes something else, or nothing, has drifted."""
    shim = _shim()
    if shim is not None:
        shim.final_state(state)


def value(name: str, function: Callable[[], T]) -> T:
    """What `function` gives, on the tape under this name; a replay gives it again and does not call the function.

    `await value("now", fetch)` where `function` is a coroutine function.
    """
    return _wrap(function, name, "hint")()  # type: ignore[no-any-return]  # it gives what the function gives


if TYPE_CHECKING:

    @overload
    def tool(function: F, /) -> F: ...
    @overload
    def tool(*, name: str | None = None) -> Callable[[F], F]: ...


def tool(function: Any = None, /, *, name: str | None = None) -> Any:
    """Mark a function as a tool: its results and exceptions are taped, and in a replay its body never runs.

    For functions, coroutine functions, generators and asynchronous generators, and methods. The call of a replay has to
    have the arguments that it has on the tape. `name` is what the tape calls it; by default `__qualname__`.
    """

    def mark(marked: Any) -> Any:
        if isinstance(marked, (classmethod, staticmethod)):
            return type(marked)(mark(marked.__func__))
        return _wrap(marked, name or str(getattr(marked, "__qualname__", type(marked).__qualname__)), "tool")

    return mark if function is None else mark(function)


def _wrap(function: Any, name: str, what: str) -> Any:
    flags = _flags(function)
    wrapper: Callable[..., Any]
    if flags & _COROUTINE:

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            shim = _shim()
            if shim is None:
                return await function(*args, **kwargs)
            return await shim.call_async(what, name, function, args, kwargs, (ToolError, NotOnTapeError))

        wrapper = coroutine
    elif flags & _ASYNC_GENERATOR:

        async def asynchronous(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            shim = _shim()
            errors = (ToolError, NotOnTapeError)
            items = (
                function(*args, **kwargs)
                if shim is None
                else shim.generate_async(what, name, function, args, kwargs, errors)
            )
            step: Any = items.__anext__
            try:
                while True:
                    try:
                        item = await step()
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step = _bound(items.athrow, error)
                    else:
                        step = items.__anext__ if sent is None else _bound(items.asend, sent)
            finally:
                await items.aclose()

        wrapper = asynchronous
    elif flags & _GENERATOR:

        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            shim = _shim()
            if shim is None:
                return (yield from function(*args, **kwargs))
            return (yield from shim.generate(what, name, function, args, kwargs, (ToolError, NotOnTapeError)))

        wrapper = generator
    else:

        def call(*args: Any, **kwargs: Any) -> Any:
            shim = _shim()
            if shim is None:
                return function(*args, **kwargs)
            return shim.call(what, name, function, args, kwargs, (ToolError, NotOnTapeError))

        wrapper = call
    return _dressed(wrapper, function)


def _bound(method: Any, argument: Any) -> Any:
    return lambda: method(argument)


def _dressed(wrapper: Any, function: F) -> F:
    """The wrapper with the name, signature and documentation of the function."""
    from functools import update_wrapper  # takes some milliseconds, where nobody has loaded it

    return update_wrapper(wrapper, function)  # type: ignore[return-value]  # it is called as the function is


def _call_of(function: Any) -> Any:
    return getattr(type(function), "__call__", None)  # noqa: B004  # the method is wanted, not whether there is one


def _flags(function: Any) -> int:
    """What kind of function this is, as its code says; that of what a partial, a method or an object calls."""
    while not hasattr(function, "__code__") and hasattr(function, "func"):  # functools.partial
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None) or getattr(_call_of(function), "__code__", None)
    return code.co_flags if code is not None else 0


if _shim() is not None:
    _shim().use()
