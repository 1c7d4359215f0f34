"""Which environment variables hold secrets; knows names and what a secret's value looks like."""

import math
import re
from collections import Counter
from collections.abc import Mapping

_WORDS = frozenset(
    [
        "key",
        "apikey",
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "pass",
        "pw",
        "credential",
        "credentials",
        "auth",
        "bearer",
        "jwt",
        "dsn",
        "cookie",
    ]
)
_SPLIT = re.compile(r"[^a-z0-9]+")
_GLUED = re.compile(r"(api|access|secret|private|auth)_?(key|token)$|(password|passwd|secret|token)$")
MIN_VALUE = 12
"""A shorter value is too likely to be an ordinary word for every occurrence of it to be rewritten."""
_MIN_BITS = 36.0


def is_secret_name(name: str) -> bool:
    """True when a variable of this name usually holds a secret: OPENAI_API_KEY, DB_PASSWORD, GITHUB_TOKEN."""
    low = name.lower()
    return bool(_WORDS.intersection(_SPLIT.split(low)) or _GLUED.search(low))


def is_secret_value(value: str) -> bool:
    """True when a value is long and varied enough to be a secret: `PASSWORD=test` must not rewrite bodies."""
    if len(value) < MIN_VALUE or value.startswith(("/", "~", "./")) or any(c.isspace() for c in value.strip()):
        return False
    counts = Counter(value)
    bits = -sum(n * math.log2(n / len(value)) for n in counts.values())
    return bits >= _MIN_BITS


def secret_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the secret-looking variables that are set and not empty, sorted."""
    return tuple(sorted(name for name, value in environment.items() if value and is_secret_name(name)))


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values that must not stand on a tape, longest first, so that a secret inside another is found too."""
    values = {environment[name] for name in secret_names(environment)}
    return tuple(sorted(filter(is_secret_value, values), key=lambda value: (-len(value), value)))
