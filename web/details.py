"""One exchange as the page shows it: the document of `show N --json`, its chunks as text, its causes. Pure."""

import base64
import codecs
from collections.abc import Iterator

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.documents import exchange_document
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.records import Json


def details(exchange: Exchange, causality: Causality | None = None) -> Json:
    """`exchange_document` with what else the page shows.

    `record`: the number of its first record on the tape. `response.pieces`: at_ns, size, and text where the body is
    text. With `causality`, `clock`: the vector clock of the request; `reached`: of each lane that comes to know of the
    answer, after how many requests it does.
    """
    document = exchange_document(exchange)
    document["record"] = exchange.index
    if exchange.response is not None:
        document["response"]["pieces"] = list(pieces(exchange))
    if causality is not None:
        document["clock"] = dict(causality.clock(exchange.number))
        document["reached"] = {lane: asked for lane, (asked, _) in causality.reached(exchange.number).items()}
    return document


def pieces(exchange: Exchange) -> Iterator[Json]:
    """The chunks of an answer with their text. A compressed body has no text a chunk: it comes whole at the last."""
    chunks = exchange.chunks
    if exchange.response is None:
        return
    decoded = decode(exchange.response_body, exchange.response.headers)
    if decoded.coding:
        yield from ({"at_ns": chunk.t, "size": len(chunk.data)} for chunk in chunks[:-1])
        if chunks:
            yield _piece(chunks[-1], decoded.data)
        return
    reader = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        texts = [reader.decode(chunk.data) for chunk in chunks]
        reader.decode(b"", final=True)
    except UnicodeDecodeError:
        yield from ({"at_ns": chunk.t, "size": len(chunk.data)} for chunk in chunks)
        return
    for chunk, text in zip(chunks, texts, strict=True):
        yield {"at_ns": chunk.t, "size": len(chunk.data), "text": text}


def _piece(chunk: Chunk, data: bytes) -> Json:
    about: Json = {"at_ns": chunk.t, "size": len(chunk.data)}
    try:
        return about | {"text": data.decode()}
    except UnicodeDecodeError:
        return about | {"b64": base64.b64encode(data).decode()}
