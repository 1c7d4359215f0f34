"""Fixtures of the whole-program tests: one certificate authority, one fake provider over TLS, one folder a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from authority import Authority
from bothwires import BothWires
from clirun import Cli
from shares import leave_to_soak, pick
from wireclients import CLIENTS, UPLOADERS, each_client, each_uploader

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the soak all but two clients of each test that runs with every one."""
    for mark, clients in ((each_client, [*CLIENTS.values()]), (each_uploader, [*UPLOADERS.values()])):
        leave_to_soak(items, mark, lambda name, clients=clients: [pick(name, clients), pick(name, clients, 2)])


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without the public roots, which no test needs: to read them takes a client longer than all else that it does."""
    home = tmp_path_factory.mktemp("home")
    ca = CertificateAuthority.open(home)
    ca.bundle().write_bytes(ca.certificate.read_bytes())
    return home


@pytest.fixture
def cli(tmp_path: Path, home: Path) -> Cli:
    return Cli(tmp_path, home)


@pytest.fixture
def provider(home: Path) -> Iterator[FakeProvider]:
    """A provider of the test's own, so that the test can stop it."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    provider = FakeProvider(script={"gap_ms": [1, 3]}, tls=tls).start()
    yield provider
    provider.stop()


@pytest.fixture
def scripted(home: Path) -> Iterator[FakeProvider]:
    """A provider with the examples' script."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    provider = FakeProvider(script=EXAMPLES / "provider.toml", tls=tls).start()
    yield provider
    provider.stop()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def wires(tmp_path: Path, authority: Authority, home: Path) -> BothWires:
    """Both of our wires, in this process."""
    return BothWires(tmp_path, authority, home)
