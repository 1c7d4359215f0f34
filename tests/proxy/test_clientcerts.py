"""Client certificates: how they are named, and that each host is shown its own."""

import ssl
from pathlib import Path

import pytest
from authority import Authority
from cryptography.hazmat.primitives import serialization
from origin import Call, Origin
from recording import Recording

from tapeproxy.proxy.clientcerts import ClientCert, ClientCerts, parse_client_certs
from tapeproxy.tapes.errors import UsageError


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def parted(authority: Authority) -> tuple[Path, Path]:
    """A certificate and its key in two files."""
    both = authority.issue("me.example.com").read_bytes()
    start = both.index(b"-----BEGIN CERTIFICATE")
    certificate, key = authority.folder / "me.crt", authority.folder / "me.key"
    certificate.write_bytes(both[start:])
    key.write_bytes(both[:start])
    return certificate, key


async def hello(call: Call) -> None:
    await call.reply(b"hello")


def test_a_certificate_is_named_with_its_key_and_host(authority: Authority, parted: tuple[Path, Path]) -> None:
    certificate, key = parted
    whole = authority.issue("whole.example.com")
    assert parse_client_certs([str(whole)]) == (ClientCert(whole),)
    assert parse_client_certs([f"A.test={certificate},{key}", f"b.test={whole}"]) == (
        ClientCert(certificate, key, "a.test"),
        ClientCert(whole, None, "b.test"),
    )
    equals = authority.folder / "x=y.pem"
    equals.write_bytes(whole.read_bytes())
    assert parse_client_certs([str(equals)]) == (ClientCert(equals),), "a path is no host"


def test_what_cannot_be_used_is_refused(parted: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, key = parted
    secret = serialization.load_pem_private_key(key.read_bytes(), None)
    locked = tmp_path / "locked.key"
    encrypted = serialization.BestAvailableEncryption(b"word")
    form = serialization.PrivateFormat.PKCS8
    locked.write_bytes(secret.private_bytes(serialization.Encoding.PEM, form, encrypted))
    for texts, what in (
        (["/nonexistent.pem"], "no such file"),
        ([str(certificate)], "no certificate with its key"),
        ([f"{certificate},{Path(__file__)}"], "no certificate with its key"),
        ([f"{certificate},{locked}"], "has a passphrase"),
        ([f"{certificate},{key}", f"a.test={certificate},{key}"], "each needs a host"),
        ([f"a.test={certificate},{key}", f"A.test={certificate},{key}"], "each needs a host"),
    ):
        with pytest.raises(UsageError, match=what):
            parse_client_certs(texts)


def test_each_host_is_shown_its_own_and_no_copy_is_left(
    tmp_path: Path, authority: Authority, parted: tuple[Path, Path]
) -> None:
    tls = authority.serving("127.0.0.1")
    tls.load_verify_locations(authority.cert)
    tls.verify_mode = ssl.CERT_REQUIRED
    wanted = ClientCert(*parted, "127.0.0.1")
    certs = ClientCerts([wanted])
    folder = certs.place()
    assert folder is not None
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "127.0.0.1.pem")] == [0o700, 0o600]
    certs.close()
    assert not folder.exists()
    for certificate, status in ((wanted, 200), (ClientCert(*parted, "other.test"), 502)):
        with (
            Origin(hello, tls=tls) as origin,
            Recording(tmp_path, authority, upstream_ca=authority.cert, host_certs=(certificate,)) as recording,
            recording.client() as client,
        ):
            try:
                answered = client.get(origin.url).status_code
            except Exception:
                answered = 502  # mitmproxy just hangs up
            assert answered == status
        recording.path.unlink()
