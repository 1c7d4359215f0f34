"""Edits that put a member where there was none: what is meant to change something may be misspelt. Pure."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.edits import Edit, JsonEdit
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.jsonpaths import JsonPath, Step
from tapeproxy.tapes.jsonvalues import read_json


def additions(tape: Tape, edits: Iterable[Edit]) -> Iterator[str]:
    """A line for each edit that sets a member which an answer did not have, with the nearest that it had.

    Of answers that are one JSON text, for in a stream that is an error; an edit of a number of places counts where none
    of them had it.
    """
    for edit in edits:
        if not isinstance(edit, JsonEdit) or edit.events or not isinstance(edit.at, int):
            continue
        *before, last = edit.path.steps or (Step(None),)
        if edit.change.operation != "set" or not isinstance(last.name, str) or last.deep:
            continue
        exchange = tape.exchanges[edit.at - 1]
        if exchange.response is None:
            continue
        document, is_json = read_json(decode(exchange.response_body, exchange.response.headers).data)
        places = [one for one in JsonPath(tuple(before)).find(document) if isinstance(one, dict)] if is_json else []
        if places and not any(last.name in one for one in places):
            near = get_close_matches(last.name, list(places[0]), n=1, cutoff=0.5)
            hint = f"; did you mean {JsonPath((*before, Step(near[0])))}?" if near else ""
            yield f"{edit.at}: {edit.path} was not there, and is added{hint}"
