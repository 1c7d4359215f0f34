"""The way in: installed in every kind of interpreter, seen in none, and never at the agent's cost."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shimruns import Mode, environment, everywhere, read_sidecar, run

from tapeproxy.shim import INJECT

SEEN = """
import json, sys
print(json.dumps({
    "path": [entry for entry in sys.path if "inject" in entry],
    "cache": [entry for entry in sys.path_importer_cache if "inject" in entry],
    "customize": [name for name in ("sitecustomize", "usercustomize") if name in sys.modules],
    "shim": "_tapeproxy" in sys.modules,
}))
try:
    import sitecustomize
except ImportError as error:
    assert error.name == "sitecustomize"
else:
    raise AssertionError(sitecustomize.__file__)
"""


def hello_lanes(folder: Path) -> list[str]:
    return [line["lane"] for line in read_sidecar(folder) if line["k"] == "hello"]


@everywhere
def test_it_is_there_and_hides(python: Path, sidecar: Path) -> None:
    ran = run(SEEN, "an argument", python=python, sidecar=sidecar)
    assert ran.json == {"path": [], "cache": [], "customize": [], "shim": True}, ran.stderr
    (hello,) = ran.of("hello")
    assert hello["lane"] == "m"
    assert hello["python"].startswith(".".join(python.parent.parent.name.split(".")[:2]))
    assert hello["argv"][-1] == "an argument" or hello["argv"] == ["-c"]  # 3.9 knows no better
    assert {path.stat().st_mode & 0o777 for path in sidecar.iterdir()} == {0o600}


@everywhere
def test_without_a_mode_it_does_nothing(python: Path, sidecar: Path) -> None:
    ran = run(SEEN, mode="bare", python=python, sidecar=sidecar, extra={"PYTHONPATH": str(INJECT)})
    assert ran.json == {"path": [], "cache": [], "customize": [], "shim": False}
    assert ran.lines == []


@pytest.mark.parametrize("words", [["stop", "x"], ["env"], ["status"], ["show", "x"], ["record", "stop"], ["x"]])
def test_what_asks_after_a_run_is_no_part_of_it(words: list[str], tmp_path: Path) -> None:
    """In a shell with a run's variables: what the run left may be gone, and its tape must not hear of this."""
    script = tmp_path / "tapeproxy"
    script.write_text(SEEN)
    folder = tmp_path / "sidecar"
    folder.mkdir()
    argv = [sys.executable, str(script), *words]
    done = subprocess.run(argv, env=environment("record", sidecar=folder), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["shim"] == (words[0] in ("record", "x")), done.stderr


@everywhere
def test_what_start_up_loads(python: Path, sidecar: Path) -> None:
    """Start-up is paid by every process: no module of the standard library that is big comes with it."""
    show = "import sys; print(*sys.modules)"
    bare = run(show, mode="bare", python=python, sidecar=sidecar).stdout.split()
    ours = run(show, python=python, sidecar=sidecar).stdout.split()
    extra = {name for name in ours if not name.startswith("_tapeproxy")} - set(bare)
    light = {"__future__", "_blake2", "_contextvars", "_json", "atexit", "contextvars", "fcntl", "gc", "itertools"}
    light |= {"_types", "io", "types", "warnings"}  # the first two came with every start before 3.14
    assert extra <= light, extra - light


@everywhere
def test_an_existing_sitecustomize_runs_as_if_alone(python: Path, sidecar: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.found = [__name__, __file__, __spec__.name, 'inject' in str(sys.path), '_tapeproxy' in sys.modules]"
    )
    (tmp_path / "own" / "usercustomize.py").write_text("import sys; sys.user = __file__")
    path = f"{INJECT}:{tmp_path / 'own'}"
    show = "import json, sys, sitecustomize; print(json.dumps([sys.found, sys.user, sitecustomize.__file__]))"
    ran = run(show, python=python, sidecar=sidecar, extra={"PYTHONPATH": path, "PYTHONUSERBASE": str(tmp_path)})
    own, user = (str(tmp_path / "own" / name) for name in ("sitecustomize.py", "usercustomize.py"))
    assert ran.json == [["sitecustomize", own, "sitecustomize", False, True], user, own]
    assert ran.stderr == ""


@everywhere
def test_an_existing_sitecustomize_fails_as_if_alone(python: Path, sidecar: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')")
    bare = run("print(1)", mode="bare", python=python, sidecar=sidecar, extra={"PYTHONPATH": str(tmp_path)})
    ours = run("print(1)", python=python, sidecar=sidecar, extra={"PYTHONPATH": f"{INJECT}:{tmp_path}"})
    assert "mine" in bare.stderr
    assert (bare.stdout, bare.stderr) == (ours.stdout, ours.stderr)


@pytest.mark.parametrize(
    ("flags", "shimmed"),
    [([], True), (["-s"], True), (["-O"], True), (["-I"], False), (["-E"], False), (["-S"], False)],
)
def test_which_interpreters_have_it(flags: list[str], shimmed: bool, sidecar: Path) -> None:
    """Those that don't write no hello, which is how the launcher knows them."""
    ask = [sys.executable, *flags, "-c", "import sys; print('_tapeproxy' in sys.modules)"]
    done = subprocess.run(ask, env=environment(sidecar=sidecar), capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == [str(shimmed)]
    assert hello_lanes(sidecar) == (["m"] if shimmed else [])


def test_the_module_site_shows_no_trace(sidecar: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "site"], env=environment(sidecar=sidecar), capture_output=True, text=True, timeout=30
    )
    assert "sys.path" in done.stdout
    assert str(INJECT) not in done.stdout
    assert hello_lanes(sidecar) == ["m"]


@everywhere
def test_a_virtual_environment(python: Path, sidecar: Path, tmp_path: Path) -> None:
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], env={}, check=True, timeout=60)
    ran = run(SEEN, python=tmp_path / "venv" / "bin" / "python", sidecar=sidecar)
    assert ran.json["shim"] is True
    assert ran.of("hello")[0]["executable"] == str(tmp_path / "venv" / "bin" / "python")


@pytest.mark.parametrize("python", ["2.7", "3.6", "3.7", "3.8"], indirect=True)
@pytest.mark.parametrize("mode", ["record", "replay"])
def test_an_older_python_passes_through(python: Path, mode: Mode, sidecar: Path, tmp_path: Path) -> None:
    """Build scripts still start them."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.found = True")
    show = "import sys; print('%s %s' % (sys.found, [p for p in sys.path if 'inject' in p]))"
    extra = {"PYTHONPATH": f"{INJECT}:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = run(show, mode=mode, python=python, sidecar=sidecar, extra=extra)
    assert ran.stdout == "True []\n"
    assert ran.stderr == ""
    assert ran.lines == []


def test_it_is_compiled_once_whatever_the_agent_wants_for_itself(sidecar: Path, tmp_path: Path) -> None:
    copy = tmp_path / "inject"
    shutil.copytree(INJECT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "agents.py").write_text("")
    show = "import sys; sys.path.insert(0, sys.argv[1]); import agents; print(sys.dont_write_bytecode)"
    extra = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = run(show, str(tmp_path), python=sys.executable, sidecar=sidecar, extra=extra)
    assert ran.stdout == "True\n", ran.stderr
    assert list((copy / "_tapeproxy").glob("__pycache__/lanes.*.pyc"))
    assert not (tmp_path / "__pycache__").exists()


BROKEN = {"TAPEPROXY_SEED": "not a seed"}


@everywhere
def test_a_failed_install_is_swallowed_while_recording(python: Path, sidecar: Path) -> None:
    ran = run("print('went on')", python=python, sidecar=sidecar, extra=BROKEN)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("went on\n", "", 0)


@everywhere
def test_a_failed_install_ends_a_replay(python: Path, sidecar: Path) -> None:
    ran = run("print('went on')", mode="replay", python=python, sidecar=sidecar, extra=BROKEN)
    assert (ran.stdout, ran.returncode) == ("", 97)
    assert ran.stderr.startswith("tapeproxy: the shim could not be installed")
    assert ran.stderr.count("\n") == 1


def test_one_part_that_fails_is_noted_and_the_others_work(sidecar: Path) -> None:
    """Recording: an interpreter that another tool has closed to ContextVar tricks must not lose the rest."""
    code = """
import sys, os
sys.path.insert(0, os.environ["PYTHONPATH"])
import _tapeproxy.identifiers, _tapeproxy
def fail(): raise OSError("no")
_tapeproxy.identifiers.install = fail
_tapeproxy.install()
import json, random
print(json.dumps([random.random(), os.urandom.__module__]))
"""
    env = environment(sidecar=sidecar)
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, timeout=30)
    assert json.loads(done.stdout)[1] == "posix"
    notes = [line for line in read_sidecar(sidecar) if line["k"] == "note"]
    assert [(note["what"], note["data"]) for note in notes] == [("install-failed", {"part": "identifiers"})]
    assert "OSError('no')" in notes[0]["text"]
    assert hello_lanes(sidecar) == ["m"]
