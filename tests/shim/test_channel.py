"""The sidecar file: each event written at once, whatever the agent does to descriptors, disks and itself."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shimruns import environment, everywhere, read_sidecar, run

NOTE = "from _tapeproxy.channel import emit; emit('note', what='test', text='é\\n', data={'a': [1, True, None, 1.5]})\n"
CLOSE_ALL = "import os; os.closerange(3, 4096)\n"


def texts(lines: list[dict[str, object]]) -> list[object]:
    return [line["text"] for line in lines]


@everywhere
def test_lines_are_json(python: Path, sidecar: Path) -> None:
    code = NOTE + "emit('note', what='test', text=object, data=[float('inf'), float('nan'), 2**70, (1,), {1: 'x'}])"
    plain, odd = run(code, python=python, sidecar=sidecar).of("note")
    assert plain == {"k": "note", "what": "test", "text": "é\n", "data": {"a": [1, True, None, 1.5]}}
    assert odd == {
        "k": "note",
        "what": "test",
        "text": "<class 'object'>",
        "data": ["inf", "nan", 2**70, [1], {"1": "x"}],
    }


@everywhere
def test_one_file_for_each_process(python: Path, sidecar: Path) -> None:
    code = "import os\npid = os.fork()\n" + NOTE + "print(os.getpid(), flush=True)\nif pid: os.wait()"
    ran = run(code, python=python, sidecar=sidecar)
    files = {path.name.split("-")[0]: path.read_text() for path in sidecar.glob("*.jsonl")}
    assert set(files) == set(ran.stdout.split())
    assert all(text.count('"what":"test"') == 1 for text in files.values())


@everywhere
def test_the_agent_gets_the_low_descriptors(python: Path, sidecar: Path) -> None:
    code = "import os; print(os.open(os.devnull, os.O_RDONLY))"
    bare, ours = (run(code, mode=mode, python=python, sidecar=sidecar).stdout for mode in ("bare", "record"))
    assert bare == ours == "3\n"


@everywhere
@pytest.mark.parametrize(
    "then",
    [
        "",
        # the same descriptor, open on a file of the agent's
        "fds = [os.open('other', os.O_CREAT | os.O_WRONLY) for _ in range(300)]\n",
    ],
    ids=["closed", "used again"],
)
def test_the_agent_closes_our_descriptor(then: str, python: Path, sidecar: Path, tmp_path: Path) -> None:
    code = f"import os; os.chdir({str(tmp_path)!r})\n" + NOTE + CLOSE_ALL + then + NOTE + CLOSE_ALL + NOTE
    ran = run(code, python=python, sidecar=sidecar)
    assert texts(ran.of("note")) == ["é\n"] * 3, ran.stderr
    assert not (tmp_path / "other").exists() or (tmp_path / "other").read_bytes() == b""


@everywhere
def test_a_daemon(python: Path, sidecar: Path, tmp_path: Path) -> None:
    """Forks twice, leaves its session, closes everything: it is still of the run, and draws its own values."""
    code = f"""
import os, sys, uuid
out = {str(tmp_path / "out")!r}
os.mkfifo(out)
if os.fork():
    print(open(out).read()); os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(0, 4096)
{NOTE}
with open(out, "w") as file: file.write(str(uuid.uuid4()))
"""
    drawn = set()
    for mode in ("record", "replay"):
        ran = run(code, mode=mode, python=python, sidecar=sidecar)
        drawn.add(ran.stdout)
        assert [line["lane"] for line in ran.of("hello")] == ["m", "m/f0", "m/f0/f0"]
        assert texts(ran.of("note")) == ["é\n"]
        (tmp_path / "out").unlink()
    assert len(drawn) == 1


@everywhere
def test_a_kill_keeps_every_event_before_it(python: Path, sidecar: Path) -> None:
    code = NOTE * 100 + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    ran = run(code, python=python, sidecar=sidecar)
    assert ran.returncode == -signal.SIGKILL
    assert len(ran.of("note")) == 100


@everywhere
@pytest.mark.parametrize("gone", ["missing", "a file", "not ours"])
def test_a_folder_that_cannot_be_written(gone: str, python: Path, sidecar: Path, tmp_path: Path) -> None:
    code = NOTE * 200 + "import random, uuid, os; print(len(str(uuid.uuid4())), os.environ.get('TAPEPROXY_LANE'))"
    folder = tmp_path / "elsewhere"
    if gone == "a file":
        folder.write_text("")
    if gone == "not ours":
        folder = Path("/proc")
    ran = run(code, python=python, sidecar=sidecar, extra={"TAPEPROXY_SIDECAR": str(folder)})
    assert (ran.stdout, ran.stderr, ran.returncode) == ("36 None\n", "", 0)


@everywhere
def test_a_folder_that_vanishes(python: Path, sidecar: Path) -> None:
    code = f"import shutil; shutil.rmtree({str(sidecar)!r})\n{CLOSE_ALL}{NOTE}print('went on')"
    ran = run(code, python=python, sidecar=sidecar)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("went on\n", "", 0)


@everywhere
def test_a_full_disk_loses_events_and_tells_how_many(python: Path, sidecar: Path) -> None:
    """A limit on the size of files refuses writes as a full disk does, in the middle of a line, too."""
    code = f"""
import os, resource
{NOTE}
from _tapeproxy import channel
size, hard = os.path.getsize(channel.path()), resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
{NOTE * 3}
print("went on", flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
emit("note", what="test", text="after")
emit("note", what="test", text="last")
"""
    sidecar.mkdir(exist_ok=True)
    env = environment(sidecar=sidecar)
    done = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("went on\n", "")
    lines = []
    for text in next(iter(sidecar.glob("*.jsonl"))).read_text().splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            lines.append(text)
    assert [isinstance(line, str) for line in lines].count(True) == 1  # the torn one, on a line of its own
    after = [line for line in lines if isinstance(line, dict)][-3:]
    assert [line["text"] for line in after] == ["after", "events could not be written", "last"]
    assert after[1]["data"] == {"events": 3}


@everywhere
def test_few_descriptors_are_enough(python: Path, sidecar: Path) -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n" + CLOSE_ALL + NOTE
    ran = run(code, python=python, sidecar=sidecar)
    assert texts(ran.of("note")) == ["é\n"], ran.stderr


def test_a_line_without_its_end_is_not_read(sidecar: Path) -> None:
    (sidecar / "1-0.jsonl").write_text('{"k":"note"}\n{"k":"no')
    assert read_sidecar(sidecar) == [{"k": "note"}]


def test_a_fork_that_runs_no_hooks_has_its_own_file(sidecar: Path) -> None:
    """C code may fork past Python's hooks; the process id tells."""
    code = "import ctypes, os\nlibc = ctypes.CDLL(None)\npid = libc.fork()\n" + NOTE + "if pid: os.wait()"
    ran = run(code, python=sys.executable, sidecar=sidecar)
    assert ran.returncode == 0
    by_file = [path.read_text().count('"what":"test"') for path in sidecar.glob("*.jsonl")]
    assert by_file == [1, 1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(kind=st.text(), fields=st.dictionaries(st.text(), JSON))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_line_is_one_line_of_json(inject: Callable[[str], Any], kind: str, fields: dict[str, Any]) -> None:
    line = inject("channel")._line(kind, fields)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"k": kind} | fields
