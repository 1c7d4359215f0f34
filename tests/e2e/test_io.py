"""What an agent reads past the wire, recorded with --io and replayed in each mode, the disk changed between."""

import subprocess
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.records import Value
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


@pytest.fixture
def work(cli: Cli) -> Path:
    """The agent and what it reads, in the folder that commands run in."""
    furnish(cli.cwd)
    (cli.cwd / "agent.py").write_text(AGENT)
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


def test_a_tape_serves_what_is_gone(cli: Cli, work: Path) -> None:
    first = recorded(cli)
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


def test_a_virtual_replay_leaves_the_disk_alone(cli: Cli, work: Path) -> None:
    first = redacted(recorded(cli), cli)
    for prepare in (lambda: None, lambda: clear(work)):
        prepare()
        before = disk(work)
        done = cli.run("replay", "--io", "virtual", "a.jsonl.gz")
        assert (done.returncode, done.stdout) == (0, first), done.stderr
        assert "drift" not in done.stderr
        assert disk(work) == before


def test_verify_is_the_default_and_names_what_differs(cli: Cli, work: Path) -> None:
    recorded(cli)
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


def test_the_same_again_is_no_drift(cli: Cli, work: Path) -> None:
    (work / "agent.py").write_text(
        "import os, subprocess; print(open('conf.ini').read(), os.listdir('data'), os.getpid())\n"
        "print(subprocess.check_output(['cat', 'data/a.txt']), input())"
    )
    first = recorded(cli)
    done = cli.run("replay", "a.jsonl.gz", input="typed\n")
    assert (done.returncode, done.stdout) == (0, first), done.stderr
    other_key = (work / "conf.ini").read_text().replace(KEY, KEY.replace("0", "1"))
    (work / "conf.ini").write_text(other_key)
    assert cli.run("replay", "a.jsonl.gz", input="typed\n").returncode == 0, "with another key it is the same"


def test_no_secret_of_a_file_is_on_the_tape(cli: Cli, work: Path) -> None:
    (work / "agent.py").write_text(
        "import subprocess; open('conf.ini'); subprocess.run(['cat', 'conf.ini'], capture_output=True)"
    )
    recorded(cli)
    text = subprocess.run(["gzip", "-dc", str(work / "a.jsonl.gz")], capture_output=True, check=True).stdout
    assert KEY.encode() not in text
    assert PASSWORD.encode() not in text
    assert text.count(b"model = small") == 2 or b"model = small" in text


def test_a_content_that_is_too_long_is_verified(cli: Cli, work: Path) -> None:
    (work / "agent.py").write_text("print(len(open('big').read()))")
    (work / "big").write_bytes(b"x" * 300_000)
    recorded(cli)
    tape, _ = load(work / "a.jsonl.gz")
    ((_, value),) = tape.values
    assert isinstance(value, Value)
    assert (value.content, value.length) == (None, 300_000)
    assert cli.run("replay", "--io", "tape", "a.jsonl.gz").returncode == 0
    (work / "big").write_bytes(b"y" + b"x" * 299_999)
    done = cli.run("replay", "--io", "tape", "a.jsonl.gz")
    assert done.returncode == 4
    assert "file big in lane m" in done.stderr
    (work / "big").unlink()
    assert cli.run("replay", "--io", "tape", "a.jsonl.gz").returncode == 4


def test_a_program_with_exchanges_of_its_own_is_run(cli: Cli, work: Path, home: Path) -> None:
    child = (
        "import urllib.error as e, urllib.request as u\n"
        "try: u.urlopen('http://api.test/x')\n"
        "except e.HTTPError as error: print(error.read())\n"
        "open('ran', 'w')"
    )
    (work / "agent.py").write_text(
        f"import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', {child!r}]))"
        "; print(subprocess.check_output(['sh', '-c', 'touch sh-ran; echo $$']))"
    )
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(tls=tls) as provider:
        argv = [
            "record",
            "--io",
            "-o",
            "a.jsonl.gz",
            *maps(provider.url, ["api.test"]),
            "--",
            sys.executable,
            "agent.py",
        ]
        first = cli.run(*argv)
    assert (work / "ran").exists()
    for name in ("ran", "sh-ran"):
        (work / name).unlink(missing_ok=True)
    done = cli.run("replay", "--io", "tape", "a.jsonl.gz")
    assert done.stdout == first.stdout, done.stderr
    assert (work / "ran").exists()
    assert not (work / "sh-ran").exists()


def test_a_mode_needs_a_tape_for_it(cli: Cli, work: Path) -> None:
    (work / "agent.py").write_text("print(open('conf.ini').read())")
    assert cli.run("record", "-o", "a.jsonl.gz", "--", sys.executable, "agent.py").returncode == 0
    done = cli.run("replay", "--io", "tape", "a.jsonl.gz")
    assert done.returncode == 2
    assert "--io tape needs a tape" in done.stderr
    assert cli.run("record", "--io", "--no-shim", "--", "true").returncode == 2
