"""What goes wrong with the shim while recording never shows: output, exit code and requests are those of a bare run."""

import contextlib
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shimruns import environment, everywhere

from tapeproxy.testing import FakeProvider

AGENT = """
import http.client, json, os, random, subprocess, sys, threading, time, uuid
if "close" in sys.argv: os.closerange(3, 256)
def ask(who):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
    connection.request("GET", f"/search?q={who}", headers={"x-who": who})
    reply = connection.getresponse()
    print(who, reply.status, json.loads(reply.read())["query"], flush=True)
    connection.close()
random.seed(1)
for n in range(300): time.time(), uuid.uuid4(), time.sleep(0.0002)
if "close" in sys.argv: os.closerange(3, 256)
ask("main")
thread = threading.Thread(target=ask, args=("thread",))
thread.start(); thread.join()
child = subprocess.run([sys.executable, "-c", "import time, uuid; time.time(); print('child', len(str(uuid.uuid4())))"])
read, write = os.pipe()
pid = os.fork()
if pid == 0: ask("fork"); os._exit(3)
print("fork", os.waitpid(pid, 0)[1] >> 8, "child", child.returncode, read, random.random())
sys.exit(7)
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of one page, which is full."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"no small disk here: {error}")
    if done.returncode:
        pytest.skip(f"no small disk here: {done.stderr.strip()}")
    with contextlib.suppress(OSError):
        (folder / "full").write_bytes(b"x" * 4096)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def outcome(
    python: Path, env: dict[str, str], *args: str, before: Callable[[], None] | None = None
) -> tuple[str, str, int, list[object]]:
    """Run the agent: output, errors, exit code, and what the provider was asked."""
    with FakeProvider() as provider:
        port = provider.url.rpartition(":")[2]
        done = subprocess.run(
            [python, "-c", AGENT, port, *args],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=before,
        )
        heard: list[object] = [
            (request.method, request.path, request.query, [pair for pair in request.headers if pair[0] != "host"])
            for request in provider.requests
        ]
    return done.stdout, done.stderr, done.returncode, heard


def no_room() -> None:
    """Files may not grow at all, which looks like a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


@everywhere
@pytest.mark.parametrize("trouble", ["missing", "removed", "read-only", "full", "no room", "closed"])
def test_the_agent_does_what_it_does(
    trouble: str, python: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "sidecar"
    if trouble == "full":
        folder = request.getfixturevalue("tiny")
    elif trouble == "read-only":
        folder = Path("/proc/self")
    elif trouble != "missing":
        folder.mkdir()
    words = ("close",) if trouble == "closed" else ()
    before = {"no room": no_room, "removed": folder.rmdir}.get(trouble)
    bare = outcome(python, environment("bare"), *words)
    assert (bare[2], len(bare[3])) == (7, 3), bare[1]
    assert outcome(python, environment(sidecar=folder), *words, before=before) == bare
