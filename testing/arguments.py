"""Plausible values for a JSON schema: what a model might pass to a tool. Knows schemas, not who asks.

A value is taken from the latest tool result where it has a field of the same name, else from what the schema says
(`const`, `enum`, `default`, `examples`), else from the field's name and the user's words, else from its type.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tapeproxy.testing.conversation import dumps, mapping_of

_DEPTH_LIMIT = 12

# What a field is usually about, by a fragment of its name.
_BY_NAME: Final = (
    (re.compile(r"cit(y|ies)|location|place|town"), "Paris"),
    (re.compile(r"country"), "France"),
    (re.compile(r"date|day"), "2026-01-01"),
    (re.compile(r"mail"), "ada@example.com"),
    (re.compile(r"url|uri|link"), "https://example.com/"),
    (re.compile(r"name|author|person"), "Ada"),
    (re.compile(r"path|file"), "notes.txt"),
    (re.compile(r"currency"), "EUR"),
)
_BY_FORMAT: Final = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
}
_WHOLE_TEXT = re.compile(r"^q$|query|question|prompt|text|message|search|topic|input")
# A capitalised word after a preposition: "the weather in Lima" is about Lima.
_PLACE = re.compile(r"\b(?i:in|at|for|of|to|from)\s+((?:[A-Z][\w'-]+)(?:\s+[A-Z][\w'-]+)*)")


@dataclass(frozen=True, slots=True)
class Hints:
    """What the conversation offers: the user's last text and the latest tool result (JSON or not)."""

    user: str = ""
    tool_result: str = ""


def invent_arguments(schema: Mapping[str, object], hints: Hints) -> dict[str, object]:
    """An object that satisfies `schema`; `{}` when the schema describes no object."""
    value = _Inventor(schema, hints).value(schema, "", 0)
    return value if isinstance(value, dict) else {}


def invent_json(schema: Mapping[str, object], hints: Hints) -> str:
    """Any value that satisfies `schema`, as JSON text: the answer to a request for structured output."""
    return dumps(_Inventor(schema, hints).value(schema, "", 0))


def find_field(text: str, name: str) -> object:
    """The first field of that name anywhere in a JSON text, depth first; None when there is none, or no JSON."""
    return _find(_loads(text), name)


class _Inventor:
    def __init__(self, root: Mapping[str, object], hints: Hints) -> None:
        self._root = root
        self._hints = hints
        self._known = _loads(hints.tool_result)

    def value(self, schema: Mapping[str, object], name: str, depth: int) -> object:
        schema = self._resolve(schema, depth)
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        for key in ("enum", "examples"):
            choices = schema.get(key)
            if isinstance(choices, list) and choices:
                return choices[0]
        return self._by_type(schema, name, depth)

    def _by_type(self, schema: Mapping[str, object], name: str, depth: int) -> object:
        match _type(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer":
                return int(_number(schema))
            case "number":
                return _number(schema)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return self._string(schema, name)

    def _object(self, schema: Mapping[str, object], depth: int) -> dict[str, object]:
        required = schema.get("required")
        wanted = required if isinstance(required, list) else []
        properties = mapping_of(schema.get("properties"))
        if depth >= _DEPTH_LIMIT:
            properties = {}
        # Optional fields are left out, unless everything is optional: a call without arguments says little.
        chosen = [key for key in properties if key in wanted] or list(properties)[:1]
        return {key: self.value(mapping_of(properties[key]), key, depth + 1) for key in chosen}

    def _array(self, schema: Mapping[str, object], name: str, depth: int) -> list[object]:
        least = schema.get("minItems")
        count = least if isinstance(least, int) else 1
        if depth >= _DEPTH_LIMIT:
            count = 0
        return [self.value(mapping_of(schema.get("items")), name, depth + 1) for _ in range(count)]

    def _string(self, schema: Mapping[str, object], name: str) -> str:
        found = _find(self._known, name) if name else None
        text = found if isinstance(found, str) else self._invented(schema, name.lower())
        least, most = schema.get("minLength"), schema.get("maxLength")
        if isinstance(least, int):
            text = text.ljust(least, "x")
        return text[:most] if isinstance(most, int) else text

    def _invented(self, schema: Mapping[str, object], name: str) -> str:
        by_format = _BY_FORMAT.get(str(schema.get("format", "")))
        if by_format is not None:
            return by_format
        if _WHOLE_TEXT.search(name) and self._hints.user:
            return self._hints.user
        if _BY_NAME[0][0].search(name) and (place := _PLACE.search(self._hints.user)):
            return place[1]
        return next((value for pattern, value in _BY_NAME if pattern.search(name)), name or "something")

    def _resolve(self, schema: Mapping[str, object], depth: int) -> Mapping[str, object]:
        """Follow `$ref` within the document and take the first branch of a union."""
        for _ in range(_DEPTH_LIMIT):
            reference = schema.get("$ref")
            union = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if isinstance(reference, str):
                schema = self._referred(reference)
            elif isinstance(union, list) and union:
                # Deep inside a recursive schema the way out is usually the last branch: null.
                schema = mapping_of(union[-1 if depth >= _DEPTH_LIMIT else 0])
            else:
                break
        return schema

    def _referred(self, reference: str) -> Mapping[str, object]:
        found: object = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            found = mapping_of(found).get(step.replace("~1", "/").replace("~0", "~"))
        return mapping_of(found)


def _type(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "string"


def _number(schema: Mapping[str, object]) -> float:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if isinstance(low, int | float):
        return low
    if isinstance(above, int | float):
        return above + 1
    if isinstance(high, int | float):
        return min(3, high)
    return min(3, below - 1) if isinstance(below, int | float) else 3


def _find(value: object, name: str) -> object:
    """The first field of that name, depth first."""
    if isinstance(value, dict):
        if name in value:
            return value[name]
        value = list(value.values())
    if isinstance(value, list):
        return next((found for item in value if (found := _find(item, name)) is not None), None)
    return None


def _loads(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None  # a tool may answer in prose
