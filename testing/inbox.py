"""Bytes in, whole HTTP/1 requests out. Knows the protocol, owns no socket and answers nothing."""

import contextlib
import json
from collections import deque
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

import httptools


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived. `target` is what the request line said; header names are lower case, in order."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    version: str = "1.1"
    keep_alive: bool = True

    @property
    def path(self) -> str:
        """The decoded path, without the query; also right for an absolute-form target."""
        return unquote(self._split()[0])

    @property
    def query(self) -> dict[str, str]:
        """The query pairs; the last of equal names wins."""
        return dict(parse_qsl(self._split()[1], keep_blank_values=True))

    def header(self, name: str, default: str = "") -> str:
        """The first header of that name, whatever its case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key == wanted), default)

    def json(self) -> object:
        """The body as JSON; raises ValueError when it is not."""
        value: object = json.loads(self.body)
        return value

    def _split(self) -> tuple[str, str]:
        if self.target.startswith("/"):  # urlsplit would take "//x" for a host
            path, _, query = self.target.partition("?")
            return path, query
        parts = urlsplit(self.target)
        return parts.path or "/", parts.query


class Inbox:
    """Bytes in, whole `Request`s out (`ready`). `expects_continue` is set when a client waits for a 100."""

    def __init__(self) -> None:
        self.ready: deque[Request] = deque()
        self.expects_continue = False
        self._parser = httptools.HttpRequestParser(self)
        self.on_message_begin()

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raises httptools.HttpParserError on anything that is not HTTP/1."""
        # A client that asks for an upgrade sends nothing more before it has its answer; what does come is dropped.
        with contextlib.suppress(httptools.HttpParserUpgrade):
            self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.expects_continue = ("expect", "100-continue") in self._headers

    def on_body(self, part: bytes) -> None:
        self._body.append(part)

    def on_message_complete(self) -> None:
        if self._body:  # the client did not wait for the 100 after all
            self.expects_continue = False
        self.ready.append(
            Request(
                method=self._parser.get_method().decode("ascii"),
                target=self._target.decode("latin-1"),
                headers=tuple(self._headers),
                body=b"".join(self._body),
                version=self._parser.get_http_version(),
                keep_alive=self._parser.should_keep_alive() and not self._parser.should_upgrade(),
            )
        )
