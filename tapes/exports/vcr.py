"""A tape as a cassette of VCR.py: YAML that it plays back, and that `import` makes the same exchanges of.

A cassette holds whole answers and no failures. Order of headers and boundaries of chunks are in a field of our own
beside `request` and `response`, where VCR.py does not look. https://vcrpy.readthedocs.io/
"""

from collections.abc import Iterator
from dataclasses import replace

import orjson

import tapeproxy
from tapeproxy.tapes.codings import header
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.exports import Lost
from tapeproxy.tapes.exports.remarks import beside, counted, sockets
from tapeproxy.tapes.exports.yamltexts import key, scalar
from tapeproxy.tapes.imports.own import FIELD, begun_ns, particulars, url_text
from tapeproxy.tapes.records import Headers, Response

_PLAYED = ("complete", "client-gone")
"""Endings of exchanges that VCR.py plays right: of the others, it would pretend that they ended well."""


def export(tape: Tape, source: str, lost: Lost) -> Iterator[bytes]:  # noqa: ARG001  # a cassette names no source
    """The cassette, interaction by interaction; `lost` is told which exchanges are left out.

    Raises ValueError where none is left.
    """
    begun = begun_ns(tape.head)
    left_out: list[int] = []
    told = streamed = uploads = 0
    for exchange in tape.exchanges:
        response = exchange.response
        if exchange.frames:
            continue
        if response is None or exchange.end is None or exchange.end.how not in _PLAYED:
            left_out.append(exchange.number)
            continue
        if not told:
            yield b"interactions:\n"
        told += 1
        streamed += len(exchange.chunks) > 1
        uploads += bool(exchange.uploads)
        yield "".join(_interaction(_relengthed(exchange, response), begun)).encode()
    if not told:
        raise ValueError("no exchange has an answer that a cassette could hold")
    yield f"recorded_with: tapeproxy {tapeproxy.__version__}\nversion: 1\n".encode()
    if left_out:
        numbers = ", ".join(map(str, left_out[:10])) + (", …" if len(left_out) > 10 else "")
        lost(f"left out: {counted(len(left_out), 'exchange')} without a whole answer ({numbers})")
    if streamed:
        bodies = counted(streamed, "body", "bodies")
        lost(f"{bodies} that came in pieces: VCR.py plays each at once, the pieces are in the field {FIELD}")
    for sentence in (*beside(tape, uploads=uploads), *sockets(tape)):
        lost(sentence)


def _interaction(exchange: Exchange, begun: int) -> Iterator[str]:
    request, response = exchange.request, exchange.response
    assert response is not None
    ordered = _grouped(request.headers) == request.headers and _grouped(response.headers) == response.headers
    own = particulars(exchange, begun, headers=not ordered)
    yield "- request:\n"
    yield f"    body: {_body(exchange.request_body, 6)}\n"
    yield from _headers(request.headers)
    yield f"    method: {scalar(request.method.decode('latin-1'), 6)}\n"
    yield f"    uri: {scalar(url_text(request.url), 6)}\n"
    yield "  response:\n    body:\n"
    yield f"      string: {_body(exchange.response_body, 8)}\n"
    yield from _headers(response.headers)
    yield f"    status:\n      code: {response.status}\n"
    yield f"      message: {scalar(response.reason.decode('latin-1'), 8)}\n"
    yield f"  {FIELD}: {scalar(orjson.dumps(own).decode(), 4)}\n"


def _body(body: bytes, indent: int) -> str:
    try:
        return scalar(body.decode(), indent)
    except UnicodeDecodeError:
        return scalar(body, indent)


def _headers(headers: Headers) -> Iterator[str]:
    if not headers:
        yield "    headers: {}\n"
        return
    yield "    headers:\n"
    last = None
    for name, value in _grouped(headers):
        if name != last:
            last = name
            yield f"      {key(name.decode('latin-1'), 6)}\n"
        yield f"      - {scalar(value.decode('latin-1'), 8)}\n"


def _grouped(headers: Headers) -> Headers:
    """The headers as a mapping of names to lists has them."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return tuple((name, value) for name, values in found.items() for value in values)


def _relengthed(exchange: Exchange, response: Response) -> Exchange:
    """The exchange with the length that its body has: a body that redaction compressed anew has another one."""
    body = exchange.response_body
    if not body or not header(response.headers, b"content-length").isdigit() or exchange.end is None:
        return exchange
    if exchange.end.how != "complete":
        return exchange
    length = b"%d" % len(body)
    headers = tuple((name, length if name.lower() == b"content-length" else value) for name, value in response.headers)
    return exchange if headers == response.headers else replace(exchange, response=replace(response, headers=headers))
