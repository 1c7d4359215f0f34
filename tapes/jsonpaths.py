"""JSON paths, the part of them that rules need: names, indexes, `*` and `..`; finds and takes out what they name.

    $.metadata.request_id    $.messages[*].id    $..timestamp    $['a name'][0]    $.*

Filters, slices and negative indexes are not understood, and refused. Deeper than 254 nothing is looked for.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_DEEPEST: Final = 254
_BARE = r"[^\W\d][\w-]*"
_STEP = re.compile(
    rf"""(?P<deep>\.\.)?(?:(?(deep)|\.)(?P<bare>{_BARE}|\*)"""
    r"""|\[(?:(?P<index>\d{1,9})|(?P<any>\*)|'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """A member's name, an item's index, or None for all of them; `deep`: at any depth below."""

    name: str | int | None
    deep: bool = False

    def __str__(self) -> str:
        dots = ".." if self.deep else ""
        if self.name is None:
            return f"{dots}*" if self.deep else "[*]"
        if isinstance(self.name, int):
            return f"{dots}[{self.name}]"
        if re.fullmatch(_BARE, self.name):
            return f"{dots or '.'}{self.name}"
        return f"{dots}[{json.dumps(self.name, ensure_ascii=False)}]"


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path; no steps: the whole document."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "$" + "".join(map(str, self.steps))

    def find(self, value: Any) -> list[Any]:
        """All that the path names in `value`, in order; with `..` outer ones first."""
        found = [value]
        for step in self.steps:
            found = [item for one in found for item in _below(one, step)]
        return found

    def remove(self, value: Any) -> tuple[Any, bool]:
        """`value` without what the path names, changed in place, and whether there was anything."""
        if not self.steps:
            return None, True
        return value, _remove(value, self.steps, 0)


def parse_path(text: str) -> JsonPath:
    """Read a path. Raises ValueError that says where it stops making sense."""
    if not text.startswith("$"):
        raise ValueError(f"a JSON path begins with $, as $.metadata.id does, but this is {text!r}")
    steps, at = read_steps(text, 1)
    if at < len(text):
        raise ValueError(
            f"the JSON path {text!r} cannot be read from {text[at:]!r} on: it has .name, ['name'], [0], [*], .."
        )
    return JsonPath(steps)


def read_steps(text: str, at: int) -> tuple[tuple[Step, ...], int]:
    """The steps that stand in `text` from `at` on, and where they end. Raises ValueError for a name without end."""
    steps: list[Step] = []
    while match := _STEP.match(text, at):
        steps.append(Step(_name(match), match["deep"] is not None))
        at = match.end()
    return tuple(steps), at


def _name(match: re.Match[str]) -> str | int | None:
    if match["any"] or match["bare"] == "*":
        return None
    if match["index"] is not None:
        return int(match["index"])
    if match["bare"] is not None:
        return match["bare"]
    single, double = match["single"], match["double"]
    quoted = double if single is None else single.replace("\\'", "'").replace('"', '\\"')
    try:
        name: str = json.loads(f'"{quoted}"', strict=False)
    except ValueError:
        raise ValueError(f"the name {quoted!r} in a JSON path has an escape that JSON does not know") from None
    return name


def _below(value: Any, step: Step, depth: int = 0) -> Iterator[Any]:
    """What a step from `value` leads to."""
    if not isinstance(value, dict | list) or depth > _DEEPEST:
        return
    yield from (value[key] for key in _keys(value, step.name))
    if step.deep:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _below(item, step, depth + 1)


def _remove(value: Any, steps: tuple[Step, ...], depth: int) -> bool:
    if not isinstance(value, dict | list) or depth > _DEEPEST:
        return False
    step = steps[0]
    found = False
    if step.deep:
        # Below first: what is taken out here need not be looked through, but what is left must.
        for item in list(value.values() if isinstance(value, dict) else value):
            found |= _remove(item, steps, depth + 1)
    keys = _keys(value, step.name)
    for key in reversed(keys):
        if len(steps) > 1:
            found |= _remove(value[key], steps[1:], depth + 1)
        else:
            del value[key]
            found = True
    return found


def _keys(value: Any, name: str | int | None) -> list[Any]:
    """The keys or indexes of `value` that a step's name means, in order."""
    if isinstance(value, dict):
        return list(value) if name is None else [name] if isinstance(name, str) and name in value else []
    if name is None:
        return list(range(len(value)))
    return [name] if isinstance(name, int) and name < len(value) else []
