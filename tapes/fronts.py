"""Fronts: ports that stand in front of a base URL (`--reverse`). Pure; knows URLs and variables, not who listens.

A client that takes no proxy takes another base URL. What it asks of a front is asked of the URL behind it, on both
wires and before anything is taped or matched, so that a tape does not know by which way a request came.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.records import Headers

_FIX = "write --reverse URL, NAME=URL (the variable with the base URL) or PORT=URL"
_PORTS = {"http": 80, "https": 443}
_KNOWN = {"api.openai.com": ("OPENAI_BASE_URL", "/v1"), "api.anthropic.com": ("ANTHROPIC_BASE_URL", "")}
"""Host -> the variable with its clients' base URL, and the path that this has at its end where the front has none."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERING = re.compile(
    r"(PATH|HOME|SHELL|IFS|ENV|CDPATH|TMPDIR|TZ|LANG|LC_.*|BASH.*|LD_.*|DYLD_.*|PYTHON.*|NODE_.*|PERL.*|RUBY.*|JAVA.*|JDK_.*"
    r"|_JAVA_.*|GIT_.*|SSL_.*|TAPEPROXY_.*|.*_PROXY)",
    re.IGNORECASE,
)
"""What steers a program otherwise than by a base URL: a tape may name variables, and must not name these."""
_URL = re.compile(rb"http://([^/?#]*)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Front:
    """`base`: scheme, authority and perhaps a path, without a slash at its end. `port` 0: a free one.

    `variable`: the one that leads clients here, empty for none; `path`: what its value has after the front's address.
    """

    base: str
    variable: str = ""
    path: str = ""
    port: int = 0

    def __str__(self) -> str:
        """As `parse_front` reads it."""
        return f"{self.port or self.variable}={self.base}"

    def value(self, port: int) -> str:
        """What its variable holds when the front is `port` on loopback."""
        return f"http://127.0.0.1:{port}{self.path}"


def parse_fronts(texts: Iterable[str]) -> tuple[Front, ...]:
    """Read `--reverse` options. Raises UsageError for one that is broken, or that claims what another one has."""
    fronts = tuple(map(parse_front, texts))
    claimed = [one.variable for one in fronts if one.variable] + [f"port {one.port}" for one in fronts if one.port]
    for claim in claimed:
        if claimed.count(claim) > 1:
            raise UsageError(f"two --reverse options want {claim}", fix="give each another NAME or PORT")
    return fronts


def parse_front(text: str) -> Front:
    """Read `URL`, `NAME=URL` or `PORT=URL`. Raises UsageError."""
    name, mark, url = text.partition("=")
    if not mark or "://" in name:
        name, url = "", text
    base, host, path = _base(url.strip(), text)
    known, usual = _KNOWN.get(host, ("", ""))
    name = name.strip()
    if name.isascii() and name.isdigit():
        if not 0 < int(name) <= 0xFFFF:
            raise UsageError("a --reverse option has a port that there is not", where=text, fix=_FIX)
        return Front(base, known, "" if path else usual, int(name))
    if not (name or known):
        raise UsageError(f"which variable holds the base URL of {host}?", where=text, fix=f"write NAME={url.strip()}")
    name = name or known
    if not _NAME.fullmatch(name) or _STEERING.fullmatch(name):
        raise UsageError(f"{name!a} cannot be the variable of a base URL", where=text, fix=_FIX)
    return Front(base, name, usual if name == known and not path else "")


def _base(url: str, text: str) -> tuple[str, str, str]:
    """The URL as the wire writes it, its host and its path. Raises UsageError, naming the whole `text`."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:
        raise UsageError("a --reverse option has a broken URL", where=text, fix=_FIX) from None
    if parts.scheme not in _PORTS or not host or not url.isascii() or any(c.isspace() for c in url):
        raise UsageError("a --reverse option needs an http:// or https:// URL", where=text, fix=_FIX)
    if "?" in url or "#" in url or parts.username is not None:
        raise UsageError("a --reverse URL has a host, a port and a path, nothing else", where=text, fix=_FIX)
    shown = f"[{host}]" if ":" in host else host
    shown += "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{shown}{path}", host, path


class Fronted(NamedTuple):
    """A request that came by a front: the base URL behind that, what was asked of it (path and query), and the front's
    own address, as the client wrote it."""

    base: bytes
    asked: bytes
    address: bytes

    @property
    def url(self) -> bytes:
        """The URL that is meant."""
        return self.base + self.asked

    @property
    def path(self) -> bytes:
        """Its path and query."""
        return self._prefix + self.asked

    @property
    def authority(self) -> bytes:
        """Host and port behind the front, as a Host header has them."""
        return self.base.split(b"/", 3)[2]

    @property
    def _prefix(self) -> bytes:
        return b"".join(b"/" + rest for rest in self.base.split(b"/", 3)[3:])

    def there(self, headers: Headers) -> Headers:
        """The headers of the request as the server behind the front gets them: with its own name as Host."""
        return tuple((name, self.authority if name.lower() == b"host" else value) for name, value in headers)

    def back(self, headers: Headers) -> Headers:
        """The answer's headers as the client gets them: a redirect to what is behind the front leads to the front."""
        if not any(name.lower() == b"location" for name, _ in headers):
            return headers
        return tuple((name, self._redirect(v) if name.lower() == b"location" else v) for name, v in headers)

    def _redirect(self, location: bytes) -> bytes:
        scheme, prefix, authority = self.base.partition(b"://")[0], self._prefix, self.authority
        place = scheme + b":" + location if location.startswith(b"//") else location
        if place.startswith(b"/"):
            if not prefix:
                return location
            place = scheme + b"://" + authority + place
        if not (inner := _within(place, scheme, authority)):
            return location
        tail = inner.removeprefix(prefix)
        if inner.startswith(prefix) and (not tail or tail[:1] in (b"/", b"?", b"#")):
            return b"http://" + self.address + (tail if tail[:1] == b"/" else b"/" + tail)
        return place  # of that server, and not behind the front: the proxy has it


def _within(place: bytes, scheme: bytes, authority: bytes) -> bytes:
    """Path and query of a URL of this origin, at least a slash; empty where it is another's."""
    try:
        parts = urlsplit(place.decode("latin-1"))
        port = parts.port
    except ValueError:
        return b""
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    shown += "" if port in (None, _PORTS.get(parts.scheme)) else f":{port}"
    if parts.username is not None or (parts.scheme, shown) != (scheme.decode(), authority.decode()):
        return b""
    rest = re.sub(rb"^[^:]*://[^/?#]*", b"", place)
    return rest if rest.startswith(b"/") else b"/" + rest


@dataclass(frozen=True, slots=True)
class Fronts:
    """The fronts that are open, by their ports."""

    open: Mapping[int, Front] = field(default_factory=dict[int, Front])

    def led(self, url: bytes) -> Fronted | None:
        """Where a request for `url` leads, made to a front directly or through the proxy; None: it is to no front."""
        if not self.open or (found := _URL.match(url)) is None:
            return None
        host, _, digits = found[1].decode("latin-1").rpartition(":")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and is_loopback(host.strip("[]"))):
            return None
        return self.at(int(digits), found[2], found[1])

    def at(self, port: int, target: bytes, address: bytes) -> Fronted | None:
        """Where a request for `target`, a path with its query, leads that came to `port`; None: that is no front."""
        front = self.open.get(port)
        if front is None:
            return None
        base = front.base.encode()
        return Fronted(base, target if target.startswith(b"/") else b"/" + target, address)

    def variables(self) -> dict[str, str]:
        """What leads clients here, and tells the shim that these ports are ours."""
        if not self.open:
            return {}
        named = {front.variable: front.value(port) for port, front in self.open.items() if front.variable}
        return named | {"TAPEPROXY_FRONTS": ",".join(map(str, self.open))}
