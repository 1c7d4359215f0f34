"""Sidecar files: what the shim in each process of the run has written, read and turned into records.

A shim appends one JSON line an event to a file of its own process, because that survives SIGKILL and can't block on
us. Here the files are followed: `drain` reads what is new, whole lines only. A line is data from the agent's process,
so nothing in it is believed to be well-formed, and its texts are redacted like everything else.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tapeproxy.tapes.errors import TapeWriteError
from tapeproxy.tapes.lanes import ANSWER, SERVE
from tapeproxy.tapes.records import Clock, Done, Edge, Env, Json, Lane, LaneEnd, Note, Record
from tapeproxy.tapes.redaction import Redactor

_READ = 1 << 18
_SEED_DIGITS = 16
"""Of a run's seed, in the name of its folder: enough to know it again by."""
_SEED = re.compile(r"[0-9a-f]{64}")
_FLOWS = {
    "t": "thread",
    "w": "work item",
    "a": "task",
    "y": "waiting task",
    "p": "process",
    "f": "fork",
    "s": "spawned process",
    "c": "copied context",
    "k": "tool call",
    "js": "process",
    "r": "callbacks",
}
type Line = dict[str, Any]


def make_folder(tape: Path, seed: str) -> Path:
    """Make the folder for the sidecar files of a run that is taped to `tape`. Raises TapeWriteError."""
    folder = tape.with_name(f"{tape.name}.sidecar-{seed[:_SEED_DIGITS]}")
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        what = f"the folder for what the shim writes cannot be made: {(error.strerror or str(error)).lower()}"
        fix = "name another tape with -o, or leave the shim out with --no-shim"
        raise TapeWriteError(what, where=str(folder), fix=fix) from None
    return folder


def find_folder(tape: Path, seed: str | None) -> Path | None:
    """The folder that a recorder which was killed has left beside its tape, whatever the tape is called now.

    `seed` is what the tape's head says; where it is none, there is no folder.
    """
    # A tape may be a stranger's, and the folder may be removed: nothing but digits gets into the pattern.
    if _SEED.fullmatch(seed or "") is None:
        return None
    found = sorted(tape.parent.glob(f"*.sidecar-{(seed or '')[:_SEED_DIGITS]}"))
    return next((path for path in found if path.is_dir() and not path.is_symlink()), None)


@dataclass(slots=True)
class _File:
    descriptor: int
    rest: bytes = b""


@dataclass(slots=True)
class Sidecars:
    """The sidecar files in `folder`, followed from their beginning. `processes` collects the hello lines."""

    folder: Path
    processes: list[Line] = field(default_factory=list)
    _files: dict[str, _File] = field(default_factory=dict)

    @property
    def pids(self) -> set[int]:
        """The processes that said hello."""
        return {pid for hello in self.processes if isinstance(pid := hello.get("pid"), int)}

    def drain(self) -> Iterator[Line]:
        """The lines that have come since the last call, file by file. Never raises for what is in a file."""
        for entry in self._names():
            if entry not in self._files:
                with contextlib.suppress(OSError):
                    self._files[entry] = _File(os.open(self.folder / entry, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
        for file in self._files.values():
            yield from self._follow(file)

    @property
    def unfinished(self) -> int:
        """How many files end in a line that is not whole."""
        return sum(bool(file.rest) for file in self._files.values())

    def release(self) -> None:
        """Close the files, and leave them."""
        for file in self._files.values():
            os.close(file.descriptor)
        self._files.clear()

    def close(self) -> None:
        """Close the files and remove the folder, which is ours alone: everything in it was merged."""
        self.release()
        try:
            for name in os.listdir(self.folder):  # noqa: PTH208 - as below
                os.unlink(self.folder / name)  # noqa: PTH108
            self.folder.rmdir()
        except OSError:  # there are folders in it, as with --io
            import shutil  # takes 3 ms

            shutil.rmtree(self.folder, ignore_errors=True)

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.folder) if name.endswith(".jsonl"))  # noqa: PTH208 - hot
        except OSError:
            return []

    def _follow(self, file: _File) -> Iterator[Line]:
        while data := _read(file.descriptor):
            *lines, file.rest = (file.rest + data).split(b"\n")
            for text in lines:
                line = _parse(text)
                if line is None:
                    continue
                if line["k"] == "hello":
                    self.processes.append(line)
                yield line


def to_record(line: Line, t: int, epoch_ns: int, redactor: Redactor) -> Record | None:
    """The record for a sidecar line that was read at `t`; None for a line that a tape has no use for.

    `epoch_ns`: the tape's start in nanoseconds since 1970, which clock values are counted from.
    """
    try:
        match line:
            case {"k": "clock", "lane": str(lane), "n": int(n), "ns": int(ns)}:
                return Clock(t=t, lane=lane, n=n, ns=ns - epoch_ns, slept=line.get("slept") is True)
            case {"k": "end", "lane": str(lane), "reads": int(reads)}:
                return LaneEnd(t=t, lane=lane, reads=reads)
            case {"k": "done", "lane": str(lane), "parent": str(parent), "ns": int(ns), "sleeps": int(sleeps)}:
                return Done(t=min(max(ns - epoch_ns, 0), t), lane=lane, parent=parent, sleeps=max(sleeps, 0))
            case {"k": "lane", "id": str(lane)}:
                flow = _FLOWS.get(str(line.get("kind")), str(line.get("kind")))
                name = line.get("name")
                name = redactor.text(name) if isinstance(name, str) else None
                asked = line.get("asked") if type(line.get("asked")) is int else None
                origin = _origin(line.get("from"), redactor)
                return Lane(t=t, id=lane, what=flow, name=name, origin=origin, asked=asked)
            case {"k": "env", "name": str(name)}:
                digest = line.get("digest")
                return Env(t=t, name=name, digest=digest if isinstance(digest, str) else None)
            case {"k": "edge", "asked": int()}:
                return read_edge(line, t, redactor)
            case {"k": "edge", "what": str(what), "on": str(on), "lane": str(lane), "n": int(n)} if n >= 0:
                return Edge(t=t, what=what, on=on, lane=lane, n=n)
            case {"k": "hello"}:
                return Note(t=t, what="process", text=_words(line, redactor), data=_facts(line, redactor))
            case {"k": "bypass", "address": address}:
                text = f"a connection to {address} did not come through the proxy"
                return Note(t=t, what="bypass", text=redactor.text(text), data=_facts(line, redactor))
            case {"k": "note", "what": str(what)}:
                return Note(t=t, what=what, text=redactor.text(str(line.get("text", ""))), data=_facts(line, redactor))
            case _:
                return None
    except (TypeError, ValueError):
        return None


def read_edge(line: Line, t: int, redactor: Redactor) -> Edge | None:
    """The edge that a line tells of, at which one lane came to know what another knew; None for any other line."""
    match line:
        case {"what": str(what), "on": str(on), "lane": str(lane), "n": int(n), "asked": int(asked)}:
            if min(n, asked) < 0 or (what in (SERVE, ANSWER) and on.startswith("@")):
                return None  # the latter: nobody knows which request came from that port
            on, lane = redactor.text(on), redactor.text(lane)
            out = line.get("out") is True
            return Edge(t=t, what=what, on=on, lane=lane, n=n, asked=asked, at=_point(line.get("at")), out=out)
        case _:
            return None


def _point(value: Any) -> tuple[int, int] | None:
    match value:
        case [int(asked), int(met)] if min(asked, met) >= 0:
            return asked, met
        case _:
            return None


def _origin(value: Any, redactor: Redactor) -> tuple[str, int, int] | None:
    match value:
        case [str(lane), int(asked), int(met)] if min(asked, met) >= 0:
            return redactor.text(lane), asked, met
        case _:
            return None


def _words(line: Line, redactor: Redactor) -> str:
    argv = line.get("argv")
    return redactor.text(" ".join(redactor.argv(map(str, argv)))) if isinstance(argv, list) else ""


def _facts(line: Line, redactor: Redactor) -> Json:
    facts = {name: value for name, value in line.items() if name not in ("k", "what", "text")}
    if isinstance(facts.get("argv"), list):
        facts["argv"] = redactor.argv(map(str, facts["argv"]))
    redacted: Json = orjson.loads(redactor.content(orjson.dumps(facts)))
    return redacted


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ)
    except OSError:
        return b""


def _parse(text: bytes) -> Line | None:
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("k"), str) else None
