"""Values that the agent read past the wire: as a tape has them, and how a replay's differ. Knows no file and no clock.

The n-th read of a name in a lane is compared with the n-th on the tape; further ones with the last, because how often
a program polls is not what a replay has to show.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.records import Request, Value
from tapeproxy.tapes.requestlines import shorten
from tapeproxy.tapes.tokens import WILDCARD, replace_tokens

LIMIT = 256 * 1024
"""Content longer than this is on no tape."""
_SHOWN = 4
_ONCE = ("process", "pipe", "exit", "socket", "received", "sent")
"""What never stands for a later one: a program that was run again is another program."""

type Key = tuple[str, str, str]


@dataclass(slots=True)
class TapedValues:
    """The values of a tape, their contents put back; `take` gives the one to compare with."""

    values: list[Value]
    _waiting: dict[Key, list[Value]] = field(init=False)
    _taken: Counter[Key] = field(default_factory=Counter[Key])
    _by_number: dict[tuple[str, int], Value] = field(init=False)

    def __post_init__(self) -> None:
        self._waiting = defaultdict(list)
        for value in self.values:
            self._waiting[value.lane, value.what, value.name].append(value)
        self._by_number = {(value.lane, value.n): value for value in self.values}

    def take(self, now: Value) -> Value | None:
        """The taped value that this one should equal."""
        key = (now.lane, now.what, now.name)
        waiting, number = self._waiting.get(key, []), self._taken[key]
        self._taken[key] += 1
        if number < len(waiting):
            return waiting[number]
        return waiting[-1] if waiting and now.what not in _ONCE else None

    def numbered(self, lane: str, n: int) -> Value | None:
        """The value of this number in its lane."""
        return self._by_number.get((lane, n))


def with_contents(values: Iterable[tuple[int, Value]]) -> Iterator[tuple[int, Value]]:
    """Numbered values, with the contents that a tape holds once for all of the same digest."""
    contents: dict[str, bytes] = {}
    for index, value in values:
        if value.content is not None and value.digest is not None:
            contents[value.digest] = value.content
        elif value.digest is not None and (value.length or 0) <= LIMIT and value.digest in contents:
            value = replace(value, content=contents[value.digest])
        yield index, value


@dataclass(slots=True)
class Program:
    """A program that the agent ran. `pieces` by stream, `live`: a replay has to run it although it could be served."""

    process: Value
    exit: Value | None = None
    pieces: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])
    live: bool = False

    def output(self, stream: str) -> tuple[bytes, bool] | None:
        """What was read of `stdout` or `stderr`, and whether to its end; None where not all is on the tape."""
        return joined(self.pieces.get(stream, []))


def joined(pieces: Iterable[Value]) -> tuple[bytes, bool] | None:
    """The content of pieces in order, and whether the last is the end."""
    out: list[bytes] = []
    ended = False
    for piece in pieces:
        if piece.content is None:
            return None
        out.append(piece.content)
        ended = not piece.content
    return b"".join(out), ended


def programs(values: Iterable[tuple[int, Value]], requests: Iterable[tuple[int, Request]]) -> list[Program]:
    """The programs that a tape's values tell of, in order. Values and requests come with their record numbers.

    `live` are those that asked something over the wire in their own lane, those that ran while a server of the run was
    asked, or connected to (it may have been them), and those whose output is not whole on the tape.
    """
    found: dict[tuple[str, int], Program] = {}
    spans: dict[tuple[str, int], tuple[int, float]] = {}
    within: list[int] = []
    for index, value in values:
        of = value.data.get("of")
        key = (value.lane, of if isinstance(of, int) else value.n)
        if value.what == "process":
            found[value.lane, value.n] = Program(value)
            spans[value.lane, value.n] = (index, float("inf"))
        elif value.what == "socket" and value.data.get("within"):
            within.append(index)
        elif value.what == "pipe" and key in found:
            found[key].pieces.setdefault(value.name, []).append(value)
        elif value.what == "exit" and key in found:
            found[key].exit = value
            spans[key] = (spans[key][0], index)
    asked = list(requests)
    reached = [at for at, request in asked if request.inside] + within
    for key, program in found.items():
        lane = program.process.data.get("lane")
        own = isinstance(lane, str) and any(_is_within(request.lane, lane) for _, request in asked)
        begun, ended = spans[key]
        serves = any(begun < at < ended for at in reached)
        program.live = own or serves or program.output("stdout") is None or program.output("stderr") is None
    return list(found.values())


def _is_within(lane: str | None, parent: str) -> bool:
    return lane is not None and (lane == parent or lane.startswith(parent + "/"))


def stream_differences(taped: list[Value], now: list[Value]) -> tuple[Difference, ...]:
    """How what came through a pipe differs. Where somebody stopped reading, as much as both have is compared."""
    was, is_ = joined(taped), joined(now)
    if was is None or is_ is None:
        sizes = [sum(piece.length or 0 for piece in pieces) for pieces in (taped, now)]
        ended = [bool(pieces) and pieces[-1].length == 0 for pieces in (taped, now)]
        if all(ended) and sizes[0] != sizes[1]:
            return (Difference("length", str(sizes[0]), str(sizes[1])),)
        return ()
    (old, old_ended), (new, new_ended) = was, is_
    if not (old_ended and new_ended):
        size = min(len(old), len(new))
        old, new = old[:size], new[:size]
    if _known(old) == _known(new):
        return ()
    return tuple(_line_differences(_with(taped, old), _with(now, new)))


def _with(pieces: list[Value], content: bytes) -> Value:
    return replace(pieces[0], content=content)


def describe(value: Value) -> str:
    """What was read, and by which line: for the head of a drift."""
    where = f" at {value.where}" if value.where else ""
    return f"{value.what} {value.name} in lane {value.lane}{where}"


def differences(taped: Value, now: Value) -> tuple[Difference, ...]:
    """How a value differs from the taped one; empty when what the agent got is the same."""
    if taped.error != now.error:
        return (Difference("outcome", taped.error or "found", now.error or "found"),)
    if taped.error is not None:
        return ()
    match taped.what:
        case "stat":
            return tuple(_stat_differences(taped.data, now.data))
        case "scan":
            return tuple(_content_differences(_without_state(taped), _without_state(now)))
        case "exit":
            names = [name for name in ("returncode", "stdin") if name in taped.data or name in now.data]
            return tuple(_fact_differences(taped.data, now.data, names))
        case "pid" | "process" | "pipe" | "change" | "socket" | "received" | "sent":
            return ()
        case _:
            return tuple(_content_differences(taped, now))


def _content_differences(taped: Value, now: Value) -> Iterator[Difference]:
    if taped.content is not None and now.content is not None:
        if _known(taped.content) != _known(now.content):
            yield from _line_differences(taped, now)
    elif (taped.length, taped.digest) != (now.length, now.digest):
        yield Difference("content", f"{taped.length} bytes, digest {taped.digest}", f"{now.length} bytes, {now.digest}")


def _known(content: bytes) -> bytes:
    """Content without its secrets: with another key it is the same."""
    return replace_tokens(content, lambda _: WILDCARD)


def _line_differences(taped: Value, now: Value) -> Iterator[Difference]:
    was, is_ = _lines(taped), _lines(now)
    shown = 0
    for at in range(max(len(was), len(is_))):
        old, new = (lines[at] if at < len(lines) else None for lines in (was, is_))
        if old != new and _known((old or "").encode()) != _known((new or "").encode()):
            yield Difference(f"line {at + 1}", old, new)
            shown += 1
            if shown == _SHOWN:
                return


def _lines(value: Value) -> list[str]:
    assert value.content is not None
    if value.what in ("listing", "scan"):
        try:
            return [json.dumps(item) for item in json.loads(value.content)]
        except (ValueError, TypeError):
            pass
    return [shorten(line) for line in value.content.decode(errors="backslashreplace").splitlines()]


def _without_state(value: Value) -> Value:
    if value.content is None:
        return value
    try:
        names = [item[:2] for item in json.loads(value.content)]
    except (ValueError, TypeError):
        return value
    return replace(value, content=json.dumps(names).encode())


def _stat_differences(taped: dict[str, Any], now: dict[str, Any]) -> Iterator[Difference]:
    kinds = [data.get("mode", 0) >> 12 for data in (taped, now)]
    asked = taped.get("asked", "all")
    if kinds[0] != kinds[1]:
        yield Difference("type", oct(kinds[0]), oct(kinds[1]))
    elif kinds[0] == 0o10 and asked in ("size", "all"):
        yield from _fact_differences(taped, now, ("size",))
    if asked == "mtime":
        yield from _fact_differences(taped, now, ("mtime",))


def _fact_differences(taped: dict[str, Any], now: dict[str, Any], names: Iterable[str]) -> Iterator[Difference]:
    for name in names:
        if taped.get(name) != now.get(name):
            yield Difference(name, str(taped.get(name)), str(now.get(name)))
