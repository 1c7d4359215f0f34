"""The shim: how much later a Python starts with it, on each interpreter that is found here."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.figures import Bar, Bench, Line, Sample, Skipped
from tapeproxy.proxy.shimming import ShimSettings, new_seed, shim_environment

_VERSIONS = ("3.9", "3.12", "3.13", "3.14")


def shim_start(bench: Bench) -> Iterator[Line | Skipped]:
    """`python -c pass` with and without the shim, in turn; the first of each warms the caches up."""
    for version in _VERSIONS:
        what = f"shim: added start-up of `python{version} -c pass`"
        python = _find(version)
        if python is None:
            yield Skipped(what, f"no Python {version}")
            continue
        bare, ours = _environments(bench.folder)
        times: dict[str, list[float]] = {"bare": [], "ours": []}
        for _ in bench.rounds(40):
            for name, env in (("bare", bare), ("ours", ours)):
                times[name].append(_start_ms(python, env))
        with_shim, without = (Sample(name, "ms", times[key]) for name, key in (("with", "ours"), ("without", "bare")))
        yield Line(what, with_shim, without, with_shim.median - without.median, "ms", Bar(15, "at most"))


def _environments(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    bare = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(folder)}
    settings = ShimSettings(
        mode="record",
        seed=new_seed(),
        hash_seed="0",
        tmpdir=str(folder),
        origin_ns=time.time_ns(),
        sidecar=folder,
        proxy="127.0.0.1:1",
    )
    return bare, bare | shim_environment(bare, settings)


def _start_ms(python: str, env: Mapping[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([python, "-c", "pass"], env=env, check=True)
    return (time.perf_counter() - began) * 1000


def _find(version: str) -> str | None:
    """An interpreter of this version that starts; pyenv has names on PATH for versions that it does not."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*map(str, pyenv.glob(f"versions/{version}.*/bin/python")), shutil.which(f"python{version}") or ""]
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        found.insert(0, sys.executable)
    return next((path for path in found if path and _starts(path)), None)


def _starts(path: str) -> bool:
    return subprocess.run([path, "-c", "pass"], capture_output=True).returncode == 0
