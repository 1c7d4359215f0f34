"""The CA as a whole: made once, opened cheaply, refused when damaged, trusted by real TLS clients."""

import contextlib
import os
import ssl
import stat
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import certifi
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.proxy.ca import TRUST_PASSWORD, CaError, CertificateAuthority, home, normal_host
from tapeproxy.proxy.leaves import Issuer


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.open(tmp_path_factory.mktemp("ca") / "home")


def run_python(program: str, *arguments: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


# --- files ---


def test_files_and_modes(authority: CertificateAuthority) -> None:
    private = authority.directory / "mitmproxy-ca.pem"
    assert stat.S_IMODE(authority.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert authority.certificate == authority.directory / "mitmproxy-ca-cert.pem"
    assert b"PRIVATE" not in authority.certificate.read_bytes()
    assert private.read_bytes().endswith(authority.certificate.read_bytes())


def test_opening_again_gives_the_same(authority: CertificateAuthority) -> None:
    before = (authority.directory / "mitmproxy-ca.pem").read_bytes()
    assert CertificateAuthority.open(authority.directory).fingerprint == authority.fingerprint
    assert (authority.directory / "mitmproxy-ca.pem").read_bytes() == before


def test_the_fingerprint_is_that_of_the_certificate(authority: CertificateAuthority) -> None:
    certificate = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    assert bytes.fromhex(authority.fingerprint.replace(":", "")) == certificate.fingerprint(hashes.SHA256())
    assert len(authority.fingerprint.split(":")) == 32


def test_mitmproxy_takes_the_directory_as_it_is(authority: CertificateAuthority) -> None:
    certs = pytest.importorskip("mitmproxy.certs", reason="needs tapeproxy[record]")
    store = certs.CertStore.from_store(authority.directory, "mitmproxy", 2048)
    assert store.default_ca.fingerprint().hex(":").upper() == authority.fingerprint


def test_home_is_where_the_environment_says() -> None:
    program = "from tapeproxy.proxy.ca import home; print(home())"
    assert run_python(program, TAPEPROXY_HOME="/somewhere/else") == "/somewhere/else\n"
    assert run_python(program, TAPEPROXY_HOME="", HOME="/home/me") == "/home/me/.tapeproxy\n"
    assert run_python(program, TAPEPROXY_HOME="~/x", HOME="/home/me") == "/home/me/x\n"
    assert home().is_absolute()


RACE = """
import sys
from pathlib import Path
from tapeproxy.proxy import leaves
from tapeproxy.proxy.ca import CertificateAuthority
print("ready", flush=True)
sys.stdin.readline()
print(CertificateAuthority.open(Path(sys.argv[1])).fingerprint)
"""


def test_processes_that_race_to_create_it_share_one(tmp_path: Path) -> None:
    directory = tmp_path / "home"
    command = [sys.executable, "-c", RACE, str(directory)]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    fingerprints = {racer.communicate()[0].strip() for racer in racers}
    assert fingerprints == {CertificateAuthority.open(directory).fingerprint}
    names = sorted(path.name for path in directory.iterdir())
    assert names == ["mitmproxy-ca-cert.pem", "mitmproxy-ca.pem"], "no draft is left"


def test_a_lost_public_certificate_comes_back_and_a_loose_mode_is_tightened(tmp_path: Path) -> None:
    authority = CertificateAuthority.open(tmp_path)
    authority.certificate.unlink()
    (tmp_path / "mitmproxy-ca.pem").chmod(0o644)
    assert CertificateAuthority.open(tmp_path).certificate.exists()
    assert stat.S_IMODE((tmp_path / "mitmproxy-ca.pem").stat().st_mode) == 0o600


# --- damage ---


@pytest.mark.parametrize("text", [b"", b"garbage", b"-----BEGIN EC PRIVATE KEY-----\n"])
def test_a_damaged_authority_is_refused_and_left_alone(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "mitmproxy-ca.pem"
    path.write_bytes(text)
    with pytest.raises(CaError) as caught:
        CertificateAuthority.open(tmp_path)
    assert str(path) in str(caught.value)
    assert "damaged" in caught.value.what
    assert "the next start makes a new one" in caught.value.fix
    assert path.read_bytes() == text


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_is_refused_or_changes_nothing(
    authority: CertificateAuthority, tmp_path_factory: pytest.TempPathFactory, place: float, bit: int
) -> None:
    text = bytearray((authority.directory / "mitmproxy-ca.pem").read_bytes())
    text[int(place * len(text))] ^= 1 << bit
    directory = tmp_path_factory.mktemp("flipped")
    (directory / "mitmproxy-ca.pem").write_bytes(text)
    try:
        opened = CertificateAuthority.open(directory)
        opened.server_context("a.example")
    except CaError:
        return
    assert opened.fingerprint == authority.fingerprint
    assert key_of(bytes(text)) == key_of((authority.directory / "mitmproxy-ca.pem").read_bytes())


def key_of(pem: bytes) -> bytes:
    return Issuer.parse(pem).key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def test_a_strange_public_certificate_is_refused(authority: CertificateAuthority, tmp_path: Path) -> None:
    other = CertificateAuthority.open(tmp_path)
    other.certificate.write_bytes(authority.certificate.read_bytes())
    with pytest.raises(CaError, match=r"not the certificate of mitmproxy-ca\.pem") as caught:
        CertificateAuthority.open(tmp_path)
    assert caught.value.where == str(other.certificate)


def test_an_unreadable_authority_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mitmproxy-ca.pem").mkdir()
    with pytest.raises(CaError, match="cannot be read: is a directory"):
        CertificateAuthority.open(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_authority_of_someone_else_is_refused(tmp_path: Path) -> None:
    CertificateAuthority.open(tmp_path)
    (tmp_path / "mitmproxy-ca.pem").chmod(0)
    with pytest.raises(CaError, match="cannot be read: permission denied"):
        CertificateAuthority.open(tmp_path)


def test_a_home_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaError, match="not a directory"):
        CertificateAuthority.open(tmp_path / "file" / "home")


# --- bundles ---


def count(path: Path) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    return context.cert_store_stats()["x509_ca"]


def test_the_truststore_has_the_certificates_of_a_bundle(authority: CertificateAuthority) -> None:
    store = authority.truststore(authority.certificate)
    parsed = pkcs12.load_pkcs12(store.read_bytes(), TRUST_PASSWORD.encode())
    (only,) = parsed.additional_certs
    assert only.certificate.public_bytes(Encoding.PEM) == authority.certificate.read_bytes()
    assert authority.truststore(authority.certificate) == store
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a public root whose number is not as it should be
        many = pkcs12.load_pkcs12(authority.truststore(authority.bundle()).read_bytes(), TRUST_PASSWORD.encode())
    assert len(many.additional_certs) == authority.bundle().read_bytes().count(b"BEGIN CERTIFICATE")


def test_the_bundle_is_ours_and_the_public_roots(authority: CertificateAuthority) -> None:
    path = authority.bundle()
    assert count(path) == count(Path(certifi.where())) + 1
    assert authority.certificate.read_bytes() in path.read_bytes()
    assert authority.bundle() == path
    assert path.parent == authority.directory


def test_the_users_own_roots_take_the_place_of_the_public_ones(authority: CertificateAuthority, tmp_path: Path) -> None:
    mine = CertificateAuthority.open(tmp_path / "mine").certificate
    extra = tmp_path / "extra.pem"
    extra.write_bytes(mine.read_bytes().rstrip())
    first = authority.bundle(extra)
    inode = first.stat().st_ino
    assert count(first) == 2
    assert authority.bundle(extra) == first
    assert first.stat().st_ino == inode, "not written again"
    extra.write_bytes(
        extra.read_bytes() + b"\n" + CertificateAuthority.open(tmp_path / "more").certificate.read_bytes()
    )
    second = authority.bundle(extra)
    assert count(second) == 3
    assert second != first
    assert count(first) == 2, "who has the old one keeps it"
    assert authority.bundle(tmp_path) == authority.bundle(), "a folder is none"


@pytest.mark.parametrize(("content", "message"), [(None, "no such file"), (b"nothing", "none in PEM form")])
def test_roots_that_are_none(
    authority: CertificateAuthority, tmp_path: Path, content: bytes | None, message: str
) -> None:
    extra = tmp_path / "roots.pem"
    if content is not None:
        extra.write_bytes(content)
    with pytest.raises(CaError, match=message) as caught:
        authority.bundle(extra)
    assert caught.value.where == str(extra)
    assert "SSL_CERT_FILE" in caught.value.fix


def test_opening_and_bundling_import_nothing_heavy(authority: CertificateAuthority) -> None:
    authority.bundle()
    program = """
import sys
from tapeproxy.proxy.ca import CertificateAuthority
authority = CertificateAuthority.open()
authority.bundle()
print([name for name in ("ssl", "cryptography", "certifi", "hashlib", "asyncio", "tempfile") if name in sys.modules])
"""
    assert run_python(program, TAPEPROXY_HOME=str(authority.directory)) == "[]\n"


# --- TLS ---


@dataclass
class Ends:
    """A client and a server joined in memory, and the bytes that wait for the client."""

    client: ssl.SSLObject
    server: ssl.SSLObject
    to_client: ssl.MemoryBIO


def join(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> Ends:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    return Ends(
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
        to_client,
    )


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> Ends:
    ends = join(server, client, name)
    for end in [ends.client, ends.server] * 2:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert ends.client.version() == "TLSv1.3"
    return ends


def strict_client(authority: CertificateAuthority) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    return context


NAMES = [
    "api.openai.com",
    "localhost",
    "under_score.example",
    "xn--bcher-kva.example",
    "bücher.example",
    ".".join(["a" * 60] * 4),
]


@pytest.mark.parametrize("host", [*NAMES, "127.0.0.1", "::1"])
def test_a_strict_client_accepts_the_leaf(authority: CertificateAuthority, host: str) -> None:
    ends = shake_hands(authority.server_context(host), strict_client(authority), host)
    assert ends.client.getpeercert()


@pytest.mark.parametrize("host", NAMES)
def test_a_client_gets_a_leaf_for_the_name_it_asks(authority: CertificateAuthority, host: str) -> None:
    ends = shake_hands(authority.server_context("other.example"), strict_client(authority), host)
    assert ends.client.getpeercert()


def test_a_client_that_asks_for_an_address_asks_no_name(authority: CertificateAuthority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(authority.server_context("other.example"), strict_client(authority), "127.0.0.1")


def test_a_client_without_our_authority_refuses(authority: CertificateAuthority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(authority.server_context("a.example"), ssl.create_default_context(), "a.example")


@pytest.mark.parametrize(("offered", "chosen"), [(["h2", "http/1.1"], "http/1.1"), (["h2"], None), ([], None)])
def test_alpn(authority: CertificateAuthority, offered: list[str], chosen: str | None) -> None:
    client = strict_client(authority)
    if offered:
        client.set_alpn_protocols(offered)
    ends = shake_hands(authority.server_context("a.example"), client, "a.example")
    assert ends.client.selected_alpn_protocol() == chosen
    other = shake_hands(authority.server_context("a.example"), client, "b.example")
    assert other.client.selected_alpn_protocol() == chosen, "after a change of context too"


def test_no_tickets_follow_the_handshake(authority: CertificateAuthority) -> None:
    for name in ("a.example", "b.example"):
        ends = shake_hands(authority.server_context("a.example"), strict_client(authority), name)
        assert ends.to_client.pending == 0


def test_a_name_that_is_none_gets_the_tls_alert_for_it(authority: CertificateAuthority) -> None:
    ends = join(authority.server_context("a.example"), strict_client(authority), "a\x07b.example")
    with pytest.raises(ssl.SSLWantReadError):
        ends.client.do_handshake()
    with pytest.raises(ssl.SSLError, match="CALLBACK_FAILED"):
        ends.server.do_handshake()
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        ends.client.do_handshake()


def test_contexts_are_kept(authority: CertificateAuthority) -> None:
    context = authority.server_context("kept.example")
    assert authority.server_context("KEPT.example.") is context
    assert authority.server_context("kept.example", datetime(2020, 1, 1, tzinfo=UTC)) is not context


def test_the_leaf_is_valid_when_the_tape_began(authority: CertificateAuthority) -> None:
    began = datetime(2019, 5, 1, tzinfo=UTC)
    for name in ("a.example", "b.example"):
        ends = shake_hands(authority.server_context("a.example", began), strict_client(authority), name)
        leaf = x509.load_der_x509_certificate(ends.client.getpeercert(binary_form=True) or b"")
        assert leaf.not_valid_before_utc < began < datetime.now(UTC) < leaf.not_valid_after_utc


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("API.Example.com.", "api.example.com"),
        ("[::1]", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("Bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_normal_hosts(host: str, name: str) -> None:
    assert normal_host(host) == name
    assert normal_host(name) == name


@pytest.mark.parametrize(
    "host", ["", ".", "a..b", "x" * 64, "ü" * 64, "a\nb", "a\0", ".".join(["a" * 60] * 5), "\ud800"]
)
def test_hosts_that_no_certificate_can_name(authority: CertificateAuthority, host: str) -> None:
    with pytest.raises(CaError, match="no certificate can be made"):
        authority.server_context(host)


def test_without_memfd_the_key_passes_through_a_private_file_that_is_gone_afterwards(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    program = """
import os
if hasattr(os, "memfd_create"):
    del os.memfd_create
from tapeproxy.proxy.ca import CertificateAuthority
print(CertificateAuthority.open().server_context("a.example").cert_store_stats())
"""
    out = run_python(program, TAPEPROXY_HOME=str(authority.directory), TMPDIR=str(tmp_path))
    assert out.startswith("{")
    assert list(tmp_path.iterdir()) == []


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_httpx_over_a_real_socket_with_the_bundle(authority: CertificateAuthority) -> None:
    with HTTPServer(("127.0.0.1", 0), Hello) as server:
        server.socket = authority.server_context("127.0.0.1").wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            trust = ssl.create_default_context(cafile=str(authority.bundle()))
            with httpx.Client(verify=trust, trust_env=False) as client:
                assert client.get(f"https://127.0.0.1:{server.server_port}/").text == "hello"
        finally:
            server.shutdown()
            thread.join()
