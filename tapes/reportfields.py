"""Fields of a report, which may be anybody's file: of the type they should have, or a ValueError that names them."""

from typing import Any

from tapeproxy.tapes.records import Json


def dict_of(value: object, where: str) -> Json:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no JSON object")
    return value


def list_of(holder: Json, name: str) -> list[Any]:
    """A list that may be absent."""
    value = holder.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{name} is no list")
    return value


def text_of(holder: Json, name: str) -> str:
    """A text that may be absent."""
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def whole_of(holder: Json, name: str) -> int:
    """A number that may be absent."""
    value = holder.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is no whole number")
    return value
