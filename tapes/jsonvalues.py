"""JSON by value: read, and written so that equal values are equal bytes. Knows the limits of orjson."""

import json
import math
import re
from typing import Any, Final, NoReturn

import orjson

MOST_NESTED: Final = 254
"""Arrays and objects inside each other: what orjson writes."""
# orjson reads integers past 64 bits as floats, and two such numbers could become one.
_LONG_NUMBER = re.compile(rb"\d{19}")
_TWO_DIGITS = re.compile(rb"\d\d")


def read_json(data: bytes) -> tuple[Any, bool]:
    """The value, and whether `data` is JSON at all, nested no deeper than orjson could write."""
    try:
        if not has_long_number(data):
            value = orjson.loads(data)
            return value, True
        value = json.loads(data, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None, False
    return (None, False) if too_deep(value) else (value, True)


def write_json(value: Any) -> bytes | None:
    """The canonical bytes of a value: keys sorted, no spaces. None for what cannot be written."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # a long number, half a surrogate pair, or too deep
        pass
    return None if too_deep(value) else json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def too_deep(value: Any) -> bool:
    """Nested deeper than orjson writes, so that both ways of reading have one limit."""
    level = [value]
    for _ in range(MOST_NESTED + 1):
        inner = [one for one in level if isinstance(one, dict | list)]
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return True


def has_long_number(data: bytes) -> bool:
    """Whether 19 digits stand in a row anywhere."""
    # Of 19 digits in a row, two stand at multiples of nine: looking there first takes a tenth of the time.
    return _TWO_DIGITS.search(data[::9]) is not None and _LONG_NUMBER.search(data) is not None


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)
