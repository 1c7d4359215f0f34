"""The texts in a canonical body, whole, under the places that differences.py names."""

import json
from collections.abc import Iterator
from typing import Any

from tapeproxy.tapes.differences import json_member, readable
from tapeproxy.tapes.identity import Body
from tapeproxy.tapes.requestlines import shorten


def leaf_texts(body: Body) -> dict[str, str]:
    """Every text, number and constant by its place (`body $.messages[0].content`); of other bodies, all of it."""
    if body.form == "json":
        return {shorten(f"body {path}"): text for path, text in _leaves(body.value, "$")}
    return {"body": readable(body.canonical)} if body.form in ("bytes", "multipart") else {}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, path + json_member(name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _leaves(item, f"{path}[{at}]")
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
