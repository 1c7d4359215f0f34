"""Programs that the shim is not in, and that try to get past the proxy in a replay: refused by the kernel, and told."""

import json
import shutil
import socket
import sys

import pytest
from clirun import Cli

SEND = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))"


@pytest.mark.parametrize(
    ("argv", "times"),
    [
        pytest.param(["curl", "-s", "--noproxy", "*", "-m", "2", "http://192.0.2.1/"], "once", id="curl"),
        pytest.param([sys.executable, "-I", "-c", SEND], "once", id="python -I"),
        pytest.param(["sh", "-c", f'for i in 1 2; do {sys.executable} -I -c "{SEND}"; done; true'], "2 times", id="sh"),
        pytest.param([sys.executable, "-c", "print('stays at home')"], "", id="none"),
    ],
)
def test_an_attempt_that_the_shim_does_not_see_is_a_violation(cli: Cli, argv: list[str], times: str) -> None:
    if shutil.which(argv[0]) is None:
        pytest.skip(f"no {argv[0]}")
    assert cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "-c", "pass").returncode == 0
    done = cli.run("replay", "t.jsonl.gz", "--guard", "namespace", "--report", "r.json", "--", *argv)
    if "cannot be had" in done.stderr:
        pytest.skip("no network namespace here")
    report = json.loads((cli.cwd / "r.json").read_text())
    found = [one["what"] for one in report["violations"]]
    said = f"a program of the run tried to reach the network past the proxy, {times}, and was refused"
    assert (found, done.returncode) == (([said], 3) if times else ([], 0))
    assert (said in done.stderr) is bool(times)


CONNECT = """
import socket, sys
try:
    socket.create_connection(("localhost", int(sys.argv[1])), timeout=5)
except OSError as error:
    print(type(error).__name__)
"""


def test_a_server_of_this_machine_that_is_not_the_run_s_is_no_closed_port(cli: Cli) -> None:
    assert cli.run("record", "-o", "t.jsonl.gz", "--", sys.executable, "-c", "pass").returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as gone:
        closed = gone.getsockname()[1]
        gone.close()
        ends = {}
        for port in (server.getsockname()[1], closed):
            argv = ("--", sys.executable, "-c", CONNECT, str(port))
            ends[port] = cli.run("replay", "t.jsonl.gz", "--guard", "namespace", *argv)
        if "cannot be had" in ends[closed].stderr:
            pytest.skip("no network namespace here")
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    there, nowhere = ends.values()
    assert (nowhere.returncode, nowhere.stdout) == (0, "ConnectionRefusedError\n")
    assert (there.returncode, there.stdout) == (3, "RefusedError\n")
    assert "past the proxy, and was refused" in there.stderr
