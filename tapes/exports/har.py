"""A tape as HAR 1.2, for browsers' network panels, proxies and load testers.

HAR has bodies with their content coding undone; what was on the wire, and the boundaries of chunks, are in a field of
our own (`tapes/imports/own.py`), so that `import` makes the same exchanges of it.
http://www.softwareishard.com/blog/har-12-spec/
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl

import orjson

import tapeproxy
from tapeproxy.tapes.codings import decode, header
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.exports import Lost
from tapeproxy.tapes.exports.remarks import beside, counted, last_moment, remark
from tapeproxy.tapes.imports.own import FIELD, begun_ns, packed, particulars, url_text
from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.records import Headers, Json

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = 1_000_000
_TEXTUAL: Final = (b"", b"utf-8", b"utf8", b"us-ascii")
"""Charsets of which a text in the file, which is UTF-8, tells the bytes."""


def export(tape: Tape, source: str, lost: Lost) -> Iterator[bytes]:
    """The file, entry by entry. `lost` is told of request bodies that are no text, for which HAR has no form."""
    begun = begun_ns(tape.head)
    creator = {"name": "tapeproxy", "version": tapeproxy.__version__}
    comment = f"exported from {source}; what was redacted on the tape is redacted here"
    opening = orjson.dumps({"version": "1.2", "creator": creator, "comment": comment})
    yield b'{"log":' + opening.removesuffix(b"}") + b',"entries":['
    binary = uploads = 0
    for at, exchange in enumerate(tape.exchanges):
        entry = _entry(exchange, begun)
        binary += "_encoding" in entry["request"].get("postData", {})
        uploads += bool(exchange.uploads)
        yield (b",\n" if at else b"\n") + orjson.dumps(entry)
    yield b"\n]}}\n"
    if binary:
        bodies = counted(binary, "request body", "request bodies")
        lost(f"{bodies} in base64 under `_encoding`: HAR has no form for what is no text")
    for sentence in beside(tape, uploads=uploads):
        lost(sentence)


def _entry(exchange: Exchange, begun: int) -> Json:
    request, response = exchange.request, exchange.response
    ended = max(0, last_moment(exchange) - request.t)
    waited = ended if response is None else max(0, response.t - request.t)
    moment = _EPOCH + timedelta(microseconds=(begun + request.t) // 1000)
    own = particulars(exchange, begun)
    asked, given = _request(exchange, own), _response(exchange, own)
    talk = {"_webSocketMessages": [*_messages(exchange, begun)], "_resourceType": "websocket"}
    return (talk if exchange.frames else {}) | {
        "startedDateTime": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "time": ended / _MS,
        "request": asked,
        "response": given,
        "cache": {},
        "timings": {"send": 0, "wait": waited / _MS, "receive": max(0, ended - waited) / _MS},
        "comment": remark(exchange),
        FIELD: own,
    }


def _messages(exchange: Exchange, begun: int) -> Iterator[Json]:
    """What passed on a WebSocket as browsers put it into a HAR; times are seconds since 1970."""
    for message in read_frames(exchange.frames):
        if message.type in ("text", "binary") and message.whole:
            text = message.type == "text"
            yield {
                "type": "send" if message.sender == "client" else "receive",
                "time": (begun + message.t) / 1e9,
                "opcode": 1 if text else 2,
                "data": message.data.decode(errors="replace") if text else base64.b64encode(message.data).decode(),
            }


def _request(exchange: Exchange, own: Json) -> Json:
    request, body = exchange.request, exchange.request_body
    url = url_text(request.url)
    out: Json = {
        "method": request.method.decode("latin-1"),
        "url": url,
        "httpVersion": request.http,
        "cookies": _cookies(request.headers),
        "headers": _headers(request.headers),
        "queryString": [
            {"name": name, "value": value}
            for name, value in parse_qsl(url.partition("#")[0].partition("?")[2], keep_blank_values=True)
        ],
        "headersSize": -1,
        "bodySize": len(body),
    }
    if body:
        out["postData"] = {"mimeType": header(request.headers, b"content-type").decode("latin-1")}
        plain = _plain(body, request.headers, own, "asked_body")
        out["postData"] |= _content(plain, request.headers, "_encoding")
    return out


def _response(exchange: Exchange, own: Json) -> Json:
    response, body = exchange.response, exchange.response_body
    if response is None:
        nothing: Json = {"size": 0, "mimeType": "x-unknown"}
        out = _status(0, b"", "", ()) | {"content": nothing, "redirectURL": "", "headersSize": -1, "bodySize": -1}
        return out | {"_error": remark(exchange)}
    plain = _plain(body, response.headers, own, "body")
    kind = header(response.headers, b"content-type").decode("latin-1")
    content: Json = {"size": len(plain), "mimeType": kind}
    if len(plain) != len(body):
        content["compression"] = len(plain) - len(body)
    if plain:
        content |= _content(plain, response.headers, "encoding")
    out = _status(response.status, response.reason, response.http, response.headers) | {"content": content}
    out |= {"redirectURL": url_text(header(response.headers, b"location")), "headersSize": -1, "bodySize": len(body)}
    broken = exchange.end is None or exchange.end.how != "complete"
    return out | ({"_error": remark(exchange)} if broken else {})


def _status(status: int, reason: bytes, http: str, headers: Headers) -> Json:
    out: Json = {"status": status, "statusText": reason.decode("latin-1"), "httpVersion": http}
    return out | {"cookies": _set_cookies(headers), "headers": _headers(headers)}


def _plain(body: bytes, headers: Headers, own: Json, name: str) -> bytes:
    """The body with its coding undone; what it was goes into our own field."""
    found = decode(body, headers)
    if not found.whole or found.data == body:
        return body
    own[name] = packed(body)
    return found.data


def _content(body: bytes, headers: Headers, encoding: str) -> Json:
    """Text as it is, bytes in base64."""
    charset = header(headers, b"content-type").lower().partition(b"charset=")[2]
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or not (text.isascii() or charset.split(b";")[0].strip(b' "') in _TEXTUAL):
        return {"text": base64.b64encode(body).decode(), encoding: "base64"}
    return {"text": text}


def _headers(headers: Headers) -> list[Json]:
    return [{"name": name.decode("latin-1"), "value": value.decode("latin-1")} for name, value in headers]


def _cookies(headers: Headers) -> list[Json]:
    pairs = [pair.partition("=") for pair in header(headers, b"cookie").decode("latin-1").split(";")]
    return [{"name": name.strip(), "value": value.strip()} for name, parted, value in pairs if parted]


def _set_cookies(headers: Headers) -> list[Json]:
    return [_set_cookie(value.decode("latin-1")) for name, value in headers if name.lower() == b"set-cookie"]


def _set_cookie(text: str) -> Json:
    first, *rest = text.split(";")
    name, _, value = first.partition("=")
    out: Json = {"name": name.strip(), "value": value.strip()}
    facts = {key.strip().lower(): said.strip() for key, _, said in (one.partition("=") for one in rest)}
    out |= {key: facts[key] for key in ("path", "domain") if key in facts}
    return out | {"httpOnly": "httponly" in facts, "secure": "secure" in facts}
