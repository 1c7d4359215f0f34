"""Ed25519 keys and what they sign. Knows key files; the signature's form is `tapes/signature.py`'s.

Private keys are PKCS #8 PEM, public ones SubjectPublicKeyInfo PEM, as OpenSSL has them; OpenSSH's are read too.
"""

from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.signature import Signature, Statement, message, render

type Password = Callable[[], bytes | None]
"""Gives the password of a private key that has one; None when nobody can be asked."""

_MOST = 1 << 16
_MAKE = "make a pair with: tapeproxy keygen FILE"


def new_pair() -> tuple[bytes, bytes]:
    """A new private key and its public one, both PEM."""
    private = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    return (
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
    )


def read_private(path: Path, password: Password) -> Ed25519PrivateKey:
    """A private key. Raises UsageError when there is none of Ed25519, or its password is missing or wrong."""
    data = _read(path)
    try:
        key = _load_private(data, None)
    except TypeError:  # what cryptography says of a key that needs a password
        given = password()
        if given is None:
            fix = "sign on a terminal, or with a key that has none"
            raise UsageError("the private key has a password", where=str(path), fix=fix) from None
        key = _opened(path, data, given)
    except (ValueError, UnsupportedAlgorithm):
        if b"PUBLIC KEY-----" in data or data.startswith(b"ssh-"):
            raise UsageError("this is a public key, and a private one signs", where=str(path)) from None
        raise UsageError("this is not a private key that can be read", where=str(path), fix=_MAKE) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError("the key is not one of Ed25519", where=str(path), fix=_MAKE)
    return key


def read_public(path: Path) -> bytes:
    """The 32 bytes of a public key. Raises UsageError when there is none of Ed25519."""
    data = _read(path)
    if b"PRIVATE KEY-----" in data:
        fix = "name the public one, which may be given to anybody: keygen calls it NAME.pub"
        raise UsageError("this is a private key, and a public one checks", where=str(path), fix=fix)
    ssh = data.startswith(b"ssh-")
    try:
        key = serialization.load_ssh_public_key(data) if ssh else serialization.load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise UsageError("this is not a public key that can be read", where=str(path), fix=_MAKE) from None
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError("the key is not one of Ed25519", where=str(path), fix=_MAKE)
    return key.public_bytes_raw()


def public_of(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes of the public key of a private one."""
    return key.public_key().public_bytes_raw()


def sign(statement: Statement, key: Ed25519PrivateKey) -> bytes:
    """The signature's file. `statement.key` is that of `key`."""
    content = statement.content()
    return render(content, key.sign(message(content)))


def is_true(signature: Signature) -> bool:
    """Whether the key that a signature names made it."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.statement.key))
        key.verify(signature.value, signature.message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _load_private(data: bytes, password: bytes | None) -> object:
    if b"BEGIN OPENSSH PRIVATE KEY" in data:
        return serialization.load_ssh_private_key(data, password)
    return serialization.load_pem_private_key(data, password)


def _opened(path: Path, data: bytes, password: bytes) -> object:
    try:
        return _load_private(data, password)
    except (ValueError, TypeError):
        raise UsageError("this is not the password of the private key", where=str(path)) from None
    except UnsupportedAlgorithm as error:
        fix = "take its password off (ssh-keygen -p), or make a pair with: tapeproxy keygen FILE"
        raise UsageError(f"the private key cannot be opened: {error}", where=str(path), fix=fix) from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the key cannot be read: {reason}", where=str(path)) from None
