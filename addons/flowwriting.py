"""A tape as a file of mitmproxy's flows, which mitmproxy, mitmweb and mitmdump read. Knows its flows, no hooks."""

import uuid
from collections.abc import Iterator
from io import BytesIO
from typing import Final

import orjson
from blake3 import blake3
from mitmproxy.connection import Client, Server
from mitmproxy.flow import Error
from mitmproxy.http import Headers, HTTPFlow, Request, Response
from mitmproxy.io import FlowWriter
from mitmproxy.websocket import WebSocketData, WebSocketMessage
from wsproto.frame_protocol import Opcode

from tapeproxy.addons.flowfile import target_of
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.exports import Lost
from tapeproxy.tapes.exports.remarks import beside, ending, last_moment, remark
from tapeproxy.tapes.imports.own import FIELD, begun_ns, particulars
from tapeproxy.tapes.messages import read_frames

_NS: Final = 1_000_000_000
_NOWHERE: Final = ("127.0.0.1", 0)
_NO_CODE: Final = 1005


class FlowWriting:
    """One tape being written. The same tape gives the same bytes, with one version of mitmproxy.

    `lost` is told, in a sentence each, what flows cannot hold.
    """

    def __init__(self, tape: Tape, lost: Lost) -> None:
        self._tape = tape
        self._lost = lost
        self._begun = begun_ns(tape.head)
        self._name = blake3(orjson.dumps(tape.head.to_json(), default=str)).digest(16)

    def pieces(self) -> Iterator[bytes]:
        """The file, flow by flow."""
        uploads = 0
        for exchange in self._tape.exchanges:
            uploads += bool(exchange.uploads)
            file = BytesIO()
            writer = FlowWriter(file)  # type: ignore[no-untyped-call]  # mitmproxy's
            writer.add(self._flow(exchange))
            yield file.getvalue()
        for sentence in beside(self._tape, uploads=uploads):
            self._lost(sentence)

    def _messages(self, exchange: Exchange) -> WebSocketData:
        told = WebSocketData()
        for message in read_frames(exchange.frames):
            from_client, when = message.sender == "client", self._seconds(message.t)
            if message.type in ("text", "binary"):
                kind = Opcode.TEXT if message.type == "text" else Opcode.BINARY
                told.messages.append(WebSocketMessage(kind, from_client, message.data, when))
            elif message.type == "close" and told.close_code is None:
                told.closed_by_client, told.timestamp_end = from_client, when
                told.close_code = _NO_CODE if message.code is None else message.code
                told.close_reason = message.data.decode(errors="replace")
        return told

    def _flow(self, exchange: Exchange) -> HTTPFlow:
        asked = self._seconds(exchange.request.t)
        ended = self._seconds(last_moment(exchange))
        request = self._request(exchange)
        client = Client(peername=_NOWHERE, sockname=_NOWHERE, timestamp_start=asked, id=self._id(exchange, "client"))
        server = Server(address=(request.host, request.port), id=self._id(exchange, "server"))
        server.timestamp_start = client.timestamp_end = server.timestamp_end = None
        flow = HTTPFlow(client, server)
        flow.id, flow.timestamp_created = self._id(exchange, "flow"), asked
        flow.request, flow.response = request, self._response(exchange, ended)
        flow.websocket = self._messages(exchange) if exchange.frames else None
        if flow.response is None or exchange.end is None or exchange.end.how != "complete":
            flow.error = Error(ending(exchange.end), ended)
        flow.comment = remark(exchange)
        own = particulars(exchange, self._begun) | {"url": exchange.request.url.decode("latin-1")}
        flow.metadata[FIELD] = orjson.dumps(own).decode()
        return flow

    def _request(self, exchange: Exchange) -> Request:
        request = exchange.request
        scheme, host, port, path = target_of(request.url)
        asked = self._seconds(request.t)
        return Request(
            host,
            port,
            request.method,
            scheme.encode(),
            b"",
            path,
            request.http.encode(),
            Headers(request.headers),
            exchange.request_body,
            None,
            asked,
            asked,
        )

    def _response(self, exchange: Exchange, ended: float) -> Response | None:
        response, end = exchange.response, exchange.end
        if response is None:
            return None
        return Response(
            response.http.encode(),
            response.status,
            response.reason,
            Headers(response.headers),
            exchange.response_body,
            Headers(end.trailers) if end is not None and end.trailers else None,
            self._seconds(response.t),
            ended,
        )

    def _seconds(self, t: int) -> float:
        return (self._begun + t) / _NS

    def _id(self, exchange: Exchange, what: str) -> str:
        """An id that is always the same: mitmproxy's own are random."""
        name = f"{what} {exchange.number}".encode()
        return str(uuid.UUID(bytes=blake3(self._name + name).digest(16), version=4))
