"""What an agent reads past the wire, recorded with --io and replayed in each mode, the disk changed between."""

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

KEY = "sk-proj-Pl4ntedK3yInAConf1gF1le000"
PASSWORD = "hunter2hunter2"

AGENT = """
import glob, os, pathlib, subprocess, sys
print(open("conf.ini").read(), sorted(os.listdir("data")), glob.glob("data/*"), os.path.exists("gone"))
print(pathlib.Path("data/a.txt").read_bytes(), os.path.getmtime("data/a.txt"), os.getpid())
print(subprocess.run(["date", "+%N"], capture_output=True, text=True).stdout)
print(subprocess.run("echo err $$ >&2; cat; exit 3", shell=True, input=b"in", capture_output=True))
print(sys.stdin.read())
pathlib.Path("out").mkdir(); pathlib.Path("out/new.txt").write_text("mine")
with open("log.txt", "a") as log: log.write("more")
print(open("log.txt").read(), os.listdir("out"), open("out/new.txt").read())
os.rename("out/new.txt", "out/newer.txt"); os.remove("data/b.txt")
print(os.listdir("out"), os.path.exists("data/b.txt"))
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Cli:
    """The folder in which the agent was recorded, once for all tests of what a replay makes of that."""
    cli = Cli(tmp_path_factory.mktemp("recording"), home)
    furnish(cli.cwd)
    (cli.cwd / "agent.py").write_text(AGENT)
    (cli.cwd / "printed").write_text(recorded(cli))
    return cli


@pytest.fixture
def first(recording: Cli, work: Path) -> str:
    """What the recorded agent printed; its tape, and the disk as it was left, are in the folder of the test."""
    for name in ("data/b.txt", "log.txt"):
        (work / name).unlink()
    shutil.copytree(recording.cwd, work, dirs_exist_ok=True)
    (work / "printed").unlink()
    return (recording.cwd / "printed").read_text()


@pytest.fixture
def work(cli: Cli) -> Path:
    """What the agent reads, in the folder that commands run in."""
    furnish(cli.cwd)
    return cli.cwd


def furnish(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_text("one\ntwo\n")
    (folder / "data" / "b.txt").write_text("bee")
    (folder / "log.txt").write_text("old ")
    (folder / "conf.ini").write_text(f"model = small\napi_key = {KEY}\n[db]\npassword={PASSWORD}\n")


def clear(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name not in ("agent.py", "a.jsonl.gz"):
            path.rmdir() if path.is_dir() else path.unlink()


def disk(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything in a folder that a write would change."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def recorded(cli: Cli) -> str:
    done = cli.run("record", "--io", "-o", "a.jsonl.gz", "--", sys.executable, "agent.py", input="typed\n")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tape_serves_what_is_gone(cli: Cli, work: Path, first: str) -> None:
    clear(work)
    (work / "data").mkdir()  # what the agent removes from it and puts into it happens for real in this mode
    (work / "data" / "b.txt").touch()
    done = cli.run("replay", "--io", "tape", "a.jsonl.gz")
    assert (done.returncode, done.stdout) == (0, redacted(first, cli)), done.stderr
    assert (work / "out" / "newer.txt").read_text() == "mine"


def redacted(text: str, cli: Cli) -> str:
    """What the agent prints when it is served what the tape holds of its secrets."""
    tape, _ = load(cli.cwd / "a.jsonl.gz")
    held = next(value for _, value in tape.values if value.name == "conf.ini")
    assert held.content is not None
    real = f"model = small\napi_key = {KEY}\n[db]\npassword={PASSWORD}\n"
    return text.replace(real, held.content.decode())


def test_a_virtual_replay_leaves_the_disk_alone(cli: Cli, work: Path, first: str) -> None:
    for prepare in (lambda: None, lambda: clear(work)):
        prepare()
        before = disk(work)
        done = cli.run("replay", "--io", "virtual", "a.jsonl.gz")
        assert (done.returncode, done.stdout) == (0, redacted(first, cli)), done.stderr
        assert "drift" not in done.stderr
        assert disk(work) == before


@pytest.mark.usefixtures("first")
def test_verify_is_the_default_and_names_what_differs(cli: Cli, work: Path) -> None:
    clear(work)
    furnish(work)
    (work / "data" / "a.txt").write_text("one\n2\n")
    (work / "data" / "c.txt").touch()
    done = cli.run("replay", "a.jsonl.gz", input="typed\n")
    assert done.returncode == 4, done.stderr
    told = done.stderr
    assert "file data/a.txt in lane m at " in told
    assert "agent.py:4 in <module>" in told
    assert "      tape: two\n      now:  2\n" in told
    assert "listing data in lane m" in told
    assert "stdout of process date +%N" in told
    assert "conf.ini" not in told
    clear(work)
    furnish(work)
    live = cli.run("replay", "--io", "live", "a.jsonl.gz", input="typed\n")
    assert live.returncode == 0, live.stderr


CONFIG = """
import os, subprocess
print(open('conf.ini').read(), os.listdir('data'), os.getpid(), len(open('big').read()))
print(subprocess.check_output(['cat', 'conf.ini']), input())
"""


def test_the_same_again_is_no_drift_and_what_is_too_long_is_compared(cli: Cli, work: Path) -> None:
    (work / "agent.py").write_text(CONFIG)
    (work / "big").write_bytes(b"x" * 300_000)
    first = recorded(cli)
    text = subprocess.run(["gzip", "-dc", str(work / "a.jsonl.gz")], capture_output=True, check=True).stdout
    assert KEY.encode() not in text
    assert PASSWORD.encode() not in text
    assert b"model = small" in text
    tape, _ = load(work / "a.jsonl.gz")
    big = next(value for _, value in tape.values if value.name == "big")
    assert (big.content, big.length) == (None, 300_000)
    assert cli.run("replay", "a.jsonl.gz", input="typed\n").stdout == first
    (work / "conf.ini").write_text((work / "conf.ini").read_text().replace(KEY, KEY.replace("0", "1")))
    assert cli.run("replay", "a.jsonl.gz", input="typed\n").returncode == 0, "with another key it is the same"
    (work / "big").write_bytes(b"y" + b"x" * 299_999)
    done = cli.run("replay", "--io", "tape", "a.jsonl.gz")
    assert done.returncode == 4
    assert "file big in lane m" in done.stderr
    assert done.stderr.count("drift:") == 1, "all else is served"


RUNS = """
import socket, subprocess, sys
child = '''
import urllib.error as e, urllib.request as u
try: u.urlopen('http://api.test/x')
except e.HTTPError as error: print(error.read())
open('ran', 'w')
'''
print(subprocess.check_output([sys.executable, "-c", child]))
print(subprocess.check_output(["sh", "-c", "touch sh-ran; echo $$"]))
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
    sock.sendall(b"password=PASSWORD"); print(sock.recv(100)); sock.sendall(sys.argv[2].encode()); print(sock.recv(100))
"""


def test_programs_and_servers_may_be_gone_but_not_who_asks_by_the_wire(cli: Cli, work: Path, home: Path) -> None:
    (work / "agent.py").write_text(RUNS.replace("PASSWORD", PASSWORD))
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider, answering([b"welcome", b"42"]) as port:
        taped = ["record", "--io", "-o", "a.jsonl.gz", *maps(provider.url, ["api.test"])]
        first = cli.run(*taped, "--", sys.executable, "agent.py", str(port), "question")
    assert "42" in first.stdout, first.stderr
    for name in ("ran", "sh-ran"):
        (work / name).unlink()
    done = cli.run("replay", "--io", "tape", "a.jsonl.gz")
    assert (done.returncode, done.stdout) == (0, first.stdout), done.stderr
    assert "violation:" not in done.stderr
    assert (work / "ran").exists()
    assert not (work / "sh-ran").exists()
    other = ["--", sys.executable, "agent.py", str(port), "other"]
    done = cli.run("replay", "--io", "tape", "--guard", "audit", "a.jsonl.gz", *other)
    assert (done.returncode, done.stdout) == (4, first.stdout), done.stderr
    assert f"sent of socket 127.0.0.1:{port} in lane m at " in done.stderr
    assert "other" in done.stderr
    assert PASSWORD not in done.stderr


@contextmanager
def answering(words: list[bytes]) -> Iterator[int]:
    """A server that says each word when it is sent something, to one client, and then is gone; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            conn, _ = listener.accept()
            with conn:
                for word in words:
                    conn.recv(100)
                    conn.sendall(word)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_a_mode_needs_a_tape_for_it(cli: Cli, work: Path) -> None:
    (work / "agent.py").write_text("print(open('conf.ini').read())")
    assert cli.run("record", "-o", "a.jsonl.gz", "--", sys.executable, "agent.py").returncode == 0
    done = cli.run("replay", "--io", "tape", "a.jsonl.gz")
    assert done.returncode == 2
    assert "--io tape needs a tape" in done.stderr
    assert cli.run("record", "--io", "--no-shim", "--", "true").returncode == 2
