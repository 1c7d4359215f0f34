"""Encrypted tapes from the command line: one passphrase typed, held in a variable, or on a descriptor."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import agentruns
import pytest
from clirun import Cli

from tapeproxy.proxy.encrypting import encrypt
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.unlocking import Secret
from tapeproxy.tapes.encrypted import COST
from tapeproxy.tapes.magic import MAGIC
from tapeproxy.testing import FakeProvider

WORDS = "correct horse battery staple"
TAPE = "bug.tape.jsonl.gz"
LOCKED = f"{TAPE}.enc"
CHEAP = 10
# The agent says what it can see of the secret: in its environment, and on the descriptors that it inherited.
AGENT = """
import os, urllib.request
print(urllib.request.urlopen("http://weather.test:8080/now?city=Paris").status)
print("variables", sorted(n for n, v in os.environ.items() if "PASSPHRASE" in n or "KEY_FILE" in n or "battery" in v))
for fd in range(3, 64):
    try:
        if b"battery" in os.pread(fd, 100, 0):
            print("descriptor", fd)
    except OSError:
        pass
"""
SEEN = "200\nvariables []\n"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A folder with a tape of one request, and its encrypted copy made with little work."""
    (tmp_path / "home").mkdir()
    path = agentruns.write_tape(
        tmp_path / TAPE,
        agentruns.exchange(1, "http://weather.test:8080/now?city=Paris", chunks=[b"18 degrees"]),
    )
    secret = Secret("passphrase", WORDS.encode())
    (tmp_path / LOCKED).write_bytes(b"".join(encrypt(iter([path.read_bytes()]), secret, cost=CHEAP)))
    return Cli(tmp_path, tmp_path / "home")


REPLAY = ("replay", LOCKED, "--guard", "none", "--no-shim", "-q")
COMMAND = ("--", sys.executable, "-c", AGENT)


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ((), {"TAPEPROXY_PASSPHRASE": WORDS}),
        ((), {"TAPEPROXY_PASSPHRASE_FILE": "words"}),
        (("--passphrase-env", "MINE"), {"MINE": WORDS}),
    ],
)
def test_replay_with_a_variable_that_the_agent_does_not_see(
    cli: Cli, options: tuple[str, ...], variables: dict[str, str]
) -> None:
    (cli.cwd / "words").write_text(f"{WORDS}\n", encoding="utf-8")
    before = set(cli.cwd.rglob("*"))
    done = cli.run(*REPLAY, *options, *COMMAND, env=variables)
    assert (done.stdout, done.stderr, done.returncode) == (SEEN, "", 0)
    new = {path.name for path in set(cli.cwd.rglob("*")) - before if path.is_file()}
    assert not any(name.endswith(".gz") for name in new), "the plain tape does not touch the disk"


def test_replay_with_a_descriptor_that_the_agent_does_not_get(cli: Cli) -> None:
    (cli.cwd / "words").write_text(f"{WORDS}\n", encoding="utf-8")
    with (cli.cwd / "words").open("rb") as words:
        done = subprocess.run(
            cli.argv(*REPLAY, "--passphrase-fd", str(words.fileno()), *COMMAND),
            cwd=cli.cwd,
            env=cli.environment(),
            pass_fds=(words.fileno(),),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
        )
    assert (done.stdout, done.stderr, done.returncode) == (SEEN, "", 0)


def test_a_passphrase_on_standard_input_leaves_it_empty(cli: Cli) -> None:
    reads = f"import sys; print(repr(sys.stdin.read())); {AGENT}"
    done = cli.run(*REPLAY, "--passphrase-fd", "0", "--", sys.executable, "-c", reads, input=f"{WORDS}\n")
    assert (done.stdout, done.stderr, done.returncode) == (f"''\n{SEEN}", "", 0)


@pytest.mark.parametrize(
    ("command", "variables", "said"),
    [
        (REPLAY, {"TAPEPROXY_PASSPHRASE": "wrong"}, "this passphrase is not the one that the tape was encrypted with"),
        (("show", LOCKED), {"TAPEPROXY_PASSPHRASE": "wrong"}, "this passphrase is not the one"),
        (("verify", LOCKED), {"TAPEPROXY_PASSPHRASE": "wrong"}, "this passphrase is not the one"),
        (("show", LOCKED, "--passphrase-env", "MINE"), {}, "the variable MINE is not set"),
        (("show", LOCKED, "--passphrase-fd", "63"), {}, "cannot be read from descriptor 63"),
        (("show", LOCKED, "--passphrase-fd", "0"), {}, "the passphrase is empty"),
        (("show", LOCKED, "--key-file", "words"), {}, "a key file holds 32 bytes"),
        (("show", LOCKED, "--passphrase-fd", "0", "--key-file", "words"), {}, "exclude each other"),
    ],
)
def test_what_does_not_open_a_tape(cli: Cli, command: tuple[str, ...], variables: dict[str, str], said: str) -> None:
    (cli.cwd / "words").write_text("words", encoding="utf-8")
    done = cli.run(*command, *(COMMAND if command == REPLAY else ()), env=variables)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_terminal_nobody_is_asked(cli: Cli) -> None:
    done = subprocess.run(
        cli.argv("show", LOCKED),
        cwd=cli.cwd,
        env=cli.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        start_new_session=True,
    )
    assert done.returncode == 2
    assert f"{LOCKED}: the tape is encrypted, and its passphrase is needed" in done.stderr
    assert "set TAPEPROXY_PASSPHRASE or TAPEPROXY_PASSPHRASE_FILE, or give --passphrase-fd N" in done.stderr


class Terminal:
    """A command on a terminal of its own: what it shows is read, and what is typed is sent."""

    def __init__(self, cli: Cli, *words: str) -> None:
        self.shown = ""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(cli.cwd)
            argv = cli.argv(*words)
            os.execve(argv[0], argv, cli.environment())

    def expect(self, text: str) -> None:
        """Read until it shows `text`, or fail after a minute."""
        until = time.monotonic() + 60
        while text not in self.shown:
            assert select.select([self._fd], [], [], until - time.monotonic())[0], f"still no {text!r}: {self.shown!r}"
            try:
                data = os.read(self._fd, 4096)
            except OSError:  # Linux says so of a terminal whose last user has left
                data = b""
            assert data, f"it ended without {text!r}: {self.shown!r}"
            self.shown += data.decode()

    def type(self, text: str) -> None:
        """Send a line."""
        os.write(self._fd, f"{text}\n".encode())

    def end(self) -> int:
        """Wait for its end; returns its exit code."""
        try:
            while data := os.read(self._fd, 4096):
                self.shown += data.decode()
        except OSError:
            pass
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """End it, if it has not ended."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._fd)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for one in opened:
        one.close()


# CPython warns of fork in a process with threads; this one has none but pytest's, which the child leaves at once.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_passphrase_is_typed_and_not_shown(cli: Cli, terminals: list[Terminal]) -> None:
    """Encrypted with a passphrase that is typed twice, and replayed, under the usual guard, with it typed once."""
    one = Terminal(cli, "encrypt", TAPE, "-o", "typed.enc")
    terminals.append(one)
    one.expect("passphrase: ")
    one.type(WORDS)
    one.expect("the same again: ")
    one.type(WORDS)
    assert one.end() == 0
    assert "encrypted: typed.enc" in one.shown
    assert "battery" not in one.shown
    other = Terminal(cli, "replay", "typed.enc", *COMMAND)
    terminals.append(other)
    other.expect("passphrase for typed.enc: ")
    other.type(WORDS)
    assert other.end() == 0
    assert "variables []" in other.shown
    assert "battery" not in other.shown
    assert (cli.cwd / "typed.enc").read_bytes()[10] == COST


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_two_passphrases_that_differ(cli: Cli, terminals: list[Terminal]) -> None:
    one = Terminal(cli, "encrypt", TAPE, "--force")
    terminals.append(one)
    before = (cli.cwd / LOCKED).read_bytes()
    one.expect("passphrase: ")
    one.type("a")
    one.expect("the same again: ")
    one.type("b")
    assert one.end() == 2
    assert "the two passphrases differ" in one.shown
    assert (cli.cwd / LOCKED).read_bytes() == before


ASKS = """
import os, sys, urllib.request
print(urllib.request.urlopen(os.environ["ASKED"] + "/search?q=tide").status, flush=True)
print("variables", sorted(n for n in os.environ if "PASSPHRASE" in n or "KEY_FILE" in n), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_tape_that_is_encrypted_while_it_is_recorded(tmp_path: Path, home: Path, killed: bool) -> None:
    cli = Cli(tmp_path, home)
    (tmp_path / "key").write_bytes(bytes(range(32)))
    with FakeProvider() as provider:
        variables = {"TAPEPROXY_KEY_FILE": "key", "ASKED": provider.url}
        words = ("record", "--encrypt", "-o", LOCKED, "--", sys.executable, "-c", ASKS)
        environment = cli.environment() | variables
        running = cli.start(*words, stdin=subprocess.PIPE, env=environment) if killed else None
        if running is None:
            done = cli.run(*words, env=variables)
            assert (done.returncode, done.stdout) == (0, "200\nvariables []\n"), done.stderr
        else:
            assert running.stdout is not None
            assert [running.stdout.readline() for _ in range(2)] == ["200\n", "variables []\n"]
            assert not plain_files(tmp_path), "no plain tape while it is recorded"
            running.kill()
            running.communicate(timeout=30)
    assert (tmp_path / LOCKED).read_bytes().startswith(MAGIC)
    assert not plain_files(tmp_path)
    tape, ending = load(tmp_path / LOCKED, lambda _kind, _source: Secret("key", bytes(range(32))))
    assert (ending.sealed, ending.canonical) == (not killed, not killed)
    assert [exchange.response.status for exchange in tape.exchanges if exchange.response] == [200]
    assert cli.run("verify", LOCKED, "--key-file", "key").returncode == (5 if killed else 0)
    replayed = cli.run("replay", LOCKED, env=variables)
    # The end of an exchange is acknowledged to nobody: a tape that was killed may lack it.
    assert replayed.returncode in ((0, 3) if killed else (0,)), replayed.stderr
    assert replayed.stdout == "200\nvariables []\n"
    assert ("interrupted" in replayed.stderr) == killed


def plain_files(folder: Path) -> list[Path]:
    """The files in which a tape can be read by anybody."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if (data := path.read_bytes()).startswith(b"\x1f\x8b") or b'"request"' in data]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--encrypt", "--io", "--key-file", "key"), "--io hands over what the agent reads in plain files"),
        (("--key-file", "key"), "--key-file is for a tape that is encrypted"),
        (("--encrypt",), "there is nothing to encrypt the tape with"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_run(cli: Cli, words: tuple[str, ...], said: str) -> None:
    (cli.cwd / "key").write_bytes(bytes(32))
    done = subprocess.run(
        cli.argv("record", *words, "--", sys.executable, "-c", "print(1)"),
        cwd=cli.cwd,
        env=cli.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_without_a_name_it_is_called_as_an_encrypted_tape(cli: Cli) -> None:
    words = ("record", "--encrypt", "--no-shim", "--", sys.executable, "-c", "print(1)")
    assert cli.run(*words, env={"TAPEPROXY_PASSPHRASE": WORDS}).returncode == 0
    (path,) = (cli.cwd / ".tapes").iterdir()
    assert path.name.endswith(".tape.jsonl.gz.enc")
    assert cli.run("verify", env={"TAPEPROXY_PASSPHRASE": WORDS}).returncode == 0, "it is the last tape here"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the check does not fail with all of the tape"),  # it was opened, and is one of a good run
        (("--commits", "a..b"), "--passphrase-env opens the tape once"),
    ],
)
def test_a_search_opens_it_by_the_same_options(words: tuple[str, ...], said: str, cli: Cli) -> None:
    searched = ("bisect", LOCKED, "--guard", "none", "--passphrase-env", "HELD", *words, *COMMAND)
    done = cli.run(*searched, env={"HELD": WORDS})
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
