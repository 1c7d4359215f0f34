"""The agent on one machine, tapeproxy on another: all that the agent is given is a certificate, an address, a token."""

import os
import subprocess
import sys
from pathlib import Path

from clirun import KEYS
from hosts import Machine, two_machines

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load

AGENT = Path(__file__).parents[2] / "examples" / "compose" / "agent.py"
TOKEN = "0123456789abcdef-token"
PROXY, ADDRESS = "10.99.7.1", "10.99.7.2"
PLAINLY = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


def test_a_run_on_another_machine_is_recorded_and_replayed(tmp_path: Path) -> None:
    ours, theirs, handover = [tmp_path / name for name in ("ours", "theirs", "handover")]
    for folder in (ours, ours / "tapes", theirs, handover):
        folder.mkdir()
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(filter(None, sys.path))}
    here = base | {"HOME": str(ours), "TAPEPROXY_HOME": str(ours / "home"), "TAPEPROXY_TOKEN": TOKEN}
    (handover / "ca.pem").write_bytes(CertificateAuthority.open(ours / "home").certificate.read_bytes())
    client = base | {"HOME": str(theirs), "SSL_CERT_FILE": str(handover / "ca.pem")}
    command = [sys.executable, "-m", "tapeproxy.cli.main"]
    listening = ["--listen", PROXY, "--port", "8080"]

    def asks(machine: Machine, token: str = TOKEN, **more: str) -> subprocess.CompletedProcess[str]:
        led = {"HTTPS_PROXY": f"http://agent:{token}@{PROXY}:8080"}
        return machine.run(sys.executable, str(AGENT), env=client | led | more, cwd=theirs)

    with two_machines(f"{PROXY}/24", f"{ADDRESS}/24") as (desk, box):
        box.set_up("mount", "-t", "tmpfs", "none", str(ours))  # tapes and keys are not to be seen from there
        with desk.serving(*command, "provider", "--tls", env=here, cwd=ours, until="https://", stream="stdout") as url:
            options = [*listening, "--map", f"api.openai.com={url.strip()}"]
            with desk.serving(
                *command, "start", "--record", "tapes", *options, env=here, cwd=ours, until="listening on"
            ):
                heard = asks(box, **KEYS)
                guessed = asks(box, token="guessed", **KEYS)
                past = box.run(sys.executable, "-c", PLAINLY, PROXY, url.rpartition(":")[2], env=base, cwd=theirs)
        assert (heard.returncode, heard.stdout != "") == (0, True), heard.stderr
        assert "407 Proxy Authentication Required" in guessed.stderr
        assert "ConnectionRefusedError" in past.stderr, "the provider is on the other machine's loopback"
        tape, ending = load(ours / "tapes" / "agent.tape.jsonl.gz")
        assert (len(tape.exchanges), ending.sealed) == (1, True)

        replaying = [*command, "start", "--replay", "tapes", *listening]
        with desk.serving(*replaying, env=here, cwd=ours, until="listening on"):
            again = asks(box, OPENAI_API_KEY="none-is-needed")
            stopped = desk.run(*command, "stop", "agent", env=here, cwd=ours)
        assert (again.returncode, again.stdout) == (0, heard.stdout), again.stderr
        assert stopped.returncode == 0, stopped.stderr
        assert "1 of 1 exchange served" in stopped.stdout + stopped.stderr

        with desk.serving(*replaying, env=here, cwd=ours, until="listening on"):
            twice = [asks(box, OPENAI_API_KEY="none-is-needed").returncode for _ in range(2)]
            stopped = desk.run(*command, "stop", "agent", env=here, cwd=ours)
        assert (twice, stopped.returncode) == ([0, 1], 3), "there is one answer, and nobody to ask for another"
