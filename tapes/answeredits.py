"""An exchange with another answer: its body, its stream, its status or its headers changed, and all else as it was.

The body is decoded, edited and encoded as it was; lengths are put right. Boundaries and times of chunks stay where the
body is not compressed; a compressed one is cut where it was cut, byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tapeproxy.tapes.assembled import Assembled, path_of
from tapeproxy.tapes.calls import dialect_of
from tapeproxy.tapes.codings import Decoded, decode, header, looks_like_text
from tapeproxy.tapes.dialects.places import PLACES
from tapeproxy.tapes.eventtexts import EventTexts, read_events
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.jsonedits import Change, UnfitError, edit_json, json_edits, write_value
from tapeproxy.tapes.jsonpaths import JsonPath, Step, parse_path
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.recoding import encode
from tapeproxy.tapes.records import End, Headers, Response
from tapeproxy.tapes.splicing import Edit, recut, splice
from tapeproxy.tapes.statuses import reason_of

_LENGTH: Final = b"content-length"
_FRAMING: Final = frozenset({_LENGTH, b"transfer-encoding", b"content-encoding"})
_SUMS: Final = frozenset({b"content-md5", b"digest", b"content-digest", b"repr-digest"})
_SUM_PREFIXES: Final = (b"x-amz-checksum-", b"x-goog-hash")
_BODILESS: Final = (204, 304)


@dataclass(slots=True)
class Draft:
    """An answer that is being edited. `pieces`: the plain body, cut as its chunks are."""

    exchange: Exchange
    response: Response | None
    decoded: Decoded
    pieces: list[bytes]
    dialect: str | None
    ended: bool = False
    """It ends in order, however it ended on the tape."""

    @property
    def body(self) -> bytes:
        """The plain body as it is now."""
        return b"".join(self.pieces)

    @property
    def headers(self) -> Headers:
        """The answer's headers."""
        return () if self.response is None else self.response.headers

    @property
    def events(self) -> EventTexts | None:
        """The events of the body, where it is a stream of them."""
        return read_events(self.body, self.headers, listed=self.dialect is not None and PLACES[self.dialect].listed)


def open_draft(exchange: Exchange) -> Draft:
    """The answer of an exchange, for editing."""
    request, response = exchange.request, exchange.response
    decoded = decode(exchange.response_body, () if response is None else response.headers)
    plain = [chunk.data for chunk in exchange.chunks] if not decoded.coding else [decoded.data]
    dialect = dialect_of(request.url, request.headers, exchange.request_body)
    return Draft(exchange, response, decoded, plain, dialect)


def close_draft(draft: Draft) -> Exchange:
    """The exchange with the edited answer."""
    exchange, response = draft.exchange, draft.response
    if response is None:
        return exchange
    old = exchange.response_body
    coding = draft.decoded.coding
    pieces = [chunk.data for chunk in exchange.chunks]
    if coding and draft.body != draft.decoded.data:
        pieces = recut(pieces, encode(draft.body, coding)) or [encode(draft.body, coding)]
    elif not coding:
        pieces = draft.pieces
    if not _may_have_body(draft):
        pieces = []
    body = b"".join(pieces)
    if body != old or (response.framing == "none" and _may_have_body(draft)):
        response = _with_length(response, len(body))
    return replace(exchange, response=response, chunks=_chunks(draft, response, pieces, old), end=_end(draft, response))


def _may_have_body(draft: Draft) -> bool:
    response = draft.response
    head = draft.exchange.request.method.upper() == b"HEAD"
    return response is not None and response.status not in _BODILESS and not head


def _chunks(draft: Draft, response: Response, pieces: Sequence[bytes], old: bytes) -> list[Chunk]:
    chunks = draft.exchange.chunks
    if b"".join(pieces) == old:
        return chunks
    times = [chunk.t for chunk in chunks] or [response.t] * len(pieces)
    # A chunk of no bytes would end a chunked body.
    return [Chunk(t, data) for t, data in zip(times, pieces, strict=False) if data]


def _end(draft: Draft, response: Response) -> End | None:
    end = draft.exchange.end
    if not draft.ended or (end is not None and end.how == "complete"):
        return end
    return End(t=response.t if end is None else end.t, of=draft.exchange.index, how="complete")


def _with_length(response: Response, length: int) -> Response:
    """The response to a body of another length: what was computed of the old one is computed anew, or goes."""
    headers = [
        (name, b"%d" % length if name.lower() == _LENGTH else value)
        for name, value in response.headers
        if name.lower() not in _SUMS and not name.lower().startswith(_SUM_PREFIXES)
    ]
    framing = response.framing
    if response.status in _BODILESS:
        headers = [one for one in headers if one[0].lower() not in _FRAMING]
        framing = "none"
    elif framing == "none":
        framing = "length"
        headers = [one for one in headers if one[0].lower() not in _FRAMING] + [(b"content-length", b"%d" % length)]
    return replace(response, headers=tuple(headers), framing=framing)


# --- the body ------------------------------------------------------------------------------------------------------


def change_json(draft: Draft, path: JsonPath, change: Change) -> None:
    """Change a JSON body, or what a stream of events adds up to. Raises UnfitError."""
    _check_body(draft)
    events = draft.events
    if events is None:
        _check_json(draft)
        draft.pieces = splice(draft.pieces, json_edits(draft.body, path, change))
        return
    assembled = assemble(draft, events)
    if assembled is None:
        last = len(events.events) - 1
        raise UnfitError(
            f"the answer is a stream of {last + 1} events, not one JSON value: name one, as $events[0] (to [{last}])"
        )
    new = read_json(edit_json(write_value(assembled.document()), path, change))[0]
    set_document(draft, events, assembled, new)


def set_document(draft: Draft, events: EventTexts, assembled: Assembled, new: object) -> None:
    """Give a stream what changes its assembled answer to `new`. Raises UnfitError."""
    texts = {number: event.text for number, event in enumerate(events.events)}
    changed: dict[int, bytes] = {}
    for keys, value in assembled.changes(new):
        changed |= assembled.rewritten(keys, value, {**texts, **changed})
    draft.pieces = splice(draft.pieces, sorted(events.edits(changed)))


def assemble(draft: Draft, events: EventTexts) -> Assembled | None:
    """What the events of a stream add up to, where its dialect is known."""
    if draft.dialect is None:
        return None
    values = ((number, read_json(event.text)[0]) for number, event in enumerate(events.events))
    assembled = PLACES[draft.dialect].assemble([(n, value) for n, value in values if isinstance(value, dict)])
    return assembled if assembled.slots else None


def change_events(draft: Draft, steps: Sequence[Step], change: Change) -> None:
    """Change single events of a stream: the first step says which. Raises UnfitError."""
    _check_body(draft)
    events = draft.events
    if events is None:
        raise UnfitError("the answer is no stream of events: its body is $")
    size = len(events.events)
    if not steps:
        if change.operation != "append":
            raise UnfitError(f"$events are {size}: name one, as $events[0], or append one with +=")
        draft.pieces = splice(draft.pieces, [_added(events, change)])
        return
    which = steps[0].name
    if steps[0].deep or isinstance(which, str):
        raise UnfitError(f"events have numbers: $events[0] to $events[{size - 1}], or $events[*]")
    if which is not None and which >= size:
        raise UnfitError(f"there is no event {which}: the stream has {size}, $events[0] to $events[{size - 1}]")
    changed: dict[int, bytes | None] = {}
    miss: UnfitError | None = None
    for number in range(size) if which is None else [which]:
        try:
            changed[number] = _changed_event(events.events[number].text, JsonPath(tuple(steps[1:])), change)
        except UnfitError as error:
            miss = miss or UnfitError(f"event {number}: {error}")
    if miss is not None and not changed:
        raise miss
    draft.pieces = splice(draft.pieces, sorted(events.edits(changed)))


def _changed_event(text: bytes, path: JsonPath, change: Change) -> bytes | None:
    if path.steps or change.operation == "append":
        try:
            return edit_json(text, path, change)
        except UnfitError as error:
            if read_json(text)[1]:
                raise
            raise UnfitError(f"{error}, but {text[:80].decode(errors='replace')!r}") from None
    if change.operation == "delete":
        return None
    return change.value.encode() if isinstance(change.value, str) else write_value(change.value)


def _added(events: EventTexts, change: Change) -> Edit:
    """One more event, before the `[DONE]` of those that have one."""
    if events.form == "frames":
        raise UnfitError("no message can be added to an AWS event stream: change one that is there")
    text = change.value.encode() if isinstance(change.value, str) else write_value(change.value)
    last = next((event for event in reversed(events.events) if read_json(event.text)[1]), events.events[-1])
    if events.form == "list":
        return Edit(last.end, last.end, b",\n" + text)
    if events.form == "lines":
        return Edit(last.end, last.end, (b"" if events.body[: last.end].endswith(b"\n") else b"\n") + text + b"\n")
    raw = events.body[last.start : last.end]
    closed = raw.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
    kind = change.value.get("type") if isinstance(change.value, dict) else None
    named = b"event: %b\n" % kind.encode() if isinstance(kind, str) and b"event:" in raw else b""
    return Edit(last.end, last.end, (b"" if closed else b"\n\n") + named + b"data: " + text + b"\n\n")


def change_text(draft: Draft, text: str) -> None:
    """Give the assistant's message, or a body that is only text, other words. Raises UnfitError."""
    _check_body(draft)
    events = draft.events
    value, readable = (None, False) if events is not None else read_json(draft.body)
    if draft.dialect is not None and (events is not None or isinstance(value, dict)):
        assembled = None if events is None else assemble(draft, events)
        spoken = PLACES[draft.dialect].words(value or {}) if assembled is None else assembled.words()
        paths = [path_of(keys) for keys in spoken]
        if len(paths) == 1:
            change_json(draft, parse_path(paths[0]), Change("set", text))
            return
        if paths:
            raise UnfitError(f"the answer has {len(paths)} texts: set one of them, {' or '.join(paths[:4])}")
        raise UnfitError("the answer has no text: " + _contents(draft))
    if events is not None or readable or not looks_like_text(draft.body):
        raise UnfitError("the answer is not that of a model: " + _contents(draft))
    draft.pieces = recut(draft.pieces, text.encode()) or [text.encode()]


def change_body(draft: Draft, body: bytes) -> None:
    """Give the answer another body, whole. Raises UnfitError."""
    if draft.response is None:
        raise UnfitError(_nothing(draft))
    if not _may_have_body(draft):
        what = f"{draft.exchange.request.method.decode('latin-1')} of status {draft.response.status}"
        raise UnfitError(f"the answer to a {what} has no body: set another status first")
    if draft.decoded.coding or not draft.pieces:
        draft.pieces = [body]
    else:
        draft.pieces = recut(draft.pieces, body)
    if draft.decoded.coding:
        draft.decoded = replace(draft.decoded, whole=True)
    draft.ended = True


def _contents(draft: Draft) -> str:
    events = draft.events
    if events is not None:
        return f"it is a stream of {len(events.events)} events; set $events[N] or a value of $, or give a whole --body"
    kind = header(draft.headers, b"content-type").decode("latin-1") or "of no type"
    return f"its body ({kind}, {len(draft.body)} bytes) can be changed with --set $… where it is JSON, or with --body"


def _check_body(draft: Draft) -> None:
    if draft.response is None:
        raise UnfitError(_nothing(draft))
    if not draft.decoded.whole:
        raise UnfitError(f"the body cannot be edited: {draft.decoded.note}; give a whole one with --body")


def _check_json(draft: Draft) -> None:
    if not read_json(draft.body)[1]:
        raise UnfitError("the body is not JSON: " + _contents(draft))


def _nothing(draft: Draft) -> str:
    end = draft.exchange.end
    how = "the tape stops before it" if end is None else end.how
    return f"there is no answer ({how}): give it one with --status and --body"


# --- status and headers --------------------------------------------------------------------------------------------


def change_status(draft: Draft, status: int) -> None:
    """Give the answer another status; where there was no answer, one without a body."""
    reason = reason_of(status)
    if draft.response is not None:
        draft.response = replace(draft.response, status=status, reason=reason)
        if status in _BODILESS:
            draft.pieces = []
        return
    exchange = draft.exchange
    t = exchange.request.t if exchange.end is None else exchange.end.t
    headers = ((b"content-length", b"0"),)
    draft.response = Response(t=t, of=exchange.index, status=status, reason=reason, headers=headers)
    draft.ended = True


def change_header(draft: Draft, name: str, operation: str, value: str = "") -> None:
    """Set a header in the place of all of that name, add one more, or delete them. Raises UnfitError."""
    response = draft.response
    if response is None:
        raise UnfitError(_nothing(draft))
    draft.response = replace(response, headers=changed_headers(response.headers, name, operation, value))


def changed_headers(headers: Headers, name: str, operation: str, value: str) -> Headers:
    """Headers with one set, appended or deleted. Raises UnfitError."""
    key = name.lower().encode("latin-1")
    if key in _FRAMING:
        raise UnfitError(f"{name} follows from the body, and is put right with it")
    there = [n for n, (one, _) in enumerate(headers) if one.lower() == key]
    new = (name.encode("latin-1"), value.encode("latin-1"))
    if operation == "append" or (operation == "set" and not there):
        return (*headers, new)
    if not there:
        names = ", ".join(dict.fromkeys(one.decode("latin-1").lower() for one, _ in headers))
        raise UnfitError(f"there is no header {name}: there are {names}" if names else "there are no headers")
    kept = [one for n, one in enumerate(headers) if n not in there]
    if operation == "set":
        kept.insert(there[0], (headers[there[0]][0], new[1]))
    return tuple(kept)
