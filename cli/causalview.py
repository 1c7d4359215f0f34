"""`show` in causal order: which exchanges, and the columns and fields that say what each knew."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalView:
    """The exchanges of a tape in causal order, or one lane's. `vector`, `rank`: also show clocks, or ranks."""

    causality: Causality
    numbers: Sequence[int]
    vector: bool = False
    rank: bool = False

    def cells(self, number: int) -> list[tuple[str, str]]:
        """What is shown of an exchange beside the rest: title and text."""
        found = [("rank", str(self.causality.rank(number)))] if self.rank else []
        return [*found, ("knows", self._clock(number))] if self.vector else found

    def document(self, number: int) -> dict[str, Any]:
        """The same as fields of JSON."""
        return {"rank": self.causality.rank(number), "clock": dict(self.causality.clock(number))}

    def _clock(self, number: int) -> str:
        return " ".join(f"{lane or '-'}:{count}" for lane, count in self.causality.clock(number).items())


def causal_view(tape: Tape, lane: str | None, *, vector: bool, rank: bool) -> CausalView:
    """The view that was asked for; `lane` is an id, or the name of a thread or task. Raises UsageError."""
    causality = Causality.of(tape)
    if lane is None:
        return CausalView(causality=causality, numbers=causality.order(), vector=vector, rank=rank)
    lanes = {causality.lane(number) for number in causality.order()}
    wanted = {one for one in lanes if lane in (one, causality.name(one))}
    wanted = wanted or {one.id for one in tape.lanes if one.name == lane} & lanes
    if len(wanted) != 1:
        there = ", ".join(causality.name(one) for one in sorted(wanted or lanes)) or "none"
        what = "asked nothing" if not wanted else "is the name of several"
        raise UsageError(f"lane {lane!r} {what}", fix=f"lanes that asked something: {there}")
    numbers = [number for number in causality.order() if causality.lane(number) in wanted]
    return CausalView(causality=causality, numbers=numbers, vector=vector, rank=rank)
