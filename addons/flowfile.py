"""Files of mitmproxy's flows, read into exchanges. Knows its flows and nothing of tapes' records."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mitmproxy.exceptions import FlowReadException
from mitmproxy.http import HTTPFlow, Message
from mitmproxy.io import FlowReader

from tapeproxy.tapes.imports.foreign import Foreign
from tapeproxy.tapes.imports.nodes import ForeignFormatError, Node
from tapeproxy.tapes.imports.own import in_text, restored

_NS = 1_000_000_000


class FlowFile:
    """A file that `mitmdump -w` wrote."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def exchanges(self) -> Iterator[Foreign | ForeignFormatError]:
        """Its flows in order; an error in the place of each that can't be imported, and at the end of a broken file."""
        with self._path.open("rb") as file:
            flows = enumerate(FlowReader(file).stream())
            while True:
                try:
                    number, flow = next(flows)
                except StopIteration:
                    return
                except FlowReadException as error:
                    yield ForeignFormatError(f"the file is no file of flows, or is cut off: {error}")
                    return
                place = f"flow {number + 1}"
                if not isinstance(flow, HTTPFlow) or flow.websocket is not None:
                    yield ForeignFormatError(f"a flow of type {flow.type} can't be put on a tape yet", place=place)
                else:
                    try:
                        yield _restored(flow, place)
                    except ForeignFormatError as error:
                        yield error


def target_of(url: bytes) -> tuple[str, str, int, bytes]:
    """Scheme, host, port and the rest of an absolute URL, as a flow has them."""
    scheme, _, rest = url.partition(b"://")
    authority = re.split(rb"[/?#]", rest, maxsplit=1)[0]
    host, port = re.fullmatch(rb"(.*?)(?::(\d*))?", authority.rpartition(b"@")[2], re.DOTALL).groups()  # type: ignore[union-attr]  # it matches anything
    name = host.strip(b"[]").decode("utf-8", "surrogateescape")
    secure = scheme.lower() == b"https"
    number = int(port) if port else 443 if secure else 80
    return ("https" if secure else "http"), name, number, rest[len(authority) :]


def _restored(flow: HTTPFlow, place: str) -> Foreign:
    """The exchange that a flow is, as it was on a tape where it comes from one. Raises ForeignFormatError."""
    taken = _taken(flow, place)
    own = in_text(Node(flow.metadata, place))
    url = None if own is None else own.need("url").text().encode("latin-1", "replace")
    asked = flow.request
    if url is not None and target_of(url) == (asked.scheme, asked.host, asked.port, asked.data.path):
        taken = replace(taken, url=url)
    return restored(taken, own)


def _taken(flow: HTTPFlow, place: str) -> Foreign:
    asked, given = flow.request, flow.response
    start = round(asked.timestamp_start * _NS)
    absent = ["boundaries", "lanes"]
    if given is None:
        status, waited, took = 0, None, None
    else:
        status = given.status_code
        waited = max(round(given.timestamp_start * _NS) - start, 0)
        took = max(round((given.timestamp_end or given.timestamp_start) * _NS) - start, waited)
    return Foreign(
        place=place,
        method=asked.method.encode(),
        url=asked.pretty_url.encode("utf-8", "surrogateescape"),
        request_headers=tuple(asked.headers.fields),
        request_body=_body(asked, absent),
        h2=asked.http_version.startswith("HTTP/2"),
        status=status,
        reason=None if given is None else given.reason.encode("latin-1", "replace"),
        headers=() if given is None else tuple(given.headers.fields),
        body=b"" if given is None else _body(given, absent),
        start=start,
        waited=waited,
        took=took,
        how="complete" if given is not None else "connect-error",
        error=None if given is not None else (flow.error.msg if flow.error else "there was no response"),
        absent=tuple(absent),
    )


def _body(message: Message, absent: list[str]) -> bytes:
    if message.raw_content is None:  # it was streamed past
        absent.append("a body")
        return b""
    return message.raw_content
