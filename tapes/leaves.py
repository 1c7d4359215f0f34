"""The texts in a canonical body, whole, under the places that differences.py names."""

import json
from collections.abc import Iterator
from typing import Any

from tapeproxy.tapes.bodyforms import Body
from tapeproxy.tapes.differences import json_member, part_label, readable
from tapeproxy.tapes.requestlines import shorten


def leaf_texts(body: Body) -> dict[str, str]:
    """Every text, number and constant by its place (`body $.messages[0].content`); of other bodies, all of it."""
    if body.form == "json":
        return {shorten(f"body {path}"): text for path, text in _leaves(body.value, "$")}
    if body.form == "lines":
        lines = ((f"line {number} body", value) for number, value in enumerate(body.value, 1))
        return {shorten(f"{line} {path}"): text for line, value in lines for path, text in _leaves(value, "$")}
    if body.form == "multipart" and isinstance(body.value, list):
        parts = ((part_label(number, part), part.body) for number, part in enumerate(body.value, 1))
        return {f"{label} {where}": text for label, inner in parts for where, text in leaf_texts(inner).items()}
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
