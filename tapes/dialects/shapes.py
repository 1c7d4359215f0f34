"""Reading JSON that may have any shape; knows types, no provider. Nothing raises."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from tapeproxy.tapes.conversation import Media, Part, Text
from tapeproxy.tapes.records import Json

_DETAIL = 120
# No SVG: that is a document, which may hold scripts and links.
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}", re.ASCII)
_SIGNS = (("iVBORw0KGgo", "png"), ("/9j/", "jpeg"), ("R0lGOD", "gif"), ("UklGR", "webp"))
"""How base64 of each kind of picture begins, by the magic bytes of their formats."""


def mapping_of(value: Any) -> Json:
    """An object as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Json]:
    """The objects of a list; nothing for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def numbered(value: Any) -> Iterator[tuple[int, Json]]:
    """The objects of a list, with their places in it."""
    for at, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield at, item


def text_of(value: Any) -> str:
    """A string as it is; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def name_of(value: Any) -> str | None:
    """A string that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def count_of(value: Any) -> int | None:
    """A whole number that counts something, or None."""
    return value if type(value) is int and value >= 0 else None


def written(value: Any) -> str:
    """Tool arguments or results as text: strings as they are, JSON values written compactly, null as nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    with contextlib.suppress(TypeError):  # nested too deeply
        return orjson.dumps(value).decode()
    return "…"


def parts_of(content: Any, read: Callable[[Json], Iterable[Part]]) -> tuple[Part, ...]:
    """The parts of a message's content, which is a string or a list of strings and objects that `read` reads."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts: list[Part] = []
    for item in content if isinstance(content, list) else ():
        if isinstance(item, str):
            parts.append(Text(item))
        elif isinstance(item, dict):
            parts.extend(read(item))
    return tuple(parts)


def plain_text(parts: Iterable[Part]) -> str:
    """Parts of a tool result as text, with placeholders for what is not text."""
    return "\n".join(part.text if isinstance(part, Text) else f"[{describe(part)}]" for part in parts)


def describe(part: Part) -> str:
    """A part that is not text, in a few words."""
    return f"{part.kind} {part.detail}".strip() if isinstance(part, Media) else type(part).__name__.lower()


def locator(value: Any) -> str:
    """What to show of a URL: a data URL's type and size, or else its beginning."""
    url = text_of(value)
    if url.startswith("data:"):
        kind, _, data = url[5:].partition(",")
        return f"{kind.split(';')[0]} {len(data)} characters"[:_DETAIL]
    return url if len(url) <= _DETAIL else url[: _DETAIL - 1] + "…"


def pictures(parts: Iterable[Part]) -> tuple[Media, ...]:
    """Those of the parts that can be shown as pictures."""
    return tuple(part for part in parts if isinstance(part, Media) and part.image is not None)


def picture(value: Any) -> str | None:
    """A data URL of a PNG, JPEG, GIF or WebP as it is; None for anything else, and for what is elsewhere."""
    return value if isinstance(value, str) and _PICTURE.fullmatch(value) else None


def picture_of(data: Any, kind: str | None = None) -> str | None:
    """The data URL of a picture that is given as base64 and its media type; without that, its first bytes decide."""
    text = text_of(data)
    if kind is None:
        found = next((name for sign, name in _SIGNS if text.startswith(sign)), None)
        kind = f"image/{found}"
    return picture(f"data:{kind};base64,{text}")


def error_of(obj: Json) -> str | None:
    """The message of an error object in any of the shapes providers use, or None when `obj` holds no error."""
    error = obj.get("error")
    if isinstance(error, dict):
        kind = name_of(error.get("type")) or name_of(error.get("code"))
        return name_of(error.get("message")) or kind or written(error)
    return name_of(error)
