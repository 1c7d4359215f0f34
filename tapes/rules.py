"""The user's rules for telling requests apart: what to ignore, rewrite or also compare. Knows their text, no file.

A rule is written `KIND VALUE`, on tapes and in reports; its value is what the option of that name takes and what stands
in the list of that name in a settings file:

    match-header NAME              the header is part of what a request is
    ignore-header NAME             it is not (of those that are: content-type, and what match-header added)
    ignore-query NAME              a query parameter
    ignore-form NAME               a form field, urlencoded or multipart
    ignore-json PATH               what a JSON path names, in whatever JSON a body holds
    rewrite-url REGEX=REPLACEMENT  the whole URL
    rewrite-body REGEX=REPLACEMENT the canonical text of a body

Names are compared without case for headers, and may hold `*`. Before a name or path may stand where it applies, as
`api.example.com/v1/*: `; in it, `*` is any text.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast, get_args

if TYPE_CHECKING:
    from tapeproxy.tapes.jsonpaths import JsonPath
    from tapeproxy.tapes.rewrites import Rewrite

type Kind = Literal[
    "match-header", "ignore-header", "ignore-query", "ignore-form", "ignore-json", "rewrite-url", "rewrite-body"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind.__value__)
MOST: Final = 1000
"""Rules that are taken from one place."""
_SCOPED = r"([\w.*?:\[\]-]+)(/\S*)?:\s+(?=\S)"
_HEADER = r"[\w!#$%&'*+.^`|~-]+"
_PLACES = 1024


class Rule(NamedTuple):
    """One rule. `value`: a name, a path or a rewrite; `scope`: HOST or HOST/PATH, empty for everywhere."""

    kind: Kind
    value: "str | JsonPath | Rewrite"
    scope: str = ""

    def __str__(self) -> str:
        scope = f"{self.scope}: " if self.scope else ""
        return f"{self.kind} {scope}{self.value}"

    def applies(self, authority: str, path: str) -> bool:
        """Whether it is meant for this place."""
        host, slash, rest = self.scope.partition("/")
        return not self.scope or (_like(host, authority) and _like(slash + rest or "*", path))


def parse_rule(kind: str, text: str) -> Rule:
    """Read a rule's value. Raises ValueError, which names the kind and says what is wrong."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no rule; there are {', '.join(KINDS)}")
    from tapeproxy.tapes.jsonpaths import parse_path
    from tapeproxy.tapes.rewrites import parse_rewrite

    known: Kind = kind
    try:
        if known in ("rewrite-url", "rewrite-body"):
            return Rule(known, parse_rewrite(text))
        scope, rest = _split_scope(text)
        return Rule(known, parse_path(rest) if known == "ignore-json" else _parse_name(known, rest), scope)
    except ValueError as error:
        raise ValueError(f"{kind}: {error}") from None


def read_rule(line: str) -> Rule:
    """Read `KIND VALUE`, what `str(rule)` wrote. Raises ValueError."""
    kind, _, value = line.partition(" ")
    return parse_rule(kind, value)


class Local(NamedTuple):
    """The rules for one place; `used` collects those that have found what they are for."""

    rules: tuple[Rule, ...]
    used: set[Rule]

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def loose(self) -> bool:
        """Whether requests that differ may be the same."""
        return any(rule.kind != "match-header" for rule in self.rules)

    def ignores(self, kind: Kind, name: bytes) -> bool:
        """Whether a rule of this kind ignores this name."""
        found = self._named(kind, name)
        self.used.update(found)
        return bool(found)

    def matches_header(self, name: bytes) -> bool:
        """Whether this header, beyond those that always are, is part of what a request is."""
        found = self._named("match-header", name)
        self.used.update(found)
        return bool(found) and not self.ignores("ignore-header", name)

    def remove_json[T](self, value: T) -> T:
        """A JSON value without what is ignored, changed in place."""
        for rule in self.rules:
            if rule.kind == "ignore-json":
                value, found = cast("JsonPath", rule.value).remove(value)
                self._note(rule, found)
        return value

    def rewrite(self, kind: Literal["rewrite-url", "rewrite-body"], data: bytes) -> bytes:
        """A text rewritten by the rules of this kind, in their order."""
        for rule in self.rules:
            if rule.kind == kind:
                before, data = data, cast("Rewrite", rule.value)(data)
                self._note(rule, data != before)
        return data

    def has(self, kind: Kind) -> bool:
        """Whether there is a rule of this kind."""
        return any(rule.kind == kind for rule in self.rules)

    def _named(self, kind: Kind, name: bytes) -> list[Rule]:
        if not self.rules:
            return []
        text = name.decode(errors="surrogateescape")
        text = text.lower() if kind.endswith("-header") else text
        return [r for r in self.rules if r.kind == kind and isinstance(r.value, str) and _like(r.value, text)]

    def _note(self, rule: Rule, found: bool) -> None:
        if found:
            self.used.add(rule)


NOWHERE: Final = Local((), set())


class Rules:
    """All rules of a replay or recording, in order. `used` collects those that have found what they are for."""

    __slots__ = ("_places", "rules", "used")

    def __init__(self, rules: tuple[Rule, ...] = ()) -> None:
        self.rules = rules
        self.used: set[Rule] = set()
        self._places: dict[tuple[str, str], Local] = {}

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def everywhere(self) -> Local:
        """Those for URLs, which have no scope."""
        return Local(tuple(rule for rule in self.rules if rule.kind == "rewrite-url"), self.used)

    def headers(self) -> frozenset[bytes]:
        """Patterns, in lower case, of the headers that may be part of what a request is."""
        return frozenset(str(rule.value).encode() for rule in self.rules if rule.kind == "match-header")

    def at(self, authority: str, path: bytes) -> Local:
        """The rules for one place."""
        if not self.rules:
            return NOWHERE
        key = authority, path.decode("latin-1")
        if key not in self._places:
            if len(self._places) >= _PLACES:
                self._places.clear()
            self._places[key] = Local(tuple(rule for rule in self.rules if rule.applies(*key)), self.used)
        return self._places[key]


def read_rules(lines: Iterable[object]) -> tuple[Rule, ...]:
    """Read a tape's rules. Raises ValueError for what is no rule, and for too many."""
    texts = list(lines)
    if len(texts) > MOST:
        raise ValueError(f"there are more than {MOST} rules")
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"a rule is a string, but one is {text!r:.80}")
    return tuple(read_rule(str(text)) for text in texts)


def _like(pattern: str, text: str) -> bool:
    return _glob(pattern).fullmatch(text) is not None if "*" in pattern else pattern == text


@lru_cache(256)
def _glob(pattern: str) -> re.Pattern[str]:
    # Not fnmatch: `ids[]` is a name.
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _split_scope(text: str) -> tuple[str, str]:
    match = re.match(_SCOPED, text)
    return ("", text) if match is None else (match[1].lower() + (match[2] or ""), text[match.end() :])


def _parse_name(kind: Kind, text: str) -> str:
    if not text:
        raise ValueError("there is no name")
    if not kind.endswith("-header"):
        return text
    if not re.fullmatch(_HEADER, text, re.ASCII):
        raise ValueError(f"{text!r} is no header's name")
    if kind == "match-header" and "*" in text:
        raise ValueError(f"a header to compare is named in full, but {text!r} holds *")
    return text.lower()
