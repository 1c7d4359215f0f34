"""Whom a record wire trusts: the public roots, the system's, and whatever files clients of the run were told of.

An agent has many clients, and each knows other roots: curl the system's, Node its own and NODE_EXTRA_CA_CERTS, boto3
AWS_CA_BUNDLE. The wire asks in the place of all of them, so it trusts what any would.
"""

import re
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path

import certifi
from blake3 import blake3

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import UpstreamWorld
from tapeproxy.proxy.pemfiles import CaError, replace, version
from tapeproxy.tapes.errors import UsageError

# Where distributions keep them, Go's crypto/x509 has the same list.
_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch, Gentoo, Alpine with its package
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL 7
    "/etc/ssl/cert.pem",  # Alpine, macOS
)
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")
"""A certificate in a folder that OpenSSL looks into."""


def system_roots() -> Path | None:
    """The file of roots that programs of this system read by themselves."""
    found = (Path(name) for name in (ssl.get_default_verify_paths().openssl_cafile, *_SYSTEM))
    return next((path for path in found if path.is_file()), None)


def agents_bundle(ca: CertificateAuthority, world: UpstreamWorld, *, passing: bool) -> Path:
    """The roots of the agent's clients. Raises CaError.

    Where hosts pass by (`passing`) they meet other certificates than ours, and want what they had before.
    """
    if not passing:
        return ca.bundle(world.ca_file)
    system = system_roots() if world.ca_file is None else None
    return ca.bundle(world.ca_file, [*([] if system is None else [system]), *world.named])


def trusted_roots(given: Path | None, others: Iterable[Path], folder: Path) -> Path:
    """One file of all these roots and certifi's, for mitmproxy takes one; named in `folder` after what went in.

    Raises UsageError for a `given` file that is no good. One of the `others` is left out then: who reads it himself
    says it himself.
    """
    known = {path: told for path in others if (told := _version(path))}
    try:
        first = "" if given is None else version(given)
    except CaError as error:
        reason = error.what.rpartition(": ")[2]
        raise UsageError(f"the upstream CA cannot be read: {reason}", where=str(given)) from None
    public = Path(certifi.where())
    key = "\n".join((version(public), first, *known.values()))
    path = folder / f"roots-{blake3(key.encode()).hexdigest(8)}.pem"
    if not path.exists():
        texts = [public.read_bytes(), *([] if given is None else [_checked(given)]), *_usable(known)]
        blocks = {b"".join(block.split()): block for text in texts for block in _BLOCK.findall(text)}
        replace(path, b"\n".join((*blocks.values(), b"")))
    return path


def _version(path: Path) -> str:
    try:
        return version(path)
    except CaError:
        return ""


def _checked(given: Path) -> bytes:
    try:
        text = given.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the upstream CA cannot be read: {reason}", where=str(given)) from None
    if b"-----BEGIN CERTIFICATE-----" not in text:
        raise UsageError("the upstream CA holds no PEM certificate", where=str(given))
    if not _loads(text):  # or every server would be refused for it
        raise UsageError("the upstream CA has a certificate that can't be read", where=str(given))
    return text


def _usable(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        try:
            names = sorted(path.iterdir()) if path.is_dir() else [path]
            texts = [one.read_bytes() for one in names if one is path or _HASHED.fullmatch(one.name)]
        except OSError:
            continue
        yield from filter(_loads, texts)


def _loads(text: bytes) -> bool:
    blocks = _BLOCK.findall(text)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=b"\n".join(blocks).decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return bool(blocks)
