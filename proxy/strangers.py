"""Requests without a lane: which process made one, and whether it is a Python or Node that should have had the shim.

Knows /proc; elsewhere than on Linux nothing is found. A look costs a few milliseconds, so only so many are taken.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.shim import INJECT, NODE
from tapeproxy.tapes.troubles import NODE_WITHOUT_SHIM, WITHOUT_LANE, WITHOUT_SHIM

_MOST_LOOKS = 64
_PYTHONS = ("python", "pypy")
_NODES = ("node", "nodejs")
_ISOLATING = frozenset("IES")


class Strangers:
    """Looks up who makes requests without a lane. One for a run."""

    def __init__(self, processes: RunProcesses, *, node: bool = True) -> None:
        """`node`: Node programs have the shim, too."""
        self._node = node
        self._processes = processes
        self._ports: set[int] = set()
        self._pids: set[int] = set()

    def meet(self, port: int, hellos: Iterable[int]) -> dict[str, Any] | None:
        """A note, as a shim would write it, on the program whose connection comes from `port`; None: nothing to tell.

        `hellos`: the processes that have the shim. Each process is told of once.
        """
        if not port or port in self._ports or len(self._ports) >= _MOST_LOOKS:
            return None
        self._ports.add(port)
        pid = self._processes.owner(port)
        if pid is None or pid in self._pids or _is_ours(_words(pid)):
            return None
        if _is_python(pid):
            without, how = WITHOUT_SHIM, _how(pid)
        elif self._node and _name(pid) in _NODES:
            without, how = NODE_WITHOUT_SHIM, _how_node(pid)
        else:
            return None
        self._pids.add(pid)
        what, how = (WITHOUT_LANE, "") if pid in set(hellos) else (without, how)
        argv = [os.fsdecode(word) for word in _words(pid)]
        text = f"{' '.join(argv)} (process {pid}{': ' if how else ''}{how})"
        return {"k": "note", "what": what, "text": text, "data": {"pid": pid, "argv": argv, "how": how}}


def _is_ours(words: list[bytes]) -> bool:
    """Whether this is `tapeproxy mcp`, which asks for what an MCP server on stdio has said."""
    named = [word.rpartition(b"/")[2] for word in words[1:3]] if words[1:2] != [b"-m"] else words[2:4]
    return named in ([b"tapeproxy", b"mcp"], [b"tapeproxy.cli.main", b"mcp"])


def _how(pid: int) -> str:
    """Why a Python has no shim."""
    options = [word for word in _options(_words(pid)) if _ISOLATING & set(word[1:].decode("latin-1"))]
    if options:
        return f"started with {os.fsdecode(options[0])}"
    if os.fsencode(INJECT) not in _read(pid, "environ"):
        return "started with an environment of its own"
    return "an embedded interpreter, or one before 3.9" if not _named_python(pid) else "it said nothing"


def _how_node(pid: int) -> str:
    """Why a Node has no shim."""
    if os.fsencode(NODE) not in _read(pid, "environ"):
        return "started with an environment of its own"
    return "one before 20, or it said nothing"


def _options(words: list[bytes]) -> list[bytes]:
    """The interpreter's own options, up to the program."""
    found = []
    for word in words[1:]:
        if not word.startswith(b"-") or word.startswith(b"--"):
            break
        found.append(word)
        if word[1:2] in (b"c", b"m"):
            break
    return [word for word in found if word[1:2] not in (b"c", b"m", b"X", b"W")]


def _is_python(pid: int) -> bool:
    return _named_python(pid) or b"/libpython" in _read(pid, "maps")


def _named_python(pid: int) -> bool:
    return _name(pid).startswith(_PYTHONS)


def _name(pid: int) -> str:
    """The name of the program's file; empty where nobody may look."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


def _words(pid: int) -> list[bytes]:
    return _read(pid, "cmdline").rstrip(b"\0").split(b"\0")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # gone, or not ours to look at
        return b""
