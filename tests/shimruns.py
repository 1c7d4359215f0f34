"""Runs small programs in real interpreters with the shim, and reads what it wrote. Knows the environment protocol."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from tapeproxy.shim import INJECT

type Mode = Literal["bare", "record", "replay", "fork"]
type Line = dict[str, Any]

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
"""The interpreters that the shim is for."""
SOAK_PYTHON = Path(__file__).parents[1] / ".venv-soak" / "bin" / "python"
"""The agents' own environment, which has nothing of ours; `make soak` makes it."""
SEED = "5eed" * 16
ORIGIN = 10**18
"""What the launcher would have put there at start, in ns since the epoch."""

everywhere = pytest.mark.parametrize("python", VERSIONS, indirect=True)
"""Runs a test on the newest interpreter and an older one, another one from test to test; all are in the soak. Needs
tests/shim/conftest.py, which has the fixture `python` too."""


@dataclass(frozen=True, slots=True)
class Run:
    """A program that has ended, and the lines of all its processes' sidecar files."""

    returncode: int
    stdout: str
    stderr: str
    lines: Sequence[Line]

    def of(self, kind: str) -> list[Line]:
        """The lines of one kind, in order within each process."""
        return [line for line in self.lines if line["k"] == kind]

    @property
    def json(self) -> Any:
        """What the program printed, as JSON. Fails with its error output where it printed nothing."""
        assert self.stdout, self.stderr
        return json.loads(self.stdout)


@cache
def interpreter(version: str) -> Path | None:
    """An interpreter of this version that really starts, or None; pyenv's shims exist for versions it lacks."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*pyenv.glob(f"versions/{version}.*/bin/python"), *_on_path(f"python{version}")]
    return next((path for path in found if _runs(path, version)), None)


def _on_path(name: str) -> Iterator[Path]:
    yield from (path for folder in os.get_exec_path() if (path := Path(folder) / name).is_file())


def _runs(path: Path, version: str) -> bool:
    ask = [str(path), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, timeout=30, env={})
    except OSError:
        return False
    return done.stdout.strip() == version


def environment(
    mode: Mode = "record",
    *,
    sidecar: Path | None = None,
    seed: str = SEED,
    reads: Path | None = None,
    extra: Mapping[str, str] = {},
) -> dict[str, str]:
    """The environment that the launcher would make, around PATH and HOME. `extra` comes last and wins."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    env |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0"}
    if mode != "bare":
        env |= {
            "PYTHONPATH": str(INJECT),
            "TAPEPROXY_RUN": "test",
            "TAPEPROXY_MODE": mode,
            "TAPEPROXY_SEED": seed,
            "TAPEPROXY_LANE": "m",
            "TAPEPROXY_ORIGIN": str(ORIGIN),
        }
        if sidecar is not None:
            env["TAPEPROXY_SIDECAR"] = str(sidecar)
        if reads is not None:
            env["TAPEPROXY_READS"] = str(reads)
    return {**env, **extra}


def run(
    code: str,
    *args: str,
    mode: Mode = "record",
    python: Path | str,
    sidecar: Path,
    seed: str = SEED,
    reads: Iterable[Line] = (),
    extra: Mapping[str, str] = {},
    timeout: float = 60,
) -> Run:
    """Run `python -c code args...` and collect its sidecar lines; `sidecar` is a folder, emptied of old ones.

    `reads`: the lines of a recording; their clock records go to a replay or fork.
    """
    sidecar.mkdir(exist_ok=True)
    for old in sidecar.iterdir():
        old.unlink()
    tape = write_reads(sidecar.parent / f"{sidecar.name}.reads.jsonl", reads) if mode in ("replay", "fork") else None
    done = subprocess.run(
        [str(python), "-c", code, *args],
        env=environment(mode, sidecar=sidecar, seed=seed, reads=tape, extra=extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return Run(done.returncode, done.stdout, done.stderr, read_sidecar(sidecar))


def in_fresh_lanes(head: str, codes: Iterable[str], *, python: Path | str, sidecar: Path) -> Run:
    """Run each of the programs in a lane of its own, all in one process, because starting one takes long.

    `head` defines `out`, a list of lane ids that a program fills. Prints pairs of program and ids, as if each had run
    in the main lane; a program that raises has its error for ids.
    """
    driver = f"""
import json
from _tapeproxy import lanes
results = []
for code in {list(codes)!r}:
    lane = lanes.current().child("z"); out.clear()
    try: lanes.run_in(lane, exec, code, globals())
    except Exception as error: out.append(repr(error))
    results.append([code, [text.replace(lane.id, "m") for text in out]])
print(json.dumps(results))
"""
    return run(head + driver, python=python, sidecar=sidecar)


def with_packages(*names: str) -> str:
    """An interpreter that has these packages: this one, the soak's, or the one in TAPEPROXY_TEST_PYTHON.

    Skips without.
    """
    soak = str(SOAK_PYTHON) if SOAK_PYTHON.exists() else None
    for path in filter(None, (sys.executable, soak, os.environ.get("TAPEPROXY_TEST_PYTHON"))):
        if _has(path, names):
            return path
    pytest.skip(
        f"no interpreter with {', '.join(names)} here (`make soak` makes one, TAPEPROXY_TEST_PYTHON may name one)"
    )


@cache
def _has(path: str, names: tuple[str, ...]) -> bool:
    """Looked for and not imported: some take seconds."""
    code = f"import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, {names!r})))"
    return subprocess.run([path, "-c", code], capture_output=True, timeout=60).returncode == 0


def write_reads(path: Path, lines: Iterable[Line]) -> Path:
    """Write the file behind TAPEPROXY_READS: the clock and end records among these lines."""
    kept = ({name: value for name, value in line.items() if name != "k"} for line in lines if line["k"] in _READS)
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    return path


_READS = ("clock", "end")


def read_sidecar(folder: Path) -> list[Line]:
    """Every whole line of every file, the files in order of their names."""
    found: list[Line] = []
    for path in sorted(folder.glob("*.jsonl")):
        for text in path.read_text().splitlines(keepends=True):
            if text.endswith("\n") and text.strip():
                found.append(json.loads(text))
    return found
