"""examples/compose: its files are well-formed, and what they would run in two containers works as two processes.

The commands and variables of the compose files are taken as they stand, with this machine's folders and names in place
of the containers'; test_containers.py has an engine run them.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from clirun import KEYS

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

FOLDER = Path(__file__).parents[2] / "examples" / "compose"
TOKEN = "0123456789abcdef-token"


class Loader(yaml.SafeLoader):
    """Knows compose's own tags."""


def _list(loader: yaml.SafeLoader, node: yaml.Node) -> list[Any]:
    assert isinstance(node, yaml.SequenceNode)
    return [loader.construct_object(word) for word in node.value]


Loader.add_constructor("!override", _list)


def services(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load((FOLDER / name).read_text(), Loader)["services"]
    return found


class Machine:
    """Stands for both containers. `port` is the proxy's."""

    def __init__(self, folder: Path, home: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self._tapes, self._handover = folder / "tapes", folder / "handover"
        for made in (self._tapes, self._handover):
            made.mkdir(exist_ok=True)
        bin = Path(sys.executable).parent
        self._base = {"PATH": f"{bin}:{os.environ['PATH']}", "HOME": str(folder), "TAPEPROXY_HOME": str(home)}

    def here(self, text: str) -> str:
        """A word of a compose file, as it is on this machine."""
        text = re.sub(r"\$\{TAPEPROXY_TOKEN[^}]*\}", TOKEN, text)
        text = re.sub(r"\$\{OPENAI_API_KEY[^}]*\}", KEYS["OPENAI_API_KEY"], text)
        text = text.replace("0.0.0.0", "127.0.0.1").replace("@tapeproxy:8080", f"@127.0.0.1:{self.port}")
        text = text.replace("--port 8080", f"--port {self.port}").replace(
            "'127.0.0.1', 8080", f"'127.0.0.1', {self.port}"
        )
        for there, ours in (("/tapes", self._tapes), ("/handover", self._handover), ("/agent", FOLDER)):
            text = re.sub(rf"(?<![\w/]){there}\b", str(ours), text)
        return text

    def environment(self, service: Mapping[str, Any]) -> dict[str, str]:
        return self._base | {name: self.here(str(value)) for name, value in service["environment"].items()}

    @contextmanager
    def proxy(self, service: Mapping[str, Any], environment: Mapping[str, str], options: str) -> Iterator[None]:
        """The service while it is healthy; sealed afterwards."""
        words = [self.here(word) for word in service["command"]]
        process = subprocess.Popen(
            [*words[:-1], words[-1] + options], env=environment, cwd=self.folder, text=True, stderr=-1
        )
        try:
            assert process.stderr is not None
            while "listening on" not in (line := process.stderr.readline()):
                assert line, "it ended"
            yield
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    CertificateAuthority.open(home)
    return home


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_the_agent_is_recorded_and_replayed_by_what_the_compose_files_say(tmp_path: Path, home: Path) -> None:
    recording = services("compose.yaml")
    replaying = {
        name: {
            **recording[name],
            **service,
            "environment": recording[name]["environment"] | service.get("environment", {}),
        }
        for name, service in services("replay.yaml").items()
    }
    machine = Machine(tmp_path, home, free_port())

    def run(which: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        agent = which["agent"]
        words = [machine.here(word) for word in agent["command"]]
        return subprocess.run(words, env=machine.environment(agent), capture_output=True, text=True, check=False)

    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        options = f" --map api.openai.com={provider.url}"
        with machine.proxy(recording["tapeproxy"], machine.environment(recording["tapeproxy"]), options):
            checked = [machine.here(word) for word in recording["tapeproxy"]["healthcheck"]["test"][1:]]
            assert subprocess.run(checked, check=False).returncode == 0
            heard = run(recording)
            wrong = machine.environment(recording["agent"])
            wrong = {name: value.replace(TOKEN, "guessed") for name, value in wrong.items()}
            turned_away = subprocess.run(
                [sys.executable, FOLDER / "agent.py"], env=wrong, capture_output=True, check=False
            )
    assert (heard.returncode, heard.stdout != "") == (0, True), heard.stderr
    assert turned_away.returncode == 1
    tape = tmp_path / "tapes" / "agent.tape.jsonl.gz"
    found, ending = load(tape)
    assert (len(found.exchanges), ending.sealed) == (1, True)
    assert TOKEN not in json.dumps([str(exchange) for exchange in found.exchanges])

    with machine.proxy(replaying["tapeproxy"], machine.environment(replaying["tapeproxy"]), ""):
        again = run(replaying)
    assert (again.returncode, again.stdout) == (0, heard.stdout), again.stderr


def test_the_agent_can_only_reach_the_proxy_and_gets_no_key_of_its_authority() -> None:
    whole = yaml.load((FOLDER / "compose.yaml").read_text(), Loader)
    agent, proxy = whole["services"]["agent"], whole["services"]["tapeproxy"]
    assert agent["networks"] == ["inside"]
    assert whole["networks"]["inside"] == {"internal": True}
    assert services("replay.yaml")["tapeproxy"]["networks"] == ["inside"], "a replay has no way out at all"
    assert [volume for volume in agent["volumes"] if volume.startswith("handover")] == ["handover:/handover:ro"]
    assert "ca --export >" in proxy["command"][-1], "the certificate, never the key"


def test_the_image_runs_what_the_compose_file_does() -> None:
    lines = re.sub(r"\\\n\s*", "", (FOLDER / "Dockerfile").read_text()).splitlines()
    instructions = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    assert {name for name, _ in instructions} <= {"FROM", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "CMD"}
    said = dict(instructions)
    assert json.loads(said["CMD"]) == services("compose.yaml")["tapeproxy"]["command"]
    assert said["USER"] == "tapeproxy"
    assert subprocess.run(["sh", "-n", "-c", said["RUN"]], check=False).returncode == 0
