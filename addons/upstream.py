"""The user's own upstream proxy: which hosts go through it, and its credentials. Knows no environment variables."""

import base64
import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import host_bytes
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.hosts import is_loopback

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

_FIX = "write http://HOST:PORT or https://HOST:PORT, with user:password@ before the host where it asks for one"


@dataclass(frozen=True, slots=True)
class Upstream:
    """An upstream proxy. `credentials` is the value of a Proxy-Authorization header, empty for none."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    credentials: bytes = b""

    @property
    def spec(self) -> str:
        """As mitmproxy's mode wants it."""
        return f"{self.scheme}://{host_bytes(self.host).decode()}:{self.port}"


def parse_upstream(url: str) -> Upstream:
    """Read `http[s]://HOST[:PORT]` or `HOST:PORT`, as HTTPS_PROXY has it. Raises UsageError; shows no password."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError:
        raise UsageError("the upstream proxy's URL is broken", fix=_FIX) from None
    if parts.scheme.startswith("pac") or parts.path.lower().endswith((".pac", "wpad.dat")):
        raise UsageError("a script that chooses proxies (PAC) is not read", fix=f"name the proxy it chooses: {_FIX}")
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"an upstream proxy of the kind {parts.scheme!r} is not supported", fix=_FIX)
    if not parts.hostname or any(c.isspace() for c in parts.netloc):
        raise UsageError("the upstream proxy's URL is broken", fix=_FIX)
    if port is None and "://" not in url:
        raise UsageError("the upstream proxy's URL has neither a scheme nor a port", fix=_FIX)
    credentials = b""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = b"Basic " + base64.b64encode(pair.encode())
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return Upstream(scheme, parts.hostname, port or (443 if scheme == "https" else 80), credentials)


def bypasses(host: str, port: int, no_proxy: Iterable[str]) -> bool:
    """True when a host is to be reached without the proxy, by the rules that curl and requests follow for NO_PROXY.

    `no_proxy` has names (which cover their subdomains), addresses, networks, each with or without a port, or `*`.
    Loopback always is: it means another machine there.
    """
    if is_loopback(host):
        return True
    name = host.lower().rstrip(".")
    return any(_covers(rule.strip().lower(), name, port) for rule in no_proxy)


def _covers(rule: str, name: str, port: int) -> bool:
    if rule == "*":
        return True
    head, colon, tail = rule.rpartition(":")
    if colon and tail.isdigit() and ":" not in head:
        if int(tail) != port:
            return False
        rule = head
    try:
        return ipaddress.ip_address(name) in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        rule = rule.lstrip("*").lstrip(".")
        return bool(rule) and (name == rule or name.endswith(f".{rule}"))


class UpstreamErrors:
    """Addon, before those that tape: what failed on the way through the proxy says that it did."""

    def __init__(self, upstream: Upstream, failures: Failures) -> None:
        self._place = f"{host_bytes(upstream.host).decode()}:{upstream.port}"
        self._secrets = tuple(_spellings(upstream.credentials))
        self._failures = failures

    def error(self, flow: "HTTPFlow") -> None:
        with self._failures:
            if flow.server_conn.via is None or flow.error is None or flow.response is not None:
                return
            said = flow.error.msg
            for secret in self._secrets:  # a proxy may repeat what it was sent
                said = said.replace(secret, "…")
            flow.error.msg = said
            if "upstream proxy" not in said.lower():
                flow.error.msg = f"through the upstream proxy {self._place}: {said}"


def _spellings(credentials: bytes) -> Iterator[str]:
    """The ways in which the credentials of a Proxy-Authorization header may stand in a text, longest first."""
    coded = credentials.rpartition(b" ")[2]
    pair = base64.b64decode(coded).decode(errors="replace")
    yield from filter(None, (coded.decode(), pair, pair.partition(":")[2]))


class UpstreamProxy:
    """Addon: in mitmproxy's upstream mode, sends each request through the proxy or straight to its host.

    mitmproxy's own addon for credentials would send them to the hosts that bypass the proxy, and tape them.
    """

    def __init__(self, upstream: Upstream, no_proxy: Iterable[str], failures: Failures) -> None:
        self._upstream = upstream
        self._no_proxy = tuple(no_proxy)
        self._failures = failures

    def requestheaders(self, flow: "HTTPFlow") -> None:
        if flow.request.stream:  # its server is called now, and not when all of it has come
            self._send(flow)

    def request_grows(self, flow: "HTTPFlow") -> None:
        self.requestheaders(flow)

    def request(self, flow: "HTTPFlow") -> None:
        if not flow.request.stream:
            self._send(flow)

    def _send(self, flow: "HTTPFlow") -> None:
        with self._failures:
            request, proxy = flow.request, self._upstream
            direct = bypasses(request.host, request.port, self._no_proxy)
            # The connection object is shared by all requests of one client connection: set it either way.
            flow.server_conn.via = None if direct else (proxy.scheme, (proxy.host, proxy.port))
            if request.is_http2:
                return  # there it is the Host header
            if direct or request.scheme == "https":
                request.data.authority = b""  # absolute-form is for proxies; a tunnel leads to the host itself
            elif request.data.authority and proxy.credentials:
                request.headers["Proxy-Authorization"] = proxy.credentials.decode()

    def http_connect_upstream(self, flow: "HTTPFlow") -> None:
        with self._failures:
            if self._upstream.credentials:
                flow.request.headers["Proxy-Authorization"] = self._upstream.credentials.decode()
