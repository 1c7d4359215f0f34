"""A tape as plain JSON: record by record for programs, or exchange by exchange for eyes and `git diff`. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from blake3 import blake3

from tapeproxy.tapes.agentnames import askers_of
from tapeproxy.tapes.calls import find_dialect, read_answered
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.comparisons import answer_document
from tapeproxy.tapes.decoder import Entry
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.lanepairs import depth_first
from tapeproxy.tapes.messages import Message, read_frames
from tapeproxy.tapes.records import Headers, Json
from tapeproxy.tapes.sides import telling_headers

_REQUEST_HEADERS: Final = frozenset({b"content-type", b"content-encoding"})


def record_document(entry: Entry) -> Json:
    """A record as docs/FORMAT.md has it, its body whole instead of a reference, without the hash of the line."""
    return {"k": entry.record.kind, "i": entry.index} | entry.record.to_json()


def run_document(tape: Tape) -> Json:
    """What was run and how it ended."""
    done = tape.exit
    return {
        "argv": list(tape.head.argv),
        "exit_code": None if done is None else done.code,
        "signal": None if done is None else done.signal,
        "exchanges": len(tape.exchanges),
    }


def exchange_documents(tape: Tape) -> Iterator[Json]:
    """Each exchange without times, numbers and what else is new in every run, lane by lane.

    So two recordings of one conversation are the same text, and what a change changed is few lines of a diff.
    """
    names = askers_of(tape, unique=False)
    lanes: dict[str, list[int]] = {}
    places = [(exchange.request.lane or "", exchange.request.n) for exchange in tape.exchanges]
    for at, (lane, _) in enumerate(places):
        lanes.setdefault(lane, []).append(at)
    for lane in sorted(lanes, key=depth_first):
        in_turn = sorted(lanes[lane], key=lambda at: -1 if (n := places[at][1]) is None else n)
        for at in in_turn:
            told = {"lane": lane} | ({"name": names[at + 1]} if at + 1 in names else {}) if lane else {}
            yield told | _exchange_document(tape.exchanges[at])


def _exchange_document(exchange: Exchange) -> Json:
    request, response, end = exchange.request, exchange.response, exchange.end
    asked: Json = {"method": request.method.decode("latin-1"), "url": request.url.decode("latin-1")}
    headers = tuple(pair for pair in request.headers if pair[0].lower() in _REQUEST_HEADERS)
    out: Json = {"request": asked | _content(headers, exchange.request_body, request.headers)}
    if response is not None:
        out["response"] = {"status": response.status} | _answer(exchange, response.headers)
    if exchange.frames:
        out["messages"] = [_said(one) for one in read_frames(exchange.frames) if one.type not in ("ping", "pong")]
    how = "unfinished" if end is None else end.how
    if how != "complete":
        out["ending"] = how
    return out


def _said(message: Message) -> Json:
    out: Json = {"from": message.sender}
    if message.type in ("close", "untaped"):
        return out | {message.type: message.code, "reason": message.data.decode(errors="replace")}
    return out | {"message": _body(message.data)} | ({} if message.whole else {"whole": False})


def _answer(exchange: Exchange, headers: Headers) -> Json:
    dialect = find_dialect(exchange)
    if dialect is not None:
        answered, _ = read_answered(exchange, dialect)
        if answered.message is not None or answered.error:
            return {"message": unfolded(answer_document(answered))}
    return _content(telling_headers(headers, strict=False), exchange.response_body, headers)


def _content(shown: Headers, body: bytes, headers: Headers) -> Json:
    out: Json = {}
    if shown:
        out["headers"] = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in shown}
    if body:
        out["body"] = _body(decode(body, headers).data)
    return out


def _body(data: bytes) -> Any:
    value, good = read_json(data)
    if good:
        return unfolded(value)
    try:
        return unfolded(data.decode())
    except UnicodeDecodeError:
        return {"bytes": len(data), "blake3": blake3(data).hexdigest()}


def unfolded(value: Any) -> Any:
    """A JSON value in which each text of several lines is an object `lines`: a diff shows those that changed."""
    if isinstance(value, dict):
        return {name: unfolded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [unfolded(item) for item in value]
    return {"lines": value.split("\n")} if isinstance(value, str) and "\n" in value else value
