"""Fields of JSON that are named as secrets; knows how JSON is written, whole or in a JSON string, and placeholders."""

import re
from typing import Final

from tapeproxy.tapes.secretpatterns import MOST
from tapeproxy.tapes.secretvars import is_path, is_secret_value

# A name in quotes with a colon behind it, itself inside of a JSON string perhaps, and the quote that its value begins.
FIELD: Final = re.compile(rb'"([A-Za-z_$][A-Za-z0-9_.$-]{1,60})\\*"\s*:\s*(\\*)"')
# Or the first string of a list: many programs keep a header's values in one.
LISTED: Final = re.compile(rb'"([A-Za-z_$][A-Za-z0-9_.$-]{1,60})\\*"\s*:\s*(?:\[\s*)?(\\*)"')
NAMED: Final = re.compile(rb'"([A-Za-z_$][A-Za-z0-9_.$-]{1,60})\\*"\s*:')
"""All names that either of them may find."""
NAMING: Final = frozenset({b"name", b"key", b"header"})
"""Fields that say what the `value` beside them is."""
_SHORTEST_FIELD: Final = 6
"""A shorter value of a field that names a secret is `test`, `none` or `***`."""
_USUAL: Final = frozenset(
    b"string password passwd secret example changeme redacted undefined required optional api_key apikey api-key"
    b" number boolean object bearer pass test".split()
)
_PLACEHOLDER: Final = re.compile(rb"(?:<.*>|\$?\{.*\}|\$\w+|\*+|x+|\.+)\Z", re.IGNORECASE)
_CREDENTIAL: Final = re.compile(rb"(?=\S*[0-9])(?=\S*[A-Za-z])(?!\S*/\S*\.)(?!\S*\.\S*/)\S+\Z")
"""Letters and digits in one word, and no path of a file."""
_BACKSLASH: Final = ord("\\")


def string_end(text: bytes, start: int, level: int) -> int:
    """Where the JSON string ends whose value begins at `start`; `level` backslashes stand before its quotes.

    A string in a JSON string has its quotes written with a backslash, in one more layer with three, and so on, and a
    backslash of its own with twice as many and one more. What does not end ends with the text, or after `MOST` bytes.
    """
    unit = 2 * (level + 1)
    last = min(len(text), start + MOST)
    at = text.find(b'"', start, last)
    while at >= 0:
        first = at
        while first > start and text[first - 1] == _BACKSLASH:
            first -= 1
        if (at - first) % unit == level:
            return at - level
        at = text.find(b'"', at + 1, last)
    return last


def is_usual(value: bytes) -> bool:
    """Whether a value is what people write in place of a secret."""
    return value.lower() in _USUAL or _PLACEHOLDER.match(value) is not None


def is_telling(says: bool | None, value: bytes) -> bool:
    """Whether the value of a field that names a secret (None: that may) is one."""
    if says is None:
        # An answer must keep a model's `"token": " international"`, and the key `users/12/profile.json`.
        return _CREDENTIAL.match(value) is not None and is_secret_value(value.decode("latin-1"))
    if len(value) < _SHORTEST_FIELD or is_usual(value):
        return False
    return not is_path(value.decode("latin-1"))
