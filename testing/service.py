"""Which request gets which response: the models' endpoints, the search API, 404 for the rest. Sends nothing.

The host name is not looked at: one service stands for api.openai.com, api.anthropic.com and a tool's host at once.
"""

from collections.abc import Mapping
from typing import Final, Protocol

import orjson

from tapeproxy.testing import anthropic_messages, corpus, gemini, openai_chat, openai_responses, realtime
from tapeproxy.testing.answers import Playbook, Refusal
from tapeproxy.testing.chance import Chance, Dice
from tapeproxy.testing.conversation import Ask, AskError, Json, Reply
from tapeproxy.testing.delivery import Response
from tapeproxy.testing.inbox import Request
from tapeproxy.testing.script import Delivery
from tapeproxy.testing.sockets import is_upgrade

type Pairs = tuple[tuple[str, str], ...]

_JSON: Final[Pairs] = (("content-type", "application/json"),)
_SSE: Final[Pairs] = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))


class Dialect(Protocol):
    """What a provider's module offers: how it reads a request and writes an answer."""

    NAME: str
    PATH: str

    def read(self, body: Mapping[str, object], /) -> Ask: ...
    def compose(self, ask: Ask, reply: Reply, chance: Chance, /) -> Json: ...
    def stream(self, ask: Ask, composed: Json, chance: Chance, /) -> tuple[bytes, ...]: ...
    def refuse(self, status: int, message: str, chance: Chance, /) -> Json: ...
    def headers(self, chance: Chance, /) -> Pairs: ...


DIALECTS: Final[tuple[Dialect, ...]] = (openai_chat, openai_responses, anthropic_messages)


def asks_for_a_session(request: Request) -> bool:
    """Whether a request opens a Realtime session."""
    return is_upgrade(request) and request.path.endswith(realtime.PATH)


class Service:
    """Answers requests one by one; what it remembers is the script's progress and the dice."""

    def __init__(self, playbook: Playbook, dice: Dice) -> None:
        self._playbook = playbook
        self._dice = dice

    def session(self, request: Request) -> realtime.Session:
        """The session that a request opens."""
        chance = self._dice.roll(b"session %b" % request.target.encode())
        return realtime.Session(self._playbook, chance, request.query.get("model", "gpt-realtime"))

    def respond(self, request: Request) -> Response:
        """The response to one request, whatever it asks."""
        chance = self._dice.roll(b"%b %b\n%b" % (request.method.encode(), request.target.encode(), request.body))
        dialect = next(
            (dialect for dialect in DIALECTS if request.path.endswith(dialect.PATH)), gemini.at(request.path)
        )
        if request.method == "POST" and dialect is not None:
            return self._respond_as_model(request, dialect, chance)
        found = _look_up(request) if request.method in ("GET", "HEAD") else None
        if found is None:
            return Response(404, _JSON, Delivery(), chance, orjson.dumps(_unknown(request)))
        return self._respond_as_search(*found, chance)

    def _respond_as_model(self, request: Request, dialect: Dialect, chance: Chance) -> Response:
        try:
            ask = dialect.read(_json_object(request))
        except AskError as error:
            body = orjson.dumps(dialect.refuse(400, error.what, chance))
            return Response(400, _JSON + dialect.headers(chance), Delivery(), chance, body)
        plan = self._playbook.plan(dialect.NAME, ask, chance)
        how, headers = plan.delivery, dialect.headers(chance) + plan.delivery.headers
        if isinstance(plan.answer, Refusal):
            body = orjson.dumps(dialect.refuse(plan.answer.status, plan.answer.message, chance))
            return Response(plan.answer.status, _JSON + _wait(plan.answer) + headers, how, chance, body)
        composed = dialect.compose(ask, plan.answer, chance)
        if ask.stream:
            return Response(200, _SSE + headers, how, chance, events=dialect.stream(ask, composed, chance))
        return Response(200, _JSON + headers, how, chance, orjson.dumps(composed))

    def _respond_as_search(self, query: str, status: int, found: Json, chance: Chance) -> Response:
        refusal, how = self._playbook.plan_search(query)
        headers: Pairs = (("date", chance.date), *how.headers)
        if refusal is not None:
            body = {"error": refusal.message or f"the script answers {refusal.status}"}
            return Response(refusal.status, _JSON + _wait(refusal) + headers, how, chance, orjson.dumps(body))
        return Response(status, _JSON + headers, how, chance, orjson.dumps(found))


def _look_up(request: Request) -> tuple[str, int, Json] | None:
    """What was looked for in the search API, the status and what was found; None for another address."""
    if request.path == "/search":
        query = request.query.get("q", "")
        return query, 200, {"query": query, "results": [page.summary() for page in corpus.search(query)]}
    if request.path.startswith("/pages/"):
        slug = request.path.removeprefix("/pages/")
        page = corpus.find(slug)
        if page is None:
            return slug, 404, {"error": f"there is no page {slug!r}"}
        return slug, 200, {**page.whole()}
    return None


def _wait(refusal: Refusal) -> Pairs:
    return () if refusal.retry_after is None else (("retry-after", f"{refusal.retry_after:g}"),)


def _json_object(request: Request) -> Json:
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise AskError(f"We could not parse the JSON body of your request: {error}", fix="send JSON") from error
    if not isinstance(body, dict):
        raise AskError("The request body is not a JSON object.", fix="send a JSON object")
    return body


def _unknown(request: Request) -> Json:
    posted = (*(dialect.PATH for dialect in DIALECTS), *gemini.PATHS)
    served = ", ".join([*(f"POST …{path}" for path in posted), f"a WebSocket at …{realtime.PATH}"])
    asked = f"{request.method} {request.path}"
    message = f"the fake provider does not serve {asked}; it serves {served}, GET /search and GET /pages/…"
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "not_found"}}
