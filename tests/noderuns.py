"""Runs small programs in a real Node with the shim, and reads what it wrote. Skips where there is no Node 20."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest
from shimruns import ORIGIN, SEED, Line, Mode, Run, read_sidecar, write_reads

from tapeproxy.shim import NODE

OLDEST = 20


@cache
def _node() -> str | None:
    found = shutil.which("node")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, env={}).stdout
    return found if version.startswith("v") and int(version[1:].partition(".")[0]) >= OLDEST else None


def node() -> str:
    """A Node that the shim is for; skips without."""
    found = _node()
    if found is None:
        pytest.skip(f"no Node {OLDEST} or later here")
    return found


def run_node(
    program: Path,
    *args: str,
    folder: Path,
    mode: Mode = "record",
    reads: Iterable[Line] = (),
    extra: Mapping[str, str] = {},
) -> Run:
    """Run a program as the launcher would, and collect its sidecar lines; `folder` is the test's own.

    `reads`: the lines of a recording; their clock records go to a replay.
    """
    sidecar = folder / "sidecar"
    shutil.rmtree(sidecar, ignore_errors=True)
    sidecar.mkdir()
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {"TZ": "UTC"}
    if mode != "bare":
        env |= {
            "NODE_OPTIONS": f'--require="{NODE}"',
            "TAPEPROXY_RUN": "test",
            "TAPEPROXY_MODE": mode,
            "TAPEPROXY_SEED": SEED,
            "TAPEPROXY_LANE": "m",
            "TAPEPROXY_SIDECAR": str(sidecar),
            "TAPEPROXY_ORIGIN": str(ORIGIN),
        }
    if mode in ("replay", "fork"):
        env["TAPEPROXY_READS"] = str(write_reads(folder / "reads.jsonl", reads))
    argv = [node(), str(program), *args]
    done = subprocess.run(
        argv, env=env | dict(extra), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    return Run(done.returncode, done.stdout, done.stderr, read_sidecar(sidecar))
