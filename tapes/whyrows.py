"""Requests in a row: the calls of one lane to one address, each of which may send again what the one before had.

Knows since when a text has been in them, not where it comes from.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, Final

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.exchanges import Exchange, Tape, outlines
from tapeproxy.tapes.jsonvalues import read_json, write_json

_MANY: Final = 4
"""Texts for which a body is read once, rather than searched for each."""


class Rows:
    """The rows of a tape."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def previous(self, number: int) -> int | None:
        """The call before in the same lane, to the same address."""
        return self._befores[number]

    def since(self, asked: Iterable[tuple[str, int]]) -> list[int]:
        """Of each text and the number of an exchange that has it: the first of those in a row, back from there."""
        asked = list(asked)
        out = [0] * len(asked)
        waiting: dict[int, dict[str, list[int]]] = {}
        queue: list[int] = []  # negative: the last one comes first
        for at, (text, number) in enumerate(asked):
            _put(waiting, queue, number, text, [at])
        forms: dict[str, set[bytes]] = {}
        while queue:
            number = -heappop(queue)
            texts, other = waiting.pop(number), self._befores[number]
            had = texts if other is None else self._not_in(texts, self._tape.exchanges[other - 1], forms)
            for text, places in texts.items():
                if other is not None and text not in had:
                    _put(waiting, queue, other, text, places)
                    continue
                for at in places:
                    out[at] = number
        return out

    @cached_property
    def _befores(self) -> dict[int, int | None]:
        last: dict[tuple[str | None, bytes], int] = {}
        out: dict[int, int | None] = {}
        for exchange in outlines(self._tape.exchanges):
            key = exchange.request.lane, exchange.request.url.partition(b"?")[0]
            out[exchange.number] = last.get(key)
            last[key] = exchange.number
        return out

    def _not_in(self, texts: Iterable[str], exchange: Exchange, forms: dict[str, set[bytes]]) -> set[str]:
        """Those of the texts that a request does not have."""
        body = decode(exchange.request_body, exchange.request.headers).data
        left: Sequence[str] = list(texts)
        if len(left) > _MANY:
            had = _texts_in(read_json(body)[0])
            left = [text for text in left if text not in had]
        for text in left:
            if text not in forms:
                forms[text] = _written(text)
        return {text for text in left if not any(form in body for form in forms[text])}


def _put(waiting: dict[int, dict[str, list[int]]], queue: list[int], number: int, text: str, places: list[int]) -> None:
    if number not in waiting:
        waiting[number] = {}
        heappush(queue, -number)
    waiting[number].setdefault(text, []).extend(places)


def _texts_in(value: Any) -> set[str]:
    """The strings in a JSON value."""
    out, stack = set[str](), [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            out.add(one)
        elif isinstance(one, dict | list):
            stack += one.values() if isinstance(one, dict) else one
    return out


def _written(text: str) -> set[bytes]:
    """A text as it may stand in a body: as it is, or as JSON writes it."""
    plain, written = text.encode(errors="replace"), write_json(text)
    return {plain, plain if written is None else written[1:-1], json.dumps(text)[1:-1].encode()}
