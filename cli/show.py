"""`tapeproxy show`: what is on a tape, or one exchange of it whole."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import echo, screen_of
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.cli.causalview import CausalView
    from tapeproxy.tapes.decoder import Ending
    from tapeproxy.tapes.exchanges import Exchange, Tape


@click.command(context_settings=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--raw", is_flag=True, help="With N: write the bytes of the response's body, as they came.")
@click.option("--size", "sizes", is_flag=True, help="Show what takes the room.")
@click.option(
    "--top", type=click.IntRange(0), default=10, metavar="N", show_default=True, help="With --size: the N largest."
)
@click.option("--tools", is_flag=True, help="Show calls of tools, messages and conclusions (docs/HINTS.md).")
@click.option("--rank", is_flag=True, help="Show exchanges in causal order, with their ranks.")
@click.option("--vector", is_flag=True, help="Show exchanges in causal order, with what each knew of: vector clocks.")
@click.option("--lane", metavar="LANE", help="Show one lane's exchanges, by its id or its thread's or task's name.")
@click.argument("tape", required=False)
@click.argument("number", metavar="[N]", required=False)
@unlock_options
def command(
    tape: str | None,
    number: str | None,
    as_json: bool,
    raw: bool,
    sizes: bool,
    top: int,
    tools: bool,
    rank: bool,
    vector: bool,
    lane: str | None,
    unlocking: Unlocking,
) -> None:
    """Show what is on a tape, or one exchange whole.

    \b
    tapeproxy show                     the last tape in .tapes, as a table
    tapeproxy show TAPE                another one
    tapeproxy show TAPE 3              its third exchange: headers, bodies, conversation, times
    tapeproxy show 3                   the third exchange of the last tape
    tapeproxy show TAPE 3 --raw        the bytes of its response's body, compressed if they came so
    tapeproxy show TAPE --size         what takes the room: kinds of record, and the largest exchanges
    tapeproxy show TAPE --tools        what functions marked as tools gave
    tapeproxy show TAPE --vector       in causal order, with vector clocks: which answers each request knew of
    tapeproxy show TAPE --lane bob     what one thread, task or process asked

    A stream is put together again for OpenAI chat completions and responses, Anthropic messages, Gemini (on Vertex,
    too), Bedrock's Converse and Ollama. Tokens in count the whole prompt, cached parts included. Control characters in
    what is shown are escaped.

    --json prints, for a tape: tape (its path), format, by, started_at, argv, cwd, sealed, canonical, redacted,
    scrubbed (null, or from which tape), outcome,
    exit_code, signal, duration_ns, exchanges, totals (exchanges, calls, failed, tokens_in,
    tokens_out, uncounted, size) and notes
    (at_ns, what, text, data) and lanes (id, name, what; those the tape tells of).
    Each of the exchanges has number, lane, method, scheme, host, path, query, status, how
    (complete, client-gone, upstream-cut, reset, connect-error; null: the tape stops before its end), dialect, model,
    mcp (of a message of MCP: method, name, arguments, result, error), tokens_in (of which tokens_cached were read from
    the provider's cache, tokens_written written to it), tokens_out, chunks, size, first_byte_ns, total_ns and error.
    With --rank, --vector or --lane they are in causal order (docs/CAUSALITY.md), and have rank and clock, too.

    For one exchange: exchange (as above); request (at_ns, method, url, http, alpn, inside, headers, body, chunks);
    response (at_ns, status, reason, http, framing, informational, headers, body, chunks) or null; end (at_ns, how,
    error, trailers) or null; call (dialect, model, messages, answer, stop, tokens_in, tokens_out,
    tokens_cached, tokens_written, error, streamed) or null; messages, what passed on a WebSocket (at_ns, from, type,
    code, whole, size, and text or b64). A body has size, coding, whole, note, and its decoded content as text or b64. A
    call's message has role and parts of kind text, thought, tool-call, tool-result or media.

    For --size: tape, total, kinds (each with its kind) and exchanges, the largest first. All have records, file (bytes
    of the file, a share of what is compressed together), text (of the lines), bodies (as they were on the wire) and
    referred (of these, what a request shares with an earlier one and is not on the tape again). An exchange also has
    number, method, url, request and response (bytes of its bodies).

    For --tools: tape and values, in the order in which they came: lane, n (LANE#N names a value, as for `fork`), kind
    (tool, hint, message, final), name, where, arguments, from, end (returned, raised, cancelled, closed, untaped),
    error, untaped (why), value (JSON as docs/FORMAT.md has it), exchanges (that its body asked), began_ns and took_ns.
    """
    from tapeproxy.proxy.tapefile import load

    path, wanted = _arguments(tape, number)
    if sizes:
        if raw or wanted is not None:
            raise UsageError("--size is about a whole tape", fix="tapeproxy show TAPE --size")
        _show_sizes(path, top, unlocking, as_json=as_json)
        return
    if raw and wanted is None:
        raise UsageError("--raw writes the body of one exchange, and none is named", fix="tapeproxy show TAPE N --raw")
    loaded, ending = load(path, unlocking.ask)
    if tools:
        if wanted is not None:
            raise UsageError("--tools is about a whole tape", fix="tapeproxy show TAPE --tools")
        _show_tools(path, loaded, as_json=as_json)
        return
    causal = rank or vector or lane is not None
    if wanted is None:
        view = _causal_view(loaded, lane, rank=rank, vector=vector) if causal else None
        _show_tape(path, loaded, ending, view, as_json=as_json)
        return
    if causal:
        raise UsageError("--rank, --vector and --lane are about a whole tape", fix="leave out the exchange's number")
    exchange = _pick(path, loaded, wanted)
    if raw and exchange.frames:
        fix = f"tapeproxy show {shlex.quote(str(path))} {wanted} --json"
        raise UsageError(f"exchange {wanted} became a WebSocket, which has messages and no body", fix=fix)
    if raw:
        click.echo(exchange.response_body, nl=False)
    else:
        _show_exchange(exchange, len(loaded.exchanges), as_json=as_json)


def _arguments(tape: str | None, number: str | None) -> tuple[Path, int | None]:
    """The tape and the exchange that are meant: a lone number that is no file is an exchange of the last tape."""
    if number is None and tape is not None and tape.isdecimal() and not Path(tape).exists():
        tape, number = None, tape
    if number is not None and not (number.isascii() and number.isdecimal()):
        if tape is not None and tape.isdecimal() and choose_tape(number).is_file():
            fix = f"put the tape first: tapeproxy show {shlex.quote(number)} {tape}"
            raise UsageError(f"{number!r} is a tape, and the number of an exchange comes after it", fix=fix)
        raise UsageError(
            f"{number!r} is not the number of an exchange", fix="they count from 1; `show TAPE` lists them"
        )
    return choose_tape(tape), None if number is None else int(number)


def _pick(path: Path, tape: "Tape", number: int) -> "Exchange":
    if 1 <= number <= len(tape.exchanges):
        return tape.exchanges[number - 1]
    there = f"it has 1 to {len(tape.exchanges)}" if tape.exchanges else "it has none"
    raise UsageError(f"there is no exchange {number} on the tape: {there}", where=str(path))


def _causal_view(tape: "Tape", lane: str | None, *, rank: bool, vector: bool) -> "CausalView":
    from tapeproxy.cli.causalview import causal_view

    return causal_view(tape, lane, rank=rank, vector=vector)


def _show_tape(path: Path, tape: "Tape", ending: "Ending", view: "CausalView | None", *, as_json: bool) -> None:
    if as_json:
        from tapeproxy.cli.documents import dump, tape_document

        click.echo(dump(tape_document(str(path), tape, ending, view)))
        return
    from tapeproxy.cli.pages import tape_page
    from tapeproxy.proxy.tapefile import is_being_written

    recording = not ending.sealed and is_being_written(path)
    for line in tape_page(str(path), tape, ending, screen_of(sys.stdout), recording=recording, view=view):
        echo(line)


def _show_sizes(path: Path, top: int, unlocking: Unlocking, *, as_json: bool) -> None:
    from tapeproxy.cli.sizes import size_document, size_page
    from tapeproxy.proxy.tapefile import weigh_entries
    from tapeproxy.tapes.sizes import Survey

    survey = Survey(top)
    for entry, file in weigh_entries(path, unlocking.ask):
        survey.feed(entry, file)
    if as_json:
        from tapeproxy.cli.documents import dump

        click.echo(dump(size_document(str(path), survey)))
        return
    for line in size_page(str(path), survey, screen_of(sys.stdout)):
        echo(line)


def _show_tools(path: Path, tape: "Tape", *, as_json: bool) -> None:
    from tapeproxy.cli.toolcalls import tools_document, tools_page

    if as_json:
        from tapeproxy.cli.documents import dump

        click.echo(dump(tools_document(str(path), tape)))
        return
    for line in tools_page(str(path), tape, screen_of(sys.stdout)):
        echo(line)


def _show_exchange(exchange: "Exchange", of: int, *, as_json: bool) -> None:
    if as_json:
        from tapeproxy.cli.documents import dump
        from tapeproxy.tapes.documents import exchange_document

        click.echo(dump(exchange_document(exchange)))
        return
    from tapeproxy.cli.pages import exchange_page

    for line in exchange_page(exchange, of, screen_of(sys.stdout)):
        echo(line)
