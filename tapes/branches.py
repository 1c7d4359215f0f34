"""What the head of a fork's child says that its replays repeat: lanes with new seeds, and its environment. Pure.

A tape may be a stranger's: what has not the right form is left out, and so are variables that decide which programs
and libraries are run.
"""

import re
from typing import TYPE_CHECKING, Any

from tapeproxy.tapes.records import Head, Json
from tapeproxy.tapes.secretvars import is_secret_name

if TYPE_CHECKING:
    from tapeproxy.tapes.forkplan import ForkPlan

type LaneSeed = tuple[str, int, str]
"""A lane, how many requests it had made when it got the seed, and the seed: 64 hex digits."""

_SEED = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIDES = re.compile(
    r"(LD|DYLD|PYTHON|NODE|NPM|PERL|RUBY|GEM|JAVA|JDK|LUA|PHP|BASH|GIT|SSH|GCONV|MALLOC|TAPEPROXY)_?.*|_JAVA_OPTIONS"
    r"|(.*_)?(PATH|PRELOAD|OPTIONS|OPTS|SHELL|EDITOR|PAGER|BROWSER|VISUAL|PROXY)|ENV|IFS|HOME|TMPDIR|PROMPT_COMMAND",
    re.IGNORECASE,
)


def seeds_of(head: Head) -> tuple[LaneSeed, ...]:
    """The lanes that a fork gave new seeds, in the order in which they got them."""
    found = _told(head, "seeds")
    rows = found if isinstance(found, list) else []
    return tuple((lane, asked, seed) for row in rows for lane, asked, seed in _row(row))


def environment_of(head: Head) -> dict[str, str | None]:
    """The variables that a fork set, or (None) unset, as far as a replay may."""
    found = _told(head, "environment")
    pairs = found.items() if isinstance(found, dict) else ()
    return {
        name: value
        for name, value in pairs
        if (value is None or isinstance(value, str)) and _NAME.fullmatch(name) and not _DECIDES.fullmatch(name)
    }


def inherited(parent: Head, plan: "ForkPlan") -> Json:
    """What the head of a child has of this, its parent's included. A secret variable is left out: a replay has its own.

    The environment is not redacted.
    """
    seeds = [*seeds_of(parent)]
    for lane, seed in plan.seeds.items():
        cut = plan.cut.get(lane)
        seeds.append((lane, 0 if cut is None else cut.requests, seed))
    environment = {**environment_of(parent), **plan.environment}
    told = {name: value for name, value in environment.items() if not is_secret_name(name)}
    out: Json = {"seeds": [list(row) for row in seeds]} if seeds else {}
    return out | ({"environment": told} if told else {})


def _told(head: Head, name: str) -> Any:
    return (head.branch or {}).get(name)


def _row(row: Any) -> list[LaneSeed]:
    match row:
        case [str(lane), int(asked), str(seed)] if asked >= 0 and _SEED.fullmatch(seed) and "\n" not in lane:
            return [(lane, asked, seed)]
        case _:
            return []
