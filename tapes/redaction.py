"""Redaction: secrets out, tokens in, before a byte is written. Knows names and values, not files or sockets.

Secrets are found by header name, by query name, and as literal values (those of the secret-looking environment
variables, in their plain, JSON-escaped and percent-encoded forms). What is redacted, and how tokens look, is the same
in record and replay, because a request's identity is computed over redacted content.
"""

import re
from collections.abc import Callable, Iterable
from urllib.parse import quote

import orjson

from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.secretvars import is_secret_name, is_secret_value
from tapeproxy.tapes.tokens import is_token, make_token

_SECRET_HEADERS = frozenset(
    b"authorization proxy-authorization cookie set-cookie api-key apikey x-auth x-auth-token x-access-token token"
    b" x-amz-security-token x-csrf-token x-xsrf-token x-vault-token private-token x-token x-session-token x-auth-key"
    b" x-access-key x-password x-github-token x-figma-token circle-token x-subscription-token x-rapidapi-key"
    b" x-functions-key ocp-apim-subscription-key dd-application-key".split()
)
_URL_HEADERS = frozenset({b"location", b"content-location", b"referer", b"refresh"})
# What may stand before credentials and say nothing of them.
_SCHEMES = frozenset(
    b"basic bearer digest token negotiate ntlm hawk dpop oauth apikey api-key key aws4-hmac-sha256 mac".split()
)
_SECRET_SUFFIXES = (
    b"-api-key",
    b"-apikey",
    b"-api-token",
    b"-auth-token",
    b"-access-token",
    b"-secret",
    b"-secret-key",
)
_SECRET_QUERY = frozenset(
    b"api_key apikey api-key x-api-key access_token access-token accesstoken id_token refresh_token refreshtoken"
    b" client_secret secret secret_key password passwd pwd session_token app_key x-amz-signature x-amz-credential"
    b" x-amz-security-token x-goog-signature x-goog-credential awsaccesskeyid signature subscription-key auth_token"
    b" authtoken bearer authorization sas".split()
)
# These name ordinary things too, so their values must look like a secret.
_MAYBE_QUERY = frozenset(b"key token sig auth code jwt".split())
_HOLD = 3
"""A chunk is held back when it ends in at least this many bytes of a known secret's start."""
_TELLING = 8
"""Of a secret that a body breaks off in, so many bytes are worth hiding; fewer are any word's."""

type Timed = tuple[int, bytes]


def is_secret_header(name: bytes) -> bool:
    """True when a header of this name carries a credential."""
    low = name.lower()
    return low in _SECRET_HEADERS or low.endswith(_SECRET_SUFFIXES)


class Redactor:
    """Redacts with one 32-byte `key`. `secrets` are literal values that must appear nowhere."""

    def __init__(self, key: bytes, secrets: Iterable[str] = ()) -> None:
        self._key = key
        forms: dict[bytes, bytes] = {}
        for secret in secrets:
            token = make_token(key, secret.encode())
            for form in (secret.encode(), orjson.dumps(secret)[1:-1], quote(secret, safe="").encode()):
                forms.setdefault(form, token)
        self._tokens = dict(sorted(forms.items(), key=lambda item: -len(item[0])))
        alternatives = b"|".join(map(re.escape, self._tokens))
        self._find = re.compile(alternatives) if alternatives else None
        # The last bytes of every possible start of a secret -> those starts: one look-up a piece of a stream.
        self._starts: dict[bytes, list[bytes]] = {}
        for form in self._tokens:
            for n in range(_HOLD, len(form)):
                self._starts.setdefault(form[n - _HOLD : n], []).append(form[:n])

    def headers(self, headers: Headers) -> Headers:
        """Redact credentials by header name, and known secrets in every value. Order and names stay."""
        return tuple((name, self.content(self._header(name.lower(), value))) for name, value in headers)

    def url(self, url: bytes) -> bytes:
        """Redact query values by name, a password before the host, and known secrets anywhere."""
        base, mark, query = url.partition(b"?")
        if mark:
            query = b"&".join(self._pair(pair) for pair in query.split(b"&"))
        base = re.sub(rb"^([a-z]+://[^/@:]*:)([^/@]+)(?=@)", lambda m: m[1] + self._value(m[2]), base)
        return self.content(base + mark + query)

    def content(self, data: bytes) -> bytes:
        """Redact known secrets wherever they stand."""
        # `in` is some twenty times faster than an alternation that finds nothing.
        if self._find is None or not any(form in data for form in self._tokens):
            return data
        return self._find.sub(lambda match: self._tokens[match[0]], data)

    def text(self, text: str) -> str:
        """`content` for text."""
        return self.content(text.encode(errors="surrogateescape")).decode(errors="surrogateescape")

    def secret(self, value: bytes) -> bytes:
        """The token for a value that is known to be a secret; a token stays as it is."""
        return self._value(value)

    def argv(self, words: Iterable[str]) -> tuple[str, ...]:
        """Redact a command line: known secrets, URLs, header lines, and values of options whose name is a secret's."""
        out: list[str] = []
        hidden = False
        for word in words:
            out.append(self._word(word) if not hidden else self._value(word.encode(errors="surrogateescape")).decode())
            hidden = word.startswith("-") and "=" not in word and is_secret_name(word.strip("-").replace("-", "_"))
        return tuple(out)

    def stream(self) -> "StreamRedactor":
        """A redactor for one body that comes in pieces."""
        return StreamRedactor(self._find, self._tokens, self._starts)

    def _word(self, word: str) -> str:
        data = word.encode(errors="surrogateescape")
        name, mark, value = data.partition(b"=")
        if b"://" in name:
            data = self.url(data)
        elif mark and value and is_secret_name(name.decode("latin-1").strip("-").replace("-", "_")):
            data = name + mark + self._value(value)
        elif match := re.match(rb"([A-Za-z0-9-]+):\s*(?=\S)", data):
            data = match[0] + self._header(match[1].lower(), data[match.end() :])
        return self.content(data).decode(errors="surrogateescape")

    def _header(self, name: bytes, value: bytes) -> bytes:
        if name in _URL_HEADERS:
            return self.url(value)
        if not is_secret_header(name):
            return value
        if name == b"cookie":
            return b";".join(self._cookie(pair) for pair in value.split(b";"))
        if name == b"set-cookie":
            pair, mark, attributes = value.partition(b";")
            return self._cookie(pair) + mark + attributes
        scheme, space, credentials = value.partition(b" ")
        if space and scheme.lower() in _SCHEMES:
            return scheme + space + self._value(credentials)
        return self._value(value)

    def _cookie(self, pair: bytes) -> bytes:
        name, mark, value = pair.partition(b"=")
        return name + mark + self._value(value) if mark else self._value(pair)

    def _pair(self, pair: bytes) -> bytes:
        name, mark, value = pair.partition(b"=")
        low = name.lower()
        secret = low in _SECRET_QUERY or (low in _MAYBE_QUERY and is_secret_value(value.decode("latin-1")))
        return name + mark + self._value(value) if mark and secret else pair

    def _value(self, value: bytes) -> bytes:
        return value if not value or is_token(value) else make_token(self._key, value)


class StreamRedactor:
    """Redacts one body piece by piece without moving a boundary between pieces.

    A piece is held back only while its tail may be the start of a known secret, at most that secret's length. Of a
    secret whose first bytes, fewer than `_HOLD`, were written already, the rest is redacted.
    """

    def __init__(
        self, find: re.Pattern[bytes] | None, tokens: dict[bytes, bytes], starts: dict[bytes, list[bytes]]
    ) -> None:
        """`find` matches every form of every secret, `tokens` replaces them, `starts` has their prefixes by tail."""
        self._find = find
        self._tokens = tokens
        self._starts = starts
        self._held: list[Timed] = []
        self._context = b""

    def feed(self, t: int, data: bytes) -> list[Timed]:
        """Take a piece that came at `t`; return the pieces, with their times, that may be written now."""
        if self._find is None:
            return [(t, data)]
        self._held.append((t, data))
        text = self._context + b"".join(piece for _, piece in self._held)
        if any(text.endswith(start) for start in self._starts.get(text[-_HOLD:], ())):
            return []
        return self._release(self._find, b"")

    def finish(self) -> list[Timed]:
        """The pieces still held: nothing follows them. A secret that the body breaks off in is redacted that far."""
        if self._find is None or not self._held:
            return []
        text = self._context + b"".join(piece for _, piece in self._held)
        begun = [start for start in self._starts.get(text[-_HOLD:], ()) if text.endswith(start)]
        longest = max(begun, key=len, default=b"")
        return self._release(self._find, longest if len(longest) >= _TELLING else b"")

    def _release(self, find: re.Pattern[bytes], begun: bytes) -> list[Timed]:
        """All that is held, redacted; `begun` is what it ends in of a secret."""
        held = [(0, self._context), *self._held]
        self._context = b"".join(piece for _, piece in held)[-(_HOLD - 1) :]
        self._held = []
        return _redact_pieces(held, find, self._tokens, begun)[1:]


def _redact_pieces(
    pieces: list[Timed], find: re.Pattern[bytes], tokens: dict[bytes, bytes], begun: bytes
) -> list[Timed]:
    text = b"".join(data for _, data in pieces)
    if not begun and not any(form in text for form in tokens):
        return pieces
    spans = [(m.start(), m.end(), tokens[m[0]]) for m in find.finditer(text)]
    start = len(text) - len(begun)
    if begun and not (spans and spans[-1][1] > start):  # else it is the end of a whole secret
        token = next(token for form, token in tokens.items() if form.startswith(begun))
        spans.append((start, len(text), token[: len(begun)]))
    cut = _cutter(spans, text)
    out: list[Timed] = []
    start = 0
    for t, data in pieces:
        out.append((t, cut(start, start + len(data))))
        start += len(data)
    return out


def _cutter(spans: list[tuple[int, int, bytes]], text: bytes) -> Callable[[int, int], bytes]:
    """A function that gives the redacted bytes of text[start:end]; a token is cut where its secret was."""

    def cut(start: int, end: int) -> bytes:
        out = bytearray()
        at = start
        for begin, stop, token in spans:
            if stop <= start or begin >= end:
                continue
            out += text[at : max(at, begin)]
            first = max(start - begin, 0)
            last = len(token) if stop <= end else end - begin
            out += token[first:last]
            at = min(stop, end)
        return bytes(out + text[at:end])

    return cut
