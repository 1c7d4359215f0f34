"""What the shim in the agent's processes is told: its environment variables, and the clock readings of a tape.

Knows the protocol between launcher and shim (docs/SHIM.md); the shim itself is in `shim/`, and imports nothing of ours.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count, takewhile
from pathlib import Path
from typing import Literal

import orjson

from tapeproxy.proxy.tmpdir import private_folder
from tapeproxy.shim import INJECT, NODE
from tapeproxy.tapes.branches import LaneSeed
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape, outlines
from tapeproxy.tapes.positions import knows_sleeps
from tapeproxy.tapes.recordfields import Json

ROOT_LANE = "m"
_HASH_SEEDS = 2**32


def node_option(path: Path) -> str:
    """What has a Node load a file first, as NODE_OPTIONS is read: in quotes, for a path may hold spaces (node(1))."""
    return '--require="{}"'.format(str(path).replace("\\", "\\\\").replace('"', '\\"'))


NODE_OPTION = node_option(NODE)


type IoMode = Literal["verify", "tape", "virtual", "live"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IoSettings:
    """How the agent's reads past the wire go: `base` is the working folder that names are relative to.

    `values`: a replay's folder with the tape's values; `overlay`: the one that swallows writes.
    """

    mode: Literal["record", "verify", "tape", "virtual"]
    base: str
    values: Path | None = None
    overlay: Path | None = None

    def variables(self) -> dict[str, str]:
        """What the shim is told of it."""
        out = {"TAPEPROXY_IO": self.mode, "TAPEPROXY_IO_BASE": self.base}
        if self.values is not None:
            out["TAPEPROXY_IO_VALUES"] = str(self.values)
        if self.overlay is not None:
            out["TAPEPROXY_IO_OVERLAY"] = str(self.overlay)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class ShimSettings:
    """`origin_ns` is where monotonic clocks begin, in nanoseconds since 1970; `reads` is a file for a replay.

    `trace`: the shim tells of every read, in a replay. `fork`: the file that says where lanes leave the tape.
    `seeds`: new ones of lanes, which a fork gave them.
    `threads`: recording, `1` where the order of locks is taped; in a replay the file with it; empty otherwise.
    `edges`: the shim tells where lanes learn of each other, by this version of the rules; 0: it does not.
    `node`: Node programs have the shim, too. `apart`: what is chance is kept out of lanes.
    `hints`: a replay's file with the calls of tools, and `tools` whose results a call may have, or `live` for none.
    """

    mode: Literal["record", "replay", "fork"]
    seed: str
    hash_seed: str
    tmpdir: str
    origin_ns: int
    sidecar: Path
    proxy: str
    reads: Path | None = None
    strict: bool = False
    allow: tuple[str, ...] = ()
    trace: bool = False
    io: IoSettings | None = None
    threads: str = ""
    edges: int = 0
    fork: Path | None = None
    seeds: tuple[LaneSeed, ...] = ()
    node: bool = False
    apart: bool = False
    hints: Path | None = None
    tools: Literal["lane", "any", "position", "live"] = "lane"


def shim_environment(parent: Mapping[str, str], settings: ShimSettings) -> dict[str, str]:
    """The variables that put the shim into every Python and Node of the run and tell it what to do."""
    out = {
        "PYTHONPATH": _python_path(parent),
        "PYTHONHASHSEED": settings.hash_seed,
        "TMPDIR": settings.tmpdir,
        "TAPEPROXY_MODE": settings.mode,
        "TAPEPROXY_SEED": settings.seed,
        "TAPEPROXY_LANE": ROOT_LANE,
        "TAPEPROXY_SIDECAR": str(settings.sidecar),
        "TAPEPROXY_ORIGIN": str(settings.origin_ns),
        "TAPEPROXY_PROXY": settings.proxy,
    }
    if settings.node:
        out["NODE_OPTIONS"] = " ".join(filter(None, (NODE_OPTION, parent.get("NODE_OPTIONS", ""))))
    if settings.reads is not None:
        out["TAPEPROXY_READS"] = str(settings.reads)
    if settings.seeds:
        out["TAPEPROXY_SEEDS"] = "\n".join(f"{seed} {asked} {lane}" for lane, asked, seed in settings.seeds)
    if settings.fork is not None:
        out["TAPEPROXY_FORK"] = str(settings.fork)
    if settings.strict:
        out["TAPEPROXY_STRICT"] = "1"
    if settings.trace:
        out["TAPEPROXY_TRACE"] = "1"
    if settings.threads:
        out["TAPEPROXY_THREADS"] = settings.threads
    if settings.edges:
        out["TAPEPROXY_EDGES"] = str(settings.edges)
    if settings.apart:
        out["TAPEPROXY_APART"] = "1"
    if settings.hints is not None:
        out |= {"TAPEPROXY_HINTS": str(settings.hints), "TAPEPROXY_TOOLS": settings.tools}
    if settings.allow:
        out["TAPEPROXY_ALLOW"] = ",".join(settings.allow)
    return out if settings.io is None else out | settings.io.variables()


def skipping_environment(parent: Mapping[str, str]) -> dict[str, str]:
    """The variables with which the shim only cuts sleeps short, in a replay of a tape that holds no clock."""
    return {"PYTHONPATH": _python_path(parent), "TAPEPROXY_MODE": "skip", "TAPEPROXY_LANE": ROOT_LANE}


def _python_path(parent: Mapping[str, str]) -> str:
    return os.pathsep.join(filter(None, (str(INJECT), parent.get("PYTHONPATH", ""))))


def new_seed() -> str:
    """A fresh seed: 64 hex digits."""
    return os.urandom(32).hex()


def hash_seed_for(parent: Mapping[str, str]) -> str:
    """The PYTHONHASHSEED of a recording: the user's own if it is a number, else a fresh one."""
    given = parent.get("PYTHONHASHSEED", "")
    return given if given.isdigit() and int(given) < _HASH_SEEDS else str(int.from_bytes(os.urandom(4)))


def make_tmpdir(wanted: str | None = None) -> str:
    """Make the TMPDIR of a run, or the taped one again; only this user may enter it.

    Raises UsageError when there is no room, or the taped path is there but is not a private directory of ours.
    """
    if wanted is None:
        try:
            return str(private_folder("tapeproxy-"))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(
                f"no folder for the run's temporary files can be made: {reason}", fix="set TMPDIR to a folder with room"
            ) from None
    path = Path(wanted)
    try:
        path.mkdir(mode=0o700, parents=False, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the taped TMPDIR cannot be made again: {reason}", where=wanted) from None
    ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if not stat.S_ISDIR(found.st_mode) or not ours or found.st_mode & 0o022:
        raise UsageError(
            "the taped TMPDIR is there already and is not a private directory of yours", where=wanted, fix="remove it"
        )
    return wanted


def epoch_ns(started_at: str) -> int:
    """A head's `started_at` in nanoseconds since 1970, exactly. Raises ValueError."""
    moment = datetime.fromisoformat(started_at)
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * 1_000_000_000 + moment.microsecond * 1_000


def write_reads(tape: Tape, path: Path) -> None:
    """Write the clock readings of a tape where the shim looks them up."""
    path.touch(mode=0o600)
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in reads_of(tape)))


def reads_of(tape: Tape) -> Iterator[Json]:
    """The clock readings of a tape, as the lines that the shim looks them up in."""
    epoch = epoch_ns(tape.head.started_at)
    for c in tape.clocks:
        yield {"lane": c.lane, "n": c.n, "ns": c.ns + epoch} | ({"slept": True} if c.slept else {})
    # A work item of a process pool has its lane in two processes, and only the one that ran it has read anything.
    ends: dict[str, int] = {}
    for end in tape.lane_ends:
        ends[end.lane] = max(end.reads, ends.get(end.lane, 0))
    yield from ({"lane": lane, "reads": reads} for lane, reads in ends.items())
    if knows_sleeps(tape.head):
        yield from ({"lane": lane, "asked": reads} for lane, reads in _asked(tape).items())


def _asked(tape: Tape) -> dict[str, list[int]]:
    """For each lane, how many reads it had made at each of its requests, up to the first that is not on the tape."""
    positions: dict[str, dict[int, int]] = {}
    for request in (exchange.request for exchange in outlines(tape.exchanges)):
        if request.lane is not None and request.n is not None and request.reads is not None:
            positions.setdefault(request.lane, {})[request.n] = request.reads
    asked: dict[str, list[int]] = {}
    for lane, reads in positions.items():
        asked[lane] = [reads[n] for n in takewhile(reads.__contains__, count())]
    return asked
