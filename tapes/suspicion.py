"""What in a text looks like a secret, and why: by the name it stands under, its shape, or its randomness.

Knows names and looks; where texts come from, and what encodings they were in, is `layers.py`'s. A redaction token is no
secret: it is made unreadable before anything is looked for.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal, NamedTuple

from tapeproxy.tapes.finding import Finder
from tapeproxy.tapes.redactionrules import LOOKS
from tapeproxy.tapes.secretnames import SCHEMES, is_secret_field
from tapeproxy.tapes.secretpatterns import WORDS
from tapeproxy.tapes.secretvars import is_secret_name, is_secret_value
from tapeproxy.tapes.tokens import WILDCARD, mask_tokens
from tapeproxy.tapes.valuekinds import value_kind

type Kind = Literal["name", "shape", "known", "rule", "random"]
"""By the name it stands under, its look, its known value, a rule of the user's, or only because it looks random."""

_VAGUE = re.compile(r"token|secret|key|auth|jwt|credential|session|cookie|passw|dsn", re.IGNORECASE)
# These have one of those words in their name and are told to everybody.
_TOLD = re.compile(
    r"idempotency|public|websocket-key|websocket-accept|ratelimit|rate-limit|tokens$|keyid|key_?name|keyword|cache_?key"
    r"|page_?token|cursor|continuation|author\b|session_?id|tokenizer|token_?type|monkey|primary_?key",
    re.IGNORECASE,
)
_USUAL = frozenset(
    {"string", "password", "passwd", "secret", "example", "changeme", "redacted", "undefined", "required", "optional"}
    | {"api_key", "apikey", "api-key", "number", "boolean", "object", "bearer", "filtered", "removed", "hidden"}
    | {"masked", "dummy", "placeholder", "none", "null", "true", "false"}
)
_PLACEHOLDER = re.compile(
    r"[<\[].*[>\]]|\$?\{+.*\}+|\$\w+|\*+|[xX.]+|.*\*{3,}.*|.*<secret>.*|(?:your|my|test|fake|dummy|mock|example)[-_ ].*"
    r"|.*[-_](?:here|redacted|placeholder|example)",
    re.IGNORECASE | re.DOTALL,
)
_SCHEME = re.compile("(?:" + "|".join(sorted(scheme.decode() for scheme in SCHEMES)) + r") +(?=\S)", re.IGNORECASE)
_ASSIGNED = re.compile(
    rb"""(?<![A-Za-z0-9_.-])(?P<name>[A-Za-z_][A-Za-z0-9_.-]{1,80})["']?[ \t]*(?:=|:=?)[ \t]*"""
    rb"""(?P<quote>["']?)(?P<value>[A-Za-z0-9_+/=.~!@#%^&*:-]{12,4096})"""
)
_RANDOM = re.compile(r"[A-Za-z0-9_+/=.~:-]{16,512}")
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[.:=]?")
_NOT_RANDOM = frozenset({"uuid", "timestamp", "date", "time of day", "path", "version", "memory address", "hash"})
_LEAST_RANDOM: Final = 3.2
"""Bits a character of what no one writes by hand."""
_SHORTEST_FIELD: Final = 6


class Suspect(NamedTuple):
    """`value` looks like a secret; `what` says of what sort, for people. `name`: of the field, if known by that."""

    kind: Kind
    what: str
    value: bytes
    name: str = ""


@dataclass(frozen=True)
class Sought:
    """What a user wants found besides what is found by itself.

    `values`: secrets, each with what it is called; `headers` and `fields`: more names, in lower case; `patterns`:
    regular expressions for bytes, of which group 1, if there is one, is the secret.
    """

    values: tuple[tuple[str, bytes], ...] = ()
    headers: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[bytes], ...] = ()

    @cached_property
    def finder(self) -> Finder:
        """Finds the values in whatever way they are written."""
        return Finder((value.decode(errors="surrogateescape") for _, value in self.values), looks=0)

    def called(self, value: bytes) -> str:
        """What a value is called."""
        return next((what for what, one in self.values if one == value), "a known secret")


def suspects(text: bytes, name: str = "", sought: Sought | None = None) -> Iterator[Suspect]:
    """What looks like a secret in `text`, which stands in a field or header called `name` (empty: in none)."""
    sought = sought or _NOTHING
    text = mask_tokens(text)
    whole = _by_name(text, name, sought)
    if whole is not None:
        yield whole
    if sought.values:
        yield from (Suspect("known", sought.called(span.secret), span.secret) for span in sought.finder.spans(text))
    yield from _shaped(text)
    yield from _assigned(text)
    for pattern in sought.patterns:
        group = 1 if pattern.groups else 0
        for match in pattern.finditer(text):
            if match[group] and WILDCARD not in match[group]:
                yield Suspect("rule", f"what {pattern.pattern.decode(errors='replace')!r:.60} matches", match[group])
    if whole is None and name and is_vague(name) and _is_random(text):
        yield Suspect("random", f"a random value under the name {name!r:.60}", text)


@lru_cache(4096)
def is_vague(name: str) -> bool:
    """True when what is called so may be a credential."""
    return _VAGUE.search(name) is not None and _TOLD.search(name) is None


def is_placeholder(value: str) -> bool:
    """True for what stands where a secret would: `<your key>`, `${KEY}`, `***`, `test-key`."""
    return value.lower() in _USUAL or _PLACEHOLDER.fullmatch(value) is not None


def _by_name(text: bytes, name: str, sought: Sought) -> Suspect | None:
    own = name.lower() in sought.fields
    if not name or not text or not (own or is_secret_field(name.encode(errors="surrogateescape"))):
        return None
    value = text.decode("latin-1").strip()
    if scheme := _SCHEME.match(value):
        value = value[scheme.end() :]
    if _PLACEHOLDER.fullmatch(value) if own else _is_ordinary(value):
        return None
    kind: Kind = "rule" if own else "name"
    return Suspect(kind, f"the value of {name!r:.60}", value.encode("latin-1"), name)


def _is_ordinary(value: str) -> bool:
    """Too short, a placeholder, or a text of several words."""
    return len(value) < _SHORTEST_FIELD or is_placeholder(value) or any(char.isspace() for char in value)


def _shaped(text: bytes) -> Iterator[Suspect]:
    for span in _LOOKS.spans(text):
        value = span.secret.decode("latin-1")
        # What a vague name alone gives away, as `"key": "d41d8c…"`, is a hash more often than not.
        if WILDCARD not in span.secret and not is_placeholder(value) and value_kind(value) not in _NOT_RANDOM:
            yield Suspect("shape", _shape_of(span.secret), span.secret)


def _shape_of(value: bytes) -> str:
    mark = next((one.mark for one in WORDS if value.startswith(one.mark)), b"")
    return f"a key that begins with {mark.decode()}" if mark else "what redaction knows for a secret"


def _assigned(text: bytes) -> Iterator[Suspect]:
    """`NAME=value` and `name: value` in prose, code and files."""
    for match in _ASSIGNED.finditer(text):
        name, value = match["name"].decode(), match["value"].decode("latin-1")
        if is_secret_name(name.replace("-", "_").replace(".", "_")) and _tells(name, value):
            yield Suspect("name", f"what is assigned to {name!r:.60}", match["value"], name)


def _tells(name: str, value: str) -> bool:
    if not is_vague(name) or is_placeholder(value) or _is_expression(value) or not is_secret_value(value):
        return False
    digits = any(char.isdigit() for char in value)
    return digits and value_kind(value) not in _NOT_RANDOM | {"id"} and any(char.isalpha() for char in value)


def _is_expression(value: str) -> bool:
    """True for a variable's name, as in `api_key=settings.key`. Keys may have the same letters, but not its words."""
    if not _EXPRESSION.fullmatch(value):
        return False
    mixed = any(char.isupper() for char in value) and any(char.islower() for char in value)
    several_digits = sum(char.isdigit() for char in value) > 1
    return "_" in value or "." in value or not (mixed and several_digits)


def _is_random(text: bytes) -> bool:
    value = text.decode("latin-1").strip()
    if not _RANDOM.fullmatch(value) or value_kind(value) in _NOT_RANDOM | {"id"} or is_placeholder(value):
        return False
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return mixed and _bits(value) >= _LEAST_RANDOM


def _bits(value: str) -> float:
    """Entropy in bits a character."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())


_NOTHING: Final = Sought()
_LOOKS: Final = Finder(looks=LOOKS)
