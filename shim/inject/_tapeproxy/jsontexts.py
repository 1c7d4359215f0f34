"""JSON, written and read as hints have it on a tape. `json` is loaded at the first text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write(form: Any) -> str:
    """The shortest text of plain JSON."""
    import json

    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(form, separators=(",", ":"))
    return text


def read(text: str) -> Any:
    """What a text says. Raises ValueError."""
    import json

    return json.loads(text)
