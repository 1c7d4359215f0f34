"""Hints of an agent on their way: redacted for the tape, written out for a replay's shims, compared with the tape.

Knows the shim's lines (`_tapeproxy/hinted.py`) and the file that it reads (`_tapeproxy/tapedcalls.py`); what they mean
is in `tapes/hints.py`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from tapeproxy.proxy.sidecar import Line
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hints import (
    CALLS,
    Bodies,
    Call,
    call_title,
    calls,
    form_differences,
    position_differences,
)
from tapeproxy.tapes.records import Headers, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.requestlines import shorten
from tapeproxy.tapes.values import with_contents
from tapeproxy.tapes.violations import Drift, Violation

type ToolMode = Literal["tape", "live"]
"""Whether calls of tools get what is on the tape, or their bodies are run."""

type Place = tuple[str, int]
"""A value's lane and its number there."""

_JSON: Headers = ((b"content-type", b"application/json"),)
_WHYS = {
    "used": "the tape has this call, and it was made already, as often as on the tape",
    "lane": "the tape has this call for another lane",
    "name": "the lane has no such call on the tape",
    "untaped": "what it gave is not on the tape",
    "more": "the generator is asked for more than it gave on the tape, where it was closed",
}


def redact_hint(value: Value, redactor: Redactor, seed: bytes) -> Value:
    """A value of a hint without secrets: its JSON is redacted as the JSON of a request is, so that both stay alike."""
    data = dict(value.data)
    if isinstance(args := data.get("args"), str):
        data["args"] = _redacted(args.encode(), redactor).decode()
    for name in ("untaped", "from"):
        if isinstance(text := data.get(name), str):
            data[name] = redactor.text(text)
    value = replace(value, name=redactor.text(value.name), where=redactor.text(value.where), data=data, extra={})
    if value.content is None:
        return value
    content = _redacted(value.content, redactor)
    if content == value.content:
        return value
    digest = hashlib.blake2b(content, key=seed, digest_size=16).hexdigest()
    return replace(value, content=content, length=len(content), digest=digest)


def _redacted(text: bytes, redactor: Redactor) -> bytes:
    return redactor.body(_JSON, text)


def since(value: Value, epoch_ns: int) -> Value:
    """A value whose moments count from the tape's start; a shim counts from 1970."""
    moments = {name: at - epoch_ns for name in ("began", "ended") if isinstance(at := value.data.get(name), int)}
    return replace(value, data=value.data | moments) if moments else value


def write_calls(tape: Tape, path: Path) -> None:
    """Write the calls of a tape where a replay's shims look them up, in the order in which each lane began them."""
    path.touch(mode=0o600)
    values = [value for _, value in with_contents(tape.values) if value.what in CALLS]
    with path.open("w", encoding="utf-8") as file:
        for value in sorted(values, key=lambda value: (value.lane, _number(Call.of(value).lane))):
            content = None if value.content is None else value.content.decode(errors="replace")
            fields = {"lane": value.lane, "n": value.n, "what": value.what, "name": value.name, "error": value.error}
            file.write(json.dumps(fields | {"content": content, "data": value.data}) + "\n")


def _number(lane: str) -> int:
    number = lane.rpartition("/k")[2]
    return int(number) if number.isdecimal() else -1


class HintCheck:
    """What the hints of one replay say, held against the tape. `drift` and `violate` hear of what is not as on it.

    `lenient` says whether a request got a fault: then the agent goes its own way. `live`: bodies are run.
    """

    def __init__(
        self,
        tape: Tape,
        redactor: Redactor,
        drift: Callable[[Drift], None],
        violate: Callable[[Violation], object],
        lenient: Callable[[], bool],
        *,
        live: bool = False,
    ) -> None:
        self.served = 0
        self.heard: Callable[[Value, Place | None], None] = lambda _value, _place: None
        """Hears of each hint, and for a call of the taped one that it got: lane and number."""
        self._redactor = redactor
        self._reader = _reader(redactor, bytes.fromhex(tape.head.seed or ""))
        self._drift, self._violate, self._lenient = drift, violate, lenient
        self._live = live
        values = [value for _, value in with_contents(tape.values)]
        self._calls = {(call.value.lane, call.value.n): call for call in calls(tape)}
        self._left = dict(self._calls)
        self._within = {} if live else Bodies(tape).exchanges(tape)
        self._covered: list[int] = []
        self._taped = _by_lane(value for value in values if value.what in ("message", "final"))
        self._seen: dict[tuple[str, str, str], int] = {}
        self._drifted: set[str] = set()

    @property
    def covered(self) -> frozenset[int]:
        """The numbers of the exchanges that the bodies of served calls had asked for."""
        return frozenset(self._covered)

    def take(self, value: Value, line: Line) -> None:
        """Look at a hint of the replay, already redacted; `line` is what the shim wrote.

        What a lane of a fork does that has left the tape is compared with nothing.
        """
        if line.get("live") is True:
            return
        self.heard(value, _place(line))
        if value.what in CALLS:
            if (at := _place(line)) is not None:
                self._take_call(value, at)
        else:
            self._compare(value)

    def refused(self, line: Line) -> None:
        """A call that the tape has nothing for."""
        text = self._redactor.text
        what, name, lane = (text(str(line.get(key, ""))) for key in ("what", "name", "lane"))
        arguments = _redacted(str(line.get("args", "")).encode(errors="surrogateescape"), self._redactor).decode()
        near = None if (at := _place(line)) is None else self._calls.get(at)
        where = text(str(line.get("where", "")))
        title = f"{call_title(what, name, arguments)} in lane {lane}" + (f" at {where}" if where else "")
        why = str(line.get("why"))
        if why == "arguments" and near is not None:
            said = f"the tool is called with other arguments than on the tape, where {shorten(near.title)} is next"
            found = form_differences(near.arguments, arguments)
        else:
            reason = text(str(near.value.data["untaped"])) if why == "untaped" and near is not None else ""
            said, found = _WHYS.get(why, text(why)) + (f": {reason}" if reason else ""), ()
        self._violate(Violation("tool", title, said, differences=found))

    def finish(self, *, astray: bool) -> list[str]:
        """Say what did not come, now that all is over; returns what is only worth a note.

        `astray`: the run was refused something, so what did not come is no news.
        """
        if astray or self._lenient():
            return []
        for (lane, what, name), taped in self._taped.items():
            seen = self._seen.get((lane, what, name), 0)
            if what == "final" and seen < len(taped):
                self._drift(Drift(f"final_state in lane {lane}", "the run did not conclude what it did on the tape"))
        missing = [] if self._live else [call for call in self._left.values() if not self._is_inner(call)]
        if not missing:
            return []
        first = shorten(missing[0].title)
        if len(missing) == 1:
            return [f"a tool call on the tape was not made: {first}"]
        return [f"{len(missing)} tool calls on the tape were not made, the first {first}"]

    def _take_call(self, value: Value, at: tuple[str, int]) -> None:
        taped, now = self._left.pop(at, None), Call.of(value)
        if taped is None:
            return
        self.served += 1
        self._covered += self._within.get(taped.lane, [])
        lane = value.lane
        if lane != taped.value.lane or lane.startswith("?") or lane in self._drifted or self._lenient():
            return
        if found := position_differences(taped, value.data):
            self._drifted.add(lane)
            what = "the lane came another way to this call than on the tape"
            self._drift(Drift(f"{now.title} in lane {lane} at {value.where}", what, found))

    def _compare(self, value: Value) -> None:
        key = (value.lane, value.what, value.name)
        number = self._seen.get(key, 0)
        self._seen[key] = number + 1
        if self._lenient():
            return
        taped = self._taped.get(key, [])[number : number + 1]
        conclusion = value.what == "final"
        who = "final_state" if conclusion else f"message to {value.name}"
        title = f"{who} in lane {value.lane} at {value.where}"
        if not taped:
            what = "the run concludes more than on the tape" if conclusion else "this message is not on the tape"
            self._drift(Drift(title, what))
        elif found := form_differences(taped[0].content, value.content):
            what = "the run concludes something else" if conclusion else "the message is another one"
            self._drift(Drift(title, f"{what} than on the tape", found))

    def _is_inner(self, call: Call) -> bool:
        """Whether it was made by the body of another call, which is not run."""
        return "/k" in call.value.lane

    def read(self, line: Line) -> Value | None:
        """The value of a line, redacted; None where it is malformed."""
        return self._reader(line, 0)


def _place(line: Line) -> tuple[str, int] | None:
    """The taped value that a line is about: its lane and number."""
    lane, n = line.get("taped_lane"), line.get("taped")
    return (lane, n) if isinstance(lane, str) and isinstance(n, int) else None


def _reader(redactor: Redactor, seed: bytes) -> Callable[[Line, int], Value | None]:
    from tapeproxy.proxy.iovalues import ValueReader  # which imports us

    return ValueReader(redactor, seed).read


def _by_lane(values: Iterable[Value]) -> dict[tuple[str, str, str], list[Value]]:
    """Values by lane, kind and name, in the order of each lane."""
    found: dict[tuple[str, str, str], list[Value]] = {}
    for value in values:
        found.setdefault((value.lane, value.what, value.name), []).append(value)
    return found
