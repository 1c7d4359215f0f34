"""Which redaction a tape was made with: its version, and what the user added. Knows rules, not how they are applied.

They stand in the head's `rules`, so that a replay redacts requests as the recording did.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tapeproxy.tapes.records import Json

if TYPE_CHECKING:
    from tapeproxy.tapes.jsonpaths import JsonPath

VERSION: Final = 3
"""1 knew names of headers and query parameters, and known values; 2 also fields, looks and encodings; 3 also what is
assigned in running text, values beside a name and in lists, and credentials that travel as a WebSocket's protocol."""
LOOKS, ASSIGNED = 2, 3
"""The versions that knew these first."""
NONE: Final = 0
MOST: Final = 200
"""Rules of a user's own."""
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")


@dataclass(frozen=True)
class RedactionRules:
    """`headers` and `fields` are more names, a field that begins with `$` a JSON path; `patterns` are regular
    expressions for bytes, of which group 1, if there is one, is the secret. `version` NONE redacts nothing.

    Raises ValueError for what is none of these, or takes too long to run.
    """

    version: int = VERSION
    headers: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    compiled: tuple[re.Pattern[bytes], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.headers) + len(self.fields) + len(self.patterns) > MOST:
            raise ValueError(f"there are more than {MOST} rules of what to redact")
        for name in self.headers:
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name!r:.80} is no name of a header")
        if not all(map(str.strip, self.fields)):
            raise ValueError("the name of a field to redact is empty")
        assert self.paths is not None  # they are read
        object.__setattr__(self, "compiled", tuple(map(_compile, self.patterns)))

    @cached_property
    def paths(self) -> "tuple[JsonPath, ...]":
        """The JSON paths among the fields."""
        paths = [path for path in self.fields if path.startswith("$")]
        if not paths:
            return ()
        from tapeproxy.tapes.jsonpaths import parse_path  # that, and what compiles patterns, takes some milliseconds

        return tuple(map(parse_path, paths))

    @cached_property
    def names(self) -> frozenset[bytes]:
        """The names among the fields, in lower case."""
        return frozenset(name.lower().encode() for name in self.fields if not name.startswith("$"))

    def to_json(self) -> Json:
        """What stands in the head's `rules`."""
        own: Json = {"headers": self.headers, "fields": self.fields, "patterns": self.patterns}
        own = {name: list(value) for name, value in own.items() if value}
        return {"redaction": self.version} | ({"redact": own} if own else {})

    @classmethod
    def from_json(cls, rules: Json) -> "RedactionRules":
        """The rules in a head's `rules`. Raises ValueError."""
        version = rules.get("redaction", 1)
        if not isinstance(version, int) or not NONE <= version <= VERSION:
            raise ValueError(f"the tape was redacted by rules of version {version!r:.20}, which is not known here")
        own = rules.get("redact", {})
        if not isinstance(own, dict):
            raise ValueError("the tape's rules of what to redact are no object")
        return cls(version, *(_strings(own.get(name, [])) for name in ("headers", "fields", "patterns")))


def is_redacted(rules: Json) -> bool:
    """Whether a tape with these rules in its head was redacted when it was recorded."""
    version: object = rules.get("redaction", 1)
    return version != NONE


def strings_at(path: "JsonPath", value: Any) -> set[str]:
    """The strings in `value` that the path names, those inside of what it names included."""
    found = [value]
    for step in path.steps:
        inside = [inner for one in found for inner in (_everything(one) if step.deep else (one,))]
        found = [item for one in inside for item in _take(one, step.name)]
    return {one for item in found for one in _everything(item) if isinstance(one, str)}


def _take(value: Any, step: str | int | None) -> list[Any]:
    if isinstance(value, dict):
        if step is None:
            return list(value.values())
        return [value[step]] if step in value else []
    if isinstance(value, list):
        if step is None:
            return value
        return [value[step]] if isinstance(step, int) and step < len(value) else []
    return []


def _everything(value: Any) -> list[Any]:
    """A value with all that is in it, at any depth."""
    out, waiting = list[Any](), [value]
    while waiting:
        one = waiting.pop()
        out.append(one)
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return out


def _compile(pattern: str) -> re.Pattern[bytes]:
    from tapeproxy.tapes.rewrites import danger

    if reason := danger(pattern):
        raise ValueError(f"the regular expression {pattern!r:.80} {reason}")
    try:
        compiled = re.compile(pattern.encode())
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r:.80} cannot be understood: {error}") from None
    if compiled.match(b"") is not None:
        raise ValueError(f"{pattern!r:.80} matches nothing at all, and so everywhere")
    return compiled


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("the tape's rules of what to redact are no lists of strings")
    return tuple(value)


DEFAULT: Final = RedactionRules()
"""Without a user's own."""
