"""What an agent's hints put on a tape: tool calls, values, messages, conclusions. Knows records; docs/HINTS.md.

A call's body ran in a lane of its own, so what it asked over the wire is known by its lane. A replay serves the call
and leaves the body out.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.records import Value
from tapeproxy.tapes.tokens import mask_tokens

if TYPE_CHECKING:
    from tapeproxy.tapes.differences import Difference

CALLS = ("tool", "hint")
"""Values that stand for a function that a replay does not call."""
HINTS = frozenset({*CALLS, "final", "message"})
"""The kinds of value that are on a tape without --io, too."""
USED = "hints"
"""The note that a process uses hints."""
_MOST = 20


type Absent = Callable[[str | None], bool]
"""Whether a lane of a tape is not going to run in a replay."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, or for a value, on a tape. `lane` is its body's own; `value.lane` is the caller's.

    `value.content` is the JSON of the result (docs/FORMAT.md), or of the exception whose type is `value.error`.
    """

    value: Value
    lane: str
    arguments: str
    asked: int

    @classmethod
    def of(cls, value: Value) -> Self:
        """The call that a value stands for."""
        data = value.data
        asked = data.get("asked")
        return cls(value, str(data.get("call")), str(data.get("args", "")), asked if isinstance(asked, int) else -1)

    @property
    def title(self) -> str:
        """For people: `search(query='tides', *=[1])`."""
        return call_title(self.value.what, self.value.name, self.arguments)


def call_title(what: str, name: str, arguments: str) -> str:
    """A call in one line."""
    if what == "hint":
        return f"value {name}"
    try:
        given = json.loads(arguments)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        return f"{name}(…)"
    return f"{name}({', '.join(f'{key}={json.dumps(item, ensure_ascii=False)}' for key, item in given.items())})"


def hinted(tape: Tape) -> bool:
    """Whether the agent used hints while it was recorded: else a replay has nothing to serve to its tools."""
    return any(note.what == USED for note in tape.notes) or any(value.what in HINTS for _, value in tape.values)


def calls(tape: Tape) -> Iterator[Call]:
    """The calls on a tape, in its order: that in which they ended."""
    return (Call.of(value) for _, value in tape.values if value.what in CALLS)


def is_within(lane: str | None, call: str) -> bool:
    """Whether a lane is a call's own, or one that its body began."""
    return lane is not None and (lane == call or lane.startswith(f"{call}/"))


class Bodies:
    """Which lanes of a tape are those of the bodies of calls."""

    def __init__(self, tape: Tape) -> None:
        self._calls = {call.lane for call in calls(tape)}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def call_of(self, lane: str | None) -> str | None:
        """The outermost call that a lane is within, by its lane; None where it is in none."""
        found, at = None, len(lane or "")
        while lane and at > 0:
            if lane[:at] in self._calls:
                found = lane[:at]
            at = lane.rfind("/", 0, at)
        return found

    def exchanges(self, tape: Tape) -> dict[str, list[int]]:
        """The numbers of the exchanges that bodies asked for, by the lane of the outermost call."""
        found: dict[str, list[int]] = {}
        if self._calls:
            for exchange in outlines(tape.exchanges):
                call = self.call_of(exchange.request.lane)
                if call is not None:
                    found.setdefault(call, []).append(exchange.number)
        return found


def absent_lanes(tape: Tape) -> Absent:
    """Whether a lane is within a call: of a replay that serves the calls, those are not there."""
    bodies = Bodies(tape)
    return (lambda lane: bodies.call_of(lane) is not None) if bodies else nowhere


def served_bodies(tape: Tape, live: frozenset[int]) -> Absent:
    """The same for a fork that asks the exchanges `live` anew: bodies that ask one of them run."""
    absent = absent_lanes(tape)
    running = {one.request.lane for one in outlines(tape.exchanges) if one.number in live}
    return lambda lane: lane not in running and absent(lane)


def nowhere(_lane: str | None) -> bool:
    """No lane is within a call that is served."""
    return False


def conclusions(tape: Tape) -> list[Value]:
    """What the run concluded: its `final_state`s, by lane and in the order of each."""
    return sorted((value for _, value in tape.values if value.what == "final"), key=lambda value: (value.lane, value.n))


def form_differences(taped: bytes | str | None, now: bytes | str | None) -> "tuple[Difference, ...]":
    """Where two JSON texts of hints differ; secrets are the same as any other secret."""
    from tapeproxy.tapes.differences import json_differences  # a replay that goes well never needs it

    was, is_ = _form(taped), _form(now)
    if was == is_:
        return ()
    found = islice(json_differences(was, is_), _MOST)
    return tuple(replace(one, where=one.where.replace("body ", "", 1), rule="") for one in found)


def _form(text: bytes | str | None) -> Any:
    if text is None:
        return None
    data = mask_tokens(text.encode(errors="surrogateescape") if isinstance(text, str) else text)
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="backslashreplace")


def position_differences(taped: Call, now: Mapping[str, Any]) -> "tuple[Difference, ...]":
    """How the place in its lane where a call is made differs: `now` are the facts of the replay's call."""
    from tapeproxy.tapes.differences import Difference  # as above

    found: list[Difference] = []
    if str(now.get("call")) != taped.lane:
        found.append(Difference("call of the lane", _ordinal(taped.lane), _ordinal(str(now.get("call")))))
    if now.get("asked") != taped.asked:
        found.append(Difference("requests of the lane before it", str(taped.asked), str(now.get("asked"))))
    return tuple(found)


def _ordinal(lane: str) -> str:
    number = lane.rpartition("/k")[2]
    return f"number {int(number) + 1}" if number.isdecimal() else lane
