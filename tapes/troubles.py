"""What the shims say when the agent was not wholly in their hands: which notes those are, and a sentence for each.

Knows words, not files: a line is what a shim wrote (docs/SHIM.md), and nothing in it is believed to be well-formed.
"""

from dataclasses import dataclass, field
from typing import Any

WITHOUT_SHIM = "python-without-shim"
NODE_WITHOUT_SHIM = "node-without-shim"
WITHOUT_LANE = "request-without-lane"

_SENTENCES = {
    "install-failed": "a part of the shim could not be installed",
    "hook-failed": "the shim could not take hold of a library",
    "child-without-lane": "a child process was started without a lane",
    WITHOUT_LANE: "a request of a process with the shim came without a lane",
    WITHOUT_SHIM: "a Python ran without the shim, so its clock and its random numbers are its own",
    NODE_WITHOUT_SHIM: "a Node ran without the shim, so its clock and its random numbers are its own",
    "lost": "a shim could not write all that it had to tell",
    "untaped-result": "what a tool gave is not on the tape, so a replay has nothing to give in its place",
}


@dataclass(slots=True)
class Troubles:
    """The troubles of one run; `seen` counts them by sentence."""

    seen: dict[str, int] = field(default_factory=dict)
    _pythons: set[int] = field(default_factory=set)

    def take(self, line: dict[str, Any]) -> str | None:
        """The sentence for a line that tells of a trouble nobody has told of yet; None for every other line."""
        said = sentence(line)
        if said is None:
            return None
        pid = pid_of(line)
        if line["what"] in (WITHOUT_SHIM, NODE_WITHOUT_SHIM) and pid is not None:
            if pid in self._pythons:  # seen when it was started, and again when it asked for something
                return None
            self._pythons.add(pid)
        self.seen[said] = self.seen.get(said, 0) + 1
        return said if self.seen[said] == 1 else None


def sentence(line: dict[str, Any]) -> str | None:
    """What a line says, if it tells of a trouble."""
    known = _SENTENCES.get(str(line.get("what"))) if line.get("k") == "note" else None
    if known is None:
        return None
    text = str(line.get("text", ""))
    return f"{known}: {text}" if text else known


def pid_of(line: dict[str, Any]) -> int | None:
    """The process that a note is about, where it says so."""
    data = line.get("data")
    pid = data.get("pid") if isinstance(data, dict) else None
    return pid if isinstance(pid, int) else None
