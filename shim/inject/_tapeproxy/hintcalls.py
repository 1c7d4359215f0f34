"""One call of a tool, or for a value: what it is on the tape, and what the tape has for it. Runs no body."""

from __future__ import annotations

from . import channel, edges, hintlines, jsonforms, settings, tapedcalls
from .clock import REAL
from .formtypes import type_name
from .hintlines import is_live
from .lanes import LANE, Lane, current
from .loopturns import is_cancelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    Errors = tuple[type[Exception], type[Exception]]
    """What a type that is not loaded becomes a subclass of, and what a call raises that is not on the tape."""

_VARARGS = 0x04  # inspect.CO_VARARGS
_now: Callable[[], int] = REAL.time_ns


class Call:
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
        self.where = hintlines.where()
        self.began = _now()

    def __str__(self) -> str:
        return f"{self.name}()" if self.what == "tool" else f"value {self.name!r}"

    def tell(self, content: bytes | None, error: str | None = None, **data: Any) -> None:
        """Put what came of it on the tape."""
        facts = {"call": self.lane.id, "args": self.args, "asked": self.asked, "began": self.began, "ended": _now()}
        facts.update(data)
        hintlines.emit(self.what, self.name, self.parent, self.where, content, error=error, data=facts)
        self.back()

    def back(self) -> None:
        """The caller goes on, and knows what the body came to know: a replay tells that, too, where it did not run."""
        if settings.EDGES:
            edges.learn("call", edges.all_of(self.lane.id), self.parent)

    def tell_result(self, dump: Callable[[], str], error: str | None = None, **data: Any) -> None:
        """The same, where the result may have no form on a tape: the agent has it all the same."""
        try:
            content = hintlines.fitting(lambda _: dump(), None)
        except Exception as found:
            reason = hintlines.reason_of(found)
            self.tell(None, error, untaped=reason, **data)
            hintlines.note_untaped(str(self), self.where, reason)
            return
        self.tell(content, error, **data)

    def returned(self, result: Any, **data: Any) -> None:
        self.tell_result(lambda: jsonforms.dump(result), **data)

    def raised(self, error: BaseException, *, later: bool = False) -> None:
        """`later`: in a coroutine, where it may be a cancellation, which is somebody else's doing."""
        if later and is_cancelled(error):
            self.tell(None, end="cancelled")
            return
        self.tell_result(lambda: jsonforms.dump_error(error), type_name(type(error)), end="raised")

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
        hintlines.emit(
            self.what, self.name, self.parent, self.where, bytes_, error=found.get("error"), data=facts, **taped
        )
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


def begin(what: str, name: str, function: Any, args: Any, kwargs: Any) -> Call:
    """A call that begins now, in the current lane."""
    return Call(what, name, jsonforms.dump_loosely(_named(function, args, kwargs)))


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


def serves(lane: Lane) -> bool:
    """Whether calls of this lane get what is on the tape, and their bodies don't run."""
    return settings.REPLAY and tapedcalls.TOOLS != "live" and not is_live(lane)
