"""One exchange as the page shows it: the document of `show N --json`, its chunks as text, its causes. Pure."""

from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.dialects.mcp import result_pictures
from tapeproxy.tapes.documents import exchange_document
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.messages import read_frames
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.saying import words_of_message
from tapeproxy.web.pieces import pieces


def details(exchange: Exchange, causality: Causality | None = None) -> Json:
    """`exchange_document` with what else the page shows.

    `record`: the number of its first record on the tape. `response.pieces`: its chunks as `pieces` tells of them.
    `pictures`: of a message of MCP, those in its result, as data URLs. `said`: of a message on a WebSocket, what it
    adds to the words of a model. With `causality`, `clock`: the vector clock of the request; `reached`: of each lane
    that comes to know of the answer, after how many requests it does.
    """
    document = exchange_document(exchange)
    document["record"] = exchange.index
    if document["exchange"]["mcp"] is not None:
        document["pictures"] = result_pictures(exchange)
    if exchange.response is not None:
        document["response"]["pieces"] = list(pieces(exchange, words=True))
    for shown, message in zip(document["messages"], read_frames(exchange.frames), strict=True):
        if said := words_of_message(message):
            shown["said"] = said
    if causality is not None:
        document["clock"] = dict(causality.clock(exchange.number))
        document["reached"] = {lane: asked for lane, (asked, _) in causality.reached(exchange.number).items()}
    return document
