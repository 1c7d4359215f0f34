"""The answer that opens a taped WebSocket anew, or why it can't be opened. Pure: headers in, a head out."""

from tapeproxy.tapes.answers import Answer, Part, head
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.wsframes import EXTENSIONS, accept_token

_PROTOCOL = b"sec-websocket-protocol"
_KEY = b"sec-websocket-key"
_ACCEPT = b"sec-websocket-accept"
_CONTROL = 125
_CODES = frozenset(range(1000, 5000)) - {1004, 1005, 1006, 1015}
"""Those that may be sent (RFC 6455, 7.4.2)."""


def hindrance(exchange: Exchange, asked: Headers) -> str | None:
    """Why this exchange, which was answered with 101, can't be repeated for a request with these headers."""
    assert exchange.response is not None
    number = exchange.number
    if b"websocket" not in _list(exchange.response.headers, b"upgrade"):
        return f"exchange {number} went over to another protocol, of which nothing is on the tape"
    if not exchange.frames and exchange.end is not None and exchange.end.how == "complete":
        return f"exchange {number} became a WebSocket, whose frames are not on the tape"
    if b"websocket" not in _list(asked, b"upgrade") or not _value(asked, _KEY):
        return f"exchange {number} became a WebSocket, and this request does not ask for one"
    if (wrong := _impossible(exchange)) is not None:
        return f"the tape holds what no WebSocket can: of exchange {number}, {wrong}"
    chosen = _list(exchange.response.headers, _PROTOCOL)
    if not {*chosen} <= {*_list(asked, _PROTOCOL)}:
        names = b", ".join(chosen).decode("latin-1")
        return f"the server of exchange {number} chose the subprotocol {names!r}, which this request does not offer"
    return None


def _impossible(exchange: Exchange) -> str | None:
    """What of the taped frames can't be sent: a tape may be edited or hostile."""
    for frame in exchange.frames:
        if frame.type in ("ping", "close") and len(frame.data) > _CONTROL:
            return f"a {frame.type} of {len(frame.data)} bytes"
        if frame.type == "close" and frame.code is not None and frame.code not in _CODES:
            return f"a close with the code {frame.code}"
    return None


def opening(exchange: Exchange, asked: Headers) -> Answer:
    """The head that opens it, where there is no `hindrance`; `opened` are the headers of that."""
    assert exchange.response is not None
    response = exchange.response
    due = max(response.t - exchange.request.t, 0)
    data = head(response.status, response.reason, opened(exchange, asked))
    return Answer(iter((Part(due, data),)), "switch", len(data))


def opened(exchange: Exchange, asked: Headers) -> Headers:
    """The response's headers as taped, but for the answer to the client's key; extensions only if it offers them."""
    assert exchange.response is not None
    token = accept_token(_value(asked, _KEY))
    offers = bool(_value(asked, EXTENSIONS))
    return tuple(
        (name, token if name.lower() == _ACCEPT else value)
        for name, value in exchange.response.headers
        if offers or name.lower() != EXTENSIONS
    )


def _value(headers: Headers, wanted: bytes) -> bytes:
    return b", ".join(value for name, value in headers if name.lower() == wanted)


def _list(headers: Headers, wanted: bytes) -> list[bytes]:
    return [part.strip().lower() for part in _value(headers, wanted).split(b",") if part.strip()]
