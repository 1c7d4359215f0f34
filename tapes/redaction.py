"""Redaction: secrets out, tokens in, before a byte is written. Knows which part of a message is looked at, and how.

Secrets are found by the name of a header, query parameter or field, by their look, and as known values (those of the
secret-looking environment variables) in all the ways to write them. What is redacted, and how tokens look, is the same
in record and replay, because a request's identity is computed over redacted content.
"""

import binascii
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tapeproxy.tapes.bodyredaction import BodyRedactor, header_of, redact_quoted
from tapeproxy.tapes.finding import Finder
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redactionrules import ASSIGNED, DEFAULT, LOOKS, NONE, RedactionRules
from tapeproxy.tapes.scriptwords import assigned_values, is_option, is_script
from tapeproxy.tapes.secretfields import is_telling
from tapeproxy.tapes.secretnames import SCHEMES, is_secret_field, is_secret_header, is_secret_pair, is_secret_query
from tapeproxy.tapes.secretvars import is_secret_name, is_secret_value
from tapeproxy.tapes.spans import Span
from tapeproxy.tapes.tokens import is_token, make_token

if TYPE_CHECKING:
    from tapeproxy.tapes.grpcredaction import CompressedMessages
    from tapeproxy.tapes.streamredaction import BodyStream

_URL_HEADERS: Final = frozenset({b"location", b"content-location", b"referer", b"refresh"})
_EVENTS: Final = re.compile(rb"event-stream|amazon\.eventstream|ndjson|jsonl|json-?lines|json-seq")
# Browsers can send no headers with a WebSocket: openai-insecure-api-key.KEY, base64url.bearer.authorization.k8s.io.T
_PROTOCOL: Final = re.compile(rb"(?i)((?:key|token|bearer|jwt|authorization\.k8s\.io)\.)([^,\s]{8,})")
_USER: Final = ("-u", "--user", "--proxy-user", "-U")
_CURLS: Final = ("curl", "http", "https", "wget", "xh")
_LINES: Final = re.compile(rb"event-stream|json")


_KEPT: Final = 1024
"""Headers and URLs whose redacted form is remembered, of at most as many bytes: an agent sends the same ones again."""


class Redactor:
    """Redacts with one 32-byte `key`. `secrets` are literal values that must appear nowhere."""

    def __init__(self, key: bytes, secrets: Iterable[str] = (), rules: RedactionRules = DEFAULT) -> None:
        self._key = key
        self._rules = rules
        self._off = rules.version == NONE
        self._finder = Finder(
            () if self._off else secrets,
            looks=rules.version,
            fields=frozenset() if self._off else rules.names,
            patterns=() if self._off else rules.compiled,
        )
        self._headers = frozenset(name.lower().encode() for name in rules.headers)
        self._bodies = BodyRedactor(
            self.content, self._value, self._pair, self._is_secret_field, () if self._off else rules.paths
        )
        self._known_header = lru_cache(_KEPT)(self._whole_header)
        self._known_url = lru_cache(_KEPT)(self._whole_url)

    @property
    def rules(self) -> RedactionRules:
        """What is redacted beside `secrets`."""
        return self._rules

    def headers(self, headers: Headers) -> Headers:
        """Redact credentials by header name, and what is a secret in every value. Order and names stay."""
        if self._off:
            return headers
        known, whole = self._known_header, self._whole_header
        return tuple(
            [
                (name, known(name.lower(), value) if len(value) <= _KEPT else whole(name.lower(), value))
                for name, value in headers
            ]
        )

    def url(self, url: bytes) -> bytes:
        """Redact query values by name, a password before the host, and secrets anywhere."""
        if self._off:
            return url
        return self._known_url(url) if len(url) <= _KEPT else self._whole_url(url)

    def _whole_header(self, name: bytes, value: bytes) -> bytes:
        clean = self._header(name, value)
        if clean == value and name.endswith(b"-bin"):
            clean = self._binary(value)
        return self.content(clean)

    def _binary(self, value: bytes) -> bytes:
        """Metadata of gRPC, which is base64, often without its end (and may be several, after a comma each)."""
        return b",".join(map(self._base64, value.split(b",")))

    def _base64(self, value: bytes) -> bytes:
        text = value.strip()
        try:
            plain = binascii.a2b_base64(text + b"=" * (-len(text) % 4))
        except binascii.Error:
            return value
        clean = self.content(plain)
        if clean == plain:
            return value
        coded = binascii.b2a_base64(clean, newline=False)
        return coded if text.endswith(b"=") else coded.rstrip(b"=")

    def _whole_url(self, url: bytes) -> bytes:
        url, hash_mark, fragment = url.partition(b"#")  # in a Location: OAuth's implicit grant
        base, mark, query = url.partition(b"?")
        query, fragment = (b"&".join(map(self._pair, pairs.split(b"&"))) for pairs in (query, fragment))
        base = re.sub(rb"^([a-z]+://[^/@:]*:)([^/@]+)(?=@)", lambda m: m[1] + self._value(m[2]), base)
        if b"%" in base:
            base = b"/".join(redact_quoted(part, self.content) for part in base.split(b"/"))
        return self.content(base + mark + query + hash_mark + fragment)

    def content(self, data: bytes) -> bytes:
        """Redact secrets wherever they stand: known ones, those that look like one, and JSON fields named as one."""
        spans = self._finder.spans_again(data)
        return _replaced(data, spans, self._token) if spans else data

    def body(self, headers: Headers, data: bytes) -> bytes:
        """Redact a whole body by what its headers say it is. A compressed one is compressed anew if that changes it."""
        if self._off or not data:
            return data
        if messages := self._compressed_messages(headers):
            return b"".join(piece for _, piece in (*messages.feed(0, data), *messages.finish()))
        from tapeproxy.tapes.codings import decode  # a replay that finds every request byte for byte needs none of them

        plain = decode(data, headers)
        text = self._plain(header_of(headers, b"content-type"), plain.data)
        if text == plain.data:
            return data
        if not plain.coding:
            return text
        from tapeproxy.tapes.recoding import encode

        return encode(text, plain.coding)

    def message(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        """The headers and the whole body of a message, redacted; a content-length that was right is right again."""
        redacted = self.body(headers, body)
        clean = self.headers(headers)
        if len(redacted) == len(body):
            return clean, redacted
        was, now = b"%d" % len(body), b"%d" % len(redacted)
        return tuple((n, now if n.lower() == b"content-length" and v == was else v) for n, v in clean), redacted

    def pieces(self, headers: Headers, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of a body that is too large to be seen whole, redacted as it is on a tape."""
        stream = self.stream(headers)
        for piece in pieces:
            yield from (data for _, data in stream.feed(0, piece))
        yield from (data for _, data in stream.finish())

    def text(self, text: str) -> str:
        """`content` for text."""
        return self.content(text.encode(errors="surrogateescape")).decode(errors="surrogateescape")

    def secret(self, value: bytes) -> bytes:
        """The token for a value that is known to be a secret; a token stays as it is."""
        return self._value(value)

    def argv(self, words: Iterable[str]) -> tuple[str, ...]:
        """Redact a command line: secrets, URLs, header lines, and values of options whose name is a secret's."""
        out: list[str] = []
        hidden = False
        words = tuple(words)
        user = False
        for index, word in enumerate(words):
            data = word.encode(errors="surrogateescape")
            if not hidden and is_script(words, index):
                out.append(self._script(words, index, data))
            elif user and b"://" not in data:
                name, mark, password = data.partition(b":")
                out.append((name + mark + self._value(password)).decode(errors="surrogateescape"))
            else:
                out.append(
                    self._word(words, index) if not hidden else self._value(data).decode(errors="surrogateescape")
                )
            user = word in _USER and any(one.rpartition("/")[2] in _CURLS for one in words)
            hidden = word.startswith("-") and "=" not in word and is_secret_name(word.strip("-").replace("-", "_"))
        return words if self._off else tuple(out)

    def stream(self, headers: Headers = ()) -> "BodyStream":
        """A redactor for one body that comes in pieces, of what its headers say it is."""
        from tapeproxy.tapes.deltas import Deltas
        from tapeproxy.tapes.eventframes import FrameRedactor
        from tapeproxy.tapes.streamredaction import StreamRedactor, WholeBody

        kind = header_of(headers, b"content-type").lower()
        if self._finder.idle:
            return StreamRedactor(self._finder, self._token)
        if header_of(headers, b"content-encoding").strip().lower() not in (b"", b"identity"):
            return WholeBody(lambda body: self._whole(headers, body))
        if b"amazon.eventstream" in kind:
            return FrameRedactor(self._finder, self._token)
        if messages := self._compressed_messages(headers):
            return messages
        if b"x-www-form-urlencoded" in kind or (self._rules.paths and b"json" in kind and not _EVENTS.search(kind)):
            return WholeBody(lambda body: self._whole(headers, body))
        deltas = Deltas(self._finder) if _LINES.search(kind) else None
        return StreamRedactor(self._finder, self._token, deltas, by_line=_EVENTS.search(kind) is not None)

    def _compressed_messages(self, headers: Headers) -> "CompressedMessages | None":
        if not any(name.lower() == b"grpc-encoding" for name, _ in headers):
            return None
        from tapeproxy.tapes.grpcredaction import CompressedMessages, coding_of

        coding = coding_of(headers)
        return CompressedMessages(coding, self.content) if coding else None

    def messages(self) -> "MessageRedactor":
        """A redactor for one direction of a WebSocket."""
        return MessageRedactor(self)

    def _whole(self, headers: Headers, body: bytes) -> tuple[bytes, bool]:
        redacted = self.body(headers, body)
        return redacted, redacted != body and bool(header_of(headers, b"content-encoding"))

    def _plain(self, kind: bytes, data: bytes) -> bytes:
        low = kind.lower()
        if _EVENTS.search(low):
            stream = self.stream(((b"content-type", kind),))
            return b"".join(piece for _, piece in (*stream.feed(0, data), *stream.finish()))
        return self._bodies.redact(kind, data)

    def _script(self, words: tuple[str, ...], index: int, data: bytes) -> str:
        for start, end in reversed([*assigned_values(words[:index], data)]):
            data = data[:start] + self._value(data[start:end]) + data[end:]
        return self.content(data).decode(errors="surrogateescape")

    def _word(self, words: tuple[str, ...], index: int) -> str:
        data = words[index].encode(errors="surrogateescape")
        name, mark, value = data.partition(b"=")
        if b"://" in name:
            data = self.url(data)
        elif is_option(name):
            if mark and value and is_secret_name(name.decode("latin-1").strip("-").replace("-", "_")):
                data = name + mark + self._value(value)
        else:
            if match := re.match(rb"([A-Za-z0-9-]+):\s*(?=\S)", data):
                data = match[0] + self._header(match[1].lower(), data[match.end() :])
            return self._script(words, index, data)
        return self.content(data).decode(errors="surrogateescape")

    def _header(self, name: bytes, value: bytes) -> bytes:
        if name in _URL_HEADERS:
            return self.url(value)
        if name == b"sec-websocket-protocol" and self._rules.version >= ASSIGNED:
            return _PROTOCOL.sub(lambda match: match[1] + self._value(match[2]), value)
        if not is_secret_header(name) and name not in self._headers:
            return value
        if name == b"cookie":
            return b";".join(self._cookie(pair) for pair in value.split(b";"))
        if name == b"set-cookie":
            pair, mark, attributes = value.partition(b";")
            return self._cookie(pair) + mark + attributes
        scheme, space, credentials = value.partition(b" ")
        if space and scheme.lower() in SCHEMES:
            return scheme + space + self._value(credentials)
        return self._value(value)

    def _cookie(self, pair: bytes) -> bytes:
        name, mark, value = pair.partition(b"=")
        return name + mark + self._value(value) if mark else self._value(pair)

    def _pair(self, pair: bytes) -> bytes:
        name, mark, value = pair.partition(b"=")
        if not mark:
            return pair
        if self._rules.version < LOOKS:
            says = is_secret_query(name)
            found = says or (says is None and is_secret_value(value.decode("latin-1")))
        else:
            says = is_secret_pair(name)
            found = says is not False and is_telling(says, value)
        if found or name.lower() in self._rules.names:
            return name + mark + self._value(value)
        return name + mark + redact_quoted(value, self.content, plus=True)

    def _is_secret_field(self, name: bytes, value: bytes) -> bool:
        if name.lower() in self._rules.names:
            return bool(value)
        says = is_secret_field(name) if self._rules.version >= LOOKS else False
        return says is not False and is_telling(says, value)

    def _value(self, value: bytes) -> bytes:
        return value if not value or is_token(value) else make_token(self._key, value)

    def _token(self, secret: bytes, length: int) -> bytes:
        return secret if is_token(secret) and len(secret) == length else make_token(self._key, secret, length)


class MessageRedactor:
    """The messages of one direction of a WebSocket, of which each may carry a piece of a text."""

    def __init__(self, redactor: Redactor) -> None:
        self._stream = redactor.stream(((b"content-type", b"application/x-ndjson"),))
        self._whole: deque[bool] = deque()

    def feed(self, t: int, message: bytes, *, whole: bool = True) -> list[tuple[int, bytes]]:
        """Take a message that came at `t`, or a piece of one that is not `whole` with it.

        Returns the pieces, with their times, that may be written now: as many as came, in their order.
        """
        self._whole.append(whole)
        return self._parted(self._stream.feed(t, message + b"\n" if whole else message))

    def finish(self) -> list[tuple[int, bytes]]:
        """The pieces still held: nothing follows them."""
        return self._parted(self._stream.finish())

    def _parted(self, pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        return [(when, data.removesuffix(b"\n") if self._whole.popleft() else data) for when, data in pieces]


def _replaced(data: bytes, spans: list[Span], token: Callable[[bytes, int], bytes]) -> bytes:
    out: list[bytes] = []
    at = 0
    for span in spans:
        out += (data[at : span.start], token(span.secret, span.end - span.start))
        at = span.end
    out.append(data[at:])
    return b"".join(out)
