"""Programs that the agent runs are told, and a stub says and does again what they said and did."""

import sys
from pathlib import Path

import pytest
from shimruns import everywhere, run
from shimvalues import io, write_taped

PROGRAMS = """
import asyncio, json, os, subprocess, sys
out = []
def ran(*args, **kwargs):
    done = subprocess.run(*args, **kwargs)
    out.append([done.returncode, repr(done.stdout), repr(done.stderr), repr(done.args)])
ran(["date", "+%N"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
both = "echo $$; echo $$ >&2; exit 3"
ran(both, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
ran(["cat"], input=b"x" * 100000, stdout=subprocess.PIPE)
ran(["head", "-c", "150000", "/dev/zero"], stdout=subprocess.PIPE)
try: ran(["no-such-program"])
except OSError as error: out.append(str(error))
child = subprocess.Popen(["sleep", "60"]); child.terminate(); out.append(child.wait())
child = subprocess.Popen("kill -KILL $$", shell=True); out.append(child.wait())
talk = "while read line; do echo $$ $line; done"
with subprocess.Popen(["sh", "-c", talk], stdin=-1, stdout=-1, bufsize=1, universal_newlines=True) as child:
    for word in ("a", "b"):
        child.stdin.write(word + "\\n"); child.stdin.flush(); out.append(child.stdout.readline())
async def main():
    child = await asyncio.create_subprocess_exec("date", "+%N", stdout=-1, stderr=-1)
    said = await child.communicate()
    out.append([repr(said), child.returncode])
asyncio.run(main())
out.append([os.popen("date +%N").read(), os.system("exit 4")])
print(json.dumps(out))
"""


@everywhere
def test_programs_are_told_and_served_without_being_run(python: Path, tmp_path: Path, sidecar: Path) -> None:
    first = run(PROGRAMS, python=python, sidecar=sidecar, extra=io("record", tmp_path))
    whats = [line["what"] for line in first.of("value")]
    assert whats.count("process") == 11
    assert whats.count("exit") >= 9
    taped = write_taped(first.lines, tmp_path / "values")
    again = run(PROGRAMS, mode="replay", python=python, sidecar=sidecar, extra=io("tape", tmp_path, taped))
    assert again.json == first.json
    assert {line["what"] for line in again.of("value")} == {"exit"}
    live = run(PROGRAMS, mode="replay", python=python, sidecar=sidecar, extra=io("verify", tmp_path, taped))
    assert live.json != first.json, "a program that never differs shows nothing"


def test_what_a_program_is_sent_is_compared(tmp_path: Path, sidecar: Path) -> None:
    code = "import subprocess, sys; subprocess.run(['cat'], input=sys.argv[1].encode(), stdout=-1)"
    first = run(code, "one", python=sys.executable, sidecar=sidecar, extra=io("record", tmp_path))
    (exit,) = (line for line in first.of("value") if line["what"] == "exit")
    taped = write_taped(first.lines, tmp_path / "values")
    for word, same in (("one", True), ("two", False)):
        done = run(code, word, mode="replay", python=sys.executable, sidecar=sidecar, extra=io("tape", tmp_path, taped))
        (line,) = done.of("value")
        assert line["taped"] == exit["n"]
        assert (line["data"]["stdin"] == exit["data"]["stdin"]) is same


@pytest.mark.parametrize("mode", ["record", "bare"])
def test_a_file_object_on_a_pipe_is_what_it_was(mode: str, tmp_path: Path, sidecar: Path) -> None:
    code = """
import io, subprocess
p = subprocess.Popen(["cat"], stdin=-1, stdout=-1, text=True)
print(*[type(f).__name__ for f in (p.stdin, p.stdout, p.stdin.buffer, p.stdout.buffer)])
print(p.stdout.fileno() == p.stdout.name)
"""
    extra = io("record", tmp_path) if mode == "record" else {}
    done = run(code, mode=mode, python=sys.executable, sidecar=sidecar, extra=extra)  # type: ignore[arg-type]  # a word
    words = ["TextIOWrapper", "TextIOWrapper", "BufferedWriter", "BufferedReader", "True"]
    assert done.stdout.split() == words
