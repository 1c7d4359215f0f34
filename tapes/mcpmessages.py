"""Messages of a stdio MCP server: JSON-RPC by the line, read as far as a tape needs. Knows no pipe and no tape.

A message is taped as an exchange, so it has a place: `http://NAME.mcp-stdio.invalid/METHOD`. No host of the world ends
in `.invalid` (RFC 2606). What a client numbers as it likes (ids, progress tokens) is no part of what it asks: it stands
as 0 in a request's body, and its own value goes into the headers of the answer.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

from tapeproxy.tapes.hosts import MCP_STDIO
from tapeproxy.tapes.jsonspans import Node, read_spans
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.splicing import Edit, apply, settled

type Kind = Literal["request", "notification", "response", "batch", "text"]

JSON: Final = ((b"content-type", b"application/json"),)
ERROR_CODE: Final = 470
"""Of the JSON-RPC error that stands for a violation; those of the protocol are negative."""
_SPLICED: Final = 1 << 20
"""A longer message is written anew to change an id, for to find its place would take a second."""
_NAME = re.compile(r"[^a-z0-9-]+")
_RUNNERS = frozenset(("bun", "bunx", "deno", "docker", "node", "npx", "pipx", "uv", "uvx"))
_PASSED_OVER = frozenset(("run", "exec", "tool", "x", "-y", "--yes", "-m"))
_ID: Final = ("id",)
_TOKEN: Final = ("params", "_meta", "progressToken")
_CANCELLED: Final = ("params", "requestId")
_REPORTED: Final = ("params", "progressToken")

type Key = tuple[str, ...]


class Message(NamedTuple):
    """A line as it was sent, without its newline. `id` and `token` are None where it has none.

    `value` is what the JSON says. `ids`: of a batch, those of its requests; else that of the message itself.
    """

    raw: bytes
    kind: Kind
    value: Any = None
    method: str = ""
    id: Any = None
    token: Any = None
    ids: tuple[Any, ...] = ()

    @property
    def path(self) -> str:
        """Where it goes in the URL of its exchange."""
        return quote(self.method, safe="/$-._~") if self.method else f"-/{self.kind}"

    @property
    def wants_answer(self) -> bool:
        """Whether the other side has to say something to it."""
        return bool(self.ids) and self.kind in ("request", "batch")


def read_message(raw: bytes) -> Message:
    """Read a line. What is no JSON-RPC is text; nothing raises."""
    value, is_json = read_json(raw)
    if not is_json:
        return Message(raw, "text")
    if isinstance(value, list):
        asked = tuple(one["id"] for one in value if isinstance(one, dict) and _is_id(one.get("id")) and "method" in one)
        answered = tuple(
            one["id"] for one in value if isinstance(one, dict) and _is_id(one.get("id")) and "method" not in one
        )
        return Message(raw, "batch", value, ids=asked or answered)
    if not isinstance(value, dict):
        return Message(raw, "text", value)
    method, number = value.get("method"), value.get("id")
    if isinstance(method, str) and method:
        token = _found(value, _TOKEN)
        if _is_id(number):
            return Message(raw, "request", value, method, number, token, (number,))
        return Message(raw, "notification", value, method)
    if "result" in value or "error" in value:
        return Message(raw, "response", value, id=number, ids=(number,) if _is_id(number) else ())
    return Message(raw, "text", value)


def canonical(message: Message, sent: Mapping[str, int]) -> bytes:
    """The bytes that are taped of what a client sent: without its own numbering.

    `sent` says of the id of a request, as `id_key` writes it, which message of the client's it was: that stands in
    the place of a cancelled request's id.
    """
    values: dict[Key, Any] = {}
    if message.kind == "request":
        values = {_ID: 0} | ({} if message.token is None else {_TOKEN: 0})
    elif message.method == "notifications/cancelled":
        cancelled = _found(message.value, _CANCELLED)
        if (key := id_key(cancelled)) in sent:
            values = {_CANCELLED: sent[key]}
    return with_values(message, values)


def addressed(raw: bytes, asked: Message) -> bytes:
    """A taped answer, with the id under which today's client has asked."""
    return with_values(read_message(raw), {_ID: asked.id}) if asked.kind == "request" else raw


def reporting(raw: bytes, tokens: Mapping[str, Any]) -> bytes:
    """A taped message of the server's own, with the progress tokens of today's client instead of the taped ones."""
    if not tokens:
        return raw
    message = read_message(raw)
    key = id_key(_found(message.value, _REPORTED))
    if message.method != "notifications/progress" or key not in tokens:
        return raw
    return with_values(message, {_REPORTED: tokens[key]})


def with_values(message: Message, values: Mapping[Key, Any]) -> bytes:
    """The message with other values at these places, where they are; every other byte as it was, if it is short."""
    values = {key: value for key, value in values.items() if _found(message.value, key) != value}
    if not values:
        return message.raw
    if len(message.raw) > _SPLICED:
        return _rewritten(message, values)
    root = read_spans(message.raw)
    edits = []
    for key, value in values.items():
        if root is not None and (node := _node(root, key)) is not None:
            edits.append(Edit(node.start, node.end, _dumped(value)))
    return apply(message.raw, settled(edits))


def _rewritten(message: Message, values: Mapping[Key, Any]) -> bytes:
    import copy

    changed = copy.deepcopy(message.value)
    for key, value in values.items():
        inner = changed
        for name in key[:-1]:
            inner = inner[name]
        inner[key[-1]] = value
    return _dumped(changed)


def id_key(value: Any) -> str:
    """An id or token as a key: 1 and "1" are two."""
    return _dumped(value).decode()


def url_of(name: str, path: str, session: int) -> bytes:
    """The URL of an exchange of the `session`-th process of the server that is called `name`, from 1."""
    query = "" if session == 1 else f"?session={session}"
    return f"http://{name}{MCP_STDIO}/{path}{query}".encode()


def server_name(argv: Sequence[str]) -> str:
    """What a server is called whose user did not say: by its script or package, not by who runs that."""
    words = [word for word in argv if word not in _PASSED_OVER]
    base = words[0].replace("\\", "/").rpartition("/")[2] if words else ""
    if len(words) > 1 and (base in _RUNNERS or base.startswith(("python", "pypy"))):
        base = next((word for word in words[1:] if not word.startswith("-")), base)
    return clean_name(base.replace("\\", "/").rpartition("/")[2].partition("@")[0].partition(".")[0]) or "server"


def clean_name(name: str) -> str:
    """A name as part of a host: lower-case letters, digits and hyphens, 63 at most; empty where nothing is left."""
    return _NAME.sub("-", name.lower()).strip("-")[:63].strip("-")


def violation_answer(asked: Message, text: str) -> bytes:
    """What a client gets for a request, or a batch of them, that is not on the tape."""
    error = {"code": ERROR_CODE, "message": text}
    errors = [{"jsonrpc": "2.0", "id": number, "error": error} for number in asked.ids]
    return _dumped(errors if asked.kind == "batch" else errors[0])


def _found(value: Any, key: Key) -> Any:
    for name in key:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _node(root: Node, key: Key) -> Node | None:
    node: Node | None = root
    for name in key:
        item = node.find(name) if node is not None and node.kind == "object" else None
        node = None if item is None else item.node
    return node


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _dumped(value: Any) -> bytes:
    import json

    # Half a surrogate pair is no UTF-8, but may stand as an escape.
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
