"""Certificates as cryptography makes them: the authority's own and the leaves it signs. Knows no file and no client.

Imported only where something has to be signed: cryptography costs 50 ms.
"""

import functools
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

type PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

# Some clients check certificates against a clamped clock; 2049 is the last year of UTCTime, and later dates are
# written in a form (GeneralizedTime) that old clients misread.
CA_NOT_BEFORE = datetime(2000, 1, 1, tzinfo=UTC)
CA_NOT_AFTER = datetime(2049, 12, 31, tzinfo=UTC)
# On either side of the run's clock and of the real one; both together under the 825 days that Apple's clients allow.
LEAF_MARGIN = timedelta(days=365)

_LONGEST_COMMON_NAME = 64  # RFC 5280, ub-common-name
_PEM = serialization.Encoding.PEM


def new_authority() -> bytes:
    """PEM of a fresh P-256 key and its self-signed CA certificate, in the order that mitmproxy reads them."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # The name is the key's own: clients look an issuer up by name, and there may be another machine's CA beside it.
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, f"tapeproxy CA {identifier.digest.hex()[:8]}"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "tapeproxy"),
        ]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(CA_NOT_BEFORE)
        .not_valid_after(CA_NOT_AFTER)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem_key(key, serialization.PrivateFormat.TraditionalOpenSSL) + certificate.public_bytes(_PEM)


@dataclass(frozen=True, slots=True)
class Issuer:
    """A CA's key and certificate, ready to sign."""

    key: PrivateKey
    certificate: x509.Certificate

    @classmethod
    def parse(cls, pem: bytes) -> "Issuer":
        """Read key and certificate. Raises ValueError when they are damaged, or aren't a CA's, or not a pair."""
        try:
            key = serialization.load_pem_private_key(pem, None)
            certificate = x509.load_pem_x509_certificate(pem)
            certificate.verify_directly_issued_by(certificate)
        except (TypeError, InvalidSignature, UnsupportedAlgorithm) as error:
            raise ValueError(str(error) or "the certificate's signature is wrong") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError("the key is neither ECDSA nor RSA")
        if key.public_key() != certificate.public_key():
            raise ValueError("the certificate belongs to another key")
        return cls(key, certificate)

    def validity(self, moments: list[datetime]) -> tuple[datetime, datetime]:
        """From when and until when a leaf that is minted for `moments` is valid."""
        begin = max(min(moments) - LEAF_MARGIN, self.certificate.not_valid_before_utc)
        return begin, min(max(moments) + LEAF_MARGIN, self.certificate.not_valid_after_utc)

    def mint(self, name: str, moments: list[datetime]) -> bytes:
        """PEM of this process's leaf key and a fresh certificate for `name` that is valid around all `moments`.

        `name` is an IP address or a DNS name in its ASCII form.
        """
        # A name too long for the subject leaves it empty, and then the alternative name has to be critical (RFC 5280).
        begin, end = self.validity(moments)
        common = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if len(name) <= _LONGEST_COMMON_NAME else []
        leaf = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(common))
            .issuer_name(self.certificate.subject)
            .public_key(_leaf_key().public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.SubjectAlternativeName([_general_name(name)]), critical=not common)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(self._identifier(), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return _pem_key(_leaf_key(), serialization.PrivateFormat.PKCS8) + leaf.public_bytes(_PEM)

    def _identifier(self) -> x509.AuthorityKeyIdentifier:
        # OpenSSL's strict mode, the default from Python 3.13 on, wants it on every leaf.
        try:
            found = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        except x509.ExtensionNotFound:
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found.value)


@functools.cache
def _leaf_key() -> ec.EllipticCurvePrivateKey:
    """One key for all leaves of this process: making one each would cost more than the signature."""
    return ec.generate_private_key(ec.SECP256R1())


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem_key(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(_PEM, form, serialization.NoEncryption())
