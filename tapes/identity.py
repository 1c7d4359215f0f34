"""Which request is this? The canonical identity of a request, the same code in record and replay.

Identity is the method, the URL (query pairs sorted by name, duplicates in order), the content type and the body: JSON
by value (unless nested deeper than 254), a form as pairs, multipart without its boundary, anything else byte for byte.
Credentials and headers are not part of it, and a redacted value is a wildcard, so that another key or client version
still finds its answer.
`VERSION` is on every tape; a change of what identity means gets a new number, never a silent new meaning.
"""

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import orjson
from blake3 import blake3

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.tokens import mask_tokens

VERSION = 1
INSIDE = "inside"
"""The host of a request to a server of the run itself: its port is another one in every run."""

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_URL = re.compile(
    rb"(?s)([A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^:/?#]*)(?::(\d*))?([^?#]*)(?:\?([^#]*))?"
)
# orjson reads integers past 64 bits as floats, and two such numbers could become one.
_LONG_NUMBER = re.compile(rb"\d{19}")
_MOST_NESTED = 254
_TWO_DIGITS = re.compile(rb"\d\d")
type Pairs = tuple[tuple[bytes, bytes], ...]


class Target(NamedTuple):
    """Where a request goes. `query` is None when the URL has no `?`."""

    scheme: str
    host: str
    port: int
    path: bytes
    query: bytes | None = None

    @property
    def authority(self) -> str:
        default = _DEFAULT_PORTS.get(self.scheme) == self.port or self.host == INSIDE
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if default else f"{host}:{self.port}"


@lru_cache(1024)
def parse_target(url: bytes) -> Target:
    """Split an absolute URL. Raises ValueError when it is none."""
    match = _URL.match(url)
    if match is None:
        raise ValueError(f"not an absolute URL: {url[:200].decode('latin-1')!r}")
    scheme = match[1].decode("latin-1").lower()
    host = match[2].decode("latin-1").lower().strip("[]").rstrip(".")
    port = int(match[3] or _DEFAULT_PORTS.get(scheme, 0))
    return Target(scheme, host, port, match[4] or b"/", match[5])


class Body(NamedTuple):
    """A canonical body. `form`: json, form, multipart, bytes or empty. `value`: what was compared, for people."""

    form: str
    value: Any
    canonical: bytes


class Identity(NamedTuple):
    """A request in canonical form. `key` is its 32-byte digest; `place` that of all but query, type and body."""

    method: str
    target: Target
    query: Pairs
    media: str
    body: Body
    place: bytes
    key: bytes


@lru_cache(4096)
def place_key(method: bytes, url: bytes, *, inside: bool = False) -> bytes:
    """The 32-byte digest of method, scheme, host, port and path: requests that may be each other share it."""
    return _place(method, _target(url, inside))


def identify(method: bytes, url: bytes, headers: Headers, body: bytes, *, inside: bool = False) -> Identity:
    """The identity of a redacted request. `url` is absolute. Raises ValueError when it is not."""
    target = _target(url, inside)
    query = query_pairs(target.query)
    media, canonical = canonical_body(headers, body)
    place = _place(method, target)
    digest = blake3(place)
    for name, value in query:
        digest.update(_framed(name) + _framed(value))
    digest.update(_framed(media.encode()) + _framed(canonical.form.encode()))
    digest.update(canonical.canonical)
    return Identity(method.decode("latin-1").upper(), target, query, media, canonical, place, digest.digest())


def query_pairs(query: bytes | None) -> Pairs:
    """Query pairs, decoded, secrets masked, sorted by name; pairs of one name keep their order."""
    if not query:
        return ()
    pairs = (pair.partition(b"=") for pair in query.replace(b"+", b" ").split(b"&"))
    decoded = ((unquote_to_bytes(name), mask_tokens(unquote_to_bytes(value))) for name, _, value in pairs)
    return tuple(sorted(decoded, key=lambda pair: pair[0]))


def canonical_body(headers: Headers, body: bytes) -> tuple[str, Body]:
    """The media type and the canonical body of a request."""
    content_type = b", ".join(value for name, value in headers if name.lower() == b"content-type").decode("latin-1")
    essence, _, parameters = content_type.partition(";")
    media = essence.strip().lower()
    charset = re.search(r'charset="?([^";\s]+)', parameters, re.IGNORECASE)
    if charset and charset[1].lower() not in ("utf-8", "utf8"):
        media += f"; charset={charset[1].lower()}"
    if not body:
        return media, Body("empty", b"", b"")
    data = mask_tokens(decode(body, headers).data)
    if "json" in media or (media in ("", "text/plain") and data[:1] in (b"{", b"[")):
        value, canonical = _canonical_json(data)
        if canonical is not None:
            return media, Body("json", value, canonical)
    if media == "application/x-www-form-urlencoded":
        pairs = query_pairs(data)  # not parse_qsl: on bytes it fails for what is not ASCII
        return media, Body("form", pairs, b"".join(_framed(name) + _framed(value) for name, value in pairs))
    boundary = re.search(r'boundary=(?:"([^"]+)"|([^";\s]+))', parameters, re.IGNORECASE)
    if media.startswith("multipart/") and boundary:
        mark = (boundary[1] or boundary[2]).encode("latin-1")
        plain = data.replace(b"--" + mark, b"--boundary")
        return media, Body("multipart", plain, plain)
    return media, Body("bytes", data, data)


def _canonical_json(data: bytes) -> tuple[Any, bytes | None]:
    try:
        if _has_long_number(data):
            value = json.loads(data)
            if _too_deep(value):
                return None, None
            return value, json.dumps(value, sort_keys=True).encode(errors="surrogatepass")
        value = orjson.loads(data)
        return value, orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None, None


def _too_deep(value: Any) -> bool:
    """Nested deeper than orjson writes, so that both ways of reading have one limit."""
    level = [value]
    for _ in range(_MOST_NESTED + 1):
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return True


def _has_long_number(data: bytes) -> bool:
    # Of 19 digits in a row, two stand at multiples of nine: looking there first takes a tenth of the time.
    return _TWO_DIGITS.search(data[::9]) is not None and _LONG_NUMBER.search(data) is not None


def _target(url: bytes, inside: bool) -> Target:
    target = parse_target(mask_tokens(url))
    return Target(target.scheme, INSIDE, 0, target.path, target.query) if inside else target


def _place(method: bytes, target: Target) -> bytes:
    where = f"{target.scheme}://{target.host}:{target.port}".encode()
    return blake3(_framed(method.upper()) + _framed(where) + _framed(target.path)).digest()


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data
