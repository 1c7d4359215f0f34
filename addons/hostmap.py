"""Sends hosts elsewhere (`--map HOST=URL`). Knows rules and how to rewrite a flow's target, not what is taped.

The tape, the client's own TLS and the Host header keep the name that the client asked for. Toward the mapped place TLS
is ordinary: the name sent (SNI) and the name verified are those of the mapped URL, because that is the server that has
to prove who it is; it need not hold a certificate for the host it stands in for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.flows import host_bytes
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

REDIRECTED = "tapeproxy.redirected"
"""In a flow's metadata: somebody else has decided where it goes."""
_FIX = "write --map HOST=URL, such as api.openai.com=https://127.0.0.1:8443"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go instead. `prefix` comes before the request's own path, without a slash at its end."""

    scheme: str
    host: str
    port: int
    prefix: bytes


def parse_map(rules: Iterable[str]) -> dict[str, str]:
    """Read `HOST=URL` or `HOST:PORT=URL` rules. Raises UsageError naming a broken or repeated one."""
    hosts: dict[str, str] = {}
    for rule in rules:
        host, mark, url = rule.partition("=")
        host = host.strip().lower()
        if mark and "://" in host:
            scheme, _, name = host.partition("://")
            fix = f"leave out {scheme}://, as in --map {name.partition('/')[0]}={url.strip()}"
            raise UsageError("a --map rule begins with a host alone", where=rule, fix=fix)
        if not mark or not host or "/" in host:
            raise UsageError("a --map rule needs a host before its '='", where=rule, fix=_FIX)
        if host in hosts:
            raise UsageError(f"{host} is mapped twice", where=rule, fix="leave one --map rule for this host")
        parse_target(url.strip(), rule)
        hosts[host] = url.strip()
    return hosts


def parse_target(url: str, rule: str) -> Target:
    """Read the URL of a rule. Raises UsageError naming the `rule`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"a --map rule has a broken URL: {error}", where=rule, fix=_FIX) from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise UsageError("a --map rule needs an http:// or https:// URL after its '='", where=rule, fix=_FIX)
    if parts.query or parts.fragment or parts.username is not None:
        raise UsageError("a --map URL has a host, a port and a path, nothing else", where=rule, fix=_FIX)
    prefix = parts.path.rstrip("/").encode()
    return Target(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], prefix)


class HostMap:
    """Addon: rewrites where a request goes. `rules`: host or host:port -> base URL; the more exact rule wins."""

    def __init__(self, rules: Mapping[str, str], failures: Failures) -> None:
        self._targets = {host.lower(): parse_target(url, f"{host}={url}") for host, url in rules.items()}
        self._failures = failures

    def requestheaders(self, flow: "HTTPFlow") -> None:
        if flow.request.stream:  # its server is called now, and not when all of it has come
            self._send(flow)

    def request_grows(self, flow: "HTTPFlow") -> None:
        self.requestheaders(flow)

    def request(self, flow: "HTTPFlow") -> None:
        if not flow.request.stream:
            self._send(flow)

    def place(self, host: str, port: int) -> tuple[str, int] | None:
        """Where a server that speaks TLS is really reached; None: at one that does not."""
        target = self.find(host, port)
        if target is None:
            return host, port
        return (target.host, target.port) if target.scheme == "https" else None

    def _send(self, flow: "HTTPFlow") -> None:
        with self._failures:
            request = flow.request
            if REDIRECTED in flow.metadata:
                return
            target = self.find(request.host, request.port)
            if target is None:
                return
            # The properties of the same names would rewrite the Host header too.
            request.data.host = target.host
            request.data.port = target.port
            request.data.scheme = target.scheme.encode()
            request.data.path = target.prefix + request.data.path
            # In HTTP/2 this is the Host header, in HTTP/1 the place that an upstream proxy is told.
            if request.data.authority and not request.is_http2:
                request.data.authority = host_bytes(target.host) + b":%d" % target.port

    def find(self, host: str, port: int) -> Target | None:
        """Where requests for `host`:`port` go instead; None: nowhere else."""
        name = host.lower()
        return self._targets.get(f"{name}:{port}") or self._targets.get(name)
