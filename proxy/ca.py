"""The project's certificate authority: where it lies, the bundles made of it, the TLS contexts it backs.

Made once, in `home()`, laid out so that the directory serves as mitmproxy's confdir:

    mitmproxy-ca.pem        private key and certificate, mode 0600; the one source of truth
    mitmproxy-ca-cert.pem   the certificate alone; derived
    bundle-<hash>.pem       the certificate and public roots, for clients that take exactly one file; derived
    leaves/<hash>.pem       keys and certificates of hosts that were asked for, mode 0600; derived

A CA that is there but can't be used is an error, never a reason to make another: somebody may trust the old one.

Opening a CA and naming its bundle lies on the start-up path of every replay, so neither imports cryptography or ssl
(50 and 20 ms): `open` checks the file in outline, the first leaf to be minted its key and signature. Nor does the first
connection to a host that was replayed before: its leaf is kept.
"""

import contextlib
import functools
import os
import re
import warnings
from datetime import UTC, datetime
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.proxy import pemfiles
from tapeproxy.proxy.keptleaves import KeptLeaves
from tapeproxy.proxy.pemfiles import CaError, PrivateFile

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator

    from cryptography import x509

    from tapeproxy.proxy.leaves import Issuer

__all__ = ["CaError", "CertificateAuthority", "home", "normal_host"]

_PRIVATE = "mitmproxy-ca.pem"
_PUBLIC = "mitmproxy-ca-cert.pem"
_LEAVES = "leaves"
_MOST_CONTEXTS = 512


def home() -> Path:
    """Where tapeproxy keeps what outlives a run: $TAPEPROXY_HOME, else ~/.tapeproxy. Absolute; may not exist yet.

    Raises CaError when neither is known.
    """
    try:
        return Path(os.environ.get("TAPEPROXY_HOME") or "~/.tapeproxy").expanduser().absolute()
    except RuntimeError:
        what = "there is no home directory to keep the certificate authority in"
        raise CaError(what, fix=pemfiles.USE_ANOTHER_HOME) from None


_PROTOCOLS = {True: ["h2", "http/1.1"], False: ["http/1.1", "h2"], None: ["http/1.1"]}


TRUST_PASSWORD = "changeit"
"""Of the truststore: no secret, but Java wants one, and this is what its own has."""


class CertificateAuthority:
    """An opened CA, from `open`. Bundles and leaf certificates are made on demand."""

    def __init__(self, private: PrivateFile) -> None:
        self._private = private
        self._leaves = KeptLeaves(private.path.parent / _LEAVES, private.der)
        self._contexts: dict[tuple[str, datetime | None, bool | None], ssl.SSLContext] = {}

    @classmethod
    def open(cls, directory: Path | None = None) -> "CertificateAuthority":
        """Open the CA in `directory` (default: `home()`), making it when there is none.

        Safe against other processes that do the same at once: all get the same CA. Raises CaError.
        """
        path = (directory.absolute() if directory else home()) / _PRIVATE
        text = pemfiles.read_if_there(path)
        if text is None:
            from tapeproxy.proxy.leaves import new_authority

            pemfiles.create(path, new_authority())
            text = pemfiles.read(path)
        authority = cls(pemfiles.parse_private(path, text))
        pemfiles.restrict(path)
        authority._publish()
        return authority

    @property
    def directory(self) -> Path:
        """The directory that holds it all: mitmproxy's confdir."""
        return self._private.path.parent

    @property
    def certificate(self) -> Path:
        """The public certificate, PEM."""
        return self.directory / _PUBLIC

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` prints it."""
        import hashlib

        return hashlib.sha256(self._private.der).digest().hex(":").upper()

    def bundle(self, extra: Path | None = None, more: "Iterable[Path]" = ()) -> Path:
        """A PEM file with this CA and the public roots: certifi's, or instead those in `extra`, the user's own file.

        `more` files of roots are added, if they are there and hold any.

        Its name follows from path, size and time of what went in: a file once handed to a client never changes under
        it, and one that is still good costs three `stat` calls. Raises CaError.
        """
        from blake3 import blake3

        added = (path.absolute() for path in more if pemfiles.has_roots(path))
        # A folder, as requests takes one, is not read: our certificate is what matters in there.
        public = extra.absolute() if extra and not extra.is_dir() else _certifi()
        sources = dict.fromkeys((self.certificate, public, *added))
        key = "\n".join(pemfiles.version(source) for source in sources)
        path = self.directory / f"bundle-{blake3(key.encode()).hexdigest(8)}.pem"
        if not path.exists():
            parts = [pemfiles.read_roots(source).rstrip() + b"\n" for source in sources]
            pemfiles.replace(path, b"".join(parts))
        return path

    def truststore(self, bundle: Path) -> Path:
        """The certificates of a `bundle` as Java reads them (PKCS#12, `TRUST_PASSWORD`). Raises CaError."""
        path = bundle.with_suffix(".p12")
        if path.exists():
            return path
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

        try:
            certificates = list(_readable(bundle.read_bytes()))
            # Java wants a name for each, and no name twice.
            named = [pkcs12.PKCS12Certificate(one, b"%d" % number) for number, one in enumerate(certificates)]
            store = pkcs12.serialize_java_truststore(named, BestAvailableEncryption(TRUST_PASSWORD.encode()))
        except (OSError, ValueError) as error:
            raise CaError(f"no truststore for Java can be made: {error}", where=str(bundle)) from None
        pemfiles.replace(path, store)
        return path

    def server_context(
        self, host: str, valid_from: datetime | None = None, *, http2: bool | None = None
    ) -> "ssl.SSLContext":
        """A server's TLS context with a leaf for `host`: a DNS name, also an international one, or an IP address.

        `http2`: it is spoken with clients that offer it; False: with those that offer nothing else; None: never.

        The leaf is valid now and at `valid_from` (the tape's start), with a year to spare on both sides. A client
        that asks for another name (SNI) gets that one's leaf. Contexts are kept in memory.
        Raises CaError when the CA can't sign, or no certificate can name that host.
        """
        name = normal_host(host)
        context = self._contexts.get((name, valid_from, http2))
        if context is None:
            context = self._new_context(name, valid_from, http2)
            if len(self._contexts) >= _MOST_CONTEXTS:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[name, valid_from, http2] = context
        return context

    def _new_context(self, name: str, valid_from: datetime | None, http2: bool | None) -> "ssl.SSLContext":
        import ssl

        def choose(connection: ssl.SSLSocket | ssl.SSLObject, asked: str | None, _: ssl.SSLContext) -> int | None:
            try:
                if asked and asked != name:
                    connection.context = self.server_context(asked, valid_from, http2=http2)
            except CaError:
                return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
            return None

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(_PROTOCOLS[http2])  # the first that the client offers, too
        # Two tickets cost 0.1 ms of a 0.9 ms handshake, resuming saves as much, and hardly a client resumes.
        context.num_tickets = 0
        context.sni_callback = choose
        now = datetime.now(UTC)
        self._load_leaf(context, name, [now, valid_from or now])
        return context

    def _load_leaf(self, context: "ssl.SSLContext", name: str, moments: list[datetime]) -> None:
        import ssl

        kept = self._leaves.find(name, moments)
        if kept is not None:
            try:
                with pemfiles.passing_file(kept) as path:
                    context.load_cert_chain(path)
            except ssl.SSLError:
                self._leaves.drop(name)
            else:
                return
        pem = self._issuer.mint(name, moments)
        with pemfiles.passing_file(pem) as path:
            context.load_cert_chain(path)
        self._leaves.keep(name, pem, self._issuer.validity(moments))

    @functools.cached_property
    def _issuer(self) -> "Issuer":
        from tapeproxy.proxy.leaves import Issuer

        path = self._private.path
        try:
            issuer = Issuer.parse(self._private.text)
        except ValueError as error:
            raise pemfiles.damaged(path, str(error)) from None
        if issuer.certificate.not_valid_after_utc < datetime.now(UTC):
            raise CaError("the certificate authority has expired", where=str(path), fix=pemfiles.START_ANEW)
        return issuer

    def _publish(self) -> None:
        there = pemfiles.read_if_there(self.certificate)
        if there is None:
            pemfiles.replace(self.certificate, self._private.certificate)
        elif there.strip() != self._private.certificate.strip():
            what = f"this is not the certificate of {_PRIVATE} beside it"
            fix = "delete it, and the next start writes the right one"
            raise CaError(what, where=str(self.certificate), fix=fix)


def normal_host(host: str) -> str:
    """The form in which a certificate names `host`: lower case, ASCII, without brackets, zone or final dot.

    Raises CaError when it is no host name.
    """
    plain = host.removeprefix("[").removesuffix("]").partition("%")[0].removesuffix(".").lower()
    try:
        name = plain if plain.isascii() else plain.encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if len(name) > 253 or not name.isprintable() or not all(0 < len(label) < 64 for label in name.split(".")):
        raise CaError("no certificate can be made for this host name", where=repr(host[:80]))
    return name


def _certifi() -> Path:
    # Importing certifi costs 30 ms (importlib.resources), finding it 0.1 ms. Debian's has no file of its own.
    spec = PathFinder.find_spec("certifi")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / "cacert.pem"
        if path.is_file():
            return path
    import certifi

    return Path(certifi.where())


def _readable(pem: bytes) -> "Iterator[x509.Certificate]":
    """The certificates that can be read: of the public roots one or the other is not as it should be."""
    from cryptography import x509

    for text in re.findall(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", pem, re.DOTALL):
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore")
            yield x509.load_pem_x509_certificate(text)
