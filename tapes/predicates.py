"""A question about a run that a tape answers: whether a value stands at a JSON path of what the run concluded. Pure.

    $.final_state.total=42            $.answer.text~refund            $.requests[3].body.model!=gpt-4o

The run is good where it holds. VALUE is JSON if it can be read as such, else a string; `~` asks for a part of the text.
With a path that names several, one of them is enough; `!=` and `!~` are the opposites, true also where there is none.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from tapeproxy.tapes.calls import read_call
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.jsonpaths import JsonPath, parse_path
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Headers, Json

_OPERATORS: Final = ("!=", "!~", "=", "~")
_FINAL: Final = frozenset({"final", "final_state"})


@dataclass(frozen=True, slots=True)
class Predicate:
    """A parsed predicate; `text` is as it was given."""

    text: str
    path: JsonPath
    value: Any
    part: bool
    negated: bool

    def holds(self, tape: Tape) -> bool:
        """Whether it is true of the run on this tape."""
        found = self.path.find(conclusions(tape))
        return any(map(self._fits, found)) != self.negated

    def _fits(self, found: Any) -> bool:
        if self.part:
            return str(self.value) in (found if isinstance(found, str) else _text(found))
        return isinstance(found, bool) == isinstance(self.value, bool) and found == self.value


def parse_predicate(text: str) -> Predicate:
    """Read `PATH=VALUE`, or with `!=`, `~` or `!~`. Raises UsageError."""
    for at in range(1, len(text)):
        operator = next((one for one in _OPERATORS if text.startswith(one, at)), None)
        if operator is None:
            continue
        try:
            path = parse_path(text[:at])
        except ValueError:
            continue  # the sign stands in a name in quotes
        said, part = text[at + len(operator) :], operator.endswith("~")
        value, is_json = read_json(said.encode(errors="surrogateescape"))
        return Predicate(text, path, value if is_json and not part else said, part, operator.startswith("!"))
    fix = "as in: '$.answer.text~refund', '$.final_state.total=42', '$.requests[3].body.model!=\"m\"'"
    raise UsageError(f"the predicate {text!r} is no JSON path with = != ~ or !~ and a value", fix=fix)


def conclusions(tape: Tape) -> Json:
    """What predicates are about.

    `exit`: the agent's code; `final_state`: what it said of itself; `requests`: method, url, lane and body, as JSON
    where it is; `answers`: status and body, of a language model also its `text`; `request`, `answer`: the last ones.
    Both count from 0, and exchanges with servers of the run itself are left out.
    """
    outside = [exchange for exchange in tape.exchanges if not exchange.request.inside]
    requests, answers = [*map(_request, outside)], [*map(_answer, outside)]
    final = [value.content for _, value in tape.values if value.what in _FINAL and value.content is not None]
    return {
        "exit": None if tape.exit is None else tape.exit.code,
        "final_state": _read(final[-1], ()) if final else None,
        "requests": requests,
        "answers": answers,
        "request": requests[-1] if requests else None,
        "answer": answers[-1] if answers else None,
    }


def _request(exchange: Exchange) -> Json:
    request = exchange.request
    return {
        "method": request.method.decode("latin-1"),
        "url": request.url.decode("latin-1"),
        "lane": request.lane,
        "body": _read(exchange.request_body, request.headers),
    }


def _answer(exchange: Exchange) -> Json:
    if exchange.response is None:
        return {"status": None, "body": None}
    out: Json = {
        "status": exchange.response.status,
        "body": _read(exchange.response_body, exchange.response.headers),
    }
    call = read_call(exchange)
    return out if call is None else out | {"text": call.answer.text if call.answer is not None else ""}


def _read(body: bytes, headers: Headers) -> Any:
    plain = decode(body, headers).data
    value, is_json = read_json(plain)
    return value if is_json else plain.decode(errors="replace")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
