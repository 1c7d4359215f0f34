"""The reply script: a small TOML or JSON file as frozen dataclasses. Knows the file's shape, not how it is played.

`parse_script` is pure (text in, `Script` out); `load_script` reads the file. docs/FAKE_PROVIDER.md lists the keys.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, Literal, cast, get_args

from tapeproxy.testing.conversation import ToolCall
from tapeproxy.testing.tables import ScriptError, Table

type Api = Literal["openai-chat", "openai-responses", "openai-realtime", "anthropic-messages", "gemini", "search"]

APIS: Final[tuple[str, ...]] = get_args(Api.__value__)


@dataclass(frozen=True, slots=True)
class When:
    """Which requests an entry is for; everything that is given must hold.

    `user` and a string `tool_result` are looked for in the last user text and the last tool result, ignoring case;
    `tool_result` True or False asks whether there is one at all. `model` may use * and ?. `nth` counts the requests
    for which the rest of this holds, from 1.
    """

    api: Api | None = None
    user: str | None = None
    model: str | None = None
    tool_result: bool | str | None = None
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an answer travels. Times are milliseconds.

    `delay_ms` is waited before the head, a random part of `gap_ms` (low, high) before each event of a stream.
    `cut_after` closes the connection after so many events of a stream, or half-way through any other body. `reset`
    breaks the connection with a TCP reset: in place of that close, or else before the head.
    """

    delay_ms: float = 0
    gap_ms: tuple[float, float] = (0, 4)
    gzip: bool = False
    cut_after: int | None = None
    reset: bool = False
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply. Without `text`, `tool_calls` or an error `status` the default answer is given, delivered this way.

    A tool call whose arguments are None gets them from the tool's schema. `times` limits how often it is used.
    """

    when: When = When()
    text: str | None = None
    tool_calls: tuple[ToolCall | str, ...] = ()
    status: int = 200
    message: str = ""
    retry_after: float | None = None
    times: int | None = None
    delivery: Delivery = Delivery()


@dataclass(frozen=True, slots=True)
class Script:
    """Entries in order; the first that fits a request answers it. `delivery` is for requests that none fits."""

    entries: tuple[Entry, ...] = ()
    delivery: Delivery = Delivery()
    source: str = field(default="script", compare=False)


def load_script(path: Path) -> Script:
    """Read a `.toml` or `.json` script file; raises ScriptError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ScriptError(f"the script can't be read: {reason}", source=str(path), fix="check the path") from error
    return parse_script(text, str(path))


def parse_script(text: str, source: str) -> Script:
    """Parse a script's text, as JSON when `source` ends in .json, else as TOML; raises ScriptError."""
    is_json = source.endswith(".json")
    try:
        data: object = json.loads(text) if is_json else tomllib.loads(text)
    except ValueError as error:
        language = "JSON" if is_json else "TOML"
        raise ScriptError(f"not {language}: {error}", source=source, fix=f"fix the {language} there") from error
    return read_script(data, source)


def read_script(data: object, source: str = "script") -> Script:
    """Build a Script from parsed data: `{"reply": [{…}, …], "delay_ms": …}`; raises ScriptError."""
    table = Table(data, source, 0, "the script")
    table.allow({"reply", *_DELIVERY_KEYS})
    delivery = _delivery(table, Delivery())
    replies = table.data.get("reply", [])
    if not isinstance(replies, list):
        raise table.error("'reply' must be a list", "write each reply as a [[reply]] table")
    entries = (_entry(Table(reply, source, n, "a reply"), delivery) for n, reply in enumerate(replies, 1))
    return Script(tuple(entries), delivery, source)


_DELIVERY_KEYS: Final = tuple(item.name for item in fields(Delivery))
_ENTRY_KEYS: Final = tuple(item.name for item in fields(Entry) if item.name != "delivery") + _DELIVERY_KEYS
_WHEN_KEYS: Final = tuple(item.name for item in fields(When))


def _entry(table: Table, inherited: Delivery) -> Entry:
    table.allow(_ENTRY_KEYS)
    when = _when(table.inner("when"))
    entry = Entry(
        when=when,
        text=table.text("text"),
        tool_calls=tuple(_tool_call(table, call) for call in table.items("tool_calls")),
        status=_status(table),
        message=table.text("message") or "",
        retry_after=table.number("retry_after"),
        times=table.whole("times", least=1),
        delivery=_delivery(table, inherited),
    )
    answers = entry.text is not None or bool(entry.tool_calls)
    if answers and entry.status >= 400:
        raise table.error("has both an answer and an error status", "keep 'status', or 'text' and 'tool_calls'")
    if answers and when.api == "search":
        raise table.error("gives a model's answer to the search API", "the search API takes 'status' and delivery keys")
    return entry


def _when(table: Table) -> When:
    table.allow(_WHEN_KEYS)
    api = table.text("api")
    if api is not None and api not in APIS:
        raise table.error(f"'api' is {api!r}", f"use one of {', '.join(APIS)}")
    result = table.data.get("tool_result")
    if not isinstance(result, bool | str | None):
        raise table.error(
            "'tool_result' must be true, false or a text", "say whether there is one, or what it contains"
        )
    return When(
        api=cast("Api | None", api),
        user=table.text("user"),
        model=table.text("model"),
        tool_result=result,
        nth=table.whole("nth", least=1),
    )


def _tool_call(table: Table, call: object) -> ToolCall | str:
    """A call with its arguments, or only the tool's name when the arguments are to be made up."""
    name = call.get("name") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(name, str) or set(call) - {"name", "arguments"}:
        raise table.error("a tool call is not { name, arguments }", 'write { name = "get_weather", arguments = { … } }')
    if "arguments" not in call:
        return name
    if not isinstance(call["arguments"], Mapping):
        raise table.error(f"the arguments of {name!r} are not a table", "arguments are { key = value }")
    return ToolCall(name, call["arguments"])


def _status(table: Table) -> int:
    status = table.whole("status", least=200)
    if status is None or status == 200 or 400 <= status <= 599:
        return status or 200
    raise table.error(f"'status' is {status}", "use 200, or an error from 400 to 599")


def _delivery(table: Table, inherited: Delivery) -> Delivery:
    delay, gap, cut = table.number("delay_ms"), _gap(table), table.whole("cut_after", least=0)
    gzip, reset = table.flag("gzip"), table.flag("reset")
    return Delivery(
        delay_ms=inherited.delay_ms if delay is None else delay,
        gap_ms=inherited.gap_ms if gap is None else gap,
        gzip=inherited.gzip if gzip is None else gzip,
        cut_after=inherited.cut_after if cut is None else cut,
        reset=inherited.reset if reset is None else reset,
        headers=inherited.headers + _headers(table.inner("headers")),
    )


def _gap(table: Table) -> tuple[float, float] | None:
    gap = table.data.get("gap_ms")
    if gap is None:
        return None
    match gap:
        case [int() | float() as low, int() | float() as high] if 0 <= low <= high < math.inf:
            return low, high
    raise table.error("'gap_ms' must be two numbers, the smaller first", "write gap_ms = [0, 20]")


def _headers(table: Table) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for name, given in table.data.items():
        for value in given if isinstance(given, list) else [given]:
            if not isinstance(value, str):
                raise table.error(f"the header {name!r} is not a text or a list of texts", "quote the value")
            pairs.append((name.lower(), value))
    return tuple(pairs)
