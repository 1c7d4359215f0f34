"""What kind of value a read gave, and its text. Knows plain values; asks nothing of the agent's own objects."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST = 512  # characters; the same as hex digits of bytes
_ITEMS = 64  # of a list


def describe_value(value: Any) -> tuple[str, Any]:
    """A value's kind and its text. Objects of the agent's own are not asked: that may do things."""
    if value is None or isinstance(value, bool):
        return "none", ""
    if isinstance(value, int):
        return "int", int.__repr__(value)[:_LONGEST]
    if isinstance(value, float):
        return "float", float.__repr__(value)
    if isinstance(value, str):
        return "str", str.__str__(value)[:_LONGEST]
    if isinstance(value, (bytes, bytearray)):
        return "bytes", bytes(value[: _LONGEST // 2]).hex()
    if isinstance(value, (list, tuple)):
        return "list", [str(describe_value(item)[1]) for item in value[:_ITEMS]]
    if type(value).__name__ == "UUID":
        return "uuid", f"{int(value):032x}"
    return "none", ""
