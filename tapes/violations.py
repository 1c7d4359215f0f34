"""Violations and drifts: what a replay did that the tape does not cover, as values, as text and as an HTTP answer.

A violation is answered with status 470, which no server uses and no SDK retries, so that it cannot be mistaken for an
answer of the world; the run's exit code says it too, whatever the agent makes of the answer.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import orjson

from tapeproxy.tapes.answers import head
from tapeproxy.tapes.explain import Difference, Explanation, shorten

STATUS = 470
REASON = b"Tape Violation"
type Kind = Literal[
    "miss", "used-up", "lane", "egress", "websocket", "tunnel", "malformed", "too-large", "interrupted", "internal"
]


@dataclass(frozen=True, slots=True)
class Violation:
    """Something the agent did in a replay that is not on the tape. `what` is one sentence.

    Of kind `internal` it is a bug of ours, which must not look like a clean run. Long texts are cut.
    """

    kind: Kind
    request: str
    what: str
    explanation: Explanation | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "request", shorten(self.request))
        object.__setattr__(self, "what", shorten(self.what))

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": self.kind, "request": self.request, "what": self.what}
        if self.explanation is not None and self.explanation.nearest is not None:
            out["nearest"] = {
                "exchange": self.explanation.nearest,
                "request": self.explanation.nearest_request,
                "score": self.explanation.score,
                "used": self.explanation.nearest_used,
                "differences": [asdict(difference) for difference in self.explanation.differences],
            }
        return out

    def to_text(self, *, limit: int = 8) -> str:
        """A short block for a terminal; the caller escapes control characters. At most `limit` differences."""
        lines = [self.what, f"  request: {self.request}"]
        nearest = self.explanation
        if nearest is not None and nearest.nearest is not None:
            state = ", its answer already given" if nearest.nearest_used else ""
            lines.append(f"  nearest: exchange {nearest.nearest} ({nearest.score:.0%} alike{state})")
            if nearest.nearest_request != self.request:
                lines.append(f"           {nearest.nearest_request}")
            shown = nearest.differences[:limit]
            lines += [line for difference in shown for line in _difference_lines(difference)]
            if len(nearest.differences) > limit:
                lines.append(f"    and {len(nearest.differences) - limit} more differences")
        return "\n".join(lines)

    def to_answer(self, *, body: bool = True) -> bytes:
        """The bytes of the HTTP answer; without its `body` for HEAD."""
        error = {"type": "tapeproxy_violation", "code": self.kind, "message": self.to_text()}
        content = orjson.dumps({"error": error, "violation": self.to_json()})
        headers = (
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
            (b"x-should-retry", b"false"),
            (b"x-tapeproxy", b"violation"),
            (b"connection", b"close"),
        )
        return head(STATUS, REASON, headers) + (content if body else b"")


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference that did not keep the run from going on: inside traffic that went another way."""

    request: str
    what: str
    differences: tuple[Difference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"request": self.request, "what": self.what, "differences": [asdict(d) for d in self.differences]}

    def to_text(self, *, limit: int = 8) -> str:
        """A short block for a terminal; the caller escapes control characters."""
        lines = [self.what, f"  request: {self.request}"]
        lines += [line for difference in self.differences[:limit] for line in _difference_lines(difference)]
        return "\n".join(lines)


def _difference_lines(difference: Difference) -> list[str]:
    taped = "(absent)" if difference.taped is None else difference.taped
    asked = "(absent)" if difference.asked is None else difference.asked
    return [f"    {difference.where}", f"      tape: {taped}", f"      now:  {asked}"]
