"""Moments and durations as other tools write them, in nanoseconds. What a tape has no room for is taken as not told."""

import re
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from tapeproxy.tapes.imports.nodes import Node

LATEST: Final = 1 << 62
"""The end of the moments that are taken, in ns since 1970: the year 2116. Go's zero time is one of the year 1."""
_LONGEST: Final = 1 << 53
"""Of a duration: some 104 days."""
_DURATION: Final = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)(h|ms|m|s|us|µs|ns)")
_UNITS: Final = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def moment(found: Node | None) -> int | None:
    """Nanoseconds since 1970 of an ISO or an HTTP date; None where it is neither. Raises ForeignFormatError."""
    value = None if found is None else found.value
    if found is not None and not isinstance(value, date):
        text = found.text()
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            try:
                value = parsedate_to_datetime(text)
            except ValueError:
                return None
    if not isinstance(value, datetime):
        return None
    return since_1970((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())


def since_1970(seconds: object) -> int | None:
    """The nanoseconds of a moment in seconds since 1970, to the microsecond."""
    value = _scaled(seconds, 1_000_000, LATEST // 1000)
    return None if value is None else value * 1000


def duration(found: Node | None) -> int | None:
    """Go's `1.5s`, or a number of nanoseconds; None for none. Raises ForeignFormatError."""
    if found is None or found.value in ("", 0):
        return None
    if isinstance(found.value, int):
        return _scaled(found.value, 1, _LONGEST)
    parts = _DURATION.findall(found.text())
    return _scaled(sum(float(number) * _UNITS[unit.replace("µ", "u")] for number, unit in parts), 1, _LONGEST) or None


def milliseconds(found: Node | None) -> int | None:
    """The nanoseconds of a number of milliseconds."""
    return None if found is None else _scaled(found.value, 1_000_000, _LONGEST)


def _scaled(value: object, by: int, end: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < end:  # nor is it a NaN
        return None
    scaled = round(value * by)
    return scaled if scaled < end else None
