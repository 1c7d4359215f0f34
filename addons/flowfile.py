"""Files of mitmproxy's flows, read into exchanges. Knows its flows and nothing of tapes' records."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from mitmproxy.exceptions import FlowReadException
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow, Message
from mitmproxy.io import FlowReader

from tapeproxy.tapes.imports.foreign import Foreign
from tapeproxy.tapes.imports.nodes import ODD, ForeignFormatError, Node, read_at
from tapeproxy.tapes.imports.own import in_text, restored
from tapeproxy.tapes.imports.times import since_1970

_BEGIN = re.compile(rb"\d{1,12}:")


class FlowFile:
    """A file that `mitmdump -w` wrote."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def exchanges(self, tell: Callable[[int], object] = lambda _: None) -> Iterator[Foreign | ForeignFormatError]:
        """Its flows in order; an error in the place of each that can't be imported, and at the end of a broken file.

        `tell` is called with how many more bytes are read.
        """
        at = 0
        with self._path.open("rb") as file:
            flows = iter(FlowReader(file).stream())
            for number in itertools.count(1):
                place = f"flow {number}"
                try:
                    flow = next(flows)
                    tell(file.tell() - at)
                    at = file.tell()
                except StopIteration:
                    return
                except (FlowReadException, MemoryError, *ODD) as error:  # it looks at few of the values that it reads
                    if not _goes_on(file):
                        yield ForeignFormatError(f"the file is no file of flows, or is cut off: {error!s:.200}")
                        return
                    yield ForeignFormatError(f"mitmproxy can't read it: {error!s:.200}", place=place)
                    flows = iter(FlowReader(file).stream())
                    continue
                yield _exchange(flow, place)


def _goes_on(file: BinaryIO) -> bool:
    """Whether something that begins like a flow comes next."""
    at = file.tell()
    found = _BEGIN.match(file.read(16))
    file.seek(at)
    return found is not None


def _exchange(flow: Flow, place: str) -> Foreign | ForeignFormatError:
    if not isinstance(flow, HTTPFlow) or flow.websocket is not None:
        return ForeignFormatError(f"a flow of type {flow.type} can't be put on a tape yet", place=place)
    try:
        with read_at(place):
            return _restored(flow, place)
    except ForeignFormatError as error:
        return error


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
    start = since_1970(asked.timestamp_start)
    absent = ["boundaries", "lanes"]
    if given is None:
        status, waited, took = 0, None, None
    else:
        status = given.status_code
        waited = _after(start, given.timestamp_start)
        took = _after(start, given.timestamp_end or given.timestamp_start)
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


def _after(start: int | None, seconds: float) -> int | None:
    """The ns from `start` to a moment in seconds since 1970, if both are told."""
    moment = since_1970(seconds)
    return None if start is None or moment is None else max(moment - start, 0)


def _body(message: Message, absent: list[str]) -> bytes:
    if message.raw_content is None:  # it was streamed past
        absent.append("a body")
        return b""
    return message.raw_content
