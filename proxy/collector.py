"""Spans sent to a collector of OpenTelemetry, over OTLP/HTTP in JSON. Knows HTTP, and no spans.

No redirect is followed: headers with a key would go along. https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import gzip
import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import certifi
import orjson

import tapeproxy
from tapeproxy.tapes.errors import TapeproxyError, UsageError

_HEADERS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
_LATER: Final = frozenset({429, 502, 503, 504})
"""Statuses with which a collector asks to be asked again."""
_TRIES: Final = 4
_LONGEST_WAIT: Final = 30.0
_TIMEOUT: Final = 30.0
_MOST_SAID: Final = 64 << 10


class CollectorError(TapeproxyError):
    """A collector could not be reached, or refused spans. `sent`: how many it had taken before."""

    def __init__(self, what: str, endpoint: str, sent: int) -> None:
        self.endpoint, self.sent = endpoint, sent
        taken = f"{sent} spans were taken before; " if sent else ""
        super().__init__(
            what, where=endpoint, fix=f"{taken}sending again is safe: a tape's spans always have the same ids"
        )


@dataclass(frozen=True, slots=True)
class Sent:
    """How many spans a collector took and how many it refused, and what it `said`."""

    spans: int
    rejected: int
    said: tuple[str, ...]


def endpoint_of(url: str) -> str:
    """The URL to send traces to, of a collector's own: `http://host:4318` or the whole. Raises UsageError."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise UsageError("this is no URL of a collector", where=url, fix="name one as http://localhost:4318")
    path = parts.path.rstrip("/")
    path = path if path.rpartition("/")[2].endswith("traces") else f"{path}/v1/traces"
    return urlunsplit(parts._replace(path=path, fragment=""))


def headers_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The headers that OpenTelemetry's variables ask for, `name=value` by commas. Raises UsageError."""
    found: dict[str, str] = {}
    for variable in _HEADERS:
        for pair in filter(None, (one.strip() for one in environment.get(variable, "").split(","))):
            name, parted, value = pair.partition("=")
            value = unquote(value.strip())
            if not parted or not name.strip().isascii() or any(char in value + name for char in "\r\n"):
                raise UsageError(
                    "the variable holds no headers", where=variable, fix="write name=value, with commas between"
                )
            found[name.strip()] = value
    return found


def send(
    endpoint: str,
    requests: Iterable[tuple[int, bytes]],
    headers: Mapping[str, str],
    sleep: Callable[[float], None] = time.sleep,
) -> Sent:
    """Send each request's body, with how many spans are in it. Raises CollectorError."""
    opener = _opener()
    spans = rejected = 0
    said: list[str] = []
    for count, body in requests:
        answer = _sent(opener, _request(endpoint, body, headers), endpoint, spans, sleep)
        partial = answer.get("partialSuccess")
        refused = _count(partial.get("rejectedSpans")) if isinstance(partial, dict) else 0
        if isinstance(partial, dict) and partial.get("errorMessage"):
            said.append(str(partial["errorMessage"]))
        spans, rejected = spans + count - min(count, refused), rejected + min(count, refused)
    return Sent(spans, rejected, tuple(dict.fromkeys(said)))


def _request(endpoint: str, body: bytes, headers: Mapping[str, str]) -> urllib.request.Request:
    ours = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    ours["User-Agent"] = f"tapeproxy/{tapeproxy.__version__}"
    data = gzip.compress(body, 6, mtime=0)
    return urllib.request.Request(endpoint, data, {**headers, **ours}, method="POST")


def _sent(
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    endpoint: str,
    sent: int,
    sleep: Callable[[float], None],
) -> dict[str, Any]:
    for turn in range(1, _TRIES + 1):
        try:
            with opener.open(request, timeout=_TIMEOUT) as response:
                return _json(response.read(_MOST_SAID))
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(_MOST_SAID)
            if error.code not in _LATER or turn == _TRIES:
                raise CollectorError(_refusal(error, said), endpoint, sent) from None
            sleep(_wait(error.headers, turn))
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise CollectorError(f"the collector cannot be reached: {text.lower()}", endpoint, sent) from None
    raise AssertionError("the last turn returns or raises")


def _refusal(error: urllib.error.HTTPError, said: bytes) -> str:
    message = _json(said).get("message")
    text = message if isinstance(message, str) else said.decode("utf-8", "replace")
    text = " ".join(text.split())[:300]
    hints = {401: "a key in OTEL_EXPORTER_OTLP_HEADERS?", 404: "is its path right?", 415: "does it take JSON?"}
    words = [f"the collector refused the spans with status {error.code}", text, hints.get(error.code, "")]
    return ": ".join(filter(None, words))


def _wait(headers: Message, turn: int) -> float:
    """Seconds: as many as the collector asks for, else twice as many each time."""
    asked = headers.get("Retry-After", "")
    return min(float(asked) if asked.isascii() and asked.isdigit() else float(2 ** (turn - 1)), _LONGEST_WAIT)


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    """A number of 64 bits is a text in the JSON of protobuf."""
    return int(str(value)) if str(value).isascii() and str(value).isdigit() else 0


def _opener() -> urllib.request.OpenerDirector:
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect the error that it is here."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None
