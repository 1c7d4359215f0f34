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

type ToolList = dict[str, Json]
"""Tools by name, in their order."""


def offered(headers: Headers, body: bytes) -> ToolList:
    """The tools that a request offers to a model; none where it is something else."""
    if b'"tools"' not in (plain := decode(body, headers).data):
        return {}
    asked = mapping_of(read_json(plain)[0])
    found: ToolList = {}
    for tool in (*items_of(asked.get("tools")), *_bedrock(asked)):
        declared = items_of(tool.get("functionDeclarations")) or items_of(tool.get("function_declarations"))
        for one in declared or [tool]:
            inner = mapping_of(one.get("function")) or mapping_of(one.get("toolSpec")) or one
            name = name_of(inner.get("name")) or name_of(inner.get("type"))
            if name is not None:
                found[name] = inner
    return found


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


def _bedrock(asked: Json) -> list[Json]:
    return items_of(mapping_of(asked.get("toolConfig")).get("tools"))
