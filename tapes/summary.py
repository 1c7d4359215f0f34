"""One row for each exchange of a tape, and the totals; knows what to say of an exchange, not how to show it."""

from collections.abc import Iterable
from dataclasses import dataclass

from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.dialects.mcp import McpCall, read_mcp
from tapeproxy.tapes.exchanges import Exchange, Tape


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in parts. `host` carries its port where the URL did; all are text as on the wire, escapes and all."""

    scheme: str
    host: str
    path: str
    query: str


@dataclass(frozen=True, slots=True)
class Row:
    """What one exchange was.

    `how` it ended, None when the tape stops before its end. `status` is None when no response came. Times are
    nanoseconds after the request: to the first byte of the response's body (of its head, if it has none), and to the
    end; None where the tape does not say. `chunks` and `size` are the response body's, as it came, or of what a
    WebSocket's server sent. `dialect`, `model` and the tokens are None for what is no LLM call, `mcp` for what is no
    message of MCP. Of `tokens_in`, `tokens_cached` were read from the provider's cache and `tokens_written` written to
    it; None where the answer says nothing of that.
    """

    number: int
    lane: str | None
    method: str
    target: Target
    status: int | None
    how: str | None
    dialect: str | None
    model: str | None
    tokens_in: int | None
    tokens_out: int | None
    chunks: int
    size: int
    first_byte: int | None
    total: int | None
    error: str | None
    mcp: McpCall | None = None
    tokens_cached: int | None = None
    tokens_written: int | None = None

    @property
    def result(self) -> str:
        """The status, and how the exchange ended when it is not complete: `200`, `200 upstream-cut`, `reset`."""
        words = [] if self.status is None else [str(self.status)]
        if self.how != "complete":
            words.append(self.how or "unfinished")
        return " ".join(words) or "no response"


@dataclass(frozen=True, slots=True)
class Totals:
    """What a tape holds in all. Tokens are None when no exchange gives any; `uncounted` are the LLM calls that do not
    say theirs, or say only half; `failed` counts all that is not complete or has a status of 400 or more; `duration`
    is in nanoseconds."""

    exchanges: int
    calls: int
    failed: int
    tokens_in: int | None
    tokens_out: int | None
    uncounted: int
    size: int
    duration: int


def summarise(exchange: Exchange) -> Row:
    """The row of one exchange. Never raises, whatever its bytes are."""
    request, response, end = exchange.request, exchange.response, exchange.end
    call = read_call(exchange)
    sizes = [chunk.size for chunk in exchange.chunks]
    first = next((chunk.t for chunk in exchange.chunks if chunk.t is not None), None)
    if exchange.frames:
        heard = [frame for frame in exchange.frames if frame.to == "client"]
        sizes = [len(frame.data) for frame in heard]
        first = heard[0].t if heard else None
    if first is None and response is not None and not exchange.chunks:
        first = response.t
    return Row(
        number=exchange.number,
        lane=request.lane,
        method=request.method.decode("latin-1"),
        target=split_url(request.url),
        status=None if response is None else response.status,
        how=None if end is None else end.how,
        dialect=None if call is None else call.dialect,
        model=None if call is None else call.model,
        tokens_in=None if call is None else call.tokens_in,
        tokens_out=None if call is None else call.tokens_out,
        chunks=len(sizes),
        size=sum(sizes),
        first_byte=_since(request.t, first),
        total=_since(request.t, None if end is None else end.t),
        error=call.error if call is not None and call.error else None if end is None else end.error,
        mcp=read_mcp(exchange) if call is None else None,
        tokens_cached=None if call is None else call.tokens_cached,
        tokens_written=None if call is None else call.tokens_written,
    )


def total(tape: Tape, rows: Iterable[Row]) -> Totals:
    """The totals of `rows`, which are the tape's."""
    rows = list(rows)
    return Totals(
        exchanges=len(rows),
        calls=sum(row.dialect is not None for row in rows),
        failed=sum(row.how != "complete" or (row.status or 0) >= 400 for row in rows),
        tokens_in=_sum(row.tokens_in for row in rows),
        tokens_out=_sum(row.tokens_out for row in rows),
        uncounted=sum(row.dialect is not None and None in (row.tokens_in, row.tokens_out) for row in rows),
        size=sum(row.size for row in rows),
        duration=tape.duration,
    )


def split_url(url: bytes) -> Target:
    """The parts of an absolute URL; what is no URL becomes all path."""
    text = url.decode("latin-1")
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "", text
    rest, _, _ = rest.partition("#")
    rest, _, query = rest.partition("?")
    host, slash, path = rest.partition("/") if found else ("", "", rest)
    return Target(scheme, host, slash + path if found else path, query)


def _since(start: int, t: int | None) -> int | None:
    # Imported tapes may hold times that run backwards, and the time of the request where they know no other.
    return None if t is None or t == start else max(0, t - start)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
