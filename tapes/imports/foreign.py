"""An exchange as another tool kept it, in the words of tapes; what it lacks is said, what contradicts itself is mended.

Many tools keep a body decoded under the headers of the encoded one, or the other way round, and lengths that were true
before somebody edited the file. A client would choke on those.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final

import orjson

from tapeproxy.tapes.answers import flaw
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.imports.nodes import ForeignFormatError, Node
from tapeproxy.tapes.records import End, Framing, Headers, How, Request, Response

type Pieces = tuple[tuple[int | None, bytes], ...]
"""Pieces of a body with their times in nanoseconds after the exchange's `start`, where known."""

_NAMES: Final = {"x-gzip": "gzip", "zlib": "deflate", "brotli": "br"}
_STREAMS: Final = re.compile(rb"event-stream|ndjson|jsonl|json-?lines|json-seq|amazon\.eventstream")
_EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ABSOLUTE: Final = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_PSEUDO: Final = b":"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One exchange. `start`: nanoseconds since 1970 when it was asked, if known; `waited` and `took`: nanoseconds to
    the answer's head and to its end. `pieces` empty: `body` in one. `absent`: what the source does not tell.
    `exact`: it is as it was on a tape, and nothing of it is to be mended.
    """

    place: str
    method: bytes
    url: bytes
    request_headers: Headers = ()
    request_body: bytes = b""
    h2: bool = False
    status: int = 0
    reason: bytes | None = None
    headers: Headers = ()
    body: bytes = b""
    pieces: Pieces = ()
    start: int | None = None
    waited: int | None = None
    took: int | None = None
    how: How = "complete"
    error: str | None = None
    absent: tuple[str, ...] = ()
    framing: Framing = "length"
    http: str = "HTTP/1.1"
    answer_http: str = "HTTP/1.1"
    alpn: str | None = None
    inside: bool = False
    trailers: Headers = ()
    informational: tuple[tuple[int, Headers], ...] = ()
    exact: bool = False
    notes: tuple[str, ...] = field(default=())


def mended(taken: Foreign) -> Foreign:
    """The exchange with headers that fit its bodies, a reason phrase, and its pieces; `notes` say what was changed."""
    if taken.exact:
        return taken
    notes: list[str] = []
    absent = list(taken.absent)
    asked = [(name, value) for name, value in taken.request_headers if not name.startswith(_PSEUDO)]
    if taken.request_body and not _has(asked, b"content-type") and _is_json(taken.request_body):
        asked.append((b"content-type", b"application/json"))
        absent.append("content-type of the request")
    asked = _relengthed(asked, len(taken.request_body)) if taken.request_body else asked
    given = [(name, value) for name, value in taken.headers if not name.startswith(_PSEUDO)]
    coding = _coding(given, taken.body)
    if coding is not None:
        given = [(name, value) for name, value in given if name.lower() != b"content-encoding"]
        given += [(b"content-encoding", coding)] if coding else []
        notes.append(f"content-encoding was {'put right' if coding else 'taken out: the body is not encoded'}")
    bodiless = taken.method == b"HEAD" or taken.status in (204, 304) or taken.status < 200
    framing: Framing = "none" if bodiless else "length"
    if not bodiless:
        given, framing, changed = _framed(given, taken.body)
        notes += changed
    pieces = taken.pieces or (((None, taken.body),) if taken.body else ())
    if framing == "chunked" and len(pieces) == 1 and _is_stream(given) and not _has(given, b"content-encoding"):
        pieces = tuple((None, piece) for piece in events(taken.body, _value(given, b"content-type")))
    reason = _phrase(taken.status) if taken.reason is None else taken.reason
    return replace(
        taken,
        request_headers=tuple(asked),
        headers=tuple(given),
        pieces=() if bodiless else pieces,
        reason=reason,
        framing=framing,
        absent=tuple(dict.fromkeys(absent)),
        notes=(*taken.notes, *notes),
    )


def sound(taken: Foreign) -> Foreign:
    """The exchange, if it can be one of HTTP: on the wire it must not become another. Raises ForeignFormatError."""
    if not _TOKEN.fullmatch(taken.method):
        raise ForeignFormatError(f"{_shown(taken.method)} is no method of HTTP", place=taken.place)
    if _CONTROL.search(taken.url):
        raise ForeignFormatError(f"{_shown(taken.url)} is no URL", place=taken.place)
    reason = _flaw(taken) if taken.status and not taken.exact else None
    if reason is not None:
        raise ForeignFormatError(f"the answer can't be one of HTTP: {reason}", place=taken.place)
    return taken


def _flaw(taken: Foreign) -> str | None:
    response = Response(
        t=0,
        of=1,
        status=taken.status,
        reason=taken.reason or b"",
        framing=taken.framing,
        headers=taken.headers,
        informational=taken.informational,
    )
    end = End(t=0, of=1, how=taken.how, trailers=taken.trailers)
    return flaw(Exchange(1, 1, Request(t=0, method=taken.method, url=taken.url), response, end=end))


def _shown(octets: bytes) -> str:
    return f"{octets.decode('latin-1')!r:.100}"


def events(body: bytes, kind: bytes) -> Iterator[bytes]:
    """The body of a stream cut where its events end: which is where most servers cut theirs."""
    if b"amazon.eventstream" in kind:
        yield from _frames(body)
        return
    ends = _EVENT_END if b"event-stream" in kind else re.compile(rb"\n")
    start = 0
    for match in ends.finditer(body):
        yield body[start : match.end()]
        start = match.end()
    if start < len(body):
        yield body[start:]


def pairs_of(fields: Iterable[tuple[str, object]]) -> Headers:
    """Headers of names with a value or a list of values."""
    out: list[tuple[bytes, bytes]] = []
    for name, value in fields:
        for one in value if isinstance(value, list) else [value]:
            out.append((_header(name), _header(one)))
    return tuple(out)


def url_of(node: Node) -> bytes:
    """The absolute URL of HTTP that a text is. Raises ForeignFormatError."""
    url = node.text().partition("#")[0]
    if not _ABSOLUTE.match(url):
        raise node.wrong(f"{url!r:.100} is no absolute URL of HTTP")
    return url.encode()


def _header(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    text = "" if value is None else str(value)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _frames(body: bytes) -> Iterator[bytes]:
    at = 0
    while at + 4 <= len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        if size < 16 or at + size > len(body):
            break
        yield body[at : at + size]
        at += size
    if at < len(body):
        yield body[at:]


def _coding(headers: list[tuple[bytes, bytes]], body: bytes) -> bytes | None:
    """What `content-encoding` has to say of this body, empty for nothing; None: what it says."""
    if not body:
        return None
    found = decode(body, tuple(headers)).coding
    says = _value(headers, b"content-encoding").decode("latin-1").lower()
    claimed = {_NAMES.get(word.strip(), word.strip()) for word in says.split(",")} - {"", "identity"}
    return None if claimed == set(found) else ", ".join(reversed(found)).encode()


def _framed(headers: list[tuple[bytes, bytes]], body: bytes) -> tuple[list[tuple[bytes, bytes]], Framing, list[str]]:
    """Headers that say how this body is framed, in one way."""
    chunked = b"chunked" in _value(headers, b"transfer-encoding").lower()
    length = _value(headers, b"content-length")
    if chunked:
        if not length:
            return headers, "chunked", []
        headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
        return headers, "chunked", ["content-length was taken out: the body is chunked, too"]
    headers = [(name, value) for name, value in headers if name.lower() != b"transfer-encoding"]
    if not length and _is_stream(headers):
        return [*headers, (b"transfer-encoding", b"chunked")], "chunked", []
    if length == b"%d" % len(body):
        return headers, "length", []
    notes = [f"content-length was {length.decode('latin-1')}, and the body has {len(body)} bytes"] if length else []
    if length:
        return _relengthed(headers, len(body)), "length", notes
    return [*headers, (b"content-length", b"%d" % len(body))], "length", notes


def _relengthed(headers: list[tuple[bytes, bytes]], length: int) -> list[tuple[bytes, bytes]]:
    return [(name, b"%d" % length if name.lower() == b"content-length" else value) for name, value in headers]


def _phrase(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


def _is_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return _STREAMS.search(_value(headers, b"content-type").lower()) is not None


def _is_json(body: bytes) -> bool:
    if body.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def _has(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bool:
    return any(key.lower() == name for key, _ in headers)


def _value(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return b", ".join(value for key, value in headers if key.lower() == name)
