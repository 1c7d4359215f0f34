"""The tools that a model or an agent is offered, and how two lists of them differ. Pure; knows providers' forms."""

from collections.abc import Iterable
from typing import Any, Final

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.dialects.mcp import listed_tools
from tapeproxy.tapes.dialects.shapes import items_of, mapping_of, name_of
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.jsonvalues import read_json, write_json
from tapeproxy.tapes.records import Headers, Json

_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")

_WITHIN: Final = ("function", "custom", "toolSpec")

type ToolList = dict[str, Json]
"""Tools by name, in their order."""


def offered(headers: Headers, body: bytes) -> ToolList:
    """The tools that a request offers to a model; none where it is something else."""
    if b'"tools"' not in (plain := decode(body, headers).data):
        return {}
    asked = mapping_of(read_json(plain)[0])
    return {name: inner for name, inner in map(_named, declared(asked)) if name is not None}


def declared(asked: Json) -> list[Json]:
    """The tools of a request to a model, one by one, each as the provider has it; Gemini has several in one."""
    found: list[Json] = []
    for tool in (*items_of(asked.get("tools")), *items_of(mapping_of(asked.get("toolConfig")).get("tools"))):
        several = items_of(tool.get("functionDeclarations")) or items_of(tool.get("function_declarations"))
        found += several or [tool]
    return found


def tool_name(tool: Json) -> str | None:
    """A tool's name; of one that the provider runs itself, which has none, its type, or the field that it is in."""
    return _named(tool)[0]


def _named(tool: Json) -> tuple[str | None, Json]:
    """A tool's name, and what says it."""
    inner = next((found for kind in _WITHIN if (found := mapping_of(tool.get(kind)))), tool)
    name = name_of(inner.get("name")) or name_of(tool.get("type"))
    return name or (next(iter(tool)) if len(tool) == 1 and inner is tool else None), inner


def listed(exchange: Exchange) -> ToolList:
    """The tools that an MCP server lists in its answer."""
    tools = listed_tools(exchange)
    return {name: tool for tool in tools if (name := name_of(tool.get("name"))) is not None}


def tool_changes(before: ToolList, after: ToolList) -> str:
    """How a list of tools differs from another, in a line; empty where both have the same tools in the same order."""
    said = [f"+ {name}" for name in after if name not in before]
    said += [f"- {name}" for name in before if name not in after]
    shared = [name for name in before if name in after]
    said += [_change(name, before[name], after[name]) for name in shared if before[name] != after[name]]
    if not said and shared != list(after):
        said = ["another order"]
    return f"the tool list changed: {', '.join(said)}" if said else ""


def _change(name: str, before: Json, after: Json) -> str:
    changed = [key for key in dict.fromkeys((*before, *after)) if _written(before.get(key)) != _written(after.get(key))]
    words = dict.fromkeys("schema" if key in _SCHEMAS else key for key in changed)
    return f"changed {_listing(words)} of {name}" if words else f"changed {name}"


def _listing(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _written(value: Any) -> bytes | None:
    return write_json(value)
