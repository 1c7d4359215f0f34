"""Node's client packages, as they come from npm: recorded over TLS, and replayed to the byte. In the soak."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from clirun import Cli, maps
from noderuns import node

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.testing import FakeProvider

pytestmark = pytest.mark.soak

SOURCE = Path(__file__).parent / "agents" / "node" / "packages"
SCRIPT = {
    "gap_ms": [1, 10],
    "reply": [
        {"when": {"user": "busy", "nth": 1}, "status": 429},
        {"when": {"user": "slow"}, "text": "slow {user}", "delay_ms": 150},
        {"when": {"user": "middle"}, "text": "middle {user}", "delay_ms": 60},
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the lock file, installed; skips where npm is not there or can't get them."""
    node()
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    copy = tmp_path_factory.mktemp("packages") / "packages"
    shutil.copytree(SOURCE, copy)
    options = ["--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(["npm", "ci", *options], cwd=copy, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"npm could not install the packages: {done.stderr.strip()[-200:]}")
    return copy


@pytest.mark.parametrize("client", ["openai", "anthropic", "ai", "axios", "node-fetch", "undici"])
def test_a_client_asks_and_prints_the_same(client: str, folder: Path, cli: Cli, home: Path) -> None:
    argv = [node(), str(folder / "client.mjs"), client]
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script=SCRIPT, tls=tls) as provider:
        recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    assert recorded.returncode == 0, recorded.stderr
    assert "taped 17 exchanges" in recorded.stderr and "tapeproxy: warning" not in recorded.stderr
    for _ in range(3):
        replayed = cli.run("replay", "t.tape.jsonl.gz", "--report", "r.json")
        assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
        assert json.loads((cli.cwd / "r.json").read_text())["drifts"] == []
