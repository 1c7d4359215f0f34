"""HAR 1.2: of browsers, proxies and Polly.js. Knows its entries, and what each writer makes of bodies.

`content.encoding` is `base64` for bytes; Polly keeps the pieces of a compressed body as a JSON array of such texts.
"""

import re
from urllib.parse import urlencode

import orjson

from tapeproxy.tapes.answers import SWITCHED
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.imports.foreign import Foreign, Pieces, pairs_of, url_of
from tapeproxy.tapes.imports.nodes import Node
from tapeproxy.tapes.imports.own import FIELD, restored
from tapeproxy.tapes.imports.times import milliseconds, moment
from tapeproxy.tapes.imports.vcr import unpacked
from tapeproxy.tapes.records import Headers


def is_har(root: Node) -> bool:
    """Whether a parsed file is one."""
    log = root.value.get("log") if isinstance(root.value, dict) else None
    return isinstance(log, dict) and "entries" in log


def entries(root: Node) -> list[Node]:
    """Its entries. Raises ForeignFormatError."""
    return root.need("log").need("entries").items()


def take(entry: Node) -> Foreign:
    """One entry. Raises ForeignFormatError."""
    asked, given = entry.need("request"), entry.need("response")
    status = given.need("status").whole()
    if "_webSocketMessages" in entry.value or status == SWITCHED:
        raise entry.wrong("a WebSocket can't be put on a tape yet")
    pieces = _pieces(given)
    start, waited, took = _times(entry)
    text = given.get("statusText")
    failed = given.get("_error") or entry.get("_error")
    own = entry.get(FIELD)
    asked_headers, headers = _headers(asked), _headers(given)
    absent = ["boundaries", "lanes"]
    if took is None:
        absent.insert(0, "times")
    taken = Foreign(
        place=entry.place,
        method=asked.need("method").text().upper().encode("latin-1", "replace"),
        url=url_of(asked.need("url")),
        request_headers=asked_headers,
        request_body=_encoded(_posted(asked, absent), own, "asked_body", asked_headers),
        h2=(version := asked.get("httpVersion")) is not None and version.text().lower() in ("h2", "http/2", "http/2.0"),
        status=status,
        reason=None if text is None else re.sub(rb"[\r\n]", b" ", text.octets()),
        headers=headers,
        body=_encoded(b"".join(data for _, data in pieces), own, "body", headers),
        pieces=pieces if len(pieces) > 1 else (),
        start=start,
        waited=waited,
        took=took,
        how="complete" if status else "connect-error",
        error=None if status else ("there was no response" if failed is None else failed.text()),
        absent=tuple(absent),
    )
    return restored(taken, own)


def _encoded(body: bytes, own: Node | None, name: str, headers: Headers) -> bytes:
    """The body as it was on the wire, where our own field has it and nobody has edited what it decodes to."""
    found = None if own is None else own.get(name)
    raw = None if found is None else unpacked(found)
    return body if raw is None or decode(raw, headers).data != body else raw


def _headers(side: Node) -> tuple[tuple[bytes, bytes], ...]:
    found = side.get("headers")
    items = [] if found is None else found.items()
    return pairs_of((one.need("name").text(), one.value.get("value")) for one in items)


def _posted(asked: Node, absent: list[str]) -> bytes:
    data = asked.get("postData")
    if data is None:
        size = asked.get("bodySize")
        if size is not None and size.value and isinstance(size.value, int) and size.value > 0:
            absent.append("a body")
        return b""
    text, encoding = data.get("text"), data.get("encoding", "_encoding")
    if text is not None and (text.value or not data.get("params")):
        return unpacked(text) if encoding is not None and encoding.text() == "base64" else text.octets()
    params = data.get("params")
    kind = data.get("mimeType")
    if params is None:
        return b""
    if kind is not None and "urlencoded" not in kind.text():
        raise data.wrong(f"the text of a body of type {kind.text()!r:.60} is not in the file")
    pairs = [(one.need("name").text(), one.get("value")) for one in params.items()]
    return urlencode([(name, "" if value is None else value.text()) for name, value in pairs]).encode()


def _pieces(given: Node) -> Pieces:
    content = given.get("content")
    text = None if content is None else content.get("text")
    if content is None or text is None:
        return ()
    encoding = content.get("encoding")
    packed = encoding is not None and encoding.text() == "base64"
    if isinstance(text.value, str) and text.value.startswith('["') and (packed or content.value.get("_isBinary")):
        return tuple((None, _piece(one, packed)) for one in _array(text).items())
    data = unpacked(text) if packed else text.octets()
    return ((None, data),) if data else ()


def _array(text: Node) -> Node:
    try:
        return Node(orjson.loads(text.text()), text.place)
    except orjson.JSONDecodeError:
        raise text.wrong("this begins like an array of pieces, and is none") from None


def _piece(one: Node, packed: bool) -> bytes:
    if packed:
        return unpacked(one)
    try:
        return bytes.fromhex(one.text())
    except ValueError:
        raise one.wrong("these are no hex digits") from None


def _times(entry: Node) -> tuple[int | None, int | None, int | None]:
    """When it was asked (ns since 1970), and the ns to its head and its end."""
    start = moment(entry.get("startedDateTime"))
    total = milliseconds(entry.get("time"))
    timings = entry.get("timings")
    receive = None if timings is None else milliseconds(timings.get("receive"))
    if start is None or total is None:
        return start, None, None
    return start, max(total - (receive or 0), 0), total
