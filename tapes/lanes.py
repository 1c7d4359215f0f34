"""The header by which an agent's shim says whose request this is, and whether a tape tells where lanes met.

Knows forms, not what lanes are for.
"""

import re
from typing import NamedTuple

from tapeproxy.tapes.records import Head, Headers

LANE_HEADER = b"x-tapeproxy-lane"
EDGE_RULES = 2
"""The version of the rules for edges in a head's `rules.edges`; a tape that does not say has none. 2: there are also
those of a queue's `join`, `SimpleQueue`, `Barrier`, `as_completed` of threads, and `run_coroutine_threadsafe`."""
APART_RULES = 1
"""The version of `rules.apart`: chance stands apart from a lane's course; a tape that does not say has it there."""
NODE_RULES = 1
"""The version of Node's lanes and streams in a head's `rules.node`; Node programs of a tape that does not say had no
shim."""
START, SERVE, ANSWER = "start", "serve", "answer"
"""Edges that are told by the lane that lets something out: to a process that it starts, and to a client that it
answers; and by a server that begins with a client's request."""
NO_LANE = ""
"""Stands for the lane of requests that say nothing of theirs."""

_OF_NODE = "/js"
_TAG = re.compile(rb"([!-\"$-~]{1,200})#([0-9]{1,15})@([0-9]{1,15})(?:~([0-9]{1,15})\.([0-9]{1,15}))?")


class LaneTag(NamedTuple):
    """The `n`-th request of `lane`, made after `reads` clock reads.

    The lane slept `sleeps` times since its last request, for the first time after `awake` reads.
    """

    lane: str
    n: int
    reads: int
    sleeps: int = 0
    awake: int | None = None


def parse_tag(value: bytes) -> LaneTag | None:
    """Read `LANE#n@reads` or `LANE#n@reads~sleeps.awake`; None when it has another form."""
    found = _TAG.fullmatch(value)
    if found is None:
        return None
    sleeps, awake = (int(found[4]), int(found[5])) if found[4] else (0, None)
    return LaneTag(found[1].decode("ascii"), int(found[2]), int(found[3]), sleeps, awake)


def format_tag(tag: LaneTag) -> bytes:
    """The header's value that `parse_tag` reads as this."""
    slept = f"~{tag.sleeps}.{tag.awake or 0}" if tag.sleeps else ""
    return f"{tag.lane}#{tag.n}@{tag.reads}{slept}".encode()


def split_tag(headers: Headers) -> tuple[LaneTag | None, Headers]:
    """Part the first lane header's tag from all other headers."""
    if not any(name.lower() == LANE_HEADER for name, _ in headers):
        return None, headers
    tags = [value for name, value in headers if name.lower() == LANE_HEADER]
    rest = tuple((name, value) for name, value in headers if name.lower() != LANE_HEADER)
    return parse_tag(tags[0]), rest


def has_edges(head: Head) -> bool:
    """Whether the tape says where its lanes met."""
    return edge_rules(head) > 0


def edge_rules(head: Head) -> int:
    """The version of the rules by which the tape says where its lanes met; 0: it does not, or by rules unknown here."""
    version = head.rules.get("edges")
    return version if isinstance(version, int) and 0 < version <= EDGE_RULES else 0


def keeps_apart(head: Head) -> bool:
    """Whether tasks that only wait, and connections that are used again, leave no trace in lanes (decision 75)."""
    return head.rules.get("apart") == APART_RULES


def has_node(head: Head) -> bool:
    """Whether Node programs had the shim, too."""
    return head.rules.get("node") == NODE_RULES


def is_floating(lane: str) -> bool:
    """Whether nobody knows what the lane learned from others: its name is chance, or it has none, or it is of Node or
    below it, where no edges are told."""
    return lane == NO_LANE or lane.startswith("?") or "/i:" in lane or _OF_NODE in lane
