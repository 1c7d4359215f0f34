"""What both OpenAI dialects share: error bodies and response headers. Knows no endpoint.

Wording and fields follow recordings of the real service.
"""

from tapeproxy.testing.chance import Chance
from tapeproxy.testing.conversation import Json

_KINDS = {
    400: ("invalid_request_error", None, "The request is not valid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", None, "You have insufficient permissions for this operation."),
    404: ("invalid_request_error", "not_found", "There is nothing at this address."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests per minute (RPM): Limit 3, Used 3."),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
}
_OTHER = ("server_error", None, "The server had an error while processing your request. Sorry about that!")


def refuse(status: int, message: str, _chance: Chance) -> Json:
    """The error body for `status`; an empty `message` means the service's usual words."""
    kind, code, usual = _KINDS.get(status, _OTHER if status >= 500 else _KINDS[400])
    return {"error": {"message": message or usual, "type": kind, "param": None, "code": code}}


def headers(chance: Chance) -> tuple[tuple[str, str], ...]:
    """The headers that the service puts on every answer."""
    return (
        ("date", chance.date),
        ("openai-organization", "fake-provider"),
        ("openai-processing-ms", str(chance.rng.randint(80, 900))),
        ("openai-version", "2020-10-01"),
        ("x-ratelimit-limit-requests", "15000"),
        ("x-ratelimit-remaining-requests", "14999"),
        ("x-request-id", f"req_{chance.hexadecimal(32)}"),
    )
