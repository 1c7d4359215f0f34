"""Which run `tapeproxy mcp` belongs to, and what a server gets to see of it. Knows environments and /proc.

Clients start MCP servers with a few variables only (the SDKs: HOME, PATH and the like). In a Python with the shim a
child has those of the run all the same; elsewhere they are found with the process that started us, or one above it
(Linux).
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tapeproxy.proxy.childenv import BEFORE_VARIABLE, OURS, PINNED, REPLAY_VARIABLE
from tapeproxy.proxy.processes import RUN_VARIABLE
from tapeproxy.shim import INJECT

_GENERATIONS: Final = 64


class Run(NamedTuple):
    """`record`: `folder` is where sidecar files go, None where nothing is taped.

    `replay`: `proxy` is the URL of the tape server, as a client of the run has it, and `folder` the shims' own, if any.
    `unknown`: a replay, of which no more can be told.
    """

    mode: Literal["record", "replay", "unknown", "none"]
    proxy: str = ""
    folder: Path | None = None
    variables: Mapping[str, str] = {}


def find_run(environment: Mapping[str, str], marks: Path | None = None) -> Run:
    """The run that we are part of. `marks`: where replays are marked, if not in our own home and not on Linux."""
    above = _above(os.getppid()) if sys.platform == "linux" else iter(())
    for found in (environment, *above):
        folder = Path(found["TAPEPROXY_SIDECAR"]) if "TAPEPROXY_SIDECAR" in found else None
        if found.get(REPLAY_VARIABLE):
            return Run("replay", found.get("HTTP_PROXY", ""), folder, found)
        if RUN_VARIABLE in found:
            return Run("record", "", folder, found)
    if marks is not None or sys.platform != "linux":
        from tapeproxy.proxy.replaymarks import is_within

        if is_within(marks):
            return Run("unknown")
    return Run("none")


def server_environment(environment: Mapping[str, str], run: Run) -> dict[str, str]:
    """The environment of the real server: what the client gave it, without what makes a child part of the run.

    What a server does for its answers is behind them, as with one on the network: its requests are on no tape.
    """
    before = _before(run.variables)
    out = {name: value for name, value in environment.items() if not name.startswith("TAPEPROXY_")}
    for name in {*OURS, *PINNED} & out.keys():
        if out[name] == run.variables.get(name):  # and not the client's own
            out.pop(name)
            out |= {name: before[name]} if name in before else {}
    entries = [entry for entry in out.pop("PYTHONPATH", "").split(os.pathsep) if entry not in ("", str(INJECT))]
    return out | ({"PYTHONPATH": os.pathsep.join(entries)} if entries else {})


def _before(variables: Mapping[str, str]) -> dict[str, str]:
    try:
        told = json.loads(variables.get(BEFORE_VARIABLE, "{}"))
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in told.items()} if isinstance(told, dict) else {}


def _above(pid: int) -> Iterator[dict[str, str]]:
    """The environments of a process and those above it, as far as they can be read."""
    for _ in range(_GENERATIONS):
        if pid <= 1:
            return
        try:
            text = Path(f"/proc/{pid}/environ").read_bytes()
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return
        pairs = (entry.partition(b"=") for entry in text.split(b"\0") if b"=" in entry)
        yield {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
        pid = int(stat.rpartition(b")")[2].split()[1])
