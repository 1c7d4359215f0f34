"""The pages of the terminal viewer, as lines of plain text: nothing in them acts on a terminal or is markup."""

from collections.abc import Iterator

from tapeproxy.cli.pages import answer_lines, body_lines, chunk_lines, conversation_lines, exchange_page, header_lines
from tapeproxy.cli.rendering import Screen, block, printable
from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.contexts import context_changes
from tapeproxy.tapes.exchanges import Exchange

TABS = ("conversation", "request", "response", "headers", "stream", "place")
_PLAIN = Screen()
HELP = """Keys

j k          next, previous (also the arrows)
J K          next, previous of the same lane
Enter space  on a lane: shut or open it
/            filter; Enter takes it, Escape leaves it
g 1 2 Enter  go to exchange 12
1 … 6        conversation, request, response, headers, stream, place
w            where the words of the request come from
t            lanes, time, or causal rank
m, then c    mark an exchange; compare its context with another one
d            compare with the other tape (tapeproxy tui A B)
Tab          to the page and back; there j, k, PgUp, PgDn scroll
?            this page
q            leave

Filters: words in URLs and labels; host: status: model: lane: how: source: method: path: is:failed is:llm is:streamed
body:TEXT. A leading - excludes."""


def tab_lines(tab: str, exchange: Exchange, of: int, causality: Causality) -> Iterator[str]:
    """One of the pages of an exchange."""
    request, response = exchange.request, exchange.response
    match tab:
        case "conversation":
            call = read_call(exchange)
            if call is None:
                yield from exchange_page(exchange, of, _PLAIN)
                return
            yield from conversation_lines(call, _PLAIN)
            yield from answer_lines(call, _PLAIN)
        case "request":
            yield printable(f"{request.method.decode('latin-1')} {request.url.decode('latin-1')}")
            yield from body_lines("request", exchange.request_body, request.headers, _PLAIN)
        case "response":
            if response is None:
                yield "no response"
                return
            yield printable(f"{response.status} {response.reason.decode('latin-1')}")
            yield from body_lines("response", exchange.response_body, response.headers, _PLAIN)
        case "headers":
            yield "request"
            yield from header_lines(request.headers)
            yield ""
            yield "response"
            yield from header_lines(() if response is None else response.headers)
        case "stream":
            yield from chunk_lines(exchange, _PLAIN)
        case _:
            yield from _place(exchange, causality)


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


def _place(exchange: Exchange, causality: Causality) -> Iterator[str]:
    number = exchange.number
    yield printable(f"lane   {causality.name(causality.lane(number))}")
    yield f"rank   {causality.rank(number)}"
    yield ""
    yield "knew of, in requests and answers"
    yield from (printable(f"  {lane or 'no lane'}: {count}") for lane, count in causality.clock(number).items())
