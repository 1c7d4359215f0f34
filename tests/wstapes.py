"""WebSockets on tapes, written as who said what: `>` the client, `<` the server."""

from dataclasses import replace

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import End, Frame, Headers, How, Record, Request, Response
from tapeproxy.tapes.wsrecords import FrameType, Open

URL = "http://x.test/ws"
OPENED: Headers = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Accept", b"old"))
MS = 1_000_000

type Said = str | bytes | tuple[str, FrameType, bytes] | tuple[str, FrameType, bytes, Open | None]


def frames(*said: Said, gap: int = MS) -> list[Frame]:
    """`">text"`, `b"<binary"`, `">!1000 reason"` (a close), or `(">", type, data, open)`; `gap` ns between them."""
    return [_frame(n, one, 2 * gap + n * gap) for n, one in enumerate(said)]


def _frame(n: int, one: Said, t: int) -> Frame:
    open_: Open | None = None
    code = None
    if isinstance(one, tuple):
        way, kind, data = one[:3]
        open_ = one[3] if len(one) == 4 else None
    elif isinstance(one, bytes):
        way, kind, data = one[:1].decode(), "binary", one[1:]
    elif one[1:2] == "!":
        digits, _, reason = one[2:].partition(" ")
        way, kind, data, code = one[0], "close", reason.encode(), int(digits) if digits else None
    else:
        way, kind, data = one[0], "text", one[1:].encode()
    to = "server" if way == ">" else "client"
    return Frame(t=t, of=1, n=n, to=to, type=kind, data=data, open=open_, code=code)  # type: ignore[arg-type]


def socket_exchange(
    *said: Said, how: How | None = "complete", url: str = URL, headers: Headers = OPENED, gap: int = MS
) -> Exchange:
    """An exchange that became a WebSocket. `how` None: its end is not on the tape."""
    request = Request(t=0, method=b"GET", url=url.encode(), headers=((b"Upgrade", b"websocket"),))
    response = Response(t=gap, of=1, status=101, reason=b"Switching Protocols", headers=headers, framing="none")
    end = None if how is None else End(t=1000 * gap, of=1, how=how)
    return Exchange(1, 1, request, response, end=end, frames=frames(*said, gap=gap))


def records_of(exchange: Exchange, index: int = 1) -> list[Record]:
    """Its records, of which the first has the number `index`."""
    assert exchange.response is not None
    out: list[Record] = [exchange.request, replace(exchange.response, of=index)]
    out += [replace(frame, of=index) for frame in exchange.frames]
    return [*out, replace(exchange.end, of=index)] if exchange.end is not None else out
