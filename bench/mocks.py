"""Mock servers of other languages, with the same conversations: mockttp (Node) and WireMock (Java)."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bench import peers
from bench.conversation import HOST, PATH, Growth, conversation
from bench.processes import MissingError, home, listening
from bench.servers import LISTENING, Endpoint, leaf

type Mockttp = Literal["rules", "table"]
"""`rules`: one for each request, as its documentation has it. `table`: one callback that looks the body up."""

_SCRIPT = Path(__file__).resolve().parent / "mockttp.cjs"
_PASSWORD = b"password"  # what WireMock assumes


@contextlib.contextmanager
def mockttp(folder: Path, how: Mockttp, conversations: int, turns: int) -> Iterator[Endpoint]:
    """mockttp as a proxy that terminates TLS. Raises MissingError, FailedError."""
    package = peers.node_package("mockttp")
    node = shutil.which("node")
    if node is None:
        raise MissingError("node is not installed")
    pairs = folder / f"pairs-{conversations}-{turns}.jsonl"
    if not pairs.exists():
        pairs.write_text("".join(json.dumps(pair) + "\n" for pair in _pairs(conversations, turns)))
    authority = folder / "mockttp-ca.pem"
    with listening([node, str(_SCRIPT), str(package), str(authority), how, str(pairs)], LISTENING) as port:
        yield Endpoint(port, authority)


@contextlib.contextmanager
def wiremock(folder: Path, conversations: int, turns: int) -> Iterator[Endpoint]:
    """WireMock with a stub for each request, asked straight over TLS. Raises MissingError, FailedError."""
    jar = next(iter(sorted(peers.node_package("wiremock").glob("build/*standalone*.jar"))), None)
    java = shutil.which("java")
    if jar is None or java is None:
        raise MissingError("java is not installed" if jar is not None else "wiremock's package has no jar")
    place = folder / "wiremock"
    if not place.exists():
        _write_stubs(place, conversations, turns)
    store = folder / "wiremock.p12"
    store.write_bytes(_keystore(folder))
    options = [
        *("--port", "0", "--https-port", "0", "--bind-address", "127.0.0.1", "--root-dir", str(place)),
        *("--https-keystore", str(store), "--keystore-password", "password", "--keystore-type", "pkcs12"),
        *("--disable-banner", "--no-request-journal", "--disable-gzip", "--disable-http2-tls"),
        *("--disable-request-logging", "--disable-response-templating", "--container-threads", "16"),
    ]
    with listening([java, "-jar", str(jar), *options], r"https-port:\s+(\d+)") as port:
        yield Endpoint(port, home(folder) / "mitmproxy-ca-cert.pem")


def _pairs(conversations: int, turns: int) -> Iterator[tuple[str, str]]:
    for seed in range(conversations):
        for turn in conversation(seed, Growth(turns)):
            yield turn.request.decode(), turn.answer.decode()


def _write_stubs(place: Path, conversations: int, turns: int) -> None:
    (place / "mappings").mkdir(parents=True)
    (place / "__files").mkdir()
    stubs = [
        {
            "request": {"method": "POST", "urlPath": PATH, "bodyPatterns": [{"equalTo": request}]},
            "response": {"status": 200, "body": answer, "headers": {"Content-Type": "application/json"}},
        }
        for request, answer in _pairs(conversations, turns)
    ]
    (place / "mappings" / "all.json").write_text(json.dumps({"mappings": stubs}))


def _keystore(folder: Path) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

    pem = leaf(folder, HOST).read_bytes()
    key = load_pem_private_key(pem, None)
    assert isinstance(key, EllipticCurvePrivateKey)
    certificate, *chain = x509.load_pem_x509_certificates(pem)
    return pkcs12.serialize_key_and_certificates(b"leaf", key, certificate, chain, BestAvailableEncryption(_PASSWORD))
