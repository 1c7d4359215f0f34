"""Processes that code within a replay makes: they get nothing from it and reach nobody, and the replay says so."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import inprocesstapes
import pytest

import tapeproxy
from tapeproxy.proxy.inprocess.replays import TapeViolationError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return inprocesstapes.gets(tmp_path, "/one", "/two")


def in_a_fork(work: Callable[[], object]) -> str:
    """What `work` comes to in a forked child, as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = repr(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def look_up() -> None:
    socket.getaddrinfo("elsewhere.test", 80)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("pooled", [True, False])
def test_a_fork_is_refused_and_its_parent_told(tape: Path, pooled: bool) -> None:
    said = "forked within a replay"
    with httpx.Client() as client, pytest.raises(TapeViolationError, match=said) as caught, tapeproxy.replay(tape):
        if pooled:
            client.get("https://api.test/one")
        assert in_a_fork(lambda: client.get("https://api.test/two").status_code) == "470"
        assert "was refused" in in_a_fork(look_up)
        assert client.get("https://api.test/two").text == "/two", "its parent goes on"
    asked = [found.request for found in caught.value.violations]
    assert asked[0].startswith("https://api.test, in process")
    assert asked[1].startswith("look up elsewhere.test, in process")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_that_asks_nothing_is_left_alone(tape: Path) -> None:
    with tapeproxy.replay(tape) as run:
        assert in_a_fork(lambda: 1 + 1) == "2"
    assert run.violations == []
    assert in_a_fork(lambda: 1 + 1) == "2"


ASK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
except urllib.error.URLError as error:
    print(error.reason)
"""


@pytest.mark.parametrize(
    ("url", "said", "asked"),
    [
        ("http://api.test/one", "470", "GET http://api.test/one"),
        ("https://api.test/one", "470 Tape Violation", "CONNECT api.test:443"),
    ],
)
@pytest.mark.parametrize("environment", [None, {}])
def test_a_program_is_refused_and_told(
    tape: Path, url: str, said: str, asked: str, environment: dict[str, str] | None
) -> None:
    with pytest.raises(TapeViolationError, match=r"tape\.run gives it a tape") as caught, tapeproxy.replay(tape):
        done = subprocess.run(
            [sys.executable, "-c", ASK, url], env=environment, capture_output=True, text=True, check=True
        )
        assert said in done.stdout
    assert [found.request for found in caught.value.violations] == [asked]


def test_a_program_of_asyncio_too(tape: Path) -> None:
    async def work() -> None:
        async with tapeproxy.replay(tape):
            child = await asyncio.create_subprocess_exec(sys.executable, "-c", ASK, "http://api.test/one")
            await child.wait()

    with pytest.raises(TapeViolationError, match=r"GET http://api\.test/one"):
        asyncio.run(work())


def test_programs_may_be_let(tape: Path) -> None:
    code = "import os; print(os.environ.get('HTTPS_PROXY', ''))"
    with tapeproxy.replay(tape, block_network=False):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "127.0.0.1" not in done.stdout
    with tapeproxy.replay(tape) as run:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "127.0.0.1" in done.stdout
    assert run.violations == []
