"""What the page draws before anything is clicked: a tape as columns of small values. Pure.

Three parts, so that a long tape is on the screen before its bodies are parsed: the *outline* (lanes, times, statuses,
edges; no body is looked at), the *labels* (model, tokens and a few words of an LLM call; each costs a parsed body), and
the *ranks*. Each is a JSON object. A live page gets the same objects again for what came anew.

Columns are lists of one length, in the order of exchanges. Times are integer microseconds after the tape's start; a
browser's numbers hold 53 bits. Names that repeat stand once in a list and are referred to by their place in it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from tapeproxy.tapes.agentnames import names_of
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.conversation import Call, Message, Text, Thought, ToolCall, ToolResult
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.dialects.mcp import McpCall, read_mcp
from tapeproxy.tapes.exchanges import Chunk, Exchange, Tape, outlines
from tapeproxy.tapes.lanepairs import depth_first
from tapeproxy.tapes.lanes import has_edges
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.redactionrules import is_redacted
from tapeproxy.tapes.summary import split_url

TICKS: Final = 400
"""Chunks of an exchange that get a tick; of more every second, fourth, … does."""
WORDS: Final = 120
"""Characters of a label."""
MARKS: Final = 20_000
"""Readings of clock and files, and notes, that get a mark; `unmarked` is how many more there are."""
_LABEL: Final = (
    *("number", "dialect", "model", "tokens_in", "tokens_out", "tokens_cached", "tokens_written"),
    *("words", "said", "error", "mcp"),
)


def outline(tape: Tape, ending: Ending | None, name: str, *, only: Collection[int] | None = None) -> Json:
    """The tape, its lanes, and its exchanges, or `only` those of these numbers. `ending` None: it is being recorded."""
    exchanges = outlines(tape.exchanges) if only is None else (tape.exchanges[number - 1] for number in sorted(only))
    rows = _rows(exchanges)  # each exchange of a big tape is read from the disk: once
    asking = set(rows["lane"]) if only is None else {one.request.lane or "" for one in outlines(tape.exchanges)}
    lanes = _lane_ids(tape, asking)
    places = {lane: at for at, lane in enumerate(lanes)}
    marks = _marks(tape, places)
    readings = len(tape.notes) + len(tape.values) + sum(clock.lane in places for clock in tape.clocks)
    rows["lane"] = [places.get(lane, 0) for lane in rows["lane"]]
    return {
        "tape": _about(tape, ending, name),
        "lanes": [*_lanes(tape, lanes)],
        "rows": rows,
        "edges": _edges(tape, places),
        "marks": marks,
        "unmarked": readings - len(marks),
    }


def _lane_ids(tape: Tape, asking: set[str]) -> list[str]:
    """The lanes of the page from top to bottom; the empty one is that of requests of nobody."""
    told = {lane.id for lane in tape.lanes if lane.name} | {value.lane for _, value in tape.values}
    shown = asking | {lane for lane in told if lane}
    return sorted(shown, key=depth_first)


def labels(exchanges: Iterable[Exchange]) -> Json:
    """What LLM calls and messages of MCP were about: columns for the numbers given; what is neither is left out.

    `mcp`: method and name of a message of MCP; `error` of one is that it failed, `dialect` and `model` are None.
    """
    columns: dict[str, list[Any]] = {name: [] for name in _LABEL}
    for exchange in exchanges:
        if (call := read_call(exchange)) is not None:
            label = _call_label(call)
        elif (message := read_mcp(exchange)) is not None:
            label = _mcp_label(message)
        else:
            continue
        for name, column in columns.items():
            column.append(exchange.number if name == "number" else label.get(name))
    return columns


def _call_label(call: Call) -> Json:
    return {
        "dialect": call.dialect,
        "model": call.model,
        "tokens_in": call.tokens_in,
        "tokens_out": call.tokens_out,
        "tokens_cached": call.tokens_cached,
        "tokens_written": call.tokens_written,
        "words": _last_words(call),
        "said": "" if call.answer is None else _few(_message_words(call.answer)),
        "error": call.error,
    }


def _mcp_label(message: McpCall) -> Json:
    said = _few(message.result or "")
    title = _few(" ".join(filter(None, (message.method, message.name))))
    return {"words": _few(message.arguments), "said": said, "error": said if message.error else None, "mcp": title}


def ranks(causality: Causality) -> Json:
    """The causal rank of each exchange, and the exchanges in causal order."""
    order = list(causality.order())
    return {"number": order, "rank": [causality.rank(number) for number in order]}


def _about(tape: Tape, ending: Ending | None, name: str) -> Json:
    head, done, seal = tape.head, tape.exit, tape.seal
    return {
        "name": name,
        "format": head.version,
        "by": head.by,
        "started_at": head.started_at,
        "argv": list(head.argv),
        "cwd": head.cwd,
        "python": head.python,
        "platform": head.platform,
        "recording": ending is None,
        "sealed": ending is not None and ending.sealed,
        "canonical": ending is not None and ending.canonical,
        "head_hash": None if ending is None else ending.hash,
        "redacted": is_redacted(head.rules),
        "scrubbed": head.scrubbed is not None,
        "outcome": None if seal is None else seal.outcome,
        "exit_code": None if done is None else done.code,
        "signal": None if done is None else done.signal,
        "trace": None if seal is None else seal.trace,
        "duration": _us(tape.duration),
        "exchanges": len(tape.exchanges),
        "parent": head.parent,
        "branch": head.branch,
        "edit": head.edit,
    }


def _lanes(tape: Tape, lanes: Sequence[str]) -> Iterator[Json]:
    names, kinds = names_of(tape), {lane.id: lane.what for lane in tape.lanes}
    places = {lane: at for at, lane in enumerate(lanes)}
    for lane in lanes:
        above = lane
        while above:
            above = above.rpartition("/")[0]
            if above in places:
                break
        yield {
            "id": lane,
            "name": names.get(lane),
            "kind": kinds.get(lane, ""),
            "parent": places.get(above) if above else None,
        }


def _rows(exchanges: Iterable[Exchange]) -> Json:
    """Columns of exchanges; `lane` is still the lane itself."""
    hosts: dict[str, int] = {}
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            *("number", "lane", "n", "at", "first", "end", "method", "host", "path", "status", "how", "source"),
            *("inside", "size", "chunks", "ticks"),
        )
    }
    for exchange in exchanges:
        request, response, end = exchange.request, exchange.response, exchange.end
        target = split_url(request.url)
        heard = exchange.chunks or [Chunk(frame.t, frame.data) for frame in exchange.frames if frame.to == "client"]
        times = [_us(chunk.t) for chunk in heard if chunk.t is not None]
        began = times[0] if times else None if response is None else _us(response.t)
        step = 1 + (len(times) - 1) // TICKS if times else 1
        row = (
            exchange.number,
            request.lane or "",
            request.n,
            _us(request.t),
            began,
            None if end is None else _us(end.t),
            request.method.decode("latin-1"),
            hosts.setdefault(target.host, len(hosts)),
            target.path,
            None if response is None else response.status,
            None if end is None else end.how,
            request.source,
            request.inside,
            sum(len(chunk.data) for chunk in heard),
            len(heard),
            times[::step],
        )
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return {"hosts": list(hosts)} | columns


def _edges(tape: Tape, lanes: dict[str, int]) -> list[list[Any]]:
    """Edges between lanes of the page: what, from which lane after how many requests, to which after how many.

    None for the number of requests: after all of them.
    """
    if not has_edges(tape.head):
        return []
    found: list[list[Any]] = []
    sent: dict[tuple[str, str], tuple[str, int]] = {}
    for made in tape.lanes:
        if made.origin is not None and made.origin[0] in lanes and made.id in lanes:
            found.append(["start", lanes[made.origin[0]], made.origin[1], lanes[made.id], 0])
    for edge in (edge for edge in tape.edges if edge.asked is not None):
        if edge.out:
            sent[edge.what, edge.on] = (edge.lane, edge.asked or 0)
            continue
        if edge.at is not None:
            source: tuple[str, int | None] | None = (edge.on, edge.at[0])
        else:
            source = sent.get((edge.what, edge.on)) or ((edge.on, None) if edge.on in lanes else None)
        if source is not None and source[0] in lanes and edge.lane in lanes and source[0] != edge.lane:
            found.append([edge.what, lanes[source[0]], source[1], lanes[edge.lane], edge.asked])
    return found


def _marks(tape: Tape, lanes: dict[str, int]) -> list[list[Any]]:
    """What a lane read past the wire, and notes: lane (None: of no lane), at, what, words."""
    found: list[list[Any]] = [[None, _us(note.t), "note", _few(note.text or note.what)] for note in tape.notes]
    for _, value in tape.values[:MARKS]:
        found.append([lanes.get(value.lane), _us(value.t), value.what, _few(value.name)])
    for clock in tape.clocks[: max(0, MARKS - len(found))]:
        if clock.lane in lanes:
            found.append([lanes[clock.lane], _us(clock.t), "clock", ""])
    return found


def _last_words(call: Call) -> str:
    """A few words of the last thing that was said to the model."""
    return _few(_message_words(call.messages[-1])) if call.messages else ""


def _message_words(message: Message) -> str:
    words: list[str] = []
    for part in message.parts:
        match part:
            case Text() | ToolResult():
                words.append(part.text)
            case ToolCall():
                words.append(f"{part.name}({part.arguments})")
            case Thought():
                words.append("…")
            case _:
                words.append(f"[{part.kind}]")
    return " ".join(words)


def _few(text: str) -> str:
    text = " ".join(text[: 4 * WORDS].split())
    return text if len(text) <= WORDS else f"{text[: WORDS - 1]}…"


def _us(ns: int) -> int:
    return ns // 1000
