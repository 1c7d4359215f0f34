"""What the agent reads from files and folders is told, the interpreter's own reads are not, and a tape serves it."""

import sys
from pathlib import Path
from typing import Any

import pytest
from shimruns import Run, everywhere, run
from shimvalues import io, write_taped

READS = """
import glob, json, os, pathlib, mmap, decimal, zoneinfo
out = []
out.append(open("a.txt").read())
out.append(open("a.txt", "rb").read().hex())
out.append(list(open("a.txt")))
with open("a.txt") as f: out.append([f.readline(), f.tell(), f.seek(1), f.read(2), f.name, type(f).__name__])
with open("a.txt", "rb", buffering=0) as f:
    room = bytearray(3)
    out.append([f.readinto(room), room.decode(), type(f).__name__])
with open("a.txt", "rb") as f: out.append(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[:].decode())
out.append(pathlib.Path("a.txt").read_text())
fd = os.open("a.txt", os.O_RDONLY); out.append(os.read(fd, 100).decode()); os.close(fd)
out.append(open("code.py").read())
out.append([os.listdir("d"), os.listdir(b"d")[0].decode(), glob.glob("d/*")])
out.append([[p.name for p in pathlib.Path("d").iterdir()]])
with os.scandir("d") as scan: out.append([[e.name, e.path, e.is_file(), e.is_dir(), e.stat().st_size] for e in scan])
out.append([[root, dirs, files] for root, dirs, files in os.walk(".")])
out.append([os.path.exists("a.txt"), os.path.exists("gone"), os.path.isdir("d"), os.path.getmtime("a.txt")])
out.append([os.stat("a.txt").st_size, pathlib.Path("a.txt").is_file()])
for fn in (lambda: open("gone"), lambda: os.listdir("gone"), lambda: os.stat("gone")):
    try: fn()
    except OSError as error: out.append([type(error).__name__, str(error)])
print(json.dumps(out))
"""


def folder(path: Path) -> Path:
    (path / "d").mkdir(parents=True)
    (path / "a.txt").write_text("one\ntwo\n")
    (path / "code.py").write_text("x = 1\n")
    for name in ("q", "b", "z"):
        (path / "d" / name).write_text(name)
    return path


def in_folder(code: str, base: Path) -> str:
    return f"import os; os.chdir({str(base)!r})\n{code}"


def recorded(code: str, python: Path, sidecar: Path, base: Path) -> Run:
    return run(in_folder(code, base), python=python, sidecar=sidecar, extra=io("record", base))


@everywhere
def test_reads_are_told_and_served_when_the_files_are_gone(python: Path, tmp_path: Path, sidecar: Path) -> None:
    base = folder(tmp_path / "base")
    bare = run(in_folder(READS, base), mode="bare", python=python, sidecar=sidecar)
    first = recorded(READS, python, sidecar, base)
    assert first.json == bare.json
    lines = first.of("value")
    assert {line["what"] for line in lines} == {"file", "listing", "scan", "stat"}
    assert {line["name"] for line in lines if line["what"] == "file"} == {"a.txt", "code.py", "gone"}
    assert [line["n"] for line in lines] == list(range(len(lines)))
    assert all("<string>" in line["where"] for line in lines)
    taped = write_taped(lines, tmp_path / "values")
    for path in (base / "a.txt", base / "code.py", *(base / "d").iterdir()):
        path.unlink()
    again = run(in_folder(READS, base), mode="replay", python=python, sidecar=sidecar, extra=io("tape", base, taped))
    assert again.json == first.json
    assert again.of("value") == []


@everywhere
def test_nothing_changes_without_the_option(python: Path, sidecar: Path) -> None:
    code = "import sys, os, io; print(type(open).__name__, type(os.stat).__name__, '_tapeproxy.values' in sys.modules)"
    assert run(code, python=python, sidecar=sidecar).stdout.split() == ["builtin_function_or_method"] * 2 + ["False"]


LONG = 256 * 1024 + 1


@pytest.mark.parametrize(("size", "held"), [(0, True), (LONG - 1, True), (LONG, False), (3 << 20, False)])
def test_content_is_held_up_to_the_limit_and_told_once(size: int, held: bool, tmp_path: Path, sidecar: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * size)
    told = recorded("open('f'); open('f').read(3)", Path(sys.executable), sidecar, tmp_path).of("value")
    assert [("content" in line, line["length"]) for line in told] == [(held, size), (False, size)]
    assert told[0]["digest"] == told[1]["digest"]


@everywhere
def test_the_process_has_the_same_number_again(python: Path, tmp_path: Path, sidecar: Path) -> None:
    code = """
import os, json, signal, tempfile, multiprocessing.process
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
os.kill(os.getpid(), signal.SIGUSR1)
print(json.dumps([os.getpid(), os.getppid(), len(got), os.getpgid(os.getpid()) > 0]))
"""
    first = run(code, python=python, sidecar=sidecar, extra=io("record", tmp_path))
    assert first.json[2:] == [1, True]
    taped = write_taped(first.lines, tmp_path / "values")
    again = run(code, mode="replay", python=python, sidecar=sidecar, extra=io("verify", tmp_path, taped))
    assert again.json == first.json
    assert again.of("hello")[0]["pid"] != first.json[0]


def test_an_error_still_shows_the_line(tmp_path: Path, sidecar: Path) -> None:
    (tmp_path / "agent.py").write_text("def fail():\n    raise ValueError  # here\nfail()\n")
    code = "import runpy, sys; sys.path.insert(0, '.'); import agent"
    done = recorded(code, Path(sys.executable), sidecar, tmp_path)
    assert "raise ValueError  # here" in done.stderr
    assert done.of("value") == []


READING: list[Any] = [
    ("import linecache; linecache.getline('code.py', 1)", []),
    ("import ssl, certifi; open(certifi.where()).read()", []),
    ("open('/proc/self/stat').read(); open('/dev/null').read()", []),
    ("open('new', 'w').write('x'); open('new2', 'xb'); open('new3', 'w+')", []),
    ("open('a.txt', 'r+').write('x')", ["a.txt"]),
    ("open('a.txt', 'a+').write('x')", ["a.txt"]),
    ("os.close(os.open('a.txt', os.O_RDWR | os.O_CREAT))", ["a.txt"]),
    ("os.close(os.open('a.txt', os.O_WRONLY))", []),
]


@pytest.mark.parametrize(("code", "names"), READING)
def test_what_counts_as_a_read_of_the_agent(code: str, names: list[str], tmp_path: Path, sidecar: Path) -> None:
    base = folder(tmp_path / "base")
    done = recorded(code, Path(sys.executable), sidecar, base)
    assert done.returncode == 0, done.stderr
    assert [line["name"] for line in done.of("value") if line["what"] == "file"] == names


def test_our_own_folder_is_in_no_listing(sidecar: Path) -> None:
    code = "print(os.listdir('.'), [e.name for e in os.scandir('.')])"
    done = recorded(code, Path(sys.executable), sidecar, sidecar.parent)
    assert done.stdout.split() == ["[]", "[]"]
    assert [line["length"] for line in done.of("value")] == [2, 2]


READ_INPUT = "import sys, os; print([input(), sys.stdin.readline(), os.read(0, 3).decode(), sys.stdin.read()])"


@everywhere
def test_standard_input_is_told_and_served(python: Path, tmp_path: Path, sidecar: Path) -> None:
    (tmp_path / "typed").write_text("one\ntwo\nthree\n")
    code = f"import os; os.dup2(os.open({str(tmp_path / 'typed')!r}, 0), 0)\n{READ_INPUT}"
    first = run(code, python=python, sidecar=sidecar, extra=io("record", tmp_path))
    assert first.stdout == "['one', 'two\\n', '', 'three\\n']\n"
    taped = write_taped(first.lines, tmp_path / "values")
    again = run(READ_INPUT, mode="replay", python=python, sidecar=sidecar, extra=io("tape", tmp_path, taped))
    assert again.stdout == first.stdout, again.stderr


IN_TMPDIR = """
import os, subprocess, tempfile
place = os.environ["TMPDIR"]
print(os.listdir(place), os.path.exists(place + "/made"))
open(place + "/own", "w").write("own"); subprocess.run(["sh", "-c", "echo $$ > $TMPDIR/made"])
print(os.path.exists(place + "/made"), open(place + "/made").read(), open(place + "/own").read())
os.remove(place + "/own"); print(os.path.exists(place + "/own"))
"""


def test_what_the_run_made_in_its_tmpdir_is_read_there_and_what_a_program_made_on_the_tape(
    tmp_path: Path, sidecar: Path
) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    place = {"TMPDIR": str(tmp)}
    first = run(IN_TMPDIR, python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path) | place)
    taped = write_taped(first.lines, tmp_path / "values")
    for mode in ("tape", "verify"):
        (tmp / "made").unlink()
        extra = io(mode, tmp_path, taped) | place
        done = run(IN_TMPDIR, mode="replay", python=sys.executable, sidecar=sidecar, extra=extra)
        if mode == "tape":
            assert done.stdout == first.stdout, done.stderr
            assert not (tmp / "made").exists()
            (tmp / "made").touch()
        assert [line for line in done.of("value") if line["what"] in ("file", "stat", "listing")] == []
