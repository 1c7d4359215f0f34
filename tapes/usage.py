"""What the answers of a tape had cost when they were recorded: tokens of models, and time. Pure; knows no price."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.summary import summarise


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls to a model (empty: it has no name), and the tokens that its answers say. `uncounted` say none, or half.

    Of `tokens_in`, `tokens_cached` were read from the provider's cache, and `tokens_written` written to it.
    """

    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    uncounted: int
    tokens_cached: int = 0
    tokens_written: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def usage_of(exchanges: Iterable[Exchange]) -> list[Usage]:
    """The calls to models among these, model by model, in the order of their names. Those that failed cost nothing."""
    return summed(_of_calls(exchanges))


def summed(usages: Iterable[Usage]) -> list[Usage]:
    """The same of several runs."""
    found: dict[str, Usage] = {}
    for one in usages:
        found[one.model] = _sum(found[one.model], one) if one.model in found else one
    return [found[model] for model in sorted(found)]


def _of_calls(exchanges: Iterable[Exchange]) -> Iterator[Usage]:
    for row in (summarise(exchange) for exchange in exchanges if not exchange.request.inside):
        if row.dialect is not None and row.status is not None and row.status < 400:
            known = row.tokens_in is not None and row.tokens_out is not None
            tokens = (row.tokens_in, row.tokens_out, row.tokens_cached, row.tokens_written)
            given, made, cached, written = (count or 0 for count in tokens)
            yield Usage(row.model or "", 1, given, made, int(not known), cached, written)


def _sum(a: Usage, b: Usage) -> Usage:
    return Usage(a.model, *(getattr(a, one.name) + getattr(b, one.name) for one in fields(Usage)[1:]))


def waited_ns(exchanges: Iterable[Exchange]) -> int:
    """For how long at least one of these was under way when they were recorded, in nanoseconds."""
    spans = sorted(
        (exchange.request.t, exchange.end.t)
        for exchange in exchanges
        if exchange.end is not None and not exchange.request.inside and exchange.end.t >= exchange.request.t
    )
    waited = until = 0
    for start, end in spans:
        waited += max(0, end - max(start, until))
        until = max(until, end)
    return waited
