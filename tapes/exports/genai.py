"""What OpenTelemetry's conventions say of a call to a model, a tool and an HTTP request, as attributes of a span.

Names are those of the GenAI conventions as of 2026, which are in development, and of the stable ones for HTTP. What
they have for content (messages, arguments, results) is opt-in there, and here.
https://github.com/open-telemetry/semantic-conventions-genai
https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-client-span
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from tapeproxy.tapes.calls import read_answer, read_answered, read_asked
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.conversation import Answered
from tapeproxy.tapes.dialects.shapes import count_of, mapping_of, name_of
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.exports.genaicontent import parsed, said
from tapeproxy.tapes.exports.otlpvalues import Attributes
from tapeproxy.tapes.hints import Call
from tapeproxy.tapes.imports.own import url_text
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.records import Json

_SECONDS: Final = 1_000_000_000
_METHODS: Final = frozenset(["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"])
_PROVIDERS: Final = (
    (r"api\.openai\.com", "openai"),
    (r".*\.openai\.azure\.com", "azure.ai.openai"),
    (r".*\.(services\.ai|inference\.ai)\.azure\.com", "azure.ai.inference"),
    (r"api\.anthropic\.com", "anthropic"),
    (r"bedrock-runtime[.-].*\.amazonaws\.com", "aws.bedrock"),
    (r"generativelanguage\.googleapis\.com", "gcp.gemini"),
    (r".*aiplatform\.googleapis\.com", "gcp.vertex_ai"),
    (r"api\.cohere\.(ai|com)", "cohere"),
    (r"api\.deepseek\.com", "deepseek"),
    (r"api\.groq\.com", "groq"),
    (r"api\.mistral\.ai", "mistral_ai"),
    (r"api\.moonshot\.(ai|cn)", "moonshot_ai"),
    (r"api\.perplexity\.ai", "perplexity"),
    (r"api\.x\.ai", "x_ai"),
    (r".*\.ml\.cloud\.ibm\.com", "ibm.watsonx.ai"),
)
_DIALECTS: Final = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "gemini": "gcp.gemini",
    "bedrock-converse": "aws.bedrock",
}
"""Who made a dialect, where it is not called so."""
_OPERATIONS: Final = {"gemini": "generate_content"}


def chat(exchange: Exchange, *, content: bool) -> tuple[str, Attributes] | None:
    """The name of the span and its attributes; None where the exchange is no call to a model."""
    found = read_asked(exchange)
    if found is None:
        return None
    dialect, asked = found
    answered, streamed = read_answered(exchange, dialect)
    body = _body(exchange)
    host, port = _server(exchange)
    path = exchange.request.url.partition(b"?")[0]
    operation = "text_completion" if path.endswith(b"/api/generate") else _OPERATIONS.get(dialect.name, "chat")
    told: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _provider(host, _DIALECTS.get(dialect.name, dialect.name)),
        "gen_ai.request.model": asked.model,
        "server.address": host,
        "server.port": port,
        "error.type": error_type(exchange) or ("_OTHER" if answered.error else None),
    }
    told |= _parameters(body) | {"gen_ai.request.stream": True if streamed or body.get("stream") is True else None}
    told |= _response(exchange, answered, streamed=streamed)
    if content:
        told |= said(body, asked, answered)
    return f"{operation} {asked.model}" if asked.model else operation, told


def embeddings(exchange: Exchange) -> tuple[str, Attributes] | None:
    """The same of a call for embeddings, as OpenAI and many others have it; None where it is none."""
    if not exchange.request.url.partition(b"?")[0].endswith(b"/embeddings"):
        return None
    body = _body(exchange)
    model = name_of(body.get("model"))
    if model is None or "input" not in body:
        return None
    host, port = _server(exchange)
    encoding = name_of(body.get("encoding_format"))
    told: dict[str, Any] = {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": _provider(host, "openai"),
        "gen_ai.request.model": model,
        "gen_ai.embeddings.dimension.count": count_of(body.get("dimensions")),
        "gen_ai.request.encoding_formats": [encoding] if encoding else None,
        "server.address": host,
        "server.port": port,
        "error.type": error_type(exchange),
    }
    for answer in read_answer(exchange).objects:
        told["gen_ai.response.model"] = name_of(answer.get("model"))
        told["gen_ai.usage.input_tokens"] = count_of(mapping_of(answer.get("usage")).get("prompt_tokens"))
    return f"embeddings {model}", told


def tool(call: Call, *, content: bool) -> tuple[str, Attributes]:
    """The name and attributes of the span for a call of one of the agent's own tools."""
    value = call.value
    told: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": value.name,
        "gen_ai.tool.type": "function",
        "error.type": value.error,
    }
    if content:
        told["gen_ai.tool.call.arguments"] = parsed(call.arguments)
        told["gen_ai.tool.call.result"] = (
            None if value.content is None else parsed(value.content.decode("utf-8", "replace"))
        )
    return f"execute_tool {value.name}", told


def http(exchange: Exchange) -> tuple[str, Attributes]:
    """The name and attributes of the span for any other request."""
    request, response = exchange.request, exchange.response
    method = request.method.decode("latin-1")
    known = method in _METHODS
    host, port = _server(exchange)
    version = "2" if request.alpn == "h2" else request.http.partition("/")[2]
    told: dict[str, Any] = {
        "http.request.method": method if known else "_OTHER",
        "http.request.method_original": None if known else method,
        "url.full": url_text(request.url),
        "server.address": host,
        "server.port": port,
        "http.response.status_code": None if response is None else response.status,
        "error.type": error_type(exchange),
        "network.protocol.version": version or None,
    }
    return method if known else "HTTP", told


def error_type(exchange: Exchange) -> str | None:
    """The kind of error that an exchange ended with: `429`, `upstream-cut`, `unfinished`; None where it went well.

    A client that left by itself is no error.
    """
    response, end = exchange.response, exchange.end
    if response is not None and response.status >= 400:
        return str(response.status)
    if end is None:
        return "unfinished"
    if end.how == "client-gone":
        return None if response is not None else end.how
    return None if end.how == "complete" else end.how


def _server(exchange: Exchange) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(url_text(exchange.request.url))
        return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None, None


def _provider(host: str | None, default: str) -> str:
    return next((name for pattern, name in _PROVIDERS if re.fullmatch(pattern, host or "")), default)


def _body(exchange: Exchange) -> Json:
    return mapping_of(read_json(decode(exchange.request_body, exchange.request.headers).data)[0])


def _parameters(body: Json) -> dict[str, Any]:
    """What the request asks of the model; providers share most names, and some have them a level down."""
    within = ("options", "generationConfig", "generation_config", "inferenceConfig")
    given = {_snake(name): value for part in (*map(body.get, within), body) for name, value in mapping_of(part).items()}
    stops = given.get("stop", given.get("stop_sequences"))
    limits = (
        count_of(given.get(name))
        for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
    )
    choices = count_of(given.get("n", given.get("candidate_count")))
    return {
        "gen_ai.output.type": _output_type(given),
        "gen_ai.request.choice.count": choices if choices != 1 else None,
        "gen_ai.request.frequency_penalty": _number(given.get("frequency_penalty")),
        "gen_ai.request.max_tokens": next((limit for limit in limits if limit is not None), None),
        "gen_ai.request.presence_penalty": _number(given.get("presence_penalty")),
        "gen_ai.request.previous_response.id": name_of(given.get("previous_response_id")),
        "gen_ai.request.reasoning.level": name_of(given.get("reasoning_effort"))
        or name_of(mapping_of(given.get("reasoning")).get("effort")),
        "gen_ai.request.seed": count_of(given.get("seed")),
        "gen_ai.request.stop_sequences": [stops] if isinstance(stops, str) else _texts(stops),
        "gen_ai.request.temperature": _number(given.get("temperature")),
        "gen_ai.request.top_k": count_of(given.get("top_k")),
        "gen_ai.request.top_p": _number(given.get("top_p")),
    }


def _snake(name: str) -> str:
    """A name as most providers write it: `topP` is `top_p`."""
    return re.sub("(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


_MIMES: Final = {"application/json": "json_object", "text/plain": "text"}


def _output_type(given: Json) -> str | None:
    wanted = mapping_of(given.get("response_format")) or mapping_of(mapping_of(given.get("text")).get("format"))
    kind = name_of(wanted.get("type")) or _MIMES.get(name_of(given.get("response_mime_type")) or "")
    return {"json_object": "json", "json_schema": "json", "text": "text"}.get(kind or "")


def _response(exchange: Exchange, answered: Answered, *, streamed: bool) -> dict[str, Any]:
    answers = exchange.response is not None and exchange.response.status < 400
    stops = [answered.stop or "error"] if answered.stop or (answers and error_type(exchange)) else None
    first = next((chunk.t for chunk in exchange.chunks if chunk.t is not None and chunk.data), None)
    told: dict[str, Any] = {
        "gen_ai.response.finish_reasons": stops,
        "gen_ai.response.id": None,
        "gen_ai.response.model": answered.model,
        "gen_ai.response.time_to_first_chunk": (first - exchange.request.t) / _SECONDS
        if streamed and first is not None
        else None,
        "gen_ai.usage.input_tokens": answered.tokens_in,
        "gen_ai.usage.output_tokens": answered.tokens_out,
    }
    for part in _answer_parts(exchange):
        told["gen_ai.response.id"] = told["gen_ai.response.id"] or name_of(part.get("id", part.get("responseId")))
        usage = mapping_of(part.get("usage")) or mapping_of(part.get("usageMetadata"))
        told |= {name: count for name, count in _details(usage) if count is not None}
    return told


def _answer_parts(exchange: Exchange) -> Iterator[Json]:
    """The objects of an answer that say something of it as a whole: themselves, `message` and `response` within."""
    for one in read_answer(exchange).objects:
        within = mapping_of(one.get("message")), mapping_of(one.get("response"))
        yield from (part for part in (*within, one) if part.keys() & {"usage", "id", "usageMetadata", "responseId"})


def _details(usage: Json) -> Iterator[tuple[str, int | None]]:
    """Which tokens were cached, and which were thoughts: each a part of the whole count."""
    asked = mapping_of(usage.get("prompt_tokens_details")) or mapping_of(usage.get("input_tokens_details"))
    given = mapping_of(usage.get("completion_tokens_details")) or mapping_of(usage.get("output_tokens_details"))
    read = (
        asked.get("cached_tokens"),
        *map(usage.get, ("cache_read_input_tokens", "cacheReadInputTokens", "cachedContentTokenCount")),
    )
    yield "gen_ai.usage.cache_read.input_tokens", _first_count(read)
    written = map(usage.get, ("cache_creation_input_tokens", "cacheWriteInputTokens"))
    yield "gen_ai.usage.cache_write.input_tokens", _first_count(written)
    thoughts = (given.get("reasoning_tokens"), usage.get("thoughtsTokenCount"))
    yield "gen_ai.usage.reasoning.output_tokens", _first_count(thoughts)


def _first_count(values: Iterable[Any]) -> int | None:
    return next((count for value in values if (count := count_of(value)) is not None), None)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _texts(value: Any) -> list[str] | None:
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    return texts or None
