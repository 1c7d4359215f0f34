"""Which request is this? The canonical identity of a request, the same code in record and replay.

Identity is the method, the URL (query pairs sorted by name, duplicates in order), the content type and the body in
canonical form (`canonical.py`). Credentials, headers and the moment at which a URL was signed are not part of it, and a
redacted value is a wildcard, so that another key or client version still finds its answer. How a request is read is a
`Reading`: the version of what identity means, the user's rules, and the facts of the machines.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from blake3 import blake3

from tapeproxy.tapes.bodyforms import Body, Pairs, framed, split_pairs
from tapeproxy.tapes.largebodies import is_stand_in
from tapeproxy.tapes.machine import Marks
from tapeproxy.tapes.reading import PLAIN, Reading
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.rules import Local
from tapeproxy.tapes.tokens import mask_tokens

INSIDE = "inside"
"""The host of a request to a server of the run itself: its port is another one in every run."""

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_URL = re.compile(
    rb"(?s)([A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^:/?#]*)(?::(\d*))?([^?#]*)(?:\?([^#]*))?"
)
# A signed URL says when it was signed, beside a credential and signature that are redacted (SigV4, GOOG4).
_SIGNED_AT = {b"x-amz-signature": b"x-amz-date", b"x-goog-signature": b"x-goog-date"}


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


def origin_of(url: bytes) -> bytes:
    """Scheme, host and port of an absolute URL, as `scheme://host:port`. Raises ValueError when it is none."""
    target = parse_target(url)
    return f"{target.scheme}://{target.host}:{target.port}".encode()


class Identity(NamedTuple):
    """A request in canonical form. `key` is its 32-byte digest; `place` that of all but query, headers, type and body.

    `headers`: those that a rule made part of it.
    """

    method: str
    target: Target
    query: Pairs
    media: str
    body: Body
    place: bytes
    key: bytes
    headers: Pairs = ()


@lru_cache(4096)
def place_key(method: bytes, url: bytes, *, inside: bool = False, reading: Reading = PLAIN) -> bytes:
    """The 32-byte digest of method, scheme, host, port and path: requests that may be each other share it."""
    return _place(method, read_target(url, inside=inside, reading=reading))


def identify(
    method: bytes, url: bytes, headers: Headers, body: bytes, *, inside: bool = False, reading: Reading = PLAIN
) -> Identity:
    """The identity of a redacted request. `url` is absolute. Raises ValueError when it is not."""
    target = read_target(url, inside=inside, reading=reading)
    local = reading.rules.at(target.authority, target.path)
    query = _query(target.query, local, reading)
    media, canonical = read_body(headers, body, local, reading)
    matched: Pairs = ()
    place = _place(method, target)
    digest = blake3(place)
    if local.has("match-header"):
        matched = _matched(headers, local, reading.marks)
        digest.update(blake3(b"".join(framed(name) + framed(value) for name, value in matched)).digest())
    for name, value in query:
        digest.update(framed(name) + framed(value))
    digest.update(framed(media.encode()) + framed(canonical.form.encode()))
    digest.update(canonical.canonical)
    return Identity(method.decode("latin-1").upper(), target, query, media, canonical, place, digest.digest(), matched)


def read_target(url: bytes, *, inside: bool = False, reading: Reading = PLAIN) -> Target:
    """Where a request goes as far as that is compared. Raises ValueError for a URL that is not absolute."""
    url = reading.rules.everywhere.rewrite("rewrite-url", mask_tokens(url)) if reading.rules else mask_tokens(url)
    target = parse_target(reading.marks.replace(url))
    return Target(target.scheme, INSIDE, 0, target.path, target.query) if inside else target


def read_body(headers: Headers, body: bytes, local: Local, reading: Reading) -> tuple[str, Body]:
    """The media type and canonical body of a message. What stands for a large body is compared as it is."""
    if is_stand_in(body):
        media, _ = read_body(headers, b"", local, reading)
        return media, Body("large", body, body)
    # Imported late: a replay that finds every request byte for byte starts without them.
    if reading.version == 1:
        from tapeproxy.tapes import canonical1

        return canonical1.canonical_body(headers, body)
    from tapeproxy.tapes.canonical import canonical_body

    media, canonical = canonical_body(headers, body, local, reading.marks)
    return "" if local.ignores("ignore-header", b"content-type") else media, canonical


def _query(query: bytes | None, local: Local, reading: Reading) -> Pairs:
    pairs = split_pairs(query)
    if reading.version == 1:
        return pairs
    signed = {name.lower() for name, _ in pairs} & _SIGNED_AT.keys()
    if signed:
        moments = {_SIGNED_AT[name] for name in signed}
        pairs = tuple((name, value) for name, value in pairs if name.lower() not in moments)
    return tuple((name, reading.marks(value)) for name, value in pairs if not local.ignores("ignore-query", name))


def _matched(headers: Headers, local: Local, marks: Marks) -> Pairs:
    """The headers that rules add, by name; those of one name in order."""
    pairs = ((name.lower(), marks(mask_tokens(value))) for name, value in headers)
    return tuple(sorted((pair for pair in pairs if local.matches_header(pair[0])), key=lambda pair: pair[0]))


def _place(method: bytes, target: Target) -> bytes:
    where = f"{target.scheme}://{target.host}:{target.port}".encode()
    return blake3(framed(method.upper()) + framed(where) + framed(target.path)).digest()
