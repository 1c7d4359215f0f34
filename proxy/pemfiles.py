"""PEM files: read whole, checked in outline, written so that nobody sees half of one. Knows no cryptography.

Every failure of the file system becomes a CaError here, and nowhere else.
"""

import binascii
import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.tapes.errors import TapeproxyError

_BLOCK = re.compile(rb"-----BEGIN ([A-Z ]+)-----\s(.*?)-----END \1-----\r?\n?", re.DOTALL)

START_ANEW = "move it out of the way and the next start makes a new one, which then has to be trusted anew"
USE_ANOTHER_HOME = "set TAPEPROXY_HOME to a directory that you can write"
_CHECK_MODE = "check the owner and mode of the file and of the directories above it"
_CHECK_NAME = "check the variable or option that names it, such as SSL_CERT_FILE"


class CaError(TapeproxyError):
    """The certificate authority, or a file of certificates, is missing, damaged or can't be written."""


@dataclass(frozen=True, slots=True)
class PrivateFile:
    """A file with a private key and its certificate: all its `text`, the certificate as PEM and as DER."""

    path: Path
    text: bytes
    certificate: bytes
    der: bytes


def parse_private(path: Path, text: bytes) -> PrivateFile:
    """Find key and certificate and see that both are there in full. Raises CaError. Verifies nothing."""
    key = certificate = None
    for match in _BLOCK.finditer(text):
        label, der = match[1], _der(match[2])
        if label.endswith(b"PRIVATE KEY"):
            key = key or der
        elif label == b"CERTIFICATE" and certificate is None:
            certificate = match[0], der
    if not key or certificate is None or not certificate[1]:
        raise damaged(path, "it does not hold a whole private key and a whole certificate")
    return PrivateFile(path, text, *certificate)


def damaged(path: Path, reason: str) -> CaError:
    """The error for a CA that is there but no good."""
    fix = f"put back a good copy; or {START_ANEW}"
    return CaError(f"the certificate authority is damaged: {reason}", where=str(path), fix=fix)


def read(path: Path) -> bytes:
    """The whole file. Raises CaError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def read_if_there(path: Path) -> bytes | None:
    """The whole file, or None when there is none of that name. Raises CaError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from None


def read_roots(path: Path) -> bytes:
    """A file of trusted certificates. Raises CaError when there are none in it."""
    data = read(path)
    if b"-----BEGIN " not in data:
        raise CaError("this file of trusted certificates holds none in PEM form", where=str(path), fix=_CHECK_NAME)
    return data


def has_roots(path: Path) -> bool:
    """Whether this is a file that can be read and holds certificates."""
    with contextlib.suppress(OSError):
        return b"-----BEGIN " in path.read_bytes()
    return False


def version(path: Path) -> str:
    """The file's path, size and time of change, as one line. Raises CaError when there is none."""
    try:
        stat = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from None
    return f"{path} {stat.st_size} {stat.st_mtime_ns}"


def create(path: Path, data: bytes) -> None:
    """Write a new file with mode 0600, in a new directory with 0700. Does nothing when the name is taken already.

    Of several processes that create the same file at once one succeeds, and the others see its file whole.
    Raises CaError.
    """
    with _writing(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _temporary(path, data, 0o600) as temporary:
            try:
                # Unlike a rename this fails when the name is taken.
                path.hardlink_to(temporary)
            except FileExistsError:
                return
            except OSError:
                # No hard links on this file system: another process would have to come within these microseconds.
                if not path.exists():
                    temporary.rename(path)


def replace(path: Path, data: bytes) -> None:
    """Write a public file (mode 0644) under a name that may be taken. Raises CaError."""
    with _writing(path), _temporary(path, data, 0o644) as temporary:
        temporary.replace(path)


def replace_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600 under a name that may be taken. Raises CaError."""
    with _writing(path), _temporary(path, data, 0o600) as temporary:
        temporary.replace(path)


def restrict(path: Path) -> None:
    """Take a private file away from others. Copying loses modes; where they can't be changed, so be it."""
    with contextlib.suppress(OSError):
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)


@contextlib.contextmanager
def passing_file(data: bytes) -> Iterator[str]:
    """A path under which `data` can be read for a moment: ssl takes certificate and key from files alone."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        descriptor = os.memfd_create("leaf")
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # made with mode 0700
        path = Path(folder) / "leaf.pem"
        path.write_bytes(data)
        yield str(path)


def _der(base64: bytes) -> bytes:
    """The bytes of one PEM block, or nothing when they aren't one whole DER sequence (X.690, 8.1.3)."""
    try:
        der = binascii.a2b_base64(base64)
    except binascii.Error:
        return b""
    if len(der) < 2 or der[0] != 0x30:
        return b""
    count = der[1] & 0x7F if der[1] & 0x80 else 0
    length = int.from_bytes(der[2 : 2 + count]) if count else der[1]
    return der if len(der) == 2 + count + length else b""


def _unreadable(path: Path, error: OSError) -> CaError:
    fix = _CHECK_NAME if isinstance(error, FileNotFoundError) else _CHECK_MODE
    return CaError(f"the certificate file cannot be read: {_reason(error)}", where=str(path), fix=fix)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"the certificate file cannot be written: {_reason(error)}"
        raise CaError(what, where=str(path), fix=USE_ANOTHER_HOME) from None


@contextlib.contextmanager
def _temporary(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """A new file with `data` beside `path`, gone at the end unless it was moved."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
