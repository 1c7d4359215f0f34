"""What a tape has of requests that the run on it was refused: the fork that it was written by, or the replay. Pure.

Nobody in the world gave such an answer, so a replay that gives it again says so: whoever takes a run that asked what it
might not for one that went well would be told a lie by its tape.
"""

import contextlib

import orjson

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.records import Request
from tapeproxy.tapes.violations import STATUS, Violation

SOURCE = "refused"
"""In the place of where an answer came from."""


def is_refused(request: Request) -> bool:
    """Whether a request was refused when it was taped, by us and not by a server."""
    return request.source == SOURCE


def refusal(exchange: Exchange, line: str, tag: LaneTag | None) -> Violation:
    """The violation of asking once more, by this request line, what was refused when it was taped."""
    what = f"exchange {exchange.number} of the tape was refused when it was taped, and no server answered it"
    why = _why(exchange)
    return Violation("refused", line, f"{what}: {why}" if why else what, tag=tag)


def _why(exchange: Exchange) -> str:
    """The first line of what the agent was told; empty where it was told nothing."""
    if exchange.response is None or exchange.response.status != STATUS:
        return ""
    with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
        message = orjson.loads(exchange.response_body)["error"]["message"]
        if isinstance(message, str):
            return message.partition("\n")[0]
    return ""
