"""Which environment variables hold secrets; knows names and what a secret's value looks like."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from tapeproxy.tapes.tokens import placeholder

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
_MIN_PHRASE = 20
_MIN_PASSWORD, _FEW_BITS = 8, 20.0
_IN_URL = re.compile(r"://[^/:@\s]*:([^/@\s]+)@")
_MIXED = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9+=_-]{12,}")


@lru_cache(4096)  # a test suite asks it of the same environment for every test
def is_secret_name(name: str) -> bool:
    """True when a variable of this name usually holds a secret: OPENAI_API_KEY, DB_PASSWORD, GITHUB_TOKEN."""
    low = name.lower()
    return bool(_WORDS.intersection(_SPLIT.split(low)) or _GLUED.search(low))


def is_secret_value(value: str) -> bool:
    """True when a value is long and varied enough to be a secret: `PASSWORD=test` must not rewrite bodies."""
    if len(value) < MIN_VALUE or is_path(value):
        return False
    # A passphrase has spaces, a private key has lines; so have a word or two of plain text.
    if any(c.isspace() for c in value.strip()) and len(value) < _MIN_PHRASE:
        return False
    return _bits(value) >= _MIN_BITS


def secret_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the secret-looking variables that are set and not empty, sorted."""
    return tuple(sorted(name for name, value in environment.items() if value and is_secret_name(name)))


def secret_values(environment: Mapping[str, str], also: Iterable[str] = ()) -> tuple[str, ...]:
    """The values that must not stand on a tape, longest first, so that a secret inside another is found too.

    `also`: names of further variables that hold secrets, whatever they are called.
    """
    values = {environment[name].strip() for name in (*secret_names(environment), *also) if name in environment}
    secrets = set(filter(is_secret_value, values))
    for value in environment.values():
        # postgres://user:PASSWORD@host, whatever the variable is called
        secrets |= {word for word in _IN_URL.findall(value) if len(word) >= _MIN_PASSWORD and _bits(word) >= _FEW_BITS}
    return tuple(sorted(secrets, key=lambda value: (-len(value), value)))


def placeholder_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the secret-looking variables that hold what a replay gives for an absent one, sorted.

    A tool may have copied the placeholder of one variable to another, or written it into more: `Bearer …`.
    """
    names = secret_names(environment)
    stand_ins = [placeholder(name) for name in names]
    return tuple(name for name in names if any(one in environment[name] for one in stand_ins))


def is_path(value: str) -> bool:
    """True for a path: `pwd` is the name of a password and of a folder.

    Base64 may begin with a slash too, but has long parts in which everything is mixed.
    """
    return value.startswith(("/", "~/", "./", "../")) and not any(map(_MIXED.fullmatch, value.split("/")))


def _bits(value: str) -> float:
    counts = Counter(value)
    return -sum(n * math.log2(n / len(value)) for n in counts.values())
