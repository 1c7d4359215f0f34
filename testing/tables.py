"""Typed look-ups in one table of a script, whose errors name the file and the entry. Knows no key by name."""

import difflib
import math
from collections.abc import Collection, Mapping

from tapeproxy.tapes.errors import TapeproxyError


class ScriptError(TapeproxyError):
    """A script file says something that can't be played. `entry` is the 1-based reply, 0 for the file itself."""

    def __init__(self, what: str, *, source: str, entry: int = 0, fix: str = "see docs/FAKE_PROVIDER.md") -> None:
        self.source = source
        self.entry = entry
        super().__init__(what, where=f"{source}, reply {entry}" if entry else source, fix=fix)


class Table:
    """One table of the file: typed look-ups whose errors name the file and the entry."""

    def __init__(self, data: object, source: str, entry: int, name: str) -> None:
        self._source = source
        self._entry = entry
        self._name = name
        if not isinstance(data, Mapping):
            raise self.error(f"{name} is not a table", "write key = value pairs")
        self.data: Mapping[str, object] = data

    def error(self, what: str, fix: str) -> ScriptError:
        return ScriptError(what, source=self._source, entry=self._entry, fix=fix)

    def allow(self, keys: Collection[str]) -> None:
        for key in self.data:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, 1)
                advice = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(sorted(keys))}"
                raise self.error(f"{self._name} has no key {key!r}", advice)

    def inner(self, key: str) -> "Table":
        return Table(self.data.get(key, {}), self._source, self._entry, f"'{key}'")

    def items(self, key: str) -> list[object]:
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.error(f"'{key}' must be a list", f"write {key} = [ … ]")
        return value

    def text(self, key: str) -> str | None:
        value = self.data.get(key)
        if not isinstance(value, str | None):
            raise self.error(f"'{key}' must be a text", f'write {key} = "…"')
        return value

    def flag(self, key: str) -> bool | None:
        value = self.data.get(key)
        if not isinstance(value, bool | None):
            raise self.error(f"'{key}' must be true or false", f"write {key} = true")
        return value

    def number(self, key: str) -> float | None:
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise self.error(f"'{key}' must be a number, 0 or more", f"write {key} = 1")
        return value

    def whole(self, key: str, *, least: int) -> int | None:
        value = self.number(key)
        if value is not None and (not isinstance(value, int) or value < least):
            raise self.error(f"'{key}' must be a whole number, {least} or more", f"write {key} = {least}")
        return value if isinstance(value, int) else None
