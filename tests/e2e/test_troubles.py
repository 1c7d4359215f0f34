"""What is not in the shim's hands is told by record, stands on the tape, and is a drift in a replay."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
ASK = "from urllib.request import urlopen; urlopen('https://search.example.com/search?q=x').read()"


def record(cli: Cli, home: Path, code: str, *args: str, env: dict[str, str] | None = None) -> str:
    """Record `python -c code args...` against a provider of its own; returns what `record` said."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        argv = ["record", "-o", "t.jsonl.gz", *maps(provider.url), "--", sys.executable, "-c", code, *args]
        done = cli.run(*argv, env=env)
    assert done.returncode == 0, done.stderr
    return done.stderr


def drifts(cli: Cli, code: int) -> list[str]:
    """Replay the tape; what its drifts say. Checks that it exits with `code`."""
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    assert done.returncode == code, done.stderr
    return [drift["what"] for drift in json.loads((cli.cwd / "r.json").read_text())["drifts"]]


def notes(cli: Cli, what: str) -> list[str]:
    """The texts of the tape's notes of one kind."""
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    return [note.text for note in tape.notes if note.what == what]


WAYS = {
    "subprocess": "import subprocess, sys; subprocess.run([sys.executable, {option!r}, '-c', 'pass'])",
    "posix_spawn": "import os, sys; argv = [sys.executable, {option!r}, '-c', 'pass']; "
    "os.waitpid(os.posix_spawn(sys.executable, argv, dict(os.environ)), 0)",
    "exec": "import os, sys; os.execv(sys.executable, [sys.executable, {option!r}, '-c', 'pass'])",
    "asyncio": "import asyncio, sys\nasync def main():\n"
    "    await (await asyncio.create_subprocess_exec(sys.executable, {option!r}, '-c', 'pass')).wait()\n"
    "asyncio.run(main())",
}


@linux
@pytest.mark.parametrize(
    ("way", "option"), [("subprocess", "-I"), ("posix_spawn", "-E"), ("exec", "-S"), ("asyncio", "-sE")]
)
def test_a_python_that_ignores_its_environment_is_named(way: str, option: str, cli: Cli, home: Path) -> None:
    said = record(cli, home, WAYS[way].format(option=option))
    assert (
        f"warning: a Python ran without the shim, so its clock and its random numbers are its own: {sys.executable}"
        in said
    )
    assert f"started with {option})" in said
    assert len(notes(cli, "python-without-shim")) == 1
    (drift,) = drifts(cli, 4)
    assert drift.startswith("a Python ran without the shim")
    assert f"started with {option})" in drift


@linux
@pytest.mark.parametrize(
    ("shell", "how"),
    [
        ('"$0" -I -c "$1"', "started with -I"),
        (
            'env -i HTTPS_PROXY="$HTTPS_PROXY" SSL_CERT_FILE="$SSL_CERT_FILE" "$0" -c "$1"',
            "started with an environment of its own",
        ),
    ],
)
def test_one_that_nobody_saw_start_is_found_by_its_request(shell: str, how: str, cli: Cli, home: Path) -> None:
    code = "import subprocess, sys; subprocess.run(['sh', '-c', sys.argv[1], sys.executable, sys.argv[2]], check=True)"
    said = record(cli, home, code, shell, ASK)
    assert said.count("a Python ran without the shim") == 1
    assert how in said
    (note,) = notes(cli, "python-without-shim")
    assert how in note
    (drift,) = drifts(cli, 4)
    assert how in drift


def test_one_that_has_the_shim_and_asks_is_nothing_to_tell(cli: Cli, home: Path) -> None:
    said = record(cli, home, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ASK!r}], check=True)")
    assert "warning" not in said
    assert drifts(cli, 0) == []


@linux
def test_a_seen_python_that_asks_is_told_of_once(cli: Cli, home: Path) -> None:
    said = record(
        cli, home, f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', {ASK!r}], check=True)"
    )
    assert said.count("a Python ran without the shim") == 1
    assert len(drifts(cli, 4)) == 1


CLIENT = """
import os, socket, sys
from pathlib import Path
from urllib.request import urlopen
host, port = os.environ["HTTP_PROXY"].partition("//")[2].split(":")
if Path(sys.argv[1]).read_text() == "bare":
    sock = socket.create_connection((host, int(port)))
    url = "http://search.example.com/search?q=x"
    head = [f"GET {url} HTTP/1.1", "Host: search.example.com", "Connection: close", "", ""]
    sock.sendall("\\r\\n".join(head).encode())
    while sock.recv(65536): pass
else:
    urlopen("http://search.example.com/search?q=x").read()
"""


@linux
@pytest.mark.parametrize(("taped", "now", "code"), [("bare", "bare", 0), ("known", "bare", 4), ("known", "known", 0)])
def test_a_client_that_the_shim_does_not_know(taped: str, now: str, code: int, cli: Cli, home: Path) -> None:
    """It is told of by record, and counts in a replay where the recording had none."""
    which = cli.cwd / "which"
    which.write_text(taped)
    said = record(cli, home, CLIENT, str(which))
    assert ("a request of a process with the shim came without a lane" in said) == (taped == "bare")
    which.write_text(now)
    assert len(drifts(cli, code)) == (code != 0)


@pytest.mark.parametrize(
    "what", ["hook-failed", "install-failed", "child-without-lane", "request-without-lane", "lost"]
)
def test_what_a_shim_could_not_do(what: str, cli: Cli, home: Path) -> None:
    emit = "sys.modules['_tapeproxy.channel'].emit"
    code = f"import sys\nfor _ in range(2): {emit}('note', what={what!r}, text='httpx: broken')"
    said = record(cli, home, code)
    (line,) = [line for line in said.splitlines() if "httpx: broken" in line]
    assert line.startswith("tapeproxy: warning: ")
    assert line.endswith("(2 times)")
    assert notes(cli, what) == ["httpx: broken"] * 2
    (drift,) = drifts(cli, 4)
    assert drift.endswith(": httpx: broken")


def test_changed_variables_are_one_note(cli: Cli, home: Path) -> None:
    record(
        cli, home, "import os; [os.environ.get(name) for name in ('ONE', 'TWO', 'SAME')]", env={"ONE": "1", "SAME": "0"}
    )
    done = cli.run("replay", "t.jsonl.gz", env={"ONE": "2", "TWO": "2", "SAME": "0"})
    assert done.returncode == 0
    assert "note: environment variables are not what they were: ONE, TWO\n" in done.stderr
