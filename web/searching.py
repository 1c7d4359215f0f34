"""Which exchanges say a text, where people would say that they do. Pure.

Searched are the URL, the values of headers and trailers, the decoded bodies, what passed on a WebSocket, and the words
of a call of a model, which a stream brings in pieces. Of each, also what its escapes stand for, as JSON and those who
write it have them; a JSON text may stand in another one. Case and the kind of white space make no difference.
Names that only our own documents have are not searched. static/searching.js has the same rule for the single file.
"""

import re
from collections.abc import Iterator
from typing import Final

from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Call, Media, Message, ToolCall
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.records import Headers

_MOST: Final = 5000
_DEEP: Final = 3
"""How often a text is unescaped: JSON in a string of JSON is one of arguments, and those may hold JSON."""
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_STANDS_FOR: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HALVES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def find(tape: Tape, text: str) -> list[int]:
    """The numbers of the exchanges that say `text`, 5,000 at most."""
    wanted = " ".join(text.lower().split())
    if not wanted:
        return []
    found = (one.number for one in tape.exchanges if any(_has(said, wanted) for said in texts(one)))
    return [number for number, _ in zip(found, range(_MOST), strict=False)]


def texts(exchange: Exchange) -> Iterator[str]:
    """All that is searched of an exchange; what costs most comes last."""
    request, response, end = exchange.request, exchange.response, exchange.end
    yield request.url.decode("latin-1")
    yield from _values(request.headers)
    yield _text(decode(exchange.request_body, request.headers).data)
    if response is not None:
        yield from _values(response.headers)
        yield _text(decode(exchange.response_body, response.headers).data)
    if end is not None:
        yield from _values(end.trailers)
        yield end.error or ""
    for message in read_frames(exchange.frames):
        yield _text(message.data)
    call = read_call(exchange)
    if call is not None:
        yield from _words(call)


def _values(headers: Headers) -> Iterator[str]:
    return (value.decode("latin-1") for _, value in headers)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _words(call: Call) -> Iterator[str]:
    messages: tuple[Message, ...] = call.messages if call.answer is None else (*call.messages, call.answer)
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                yield part.name
                yield part.arguments
            elif not isinstance(part, Media):
                yield part.text
    yield call.error or ""


def _has(text: str, wanted: str) -> bool:
    for _ in range(_DEEP):
        plain = text.lower()
        if wanted in (" ".join(plain.split()) if " " in wanted else plain):
            return True
        if "\\" not in text:
            break
        text = _unescaped(text)
    return False


def _unescaped(text: str) -> str:
    plain = _ESCAPE.sub(_character, text)
    return _HALVES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), plain)


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _STANDS_FOR.get(escape[2], escape[2])
