"""Leaves and the CA that signs them, checked by cryptography's own verifier at any time we like."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from tapeproxy.proxy.leaves import CA_NOT_AFTER, CA_NOT_BEFORE, Issuer, new_authority

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PEM = new_authority()
ISSUER = Issuer.parse(PEM)


def leaf_of(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def test_the_authority_is_valid_from_long_ago_and_may_sign_leaves_only() -> None:
    certificate = ISSUER.certificate
    assert certificate.not_valid_before_utc == CA_NOT_BEFORE == datetime(2000, 1, 1, tzinfo=UTC)
    assert certificate.not_valid_after_utc == CA_NOT_AFTER
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    assert PEM.index(b"EC PRIVATE KEY") < PEM.index(b"CERTIFICATE"), "as mitmproxy wants it"


def test_two_authorities_have_different_names() -> None:
    assert leaf_of(new_authority()).subject != ISSUER.certificate.subject


@pytest.mark.parametrize(
    ("started", "checked_at", "valid"),
    [
        (NOW, NOW, True),
        (NOW, NOW - 300 * DAY, True),
        (NOW, NOW + 300 * DAY, True),
        (NOW, NOW - 400 * DAY, False),
        (NOW - 1000 * DAY, NOW - 1000 * DAY, True),
        (NOW - 1000 * DAY, NOW - 1300 * DAY, True),
        (NOW - 1000 * DAY, NOW, True),
        (NOW + 1000 * DAY, NOW + 1000 * DAY, True),
        (CA_NOT_BEFORE, CA_NOT_BEFORE + DAY, True),
    ],
)
def test_when_a_leaf_is_valid(started: datetime, checked_at: datetime, valid: bool) -> None:
    leaf = leaf_of(ISSUER.mint("api.example.com", [NOW, started]))
    verifier = (
        PolicyBuilder()
        .store(Store([ISSUER.certificate]))
        .time(checked_at)
        .build_server_verifier(x509.DNSName("api.example.com"))
    )
    if valid:
        assert verifier.verify(leaf, []) == [leaf, ISSUER.certificate]
    else:
        with pytest.raises(VerificationError):
            verifier.verify(leaf, [])


def test_a_fresh_leaf_lives_no_longer_than_apple_allows() -> None:
    leaf = leaf_of(ISSUER.mint("a.example", [NOW]))
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc <= 825 * DAY


@pytest.mark.parametrize(
    ("name", "common"),
    [("a.example", 1), ("127.0.0.1", 1), ("::1", 1), ("x" * 60 + ".abc", 1), ("x" * 60 + ".abcd", 0)],
)
def test_names(name: str, common: int) -> None:
    leaf = leaf_of(ISSUER.mint(name, [NOW]))
    alternative = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    names = [str(general.value) for general in alternative.value]
    assert names == [name]
    assert len(leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)) == common
    assert alternative.critical == (not common)


def test_leaves_share_a_key_but_no_serial_number() -> None:
    one, two = (leaf_of(ISSUER.mint("a.example", [NOW])) for _ in range(2))
    assert one.public_key() == two.public_key()
    assert one.serial_number != two.serial_number


def own_authority(key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    """A CA as a user might bring it: another kind of key, no key identifier."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mine")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return text + certificate.public_bytes(serialization.Encoding.PEM)


def test_an_rsa_authority_signs_too_and_a_leaf_stays_within_its_years() -> None:
    issuer = Issuer.parse(own_authority(rsa.generate_private_key(65537, 2048)))
    leaf = leaf_of(issuer.mint("a.example", [NOW]))
    leaf.verify_directly_issued_by(issuer.certificate)
    assert leaf.not_valid_before_utc == NOW - DAY
    assert leaf.not_valid_after_utc == NOW + DAY


CERTIFICATE = PEM[PEM.index(b"-----BEGIN CERT") :]
OTHER = new_authority()
LEAF = ISSUER.mint("a.example", [NOW])


@pytest.mark.parametrize(
    ("pem", "reason"),
    [
        (OTHER[: OTHER.index(b"-----BEGIN CERT")] + CERTIFICATE, "another key"),
        (LEAF, "subject|issuer"),
        (own_authority(ed25519.Ed25519PrivateKey.generate()), "neither ECDSA nor RSA"),
        (b"", "PEM"),
    ],
    ids=["other key", "a leaf", "ed25519", "empty"],
)
def test_what_cannot_sign(pem: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Issuer.parse(pem)


def test_every_flipped_bit_of_the_signature_is_noticed() -> None:
    der = ISSUER.certificate.public_bytes(serialization.Encoding.DER)
    key = PEM.removesuffix(CERTIFICATE)
    for bit in range(8 * (len(der) - 64), 8 * len(der)):
        flipped = bytearray(der)
        flipped[bit // 8] ^= 1 << bit % 8
        pem = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(flipped) + b"-----END CERTIFICATE-----\n"
        with pytest.raises(ValueError):
            Issuer.parse(key + pem)
