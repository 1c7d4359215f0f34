"""How a record wire listens, and whom it trusts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tapeproxy.proxy.clientcerts import ClientCert
from tapeproxy.tapes.errors import TapeproxyError


class WireError(TapeproxyError):
    """The record wire could not be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireOptions:
    """How to listen and whom to trust.

    `confdir` holds our CA as `mitmproxy-ca.pem` (key and certificate). `hosts` are `--map` rules, host or host:port to
    base URL. `upstream` is the URL of the user's own proxy, `no_proxy` what bypasses it. `upstream_ca` is a PEM file of
    roots trusted beside the public ones, `roots` are more files and folders, which need not be there. `client_certs` is
    a PEM file with key, or a folder of HOST.pem files; `host_certs` are in their place. `no_tape`: hosts that pass by,
    of a wire with one tape.
    """

    confdir: Path
    host: str = "127.0.0.1"
    port: int = 0
    hosts: Mapping[str, str] = field(default_factory=dict)
    upstream: str | None = None
    no_proxy: tuple[str, ...] = ()
    upstream_ca: Path | None = None
    roots: tuple[Path, ...] = ()
    client_certs: Path | None = None
    host_certs: tuple[ClientCert, ...] = ()
    no_tape: tuple[str, ...] = ()
