"""Writes of a virtual replay: the agent finds them again, and the disk is what it was."""

import sys
from pathlib import Path

import pytest
from shimruns import everywhere, run
from shimvalues import io, write_taped

WRITES = """
import json, os, pathlib, shutil, tempfile
out = []
os.makedirs("out/deep"); os.makedirs("out", exist_ok=True)
pathlib.Path("out/deep/a").write_text("A")
with open("log", "a") as f: f.write("more")
with open("rw", "r+") as f: out.append(f.read()); f.seek(0); f.write("XX")
out += [open("log").read(), open("rw").read()]
os.rename("out/deep/a", "out/b"); os.remove("victim")
out += [os.path.exists("victim"), os.path.exists("out/deep/a"), sorted(os.listdir("out")), open("out/b").read()]
shutil.copy2("conf", "out/conf"); shutil.copytree("tree", "tree2"); shutil.rmtree("tree")
out += [sorted(os.listdir("tree2")), open("tree2/x").read(), os.path.isdir("tree"), open("out/conf").read()]
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f: f.write("atomic")
os.replace(f.name, "atomic"); out += [open("atomic").read(), os.stat("atomic").st_size]
os.symlink("conf", "link"); out += [os.readlink("link"), os.path.islink("link")]
open("excl", "x").close()
fd = os.open("raw", os.O_WRONLY | os.O_CREAT | os.O_EXCL); os.write(fd, b"raw"); os.close(fd)
out.append(open("raw").read())
os.truncate("rw", 1); out.append(open("rw").read()); os.chmod("conf", 0o600); os.utime("conf")
for fn in (lambda: open("excl", "x"), lambda: os.rmdir("none"), lambda: os.mkdir("out"), lambda: open("no/such", "w")):
    try: fn()
    except OSError as error: out.append(str(error))
out.append(sorted(e.name for e in os.scandir(".")))
out += [shutil.move("excl", "moved"), os.path.exists("moved"), os.path.exists("excl")]
print(json.dumps(out))
"""


def furnish(base: Path) -> Path:
    (base / "tree").mkdir(parents=True)
    for name, text in (("tree/x", "x"), ("conf", "conf"), ("victim", "v"), ("log", "old "), ("rw", "hello")):
        (base / name).write_text(text)
    return base


def disk(base: Path) -> list[object]:
    found = sorted(base.rglob("*"))
    return [(p, p.lstat().st_mtime_ns, p.lstat().st_mode, p.read_bytes() if p.is_file() else b"") for p in found]


def in_folder(base: Path, code: str) -> str:
    return f"import os; os.chdir({str(base)!r})\n{code}"


@everywhere
def test_writes_are_swallowed_and_found_again(python: Path, tmp_path: Path, sidecar: Path) -> None:
    base = furnish(tmp_path / "base")
    first = run(in_folder(base, WRITES), python=python, sidecar=sidecar, extra=io("record", base))
    assert first.returncode == 0, first.stderr
    places = [(base, False), (furnish(tmp_path / "fresh"), False), (tmp_path / "empty", True)]
    for number, (place, empty) in enumerate(places):  # as the recording left it, as it was before, and with nothing
        if empty:
            place.mkdir()
        (tmp_path / str(number)).mkdir()
        taped = write_taped(first.lines, tmp_path / str(number) / "values")
        before = disk(place)
        done = run(
            in_folder(place, WRITES), mode="replay", python=python, sidecar=sidecar, extra=io("virtual", place, taped)
        )
        assert done.json == first.json
        assert done.of("value") == []
        assert disk(place) == before


STRAYING = [
    ("open('new', 'w').write('n'); print(open('new').read(), os.listdir('.').count('new'))", "n 1"),
    ("open('conf', 'w').write('other'); print(open('conf').read(), os.path.getsize('conf'))", "other 5"),
    ("os.remove('conf'); print(os.path.exists('conf'), 'conf' in os.listdir('.'))", "False False"),
    (
        "os.mkdir('d'); open('d/x', 'w').close(); print(os.listdir('d'), [e.name for e in os.scandir('d')])",
        "['x'] ['x']",
    ),
    ("os.rename('tree', 't'); print(os.listdir('t'), os.path.exists('tree'), open('t/x').read())", "['x'] False x"),
    ("import shutil; shutil.rmtree('tree'); os.mkdir('tree'); print(os.listdir('tree'))", "[]"),
    ("os.link('conf', 'hard'); print(open('hard').read())", "conf"),
    ("open('log', 'a').write('!'); print(open('log').read())", "old !"),
    ("f = open(os.environ['TMPDIR'] + '/real', 'w'); f.write('r'); f.close(); print(os.path.exists(f.name))", "True"),
]


@pytest.mark.parametrize(("code", "said"), STRAYING)
def test_what_is_not_on_the_tape_is_swallowed_too(code: str, said: str, tmp_path: Path, sidecar: Path) -> None:
    base = furnish(tmp_path / "base")
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    taped = write_taped([], tmp_path / "values")
    before = disk(base)
    extra = {**io("virtual", base, taped), "TMPDIR": str(tmp)}
    done = run(in_folder(base, code), mode="replay", python=sys.executable, sidecar=sidecar, extra=extra)
    assert done.stdout.strip() == said, done.stderr
    assert disk(base) == before
