"""Client certificates: which host is shown which, as files that a wire can use. Reads and writes PEM files."""

import contextlib
import re
import shutil
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.tmpdir import private_folder
from tapeproxy.tapes.errors import UsageError

_FIX = "write --client-cert [HOST=]CERT[,KEY], with PEM files"
_HOST = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class ClientCert:
    """A certificate (PEM) and its key, which may stand in the same file. `host` empty: for whoever asks."""

    certificate: Path
    key: Path | None = None
    host: str = ""


def parse_client_certs(texts: Iterable[str]) -> tuple[ClientCert, ...]:
    """Read `[HOST=]CERT[,KEY]` options. Raises UsageError, also where a file is not what it should be."""
    certs = tuple(map(_parse, texts))
    hosts = [one.host for one in certs]
    if len(hosts) > 1 and ("" in hosts or len({*hosts}) < len(hosts)):
        raise UsageError("of several client certificates each needs a host of its own", fix=_FIX)
    return certs


def _parse(text: str) -> ClientCert:
    host, mark, files = text.partition("=")
    if not mark or not _HOST.fullmatch(host):
        host, files = "", text
    certificate, _, key = files.partition(",")
    found = ClientCert(Path(certificate), Path(key) if key else None, host.lower())
    _check(found, text)
    return found


def _check(cert: ClientCert, text: str) -> None:
    def locked() -> str:
        raise UsageError("the key of a client certificate has a passphrase", where=text, fix="give one without")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert.certificate, cert.key, password=locked)
    except ssl.SSLError:
        raise UsageError("this is no certificate with its key", where=text, fix=_FIX) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the client certificate cannot be read: {reason}", where=text, fix=_FIX) from None


class ClientCerts:
    """The certificates as mitmproxy takes them: one PEM file, or a folder of HOST.pem files, private and removed."""

    def __init__(self, certs: Iterable[ClientCert]) -> None:
        self._certs = tuple(certs)
        self._folder: Path | None = None

    def place(self) -> Path | None:
        """The file or folder; None where there are none. Raises UsageError."""
        if not self._certs:
            return None
        (first, *_) = self._certs
        if not first.host and first.key is None:
            return first.certificate
        try:
            self._folder = private_folder("tapeproxy-certs-")
            for cert in self._certs:
                path = self._folder / f"{cert.host or 'any'}.pem"
                path.touch(mode=0o600)
                key = b"" if cert.key is None else cert.key.read_bytes()
                path.write_bytes(key + b"\n" + cert.certificate.read_bytes())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"client certificates cannot be put together: {reason}") from None
        return self._folder if first.host else self._folder / "any.pem"

    def close(self) -> None:
        """Remove the copies."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(self._folder)
