"""The kinds of record that the shim writes: lanes, clock, environment, order, and what the agent read past the wire."""

from dataclasses import dataclass, field
from typing import ClassVar

from tapeproxy.tapes.recordfields import Json, dump_body, dump_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A sequential flow of control of the agent: `id` says whose child it is, `what` (thread, task ...).

    `origin`: what it knew when it was made, as (lane, requests, meetings): all that this lane had done by then.
    `asked`: the agent gave it this name, when the lane had made so many requests. The last name is the lane's.
    """

    kind: ClassVar[str] = "lane"
    t: int
    id: str
    what: str = ""
    name: str | None = None
    origin: tuple[str, int, int] | None = None
    asked: int | None = None
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "id": self.id, "what": self.what}
        if self.name is not None:
            out["name"] = dump_text(self.name)
        if self.origin is not None:
            out["from"] = list(self.origin)
        if self.asked is not None:
            out["asked"] = self.asked
        return out | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A jump of a lane's clock: its read number `n` gave `ns` nanoseconds after the tape's start (may be negative).

    `slept`: it was the first read after the lane had slept.
    """

    kind: ClassVar[str] = "clock"
    t: int
    lane: str
    n: int
    ns: int
    slept: bool = False
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "lane": self.lane, "n": self.n, "ns": self.ns}
        return (out | {"slept": True} if self.slept else out) | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneEnd:
    """The end of a lane, or of its process: it had read the clock `reads` times."""

    kind: ClassVar[str] = "lane-end"
    t: int
    lane: str
    reads: int
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"t": self.t, "lane": self.lane, "reads": self.reads} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task that had made a request completed: a `lane`, and its `parent`, of whose tasks the order is of interest.

    `sleeps`: how often it slept since its last request.
    """

    kind: ClassVar[str] = "done"
    t: int
    lane: str
    parent: str
    sleeps: int = 0
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "lane": self.lane, "parent": self.parent}
        if self.sleeps:
            out["sleeps"] = self.sleeps
        return out | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """An environment variable that the agent read: a keyed `digest` of its value, None when it was not set."""

    kind: ClassVar[str] = "env"
    t: int
    name: str
    digest: str | None
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"t": self.t, "name": dump_text(self.name), "digest": self.digest} | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What the agent's own code read past the wire, or said in a hint: number `n` of its lane. docs/FORMAT.md names the
    `what`s.

    `content` is None where it is longer than a tape holds, or is that of an earlier value with the same `digest`.
    """

    kind: ClassVar[str] = "value"
    t: int
    lane: str
    n: int
    what: str
    name: str
    where: str = ""
    error: str | None = None
    length: int | None = None
    digest: str | None = None
    content: bytes | None = None
    data: Json = field(default_factory=dict)
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "lane": self.lane, "n": self.n, "what": self.what, "name": dump_text(self.name)}
        if self.where:
            out["where"] = dump_text(self.where)
        optional: Json = {"error": self.error, "length": self.length, "digest": self.digest}
        out |= {name: value for name, value in optional.items() if value is not None}
        if self.content is not None:
            out["content"] = dump_body(self.content)
        return (out | {"data": self.data} if self.data else out) | self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Two lanes met. Without `asked` at a lock: `lane` was the `n`-th to acquire `on`, or was refused it (`what`).

    With `asked`: after so many requests and `n` meetings, `lane` came to know what another one knew. That is the lane
    `on`, after `at` (its requests and meetings; None: all of them), or whoever sent (`out`) the token `on`.
    """

    kind: ClassVar[str] = "edge"
    t: int
    what: str
    on: str
    lane: str
    n: int
    asked: int | None = None
    at: tuple[int, int] | None = None
    out: bool = False
    extra: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {"t": self.t, "what": self.what, "on": dump_text(self.on), "lane": self.lane, "n": self.n}
        if self.asked is not None:
            out["asked"] = self.asked
        if self.at is not None:
            out["at"] = list(self.at)
        return (out | {"out": True} if self.out else out) | self.extra
