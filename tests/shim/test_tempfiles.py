"""Names of temporary files: each lane's own, the same in a replay, and no burden to the lane's other values."""

from pathlib import Path

from shimruns import everywhere, run


@everywhere
def test_names(python: Path, sidecar: Path, tmp_path: Path) -> None:
    code = """
import json, os, tempfile, threading
out = {}
def work(name):
    names = [tempfile.mktemp(), tempfile.mkdtemp(), tempfile.NamedTemporaryFile().name]
    fd, path = tempfile.mkstemp(".txt", "agent-"); os.close(fd)
    out[name] = names + [path]
threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
for thread in threads: thread.start()
for thread in threads: thread.join()
work("main")
print(json.dumps([out[name] for name in sorted(out)]))
"""
    runs = []
    for mode in ("bare", "bare", "record", "replay"):
        folder = tmp_path / "tmp"
        folder.mkdir()
        runs.append(run(code, mode=mode, python=python, sidecar=sidecar, extra={"TMPDIR": str(folder)}).json)
        for path in folder.iterdir():
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()
    assert runs[0] != runs[1]
    assert runs[2] == runs[3]
    assert len({name for names in runs[2] for name in names}) == 12


@everywhere
def test_a_name_that_is_taken_moves_nothing_else(python: Path, sidecar: Path, tmp_path: Path) -> None:
    code = (
        "import os, random, tempfile; fd, path = tempfile.mkstemp(); print(path, os.urandom(4).hex(), random.random())"
    )
    first, second = (
        run(code, python=python, sidecar=sidecar, extra={"TMPDIR": str(tmp_path)}).stdout.split() for _ in range(2)
    )
    assert first[0] != second[0]
    assert first[1:] == second[1:]


@everywhere
def test_semaphores_of_two_replays_do_not_collide(python: Path, sidecar: Path) -> None:
    code = "import multiprocessing.synchronize as s; print(s.SemLock._make_name())"
    assert len({run(code, python=python, sidecar=sidecar).stdout for _ in range(2)}) == 2
