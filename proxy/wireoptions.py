"""How a record wire listens, and whom it trusts."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import certifi
from blake3 import blake3

from tapeproxy.proxy.clientcerts import ClientCert
from tapeproxy.proxy.pemfiles import replace
from tapeproxy.tapes.errors import TapeproxyError, UsageError


class WireError(TapeproxyError):
    """The record wire could not be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireOptions:
    """How to listen and whom to trust.

    `confdir` holds our CA as `mitmproxy-ca.pem` (key and certificate). `hosts` are `--map` rules, host or host:port to
    base URL. `upstream` is the URL of the user's own proxy, `no_proxy` what bypasses it. `upstream_ca` is a PEM file of
    roots trusted beside the public ones; `client_certs` a PEM file with key, or a folder of HOST.pem files;
    `host_certs` are in their place. `no_tape`: hosts that pass by, of a wire with one tape.
    """

    confdir: Path
    host: str = "127.0.0.1"
    port: int = 0
    hosts: Mapping[str, str] = field(default_factory=dict)
    upstream: str | None = None
    no_proxy: tuple[str, ...] = ()
    upstream_ca: Path | None = None
    client_certs: Path | None = None
    host_certs: tuple[ClientCert, ...] = ()
    no_tape: tuple[str, ...] = ()


def trusted_roots(extra: Path, folder: Path) -> Path:
    """One file of certifi's roots and the user's, for mitmproxy takes one; named in `folder` after what is in it."""
    try:
        added = extra.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the upstream CA cannot be read: {reason}", where=str(extra)) from None
    if b"-----BEGIN CERTIFICATE-----" not in added:
        raise UsageError("the upstream CA holds no PEM certificate", where=str(extra))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(extra)
    except ssl.SSLError:  # or every server would be refused for it
        raise UsageError("the upstream CA has a certificate that can't be read", where=str(extra)) from None
    roots = Path(certifi.where()).read_bytes() + b"\n" + added
    path = folder / f"roots-{blake3(roots).hexdigest(8)}.pem"
    if not path.exists():
        replace(path, roots)
    return path
