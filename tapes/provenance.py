"""Where the differences of a replay come from, as values and as text: the reads that flowed in, or a guess.

A source is found by its value (tapes/flow.py): the text that was asked has, where it differs from the tape, a way of
writing what was read. That is evidence, and how strong it is, is said.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tapeproxy.tapes.readings import Site
from tapeproxy.tapes.windows import window_of

type How = Literal["value", "part", "maybe", "second", "minute", "day"]

WORDS: dict[How, str] = {
    "value": "contains the value of",
    "part": "contains a part of the value of",
    "maybe": "may be the value of",
    "second": "has the same second as",
    "minute": "has the same minute as",
    "day": "has the same day as",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A read whose value is in what was asked, as `text`."""

    how: How
    text: str
    site: Site
    lane: str
    clamped: bool = True

    def to_text(self) -> str:
        """`contains the value of uuid.uuid4(), read at agent.py:12 in main`."""
        name = self.site.what if self.site.what.endswith(("]", "name")) else f"{self.site.what}()"
        live = "" if self.clamped else ", which no tape decides"
        return f"{WORDS[self.how]} {name}{live}, read {place_text(self.site)}"


@dataclass(frozen=True, slots=True)
class SiteCount:
    """How often a place read the clock."""

    site: Site
    reads: int

    def to_text(self) -> str:
        """`agent.py:41 in poll: time.time(), 9 reads`."""
        return f"{place_text(self.site)}: {self.site.what}(), {self.reads} read{'' if self.reads == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where one difference of a request comes from. `hint` is one sentence, where there is something to add."""

    request: str
    where: str
    asked: str | None
    sources: tuple[Source, ...] = ()
    sites: tuple[SiteCount, ...] = ()
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "request": self.request,
            "where": self.where,
            "asked": self.asked,
            "sources": [asdict(source) for source in self.sources],
            "sites": [asdict(site) for site in self.sites],
            "hint": self.hint,
        }

    def to_text(self) -> str:
        """A short block for a terminal; the caller escapes control characters."""
        lines = [f"{self.where} of {self.request}"]
        hint = [f"  {self.hint}"] if self.hint else []
        if self.sites:
            lines += hint
        for source in self.sources:
            lines += [f"  {source.text!r} {source.to_text()}", *_further(source.site)]
        for count in self.sites:
            lines += [f"  {count.to_text()}", *_further(count.site)]
        return "\n".join(lines if self.sites else lines + hint)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run shows of the machine it is on. `pids` are those of the traced replay."""

    pids: frozenset[int] = frozenset()
    folders: tuple[str, ...] = ()
    hostname: str = ""


def why(sources: Sequence[Source], *, seeded: bool) -> str:
    """One sentence on how such reads can differ from the recording's. `seeded`: that was made with the shim."""
    if not any(source.clamped for source in sources):
        return ""
    if not seeded:
        return "the tape was recorded without the shim, which makes these reads the same in a replay"
    return (
        "a tape decides what such a read gives, so the agent came to it another way than when recording: the code has "
        "changed, or something that the shim does not reach has"
    )


def guess(taped: str | None, asked: str | None, changed: bool, around: Surroundings) -> str:
    """One sentence on a value that no read has. `changed`: it was another one in the first replay."""
    live = "no read of clock, chance or environment has this value"
    if asked is None:
        return "the replay leaves this out; what it depends on is not a value in the request"
    window = window_of(taped or "", asked)
    text = window.text[window.start : window.end]
    if looks := _looks_like(text, asked, around):
        return f"{live}; it looks like {looks}, which the shim does not reach"
    if changed:
        return (
            f"{live}, and it is another one in each replay: it comes from something that the shim does not reach "
            "(a file, another program, the order of a set or of threads)"
        )
    return f"{live}, and it is the same in each replay: it comes from the code, its arguments or a file"


def _looks_like(text: str, asked: str, around: Surroundings) -> str:
    numbers = [number[0] for number in re.finditer(r"\d+", text)]
    if any(int(number) in around.pids for number in numbers if len(number) < 10):
        return "the id of a process"
    if re.search(r"\b0x[0-9a-fA-F]{6,16}\b", asked):
        return "a memory address (id(), or the repr of an object)"
    if any(len(number) == 15 and number.startswith("1") for number in numbers):
        return "a memory address (id())"
    if around.hostname and around.hostname in asked:
        return "the name of this machine"
    if any(folder and folder != "/" and folder in asked for folder in around.folders):
        return "a path on this machine"
    if re.search(r"(?:localhost|127\.0\.0\.1|\[::1\]):\d", asked):
        return "a port on this machine"
    if re.search(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", text):
        return "a uuid made by another program or below Python"
    if re.search(r"\d{4}-\d\d-\d\d|\d\d:\d\d|\b\d{10}(?:\d{3})?\b", text):
        return "a time from another clock, a file or another program"
    return ""


def place_text(site: Site) -> str:
    """`at FILE:LINE in FUNCTION (via LIBRARY)`."""
    via = f" (via {', '.join(site.via)})" if site.via else ""
    return f"at {site.where[0]}{via}" if site.where else f"by {', '.join(site.via) or 'code of no file'}"


def _further(site: Site) -> list[str]:
    return [f"    called from {line}" for line in site.where[1:]]
