"""Which exchanges say a text: in their URLs, header values and decoded bodies. Pure."""

from typing import Final

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.exchanges import Exchange, Tape

_MOST: Final = 5000


def find(tape: Tape, text: str) -> list[int]:
    """The numbers of the exchanges that say `text`, in any case of letters; in JSON, as it stands there or escaped."""
    wanted = text.lower().encode()
    if not wanted:
        return []
    escaped = text.lower().encode("ascii", "backslashreplace")
    found = (one.number for one in tape.exchanges if _says(one, wanted) or (escaped != wanted and _says(one, escaped)))
    return [number for number, _ in zip(found, range(_MOST), strict=False)]


def _says(exchange: Exchange, wanted: bytes) -> bool:
    request, response = exchange.request, exchange.response
    if wanted in request.url.lower() or any(wanted in value.lower() for _, value in request.headers):
        return True
    if wanted in decode(exchange.request_body, request.headers).data.lower():
        return True
    if response is None:
        return False
    if any(wanted in value.lower() for _, value in response.headers):
        return True
    return wanted in decode(exchange.response_body, response.headers).data.lower()
