"""Every client: recorded over real TLS, then replayed with the provider stopped and no key: the same output."""

import shutil
import sys
from pathlib import Path

import pytest
from clirun import KEYS, Cli, maps

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.testing import FakeProvider

AGENTS = Path(__file__).parent / "agents"
CLIENTS = {
    "httpx": [sys.executable, "with_httpx.py"],
    "requests": [sys.executable, "with_requests.py"],
    "aiohttp": [sys.executable, "with_aiohttp.py"],
    "urllib": [sys.executable, "with_urllib.py"],
    "openai": [sys.executable, "with_openai.py"],
    "realtime": [sys.executable, "with_realtime.py"],
    "anthropic": [sys.executable, "with_anthropic.py"],
    "curl": ["sh", "with_curl.sh"],
    "node": ["node", "with_node.mjs"],
}


# Realtime is heard through both wires in test_realtime.py, without the ten seconds in which its SDK is imported.
# Of the others' like there is one here each time: anthropic's is an example, and all speak with both wires in-process.
SOAKED = ("realtime", "anthropic", "requests", "urllib")


@pytest.mark.parametrize("client", [pytest.param(n, marks=pytest.mark.soak) if n in SOAKED else n for n in CLIENTS])
def test_28_a_client_hears_the_same_again_without_provider_and_key(
    client: str, cli: Cli, provider: FakeProvider
) -> None:
    interpreter, script = CLIENTS[client]
    tool = client if client == "curl" else interpreter
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    argv = [interpreter, str(AGENTS / script)]
    recorded = cli.run("record", "-o", "t.tape.jsonl.gz", *maps(provider.url), "--", *argv, keys=True)
    assert (recorded.returncode, recorded.stdout != "") == (0, True), recorded.stderr
    provider.stop()
    if client in ("openai", "anthropic"):
        check_the_key(load(cli.cwd / "t.tape.jsonl.gz")[0], provider)

    replayed = cli.run("replay", "t.tape.jsonl.gz")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    tape, ending = load(cli.cwd / "t.tape.jsonl.gz")
    assert ending.canonical
    assert f"{len(tape.exchanges)} of {len(tape.exchanges)} exchanges served, 0 violations" in replayed.stderr


def check_the_key(tape: Tape, provider: FakeProvider) -> None:
    """No key is on the tape, and the provider got the real one."""
    assert tape.head.secrets == ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
    for exchange in tape.exchanges:
        sent = b"".join(value for _, value in exchange.request.headers)
        assert not any(key.encode() in sent for key in KEYS.values())
    heard = [dict(request.headers) for request in provider.requests]
    keys = {one.get("x-api-key") or one["authorization"].removeprefix("Bearer ") for one in heard}
    assert len(keys) == 1
    assert keys <= {*KEYS.values()}
