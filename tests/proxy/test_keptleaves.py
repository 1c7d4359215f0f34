"""Leaves kept between runs: found while they are good, made anew when they are not, and never in the way."""

import contextlib
import os
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.keptleaves import SPARE, KeptLeaves

BEGIN, END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
_DAMAGED = [
    b"",
    b"\xff\n",
    b"a.test\n",
    b"a.test 2025 x\n",
    b"a.test 2025-01-01 2027-01-01\n",
    b"a.test 0001-01-01T00:00+00:00 0001-01-01T00:00+00:00\n",
]
PEM = b"-----BEGIN CERTIFICATE-----\n"


@pytest.fixture
def leaves(tmp_path: Path) -> KeptLeaves:
    kept = KeptLeaves(tmp_path / "leaves", b"one authority")
    kept.keep("a.test", PEM, (BEGIN, END))
    return kept


def test_what_was_kept_is_found_and_nobody_else_can_read_it(leaves: KeptLeaves, tmp_path: Path) -> None:
    found = leaves.find("a.test", [BEGIN + SPARE, END - SPARE])
    assert found is not None
    assert found.endswith(PEM)
    (path,) = (tmp_path / "leaves").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("name", "moments"),
    [
        ("b.test", [BEGIN + SPARE]),
        ("a.test", [BEGIN + SPARE - timedelta(seconds=1)]),
        ("a.test", [BEGIN + SPARE, END - SPARE + timedelta(seconds=1)]),
    ],
)
def test_another_name_or_another_time_is_not_found(leaves: KeptLeaves, name: str, moments: list[datetime]) -> None:
    assert leaves.find(name, moments) is None


@pytest.mark.usefixtures("leaves")
def test_another_authority_has_others(tmp_path: Path) -> None:
    assert KeptLeaves(tmp_path / "leaves", b"another").find("a.test", [BEGIN + SPARE]) is None


@pytest.mark.parametrize("text", _DAMAGED)
def test_a_damaged_file_is_none(leaves: KeptLeaves, tmp_path: Path, text: bytes) -> None:
    (path,) = (tmp_path / "leaves").iterdir()
    path.write_bytes(text)
    assert leaves.find("a.test", [BEGIN + SPARE]) is None


def test_where_nothing_can_be_kept_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "leaves").write_bytes(b"")
    kept = KeptLeaves(tmp_path / "leaves", b"one authority")
    kept.keep("a.test", PEM, (BEGIN, END))
    assert kept.find("a.test", [BEGIN + SPARE]) is None


def test_an_authority_signs_once_for_all_runs_and_again_when_a_file_is_broken(tmp_path: Path) -> None:
    leaf_of(CertificateAuthority.open(tmp_path))
    (path,) = (tmp_path / "leaves").iterdir()
    kept = path.read_bytes()
    leaf_of(CertificateAuthority.open(tmp_path))
    assert path.read_bytes() == kept
    path.write_bytes(kept[:-300])
    leaf_of(CertificateAuthority.open(tmp_path))
    assert len(path.read_bytes()) > len(kept) - 300


def leaf_of(authority: CertificateAuthority) -> None:
    """Shake hands for a.test, as a client does that trusts the authority alone."""
    server_in, server_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = authority.server_context("a.test").wrap_bio(server_in, server_out, server_side=True)
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    client = trusting.wrap_bio(server_out, server_in, server_hostname="a.test")
    for side in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert client.version() == "TLSv1.3"


def test_a_kept_leaf_needs_no_cryptography(tmp_path: Path) -> None:
    leaf_of(CertificateAuthority.open(tmp_path))
    program = """
import sys
from tapeproxy.proxy.ca import CertificateAuthority
CertificateAuthority.open().server_context("a.test")
print("cryptography" in sys.modules)
"""
    env = {**os.environ, "TAPEPROXY_HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
