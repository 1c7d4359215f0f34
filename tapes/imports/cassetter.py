"""Cassettes of cassetter, whose bodies say what they are. Knows its format 1."""

from tapeproxy.tapes.imports import vcr
from tapeproxy.tapes.imports.foreign import Foreign
from tapeproxy.tapes.imports.nodes import Node


def is_cassette(root: Node) -> bool:
    """Whether a parsed file is one: a body of it has a type."""
    if not isinstance(root.value, dict):
        return False
    if any(name in root.value for name in ("grpc_interactions", "ws_interactions")):
        return True
    first = root.value.get("interactions") or []
    if not isinstance(first, list):
        return False
    sides = (one.get(side) for one in first if isinstance(one, dict) for side in ("request", "response"))
    bodies = (side.get("body") for side in sides if isinstance(side, dict))
    return any(isinstance(body, dict) and "type" in body for body in bodies)


def entries(root: Node) -> list[Node]:
    """Its interactions, of all kinds. Raises ForeignFormatError."""
    kinds = ("interactions", "grpc_interactions", "ws_interactions")
    return [entry for name in kinds if (found := root.get(name)) is not None for entry in found.items()]


def take(entry: Node) -> Foreign:
    """One interaction. Raises ForeignFormatError."""
    for kind, what in (("grpc_", "a gRPC call"), ("ws_", "a WebSocket")):
        if entry.place.startswith(kind):
            raise entry.wrong(f"{what} can't be put on a tape yet")
    plain = {
        side: node.mapping() | {"body": _body(node)} for side in ("request", "response") if (node := entry.need(side))
    }
    moment = entry.get("recorded_at")
    return vcr.take(Node(plain | {"recorded_at": None if moment is None else moment.value}, entry.place))


def _body(side: Node) -> bytes | None:
    body = side.get("body")
    kind = "none" if body is None else body.need("type").text()
    if body is None or kind == "none":
        return None
    if kind == "json":  # null is a value, and so is a text
        return vcr.json_text(Node([body.value.get("content")], body.place))[1:-1]
    content = body.need("content")
    match kind:
        case "text":
            return content.octets()
        case "binary":
            try:
                return bytes.fromhex(content.text())
            except ValueError:
                raise content.wrong("these are no hex digits") from None
        case _:
            raise body.wrong(f"bodies of the type {kind!r:.40} are not known here")
