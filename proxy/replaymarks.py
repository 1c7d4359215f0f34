"""Which replays are under way, for what can't see the variables of the processes above it: where there is no /proc.

A replay leaves a file with its process's number in the user's own `home()` while its agent runs. `tapeproxy mcp`, which
must start no server in a replay, looks whether one of those processes is above it.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tapeproxy.proxy.childenv import REPLAY_VARIABLE

_GENERATIONS: Final = 64
_PATIENCE: Final = 10.0
"""Seconds that `ps` may take."""


def folder() -> Path:
    """Where the files are."""
    from tapeproxy.proxy.ca import home  # the supervisor imports us, and most replays need it not

    return home() / "replays"


@contextlib.contextmanager
def marked(environment: Mapping[str, str], marks: Path | None = None) -> Iterator[None]:
    """Mark this process as one that replays, while the agent with this environment runs.

    Where the folder can't be written the replay goes on unmarked.
    """
    if not environment.get(REPLAY_VARIABLE) or (marks is None and sys.platform == "linux"):
        yield
        return
    path = (marks or folder()) / str(os.getpid())
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def is_within(marks: Path | None = None) -> bool:
    """Whether a process above this one is a replay. Where that can't be told, whether there is any: rather no server
    than one that a replay starts."""
    try:
        pids = {int(path.name) for path in (marks or folder()).iterdir() if path.name.isdigit()}
    except OSError:
        return False
    if not pids:
        return False
    parents = _parents()
    if parents is None:
        return True
    pid = os.getpid()
    for _ in range(_GENERATIONS):
        if pid in pids:
            return True
        if pid not in parents:
            return False
        pid = parents[pid]
    return False


def _parents() -> dict[int, int] | None:
    """Each process's parent, as POSIX's `ps` has it; None where there is none."""
    try:
        argv = ["ps", "-A", "-o", "pid=,ppid="]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE, check=True)
        pairs = (line.split() for line in done.stdout.splitlines())
        return {int(pid): int(parent) for pid, parent in pairs}
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
