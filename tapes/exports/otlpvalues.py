"""Values as OTLP has them in JSON. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding"""

from collections.abc import Mapping
from typing import Any, Final

from tapeproxy.tapes.jsonvalues import write_json
from tapeproxy.tapes.records import Json

type Attributes = Mapping[str, Any]
"""Names and values; None for what is not known."""

_DEEPEST: Final = 12
"""Lists and objects within each other: readers of protobuf refuse a hundred messages, of which each takes three."""
_INT64: Final = range(-(1 << 63), 1 << 63)


def attributes(given: Attributes) -> list[Json]:
    """The attributes of a span, those that are known."""
    return [{"key": key, "value": _value(value, 0)} for key, value in given.items() if value is not None]


def _value(value: Any, depth: int) -> Json:
    match value:
        case None:
            return {}
        case bool():
            return {"boolValue": value}
        case int() if value in _INT64:
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list() | tuple() if depth < _DEEPEST:
            return {"arrayValue": {"values": [_value(item, depth + 1) for item in value]}}
        case dict() if depth < _DEEPEST:
            pairs = [{"key": _text(key), "value": _value(item, depth + 1)} for key, item in value.items()]
            return {"kvlistValue": {"values": pairs}}
        case dict() | list() | tuple():
            return {"stringValue": (write_json(value) or b"").decode()}
        case _:
            return {"stringValue": _text(value)}


def _text(value: Any) -> str:
    """Text without halves of characters, which JSON in UTF-8 cannot hold."""
    return str(value).encode("utf-8", "replace").decode()
