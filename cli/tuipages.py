"""The pages of the terminal viewer, as lines of plain text: nothing in them acts on a terminal or is markup."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

from tapeproxy.cli.pages import answer_lines, body_lines, conversation_lines, exchange_page, header_lines
from tapeproxy.cli.rendering import Screen, block, printable
from tapeproxy.cli.tuiplay import stream_lines, stream_pieces
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.contexts import context_changes
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.why import Wanted

TABS: Final = ("conversation", "request", "response", "headers", "stream", "place")
PLAIN: Final = Screen()
_VALUE: Final = re.compile(r'\s*(?:"(?:[^"\\]|\\.)*":\s*)?("(?:[^"\\]|\\.)*"),?\s*')
"""A line of JSON that has a text."""
_PLACE: Final = re.compile(r"\$.*|body|url|header .+")
HELP: Final = """Keys

j k          next, previous (also the arrows)
J K          next, previous of the same lane
Enter space  on a lane: shut or open it
/            filter; Enter takes it, Escape leaves it
g 1 2 Enter  go to exchange 12
1 … 6        conversation, request, response, headers, stream, place
p P          play the stream at the pace of the tape, or ten times as fast; again: stop
t            lanes, time, or causal rank
l            show or hide the lanes above
+ - 0        the lanes above: zoom in, out, all; the arrows left and right move them
w            where the words of the request come from; on the page: those of the line that is chosen
W            the same of words that you type, or of a place such as $.messages[1].content
c            compare the context with that of the call before in its lane
m, then c    mark a call; compare the context of another one with it
f            fork here
x            stop the fork that runs
o            what that fork has printed
u            back to the tape before
d            compare a fork with its parent; of two tapes, all that differs
b            of two tapes: the branch point
Tab          to the page and back; there j, k, PgUp, PgDn go through its lines
?            this page
q            leave

Filters: words in URLs and labels; host: status: model: lane: how: source: method: path: is:failed is:llm is:streamed
is:different body:TEXT. A leading - excludes.

Lanes: light until the first byte came. Blue: recorded; grey green: reused from the parent tape; orange: changed by a
fork; green: asked anew; mauve: served by the run itself; red: failed."""


def tab_lines(tab: str, exchange: Exchange, of: int, causality: Callable[[], Causality]) -> Iterator[str]:
    """One of the pages of an exchange."""
    request, response = exchange.request, exchange.response
    match tab:
        case "conversation":
            call = read_call(exchange)
            if call is None:
                yield from exchange_page(exchange, of, PLAIN)
                return
            yield from conversation_lines(call, PLAIN)
            yield from answer_lines(call, PLAIN)
        case "request":
            yield printable(f"{request.method.decode('latin-1')} {request.url.decode('latin-1')}")
            yield from body_lines("request", exchange.request_body, request.headers, PLAIN)
        case "response":
            if response is None:
                yield "no response"
                return
            yield printable(f"{response.status} {response.reason.decode('latin-1')}")
            yield from body_lines("response", exchange.response_body, response.headers, PLAIN)
        case "headers":
            yield "request"
            yield from header_lines(request.headers)
            yield ""
            yield "response"
            yield from header_lines(() if response is None else response.headers)
        case "stream":
            found = stream_pieces(exchange, PLAIN)
            yield from stream_lines(exchange, found, len(found), PLAIN)
        case _:
            yield from _place(exchange, causality())


def context_lines(ours: Exchange, theirs: Exchange) -> Iterator[str]:
    """How the context of a call differs from that of another one."""
    calls = read_call(ours), read_call(theirs)
    yield f"context of {theirs.number}, against that of {ours.number}"
    yield ""
    if calls[0] is None or calls[1] is None:
        yield "one of the two is no call of a model"
        return
    any_change = False
    for change in context_changes(calls[0].messages, calls[1].messages):
        any_change = True
        at = change.asked if change.taped is None else change.taped
        yield f"{change.kind} {printable(change.role)} message {at}"
        yield block(change.text, "  ")
    if not any_change:
        yield "the messages are the same"


def wanted_of(line: str) -> Wanted:
    """What is asked about with a line of a page: its words, of JSON the text in it."""
    found = _VALUE.fullmatch(line)
    try:
        return Wanted(text=json.loads(found[1]) if found else line.strip())
    except ValueError:
        return Wanted(text=line.strip())


def wanted_in(typed: str) -> Wanted:
    """What is asked about with typed words, or the place where they stand."""
    return Wanted(path=typed) if _PLACE.fullmatch(typed) else Wanted(text=typed)


def _place(exchange: Exchange, causality: Causality) -> Iterator[str]:
    number = exchange.number
    yield printable(f"lane   {causality.asker(number)}")
    yield f"rank   {causality.rank(number)}"
    yield f"record {exchange.index}"
    yield ""
    yield "knew of, in requests and answers"
    yield from (printable(f"  {lane or 'no lane'}: {count}") for lane, count in causality.clock(number).items())
