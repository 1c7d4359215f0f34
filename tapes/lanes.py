"""The header by which an agent's shim says whose request this is. Knows its form, not what lanes are for."""

import re
from dataclasses import dataclass

from tapeproxy.tapes.records import Headers

LANE_HEADER = b"x-tapeproxy-lane"

_TAG = re.compile(rb"([!-\"$-~]{1,200})#([0-9]{1,15})@([0-9]{1,15})")


@dataclass(frozen=True, slots=True)
class LaneTag:
    """The `n`-th request of `lane`, made after `reads` clock and chance reads."""

    lane: str
    n: int
    reads: int


def parse_tag(value: bytes) -> LaneTag | None:
    """Read `LANE#n@reads`; None when it has another form."""
    found = _TAG.fullmatch(value)
    return LaneTag(found[1].decode("ascii"), int(found[2]), int(found[3])) if found else None


def split_tag(headers: Headers) -> tuple[LaneTag | None, Headers]:
    """Part the first lane header's tag from all other headers."""
    if not any(name.lower() == LANE_HEADER for name, _ in headers):
        return None, headers
    tags = [value for name, value in headers if name.lower() == LANE_HEADER]
    rest = tuple((name, value) for name, value in headers if name.lower() != LANE_HEADER)
    return parse_tag(tags[0]), rest
