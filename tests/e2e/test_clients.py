"""Every client: recorded over real TLS, then replayed with the provider stopped and no key: the same output."""

import shutil
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

AGENTS = Path(__file__).parent / "agents"
CLIENTS = {
    "httpx": [sys.executable, "with_httpx.py"],
    "requests": [sys.executable, "with_requests.py"],
    "aiohttp": [sys.executable, "with_aiohttp.py"],
    "urllib": [sys.executable, "with_urllib.py"],
    "openai": [sys.executable, "with_openai.py"],
    "anthropic": [sys.executable, "with_anthropic.py"],
    "curl": ["sh", "with_curl.sh"],
    "node": ["node", "with_node.mjs"],
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_hears_the_same_again_without_provider_and_key(client: str, cli: Cli, provider: FakeProvider) -> None:
    interpreter, script = CLIENTS[client]
    tool = client if client == "curl" else interpreter
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    argv = [interpreter, str(AGENTS / script)]
    recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    assert (recorded.returncode, recorded.stdout != "") == (0, True), recorded.stderr
    provider.stop()

    replayed = cli.run("replay", "t.tape.jsonl.gz")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    tape, ending = load(cli.cwd / "t.tape.jsonl.gz")
    assert ending.canonical
    assert f"{len(tape.exchanges)} of {len(tape.exchanges)} exchanges served, 0 violations" in replayed.stderr


def test_no_key_is_on_the_tape_and_the_provider_got_the_real_one(cli: Cli, provider: FakeProvider) -> None:
    argv = [sys.executable, str(AGENTS / "with_openai.py")]
    assert cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv, keys=True).returncode == 0
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert tape.head.secrets == ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
    for exchange in tape.exchanges:
        assert b"sk-test" not in b"".join(value for _, value in exchange.request.headers)
    assert {dict(request.headers)["authorization"] for request in provider.requests} == {
        "Bearer sk-test-0123456789abcdefghij"
    }
