"""What a model says, piece by piece while its answer streams. Knows where its words stand, not when they came."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from tapeproxy.tapes.answeredits import Draft, assemble
from tapeproxy.tapes.calls import dialect_of
from tapeproxy.tapes.codings import Decoded
from tapeproxy.tapes.dialects.places import PLACES
from tapeproxy.tapes.eventtexts import read_events
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.jsonvalues import read_json
from tapeproxy.tapes.messages import Message

_REALTIME: Final = re.compile(r"response\.(output_)?(text|audio_transcript)\.delta")
"""Events of OpenAI's realtime API that bring words: https://platform.openai.com/docs/api-reference/realtime-server-events"""


def words_by_chunk(exchange: Exchange, plain: Sequence[bytes]) -> list[str]:
    """What each chunk of an answer adds to the words of the model; nothing where that is not a stream of words.

    `plain`: the chunks, their codings undone. An event counts for the chunk that ends it. What comes in one chunk is no
    stream.
    """
    request, response = exchange.request, exchange.response
    out = [""] * len(plain)
    if response is None or len(plain) < 2:
        return out
    dialect = dialect_of(request.url, request.headers, exchange.request_body)
    body = b"".join(plain)
    events = None if dialect not in PLACES else read_events(body, response.headers)
    if events is None:
        return out
    assembled = assemble(Draft(exchange, response, Decoded(body), list(plain), dialect), events)
    if assembled is None:
        return out
    spoken = [
        (piece.event, keys, piece.value)
        for keys, slot in assembled.slots.items()
        if slot.words
        for piece in slot.deltas
    ]
    ends = [*accumulate(map(len, plain))]
    before = None
    for event, keys, text in sorted(spoken, key=lambda one: one[0]):
        if not text:
            continue
        # Another text of the answer begins anew.
        out[bisect_left(ends, events.events[event].end)] += text if before in (None, keys) else f"\n{text}"
        before = keys
    return out


def words_of_message(message: Message) -> str:
    """What a message of a WebSocket adds to the words of the model that speaks there."""
    if message.to != "client" or message.type != "text" or b".delta" not in message.data:
        return ""
    value = read_json(message.data)[0]
    if not isinstance(value, dict) or not _REALTIME.fullmatch(str(value.get("type"))):
        return ""
    delta = value.get("delta")
    return delta if isinstance(delta, str) else ""
