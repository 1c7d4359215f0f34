"""Our own field in files of other formats: what those have no words for, so that an exchange comes back as it was.

`particulars` makes it when a tape is exported, `restored` reads it when the file is imported again. Times, boundaries
of chunks, how an exchange ended are taken from it. A digest over all that was asked and answered says whether somebody
has edited the file in between: if not, nothing of the exchange is mended.
"""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

import orjson
from blake3 import blake3

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.imports.foreign import Foreign, Pieces
from tapeproxy.tapes.imports.nodes import Node
from tapeproxy.tapes.imports.times import LATEST
from tapeproxy.tapes.records import End, Framing, Head, Headers, How, Json, Request, Response

FIELD: Final = "_tapeproxy"
"""Its name. HAR wants the underscore."""
UNFINISHED: Final = "unfinished"
"""How an exchange ended that has no end on its tape."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGEST: Final = 16
_HOWS: Final = get_args(How.__value__)
_FRAMINGS: Final = get_args(Framing.__value__)


def begun_ns(head: Head) -> int:
    """When a tape was begun, in nanoseconds since 1970; 0 where its head does not say."""
    try:
        value = datetime.fromisoformat(head.started_at)
    except ValueError:
        return 0
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (value - _EPOCH) // timedelta(microseconds=1) * 1000


def particulars(exchange: Exchange, begun: int, *, headers: bool = False) -> Json:
    """The field for an exchange of a tape that was begun at `begun`, ns since 1970; `headers`: with all of them.

    Times are ns; those of the parts count from `asked`. Texts of the wire are ISO-8859-1, as on a tape.
    """
    request, response, end = exchange.request, exchange.response, exchange.end
    out: Json = {"number": exchange.number, "asked": max(begun + request.t, 0), "http": request.http}
    if response is not None:
        out["answered"] = max(response.t - request.t, 0)
        out["framing"] = response.framing
        times = [None if one.t is None else max(one.t - request.t, 0) for one in exchange.chunks]
        out["chunks"] = [[when, len(one.data)] for when, one in zip(times, exchange.chunks, strict=True)]
        out |= {"answer_http": response.http} if response.http != request.http else {}
    out["how"] = UNFINISHED if end is None else end.how
    if end is not None:
        out["ended"] = max(end.t - request.t, 0)
    optional: Json = {
        "alpn": request.alpn,
        "error": error_text(end),
        "lane": request.lane,
        "inside": request.inside or None,
        "trailers": _pairs(end.trailers) if end is not None and end.trailers else None,
        "informational": [[code, _pairs(given)] for code, given in response.informational] if response else None,
    }
    out |= {name: value for name, value in optional.items() if value}
    if headers:
        out["headers"] = _pairs(request.headers)
        out |= {} if response is None else {"answer_headers": _pairs(response.headers)}
    out |= _odd(request, response)
    return out | {"digest": _digest_of(exchange)}


def url_text(url: bytes) -> str:
    """A URL as text; nearly all are ASCII."""
    try:
        return url.decode()
    except UnicodeDecodeError:
        return url.decode("latin-1")


def error_text(end: End | None) -> str:
    """What the tape says of an exchange that failed, without what is no Unicode."""
    said = "" if end is None else end.error or ""
    return said.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def packed(body: bytes) -> str:
    """A body as our field has it, where the format has another form of it."""
    return base64.b64encode(body).decode()


def restored(taken: Foreign, own: Node | None) -> Foreign:
    """An exchange that was read, with what our field says of it, where there is one. Raises ForeignFormatError."""
    if own is None:
        return taken
    taken = _as_it_was(taken, own)
    pieces = _pieces(own, taken.body)
    how, error = _ending(taken, own)
    framing, alpn = own.get("framing"), own.get("alpn")
    http = own.need("http").text()
    answer_http = own.get("answer_http")
    exact = own.need("digest").text() == _digest(taken)
    return replace(
        taken,
        start=_count(own.need("asked")),
        waited=None if (found := own.get("answered")) is None else _count(found),
        took=None if (found := own.get("ended")) is None else _count(found),
        pieces=() if pieces is None else pieces,
        how=how,
        error=error,
        framing="length" if framing is None or framing.text() not in _FRAMINGS else framing.text(),  # type: ignore[arg-type]
        http=http,
        answer_http=http if answer_http is None else answer_http.text(),
        alpn=None if alpn is None else alpn.text(),
        inside=own.get("inside") is not None,
        trailers=() if (found := own.get("trailers")) is None else _unpaired(found),
        informational=tuple(_informational(own)),
        absent=("lanes",) if pieces is not None else ("boundaries", "lanes"),
        exact=exact and pieces is not None,
    )


def in_text(entry: Node) -> Node | None:
    """Our field where it is JSON in a text. Raises ForeignFormatError."""
    found = entry.get(FIELD)
    if found is None:
        return None
    try:
        return Node(orjson.loads(found.text()), found.place)
    except orjson.JSONDecodeError as error:
        raise found.wrong(f"this is no JSON: {error}") from None


def _as_it_was(taken: Foreign, own: Node) -> Foreign:
    """The exchange with what the format has in other words, where nobody has edited those."""
    method, url, reason = (
        None if (one := own.get(name)) is None else _octets(one) for name in ("method", "url", "reason")
    )
    if method is not None and method.upper() == taken.method:
        taken = replace(taken, method=method)
    if url is not None and url_text(url).partition("#")[0].encode() == taken.url:
        taken = replace(taken, url=url)
    if reason is not None and reason.decode("latin-1").encode() == taken.reason:
        taken = replace(taken, reason=reason)
    asked, given = (
        None if (one := own.get(name)) is None else _unpaired(one) for name in ("headers", "answer_headers")
    )
    if asked is not None and sorted(asked) == sorted(taken.request_headers):
        taken = replace(taken, request_headers=asked)
    if given is not None and sorted(given) == sorted(taken.headers):
        taken = replace(taken, headers=given)
    return taken


def _ending(taken: Foreign, own: Node) -> tuple[How, str | None]:
    """How it ended. One that was given an answer by hand has ended well; the tape of one without an end broke off."""
    how, said = own.need("how").text(), own.get("error")
    error = None if said is None else said.text()
    if how not in _HOWS:
        return "upstream-cut", taken.error or error
    if how == "connect-error" and taken.status:
        return "complete", None
    return how, error  # type: ignore[return-value]  # one of them


def _pieces(own: Node, body: bytes) -> Pieces | None:
    """The body in the pieces that it came in; None where they do not add up to it."""
    found = own.get("chunks")
    pieces: list[tuple[int | None, bytes]] = []
    at = 0
    for pair in [] if found is None else found.items():
        when, length = _two(pair)
        size = _count(length)
        pieces.append((None if when.value is None else _count(when), body[at : at + size]))
        at += size
    return tuple(pieces) if at == len(body) else None


def _count(found: Node) -> int:
    value = found.whole()
    if not 0 <= value < LATEST:
        raise found.wrong(f"{value} is out of range")
    return value


def _informational(own: Node) -> Iterator[tuple[int, Headers]]:
    found = own.get("informational")
    for pair in [] if found is None else found.items():
        code, headers = _two(pair)
        yield _count(code), _unpaired(headers)


def _pairs(headers: Headers) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _unpaired(found: Node) -> Headers:
    pairs = (_two(pair) for pair in found.items())
    return tuple((_octets(name), _octets(value)) for name, value in pairs)


def _two(pair: Node) -> tuple[Node, Node]:
    items = pair.items()
    if len(items) != 2:
        raise pair.wrong("a list of two is expected here")
    return items[0], items[1]


def _octets(found: Node) -> bytes:
    return found.text().encode("latin-1", "replace")


def _odd(request: Request, response: Response | None) -> Json:
    """What texts of other formats change: a method in lower case, a URL with bytes that no URL has."""
    out: Json = {}
    if request.method != request.method.upper():
        out["method"] = request.method.decode("latin-1")
    if not request.url.isascii() or b"#" in request.url:
        out["url"] = request.url.decode("latin-1")
    if response is not None and not response.reason.isascii():
        out["reason"] = response.reason.decode("latin-1")
    return out


def _digest_of(exchange: Exchange) -> str:
    request, response = exchange.request, exchange.response
    status, reason, headers = (response.status, response.reason, response.headers) if response else (0, b"", ())
    asked = (request.method, request.url, *_flat(request.headers), exchange.request_body)
    return _hashed((*asked, b"%d" % status, reason, *_flat(headers), exchange.response_body))


def _digest(taken: Foreign) -> str:
    asked = (taken.method, taken.url, *_flat(taken.request_headers), taken.request_body)
    return _hashed((*asked, b"%d" % taken.status, taken.reason or b"", *_flat(taken.headers), taken.body))


def _flat(headers: Headers) -> Iterator[bytes]:
    yield b"%d" % len(headers)
    for pair in headers:
        yield from pair


def _hashed(parts: Iterable[bytes]) -> str:
    hasher = blake3()
    for part in parts:
        hasher.update(b"%d:" % len(part))
        hasher.update(part)
    return hasher.hexdigest(_DIGEST)
