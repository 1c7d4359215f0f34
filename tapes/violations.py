"""Violations and drifts: what a replay did that the tape does not cover, as values, as text and as an HTTP answer.

A violation is answered with status 470, which no server uses and no SDK retries, so that it cannot be mistaken for an
answer of the world; the run's exit code says it too, whatever the agent makes of the answer.
"""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import orjson

from tapeproxy.tapes.answers import head
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.requestlines import shorten

if TYPE_CHECKING:
    from tapeproxy.tapes.differences import Difference
    from tapeproxy.tapes.explain import Explanation

STATUS = 470
REASON = b"Tape Violation"
type Kind = Literal[
    "miss",
    "used-up",
    "lane",
    "tool",
    "egress",
    "websocket",
    "tunnel",
    "no-tape",
    "malformed",
    "too-large",
    "interrupted",
    "refused",
    "placeholder",
    "internal",
]


@dataclass(frozen=True, slots=True)
class Violation:
    """Something the agent did in a replay that is not on the tape. `what` is one sentence.

    Of kind `internal` it is a bug of ours, which must not look like a clean run. Long texts are cut. `tag` says whose
    request it is, `ask` is that of a miss in full. `lane_name`: what the agent calls the thread or task that asked.
    `differences` are those of what is no request: a tool's call.
    """

    kind: Kind
    request: str
    what: str
    explanation: "Explanation | None" = None
    tag: LaneTag | None = None
    ask: Ask | None = field(default=None, repr=False, compare=False)
    lane_name: str = field(default="", compare=False)
    differences: "tuple[Difference, ...]" = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "request", shorten(self.request))
        object.__setattr__(self, "what", shorten(self.what))

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": self.kind, "request": self.request, "what": self.what}
        if self.tag is not None:
            out |= {"lane": self.tag.lane, "lane_name": self.lane_name}
        if self.differences:
            out["differences"] = [asdict(difference) for difference in self.differences]
        return out if self.explanation is None else out | self.explanation.to_json()

    def to_text(self, *, limit: int = 8) -> str:
        """A short block for a terminal; the caller escapes control characters. At most `limit` differences."""
        lines = [self.what, f"  request: {self.request}"]
        if self.tag is not None and (self.lane_name or "/" in self.tag.lane):
            lines.append(f"  lane: {self.tag.lane}" + (f", called {self.lane_name}" if self.lane_name else ""))
        if self.explanation is not None:
            lines += self.explanation.lines(limit)
        return "\n".join((*lines, *_difference_lines(self.differences, limit)))

    def to_answer(self, *, body: bool = True) -> bytes:
        """The bytes of the HTTP answer; without its `body` for HEAD."""
        headers, content = self.parts()
        return head(STATUS, REASON, headers) + (content if body else b"")

    def parts(self) -> tuple[Headers, bytes]:
        """The headers of the HTTP answer, and its body."""
        error = {"type": "tapeproxy_violation", "code": self.kind, "message": self.to_text()}
        content = orjson.dumps({"error": error, "violation": self.to_json()})
        headers = (
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
            (b"x-should-retry", b"false"),
            (b"x-tapeproxy", b"violation"),
            (b"connection", b"close"),
        )
        return headers, content


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference that did not keep the run from going on: inside traffic that went another way, another position.

    `tag` says whose request it is, where the drift is about one's position.
    """

    request: str
    what: str
    differences: "tuple[Difference, ...]" = ()
    tag: LaneTag | None = None

    def to_json(self) -> dict[str, Any]:
        return {"request": self.request, "what": self.what, "differences": [asdict(d) for d in self.differences]}

    def to_text(self, *, limit: int = 8) -> str:
        """A short block for a terminal; the caller escapes control characters."""
        lines = [self.what, f"  request: {self.request}", *_difference_lines(self.differences, limit)]
        return "\n".join(lines)


def _difference_lines(differences: "tuple[Difference, ...]", limit: int) -> "list[str]":
    if not differences:
        return []
    from tapeproxy.tapes.differences import difference_text

    return [*map(difference_text, differences[:limit])]
