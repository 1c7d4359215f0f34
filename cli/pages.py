"""What `show` prints for people: a tape as a table, an exchange as a page. Yields lines, prints none.

Whatever comes from a tape passes `printable`, `block` or `table` on its way: see `rendering`.
"""

import codecs
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from tapeproxy.cli.redactions import mark
from tapeproxy.cli.rendering import Cell, Column, Screen, block, clip, count, duration, moment, printable, size, table
from tapeproxy.cli.socketpages import message_lines
from tapeproxy.tapes.agentnames import askers_of
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Call, Media, Message, Part, Text, Thought, ToolCall, ToolResult
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.dialects.mcp import read_mcp
from tapeproxy.tapes.exchanges import Chunk, Exchange, Tape
from tapeproxy.tapes.indenting import indent_json
from tapeproxy.tapes.outcomes import outcome
from tapeproxy.tapes.parameters import read_parameters
from tapeproxy.tapes.records import Headers, Response
from tapeproxy.tapes.redactionrules import is_redacted
from tapeproxy.tapes.summary import Row, Totals, summarise, total

if TYPE_CHECKING:
    from tapeproxy.cli.causalview import CausalView

_HEX_BYTES = 256
_CHUNKS_FIRST, _CHUNKS_LAST = 16, 4
_PARAMETER = 200
"""Characters of a parameter's value: a schema may be long, and --json has it whole."""
_FACTS = frozenset({"process", "machine", "hints"})
"""Notes that are no news to whoever reads a tape: the agent's own processes, and what requests say of the machine."""

_COLUMNS = (
    Column("#", right=True),
    Column("lane", least=4, rank=3),
    Column("method"),
    Column("host", least=10, cut="start", rank=2),
    Column("path", least=12, cut="start"),
    Column("status"),
    Column("model", least=8, rank=4),
    Column("in", right=True, rank=5),
    Column("out", right=True, rank=5),
    Column("chunks", right=True, rank=7),
    Column("first", right=True, rank=6),
    Column("total", right=True, rank=1),
)


def tape_page(
    path: str,
    tape: Tape,
    ending: Ending,
    screen: Screen,
    *,
    recording: bool = False,
    view: "CausalView | None" = None,
) -> Iterator[str]:
    """The lines of `show TAPE`. `recording`: its recorder still runs. `view`: in causal order."""
    rows = [summarise(exchange) for exchange in tape.exchanges]
    yield screen.paint(printable(shlex.join(tape.head.argv) or "(no command)"), bold=True)
    ended = "recording" if recording else outcome(tape.seal, tape.exit)
    facts = [moment(tape.head.started_at), *([duration(tape.duration)] if tape.duration else []), ended]
    facts += [_seal_words(ending), "" if is_redacted(tape.head.rules) else "not redacted"]
    facts += ["scrubbed"] if tape.head.scrubbed is not None else []
    yield printable(", ".join(filter(None, facts)))
    yield screen.paint(printable(path), "bright_black")
    yield ""
    if view is not None:
        yield from _causal_table(rows, view, screen)
        yield ""
    elif rows:
        names = askers_of(tape)
        yield from table(_COLUMNS, [_cells(row, names) for row in rows], screen)
        yield ""
    yield _totals_line(total(tape, rows))
    for note in (note for note in tape.notes if note.what not in _FACTS):
        yield screen.paint(f"note: {printable(note.text or note.what)}", "yellow")
    if recording:
        yield screen.paint("the tape is still being recorded", "yellow")
    elif not ending.sealed:
        yield screen.paint("the tape has no seal: it stops where its recorder stopped, or was cut", "yellow")


def _causal_table(rows: list[Row], view: "CausalView", screen: Screen) -> Iterator[str]:
    """The exchanges of the view; their lanes with names, and the columns of the view after them."""
    cells = []
    titles: tuple[str, ...] = ()
    for number in view.numbers:
        first, _, *rest = _cells(rows[number - 1])
        extra = view.cells(number)
        titles = tuple(title for title, _ in extra)
        lane = view.causality.asker(number)
        cells.append([first, Cell(lane), *(Cell(text) for _, text in extra), *rest])
    columns = [Column(title, least=4, rank=0) for title in titles]
    yield from table((*_COLUMNS[:2], *columns, *_COLUMNS[2:]), cells, screen)


def _seal_words(ending: Ending) -> str:
    if not ending.sealed:
        return ""
    return "sealed" if ending.canonical else "sealed, but its bytes are not the ones written (see verify)"


def _cells(row: Row, names: Mapping[int, str] = MappingProxyType({})) -> list[Cell]:
    bad = row.how != "complete" or (row.status or 0) >= 400
    return [
        Cell(str(row.number)),
        Cell(names.get(row.number, row.lane or "")),
        Cell(row.method),
        Cell(row.target.host),
        Cell(row.target.path if row.mcp is None else f"{row.target.path}: {row.mcp.title}"),
        Cell(row.result, "red" if bad else "green"),
        Cell(row.model or "", "cyan"),
        Cell("" if row.tokens_in is None else str(row.tokens_in)),
        Cell("" if row.tokens_out is None else str(row.tokens_out)),
        Cell(str(row.chunks) if row.chunks else ""),
        Cell("" if row.first_byte is None else duration(row.first_byte)),
        Cell("" if row.total is None else duration(row.total)),
    ]


def _totals_line(totals: Totals) -> str:
    facts = [count(totals.exchanges, "exchange")]
    if totals.calls:
        facts.append(count(totals.calls, "LLM call"))
    if totals.tokens_in is not None or totals.tokens_out is not None:
        silent = f" ({count(totals.uncounted, 'call')} did not say)" if totals.uncounted else ""
        facts.append(f"{totals.tokens_in or 0} tokens in, {totals.tokens_out or 0} out{silent}")
    elif totals.calls:
        facts.append("which did not say their tokens" if totals.calls > 1 else "which did not say its tokens")
    if totals.failed:
        facts.append(f"{totals.failed} failed")
    return ", ".join((*facts, f"{size(totals.size)} received"))


def exchange_page(exchange: Exchange, of: int, screen: Screen) -> Iterator[str]:
    """The lines of `show TAPE N`; `of` is the number of exchanges on the tape."""
    request, response = exchange.request, exchange.response
    call = read_call(exchange)
    line = f"{request.method.decode('latin-1')} {request.url.decode('latin-1')}"
    yield f"{screen.paint(_safe(line), bold=True)}  {printable(request.http)}"
    facts = [f"exchange {exchange.number} of {of}", f"{duration(request.t)} after the start"]
    facts += [f"lane {request.lane}"] if request.lane else []
    facts += ["inside: served by the run itself"] if request.inside else []
    yield screen.paint(printable(", ".join(facts)), "bright_black")
    if call is None and (message := read_mcp(exchange)) is not None:
        yield screen.paint(f"MCP: {_safe(message.title)}", "cyan")
    yield from header_lines(request.headers)
    yield ""
    if call is not None:
        yield from conversation_lines(call, screen)
        yield ""
        yield from _parameter_lines(exchange, call, screen)
    else:
        yield from body_lines("request", exchange.request_body, request.headers, screen)
    if response is not None:
        yield from _response_lines(exchange, response, call, screen)
    yield from chunk_lines(exchange, screen)
    yield from message_lines(exchange, screen)
    yield _end_line(exchange, screen)


def _response_lines(exchange: Exchange, response: Response, call: Call | None, screen: Screen) -> Iterator[str]:
    for status, headers in response.informational:
        yield f"{status} (informational)"
        yield from header_lines(headers)
    line = f"{response.status} {response.reason.decode('latin-1')}".rstrip()
    colour = "red" if response.status >= 400 else "green"
    yield f"{screen.paint(printable(line), colour, bold=True)}  {printable(response.http)}, framing: {response.framing}"
    yield from header_lines(response.headers)
    yield ""
    if call is not None and (call.answer is not None or call.error):
        yield from answer_lines(call, screen)
        yield ""
    else:
        yield from body_lines("response", exchange.response_body, response.headers, screen)


def header_lines(headers: Headers) -> Iterator[str]:
    """Headers as they came, redacted values marked."""
    for name, value in headers:
        yield f"  {printable(name.decode('latin-1'))}: {_safe(value.decode('latin-1'))}"


def _safe(text: str) -> str:
    """Text of a tape on one line, with redacted values marked."""
    return printable(mark(text))


def _safe_block(text: str, indent: str) -> str:
    return block(mark(text), indent)


def _parameter_lines(exchange: Exchange, call: Call, screen: Screen) -> Iterator[str]:
    """What was asked for beside the conversation, and a blank line; nothing if there was nothing."""
    parameters = read_parameters(exchange, call)
    if not parameters:
        return
    yield screen.paint("parameters", bold=True)
    for name, text in parameters:
        yield f"  {printable(name)}: {clip(_safe(text), _PARAMETER)}"
    yield ""


def conversation_lines(call: Call, screen: Screen) -> Iterator[str]:
    """What was asked, as a conversation."""
    yield screen.paint(f"conversation ({call.dialect}, {printable(call.model or 'no model')})", bold=True)
    for message in call.messages:
        yield from _message_lines(message, screen)


def answer_lines(call: Call, screen: Screen) -> Iterator[str]:
    """What the model answered, and why it stopped."""
    facts = [] if call.stop is None else [f"stop: {call.stop}"]
    facts += [] if call.tokens_in is None else [f"{call.tokens_in} tokens in"]
    kinds = ((call.tokens_cached, "read from the cache"), (call.tokens_written, "written to it"))
    facts += [f"{number} of them {what}" for number, what in kinds if number]
    facts += [] if call.tokens_out is None else [f"{call.tokens_out} tokens out"]
    facts += ["put together from its stream"] if call.streamed else []
    yield screen.paint("answer", bold=True) + (f" ({printable(', '.join(facts))})" if facts else "")
    if call.answer is not None:
        yield from _message_lines(call.answer, screen)
    if call.error:
        yield screen.paint(f"  error: {_safe(call.error)}", "red")


def _message_lines(message: Message, screen: Screen) -> Iterator[str]:
    yield screen.paint(f"  {printable(message.role)}", "cyan")
    for part in message.parts:
        yield _part_text(part)


def _part_text(part: Part) -> str:
    indent = "    "
    match part:
        case Text():
            return _safe_block(f"refusal: {part.text}" if part.refusal else part.text, indent)
        case Thought():
            return _safe_block(f"(thought) {part.text}" if part.text else "(thought, hidden)", indent)
        case ToolCall():
            return _safe_block(f"-> {part.name}({part.arguments}){_tag(part.id)}", indent)
        case ToolResult():
            return _safe_block(f"<- {'error: ' if part.error else ''}{part.text}{_tag(part.id)}", indent)
        case Media():
            return _safe_block(f"[{f'{part.kind} {part.detail}'.strip()}]", indent)


def _tag(call_id: str | None) -> str:
    return f"  [{call_id}]" if call_id else ""


def body_lines(whose: str, body: bytes, headers: Headers, screen: Screen) -> Iterator[str]:
    """A body as people want to see it: JSON indented, text as it is, else its first bytes in hex; and a blank line."""
    if not body:
        return
    decoded = decode(body, headers)
    facts = [size(len(body)), *(f"{coding} undone" for coding in decoded.coding)]
    facts += [decoded.note] if decoded.note else []
    yield screen.paint(f"{whose} body", bold=True) + f" ({printable(', '.join(facts))})"
    text = _text(decoded.data)
    if text is not None:
        yield _safe_block(indent_json(text) or text, "  ")
    else:
        yield from _hex_lines(decoded.data)
    yield ""


def _text(data: bytes) -> str | None:
    """UTF-8 as text, whatever controls are in it, and also when it is cut inside a character; None for the rest."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _hex_lines(data: bytes) -> Iterator[str]:
    for start in range(0, min(len(data), _HEX_BYTES), 16):
        row = data[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"  {start:04x}  {row.hex(' '):<47}  {text}"
    if len(data) > _HEX_BYTES:
        yield f"  … and {size(len(data) - _HEX_BYTES)} more; --raw writes them all"


def chunk_lines(exchange: Exchange, screen: Screen) -> Iterator[str]:
    """When each chunk came, after the request; the middle of a long stream is left out."""
    for way, chunks in (("sent", exchange.uploads), ("received", exchange.chunks)):
        if not chunks:
            continue
        yield screen.paint(f"chunks {way}", bold=True) + f" ({_timing(exchange.request.t, chunks)})"
        shown = chunks[:_CHUNKS_FIRST] if len(chunks) > _CHUNKS_FIRST + _CHUNKS_LAST else chunks
        yield from (chunk_line(exchange.request.t, chunk, screen) for chunk in shown)
        if shown is not chunks:
            yield f"  … {len(chunks) - _CHUNKS_FIRST - _CHUNKS_LAST} more …"
            yield from (chunk_line(exchange.request.t, chunk, screen) for chunk in chunks[-_CHUNKS_LAST:])


def _timing(start: int, chunks: list[Chunk]) -> str:
    times = [chunk.t for chunk in chunks if chunk.t is not None]
    facts = [str(len(chunks)), size(sum(len(chunk.data) for chunk in chunks))]
    if times:
        facts.append(f"first after {duration(max(0, times[0] - start))}")
    gaps = [after - before for before, after in pairwise(times)]
    if gaps:
        facts.append(f"longest gap {duration(max(0, *gaps))}")
    return ", ".join(facts)


def chunk_line(start: int, chunk: Chunk, screen: Screen) -> str:
    """A chunk, and when after `start` (ns) it came; the beginning of a long one."""
    when = "?" if chunk.t is None else f"+{duration(max(0, chunk.t - start))}"
    head = f"  {when:>9}  {size(len(chunk.data)):>7}  "
    text = _text(chunk.data[:120])
    shown = chunk.data[:24].hex(" ") if text is None else _safe(text)
    return head + clip(shown, max(20, (screen.width or 100) - len(head)))


def _end_line(exchange: Exchange, screen: Screen) -> str:
    if exchange.end is None:
        return screen.paint("unfinished: the tape stops before this exchange ended", "yellow")
    end = exchange.end
    line = f"{end.how} after {duration(max(0, end.t - exchange.request.t))}"
    line += f": {end.error}" if end.error else ""
    trailers = "".join(f"\n{line}" for line in header_lines(end.trailers))
    return screen.paint(printable(line), None if end.how == "complete" else "red") + trailers
