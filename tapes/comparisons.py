"""How two exchanges differ that stand for each other: what was asked, what was answered. Pure; for people and reports.

Of an LLM call, what providers make up anew for each call does not count: ids, moments, fingerprints, tallies of tokens.
An answer that was streamed is compared as the message that it adds up to.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal

from tapeproxy.tapes.bodyforms import Body
from tapeproxy.tapes.calls import read_answered, read_messages
from tapeproxy.tapes.canonical import canonical_body
from tapeproxy.tapes.contexts import ContextChange, context_changes, message_text
from tapeproxy.tapes.conversation import Answered, Dialect, Media, Message, Part, Text, Thought, ToolCall, ToolResult
from tapeproxy.tapes.dialects.mcp import read_mcp
from tapeproxy.tapes.differences import Difference, body_differences, differences, json_differences
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.jsonvalues import read_json, write_json
from tapeproxy.tapes.messages import spoken
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.sides import Event, Side, telling_headers
from tapeproxy.tapes.toollists import listed, offered, tool_changes
from tapeproxy.tapes.wording import excerpts

type Change = Literal["request", "status", "ending", "response", "lane", "order"]
"""What of an event is another; stable words. `lane` and `order`: it is the same, elsewhere."""

_WORDS: Final[tuple[Change, ...]] = ("status", "ending")
_JSON: Final[Headers] = ((b"content-type", b"application/json"),)
_GIST: Final = 400
_MOST: Final = 100
"""Differences of one kind that are looked at."""
_ASKED_ANEW = re.compile(
    r"body \$(?:(?:\.(?:messages|content|tool_calls|input)\[\d+\])+"
    r"(?:\.(?:toolUse|toolResult|reasoningContent|reasoningText))*"
    r"\.(?:id|call_id|tool_call_id|tool_use_id|toolUseId|item_id|signature)"
    r"|(?:\.(?:contents|parts)\[\d+\])+(?:\.(?:functionCall|functionResponse)\.id|\.thoughtSignature)"
    r"|\.previous_response_id)"
)
_ANSWERED_ANEW = re.compile(
    r"body \$(?:\.(?:id|created|created_at|completed_at|system_fingerprint|service_tier|request_id|usage"
    r"|responseId|createTime|usageMetadata|metrics"
    r"|total_duration|load_duration|prompt_eval_duration|eval_duration)(?:[.\[].*)?"
    r"|(?:\.(?:choices|output|content|tool_calls|message|toolUse|reasoningContent|reasoningText)(?:\[\d+\])?)+"
    r"\.(?:id|call_id|item_id|toolUseId|signature)"
    r"|\.candidates\[\d+\](?:\.avgLogprobs|\.content\.parts\[\d+\]\.(?:functionCall\.id|thoughtSignature)))"
)
_CONVERSATION = re.compile(
    r"body \$\.(?:messages|input|instructions|system|prompt|contents|systemInstruction|system_instruction)(?:[.\[].*)?$"
)


@dataclass(frozen=True, slots=True)
class Details:
    """How two exchanges differ. `request` and `response`: place by place. Of LLM calls, `context` is what happened to
    the messages, which `request` leaves out then, and `messages` are those of both. `tools`: how the list of tools
    changed that a model is offered, or that a server answers with."""

    request: tuple[Difference, ...] = ()
    response: tuple[Difference, ...] = ()
    context: tuple[ContextChange, ...] = ()
    messages: tuple[tuple[Message, ...], tuple[Message, ...]] = ((), ())
    tools: str = ""


def changes(ours: Side, theirs: Side, one: Event, other: Event) -> tuple[Change, ...]:
    """What of two events is another, as far as the exchanges themselves go."""
    asked, answered = one.key != other.key, one.answer != other.answer
    if not asked and not answered:
        return ()
    dialects = _dialects(ours, theirs, one, other)
    out: list[Change] = []
    # What is plainly another need not be told place by place, which takes ten times as long.
    if asked and (
        dialects is None
        or one.loose != other.loose
        or any(True for _ in _request(ours, theirs, one, other, is_call=True))
    ):
        out.append("request")
    if answered:
        out += _changes_of_answer(ours.exchange(one.number), theirs.exchange(other.number), ours, dialects)
    return tuple(out)


type _Dialects = tuple[Dialect, Dialect] | None
"""Of two calls of models of which not every byte counts."""


def _dialects(ours: Side, theirs: Side, one: Event, other: Event) -> _Dialects:
    if ours.strict or (first := ours.dialect(one)) is None or (second := theirs.dialect(other)) is None:
        return None
    return first, second


def _changes_of_answer(a: Exchange, b: Exchange, side: Side, dialects: _Dialects) -> Iterator[Change]:
    places = {found.where for found in _outlines(a, b)}
    yield from (word for word in _WORDS if word in places)
    if a.response is None or b.response is None:
        return
    if any(True for _ in _headers(a, b, strict=side.strict)) or _another_body(a, b, side, dialects):
        yield "response"


def _another_body(a: Exchange, b: Exchange, side: Side, dialects: _Dialects) -> bool:
    if dialects is None:
        return _canonical(a, side).canonical != _canonical(b, side).canonical
    messages = [read_answered(one, dialect)[0].message for one, dialect in zip((a, b), dialects, strict=True)]
    said = [_plain((message,)) if message is not None else () for message in messages]
    return said[0] != said[1] or any(True for _ in _answers(a, b, side, dialects))


def details(ours: Side, theirs: Side, one: Event, other: Event) -> Details:
    """How the exchanges of two events differ, in full up to a limit."""
    a, b = ours.exchange(one.number), theirs.exchange(other.number)
    before, after = _messages(a), _messages(b)
    dialects = _dialects(ours, theirs, one, other)
    asked: list[Difference] = []
    context: tuple[ContextChange, ...] = ()
    if one.key != other.key:
        asked = list(islice(_request(ours, theirs, one, other, is_call=dialects is not None), _MOST))
        changes = context_changes(_plain(before), _plain(after)) if before and after else iter(())
        context = tuple(islice(changes, _MOST))
    if context:
        asked = [found for found in asked if not _CONVERSATION.match(found.where)]
    answered: tuple[Difference, ...] = ()
    if one.answer != other.answer:
        answered = tuple(islice(_response(a, b, ours, dialects), _MOST))
    return Details(tuple(asked), answered, context, (before, after), _tools(a, b))


def gist(exchange: Exchange) -> str:
    """What an exchange is about, in a few words: an LLM call's last message, a message of MCP; empty for others."""
    messages = _messages(exchange)
    if not messages:
        call = read_mcp(exchange)
        return "" if call is None else call.title
    text = " ".join(message_text(messages[-1])[:_GIST].split())
    return f"{messages[-1].role}: {excerpts(text, None)[0]}"


def _tools(a: Exchange, b: Exchange) -> str:
    asked = [offered(one.request.headers, one.request_body) for one in (a, b)]
    return tool_changes(*asked) or tool_changes(listed(a), listed(b))


def _messages(exchange: Exchange) -> tuple[Message, ...]:
    request = exchange.request
    return read_messages(request.url, request.headers, exchange.request_body)


def _plain(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Messages without the ids of tool calls."""
    return tuple(replace(message, parts=tuple(map(_without_id, message.parts))) for message in messages)


def _without_id(part: Part) -> Part:
    return replace(part, id=None) if isinstance(part, ToolCall | ToolResult) else part


def _request(ours: Side, theirs: Side, one: Event, other: Event, *, is_call: bool) -> Iterator[Difference]:
    a, b = ours.identity(one.number), theirs.identity(other.number)
    if a is None or b is None:
        urls = [side.exchange(event.number).request.url for side, event in ((ours, one), (theirs, other))]
        yield Difference("url", *(url[:200].decode("latin-1") for url in urls))
        return
    anew: list[Difference] = []
    found = False
    for difference in differences(a, b):
        plain = _told(difference)
        if is_call and _is_anew(difference, _ASKED_ANEW):
            anew.append(plain)
        else:
            found = True
            yield plain
    if not _renamed(anew):  # one id became two: these are other references, not other names
        yield from anew
    elif not found and not anew:
        yield Difference("body", "(what it holds cannot be shown)", "(what it holds cannot be shown)")


def _is_anew(difference: Difference, places: re.Pattern[str]) -> bool:
    return difference.taped is not None and difference.asked is not None and bool(places.fullmatch(difference.where))


def _renamed(anew: list[Difference]) -> bool:
    """Whether each id became one other, and no two the same."""
    pairs = {(found.taped, found.asked) for found in anew}
    return len({a for a, _ in pairs}) == len(pairs) == len({b for _, b in pairs})


def _response(a: Exchange, b: Exchange, side: Side, dialects: _Dialects) -> Iterator[Difference]:
    yield from _outlines(a, b)
    if a.response is not None and b.response is not None:
        yield from _headers(a, b, strict=side.strict)
        yield from _bodies(a, b, side) if dialects is None else _answers(a, b, side, dialects)


def _outlines(a: Exchange, b: Exchange) -> Iterator[Difference]:
    was, now = (str(one.response.status) if one.response is not None else None for one in (a, b))
    if was != now:
        yield Difference("status", was, now)
    was, now = (one.end.how if one.end is not None else None for one in (a, b))
    if was != now:
        yield Difference("ending", was, now)


def _headers(a: Exchange, b: Exchange, *, strict: bool) -> Iterator[Difference]:
    assert a.response is not None
    assert b.response is not None
    taped, asked = (telling_headers(one.headers, strict=strict) for one in (a.response, b.response))
    for name in dict.fromkeys(name for name, _ in (*taped, *asked)):
        was, now = (b", ".join(value for n, value in side if n == name).decode("latin-1") for side in (taped, asked))
        if was != now:
            yield Difference(f"header {name.decode('latin-1')}", was or None, now or None)


def _answers(a: Exchange, b: Exchange, side: Side, dialects: tuple[Dialect, Dialect]) -> Iterator[Difference]:
    (one, streamed), (other, also) = read_answered(a, dialects[0]), read_answered(b, dialects[1])
    if not (streamed or also):
        yield from (found for found in _bodies(a, b, side) if not _is_anew(found, _ANSWERED_ANEW))
        return
    for found in json_differences(answer_document(one), answer_document(other)):
        yield replace(_told(found), where=found.where.replace("body ", "answer ", 1))


def answer_document(answered: Answered) -> dict[str, Any]:
    """An answer as JSON, whatever the pieces it came in."""
    parts = answered.message.parts if answered.message is not None else ()
    out: dict[str, Any] = {
        "model": answered.model,
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "thought": "".join(part.text for part in parts if isinstance(part, Thought)),
        "tool_calls": [{"name": p.name, "arguments": _arguments(p)} for p in parts if isinstance(p, ToolCall)],
        "tool_results": [message_text(Message("", (p,))) for p in parts if isinstance(p, ToolResult)],
        "media": [f"{part.kind} {part.detail}" for part in parts if isinstance(part, Media)],
        "stop": answered.stop,
        "error": answered.error,
    }
    return {name: value for name, value in out.items() if value}


def _arguments(call: ToolCall) -> Any:
    value, good = read_json(call.arguments.encode(errors="surrogatepass"))
    return value if good else call.arguments


def _bodies(a: Exchange, b: Exchange, side: Side) -> Iterator[Difference]:
    yield from map(_told, body_differences(_canonical(a, side), _canonical(b, side)))


def _told(found: Difference) -> Difference:
    """Without what is for whoever makes rules: two small numbers are no counter here."""
    return replace(found, rule="", kind="" if found.kind in ("counter", "path") else found.kind)


def _canonical(exchange: Exchange, side: Side) -> Body:
    assert exchange.response is not None
    if exchange.frames:
        told = write_json(spoken(exchange.frames)) or b"".join(frame.data for frame in exchange.frames)
        return canonical_body(_JSON, told, marks=side.reading.marks)[1]
    return canonical_body(exchange.response.headers, exchange.response_body, marks=side.reading.marks)[1]
