"""Which of many taped bodies can say the same as this JSON at all? Looks for its texts in them, and parses none. Pure.

Whoever says the same in JSON has the same strings, and a run of plain characters is written in one way only, unless it
is written as `\\u` and a number. So a body that has neither a run of the asked one nor a `\\u` says something else.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tapeproxy.tapes.bodyforms import Body
from tapeproxy.tapes.codings import header
from tapeproxy.tapes.records import Headers

# Between `<` and `>` may stand what no client wrote: the mark of a secret or of something that machines differ in.
_RUN = re.compile(r"[ !#-.0-;=?-\[\]-~]+")
_BEGINNINGS = (b"{", b"[", b" ", b"\n", b"\r", b"\t", b'"')
_LONGEST_MARK = 24
_SHORTEST = 4
_TRIED = 64
"""Runs that are tried, at most; the `_KEPT` that most of the sample lack are looked for in all."""
SAMPLE = 24
"""So many of the bodies are a sample."""
_KEPT = 3


def telling_runs(asked: Body, bodies: Sequence[bytes]) -> tuple[bytes, ...]:
    """The runs of an asked body that tell the most of these, a sample, from it; none when it is not JSON."""
    if asked.form not in ("json", "lines"):
        return ()
    runs = list(dict.fromkeys(run for text in _strings(asked.value) for run in _runs(text)))
    # The last words of a conversation are as good a guess as its first, and long runs better than short ones.
    likely = sorted(runs, key=len, reverse=True)[: _TRIED // 2] + runs[-_TRIED // 2 :]
    rarity = {run: sum(run in body for body in bodies) for run in likely}
    return tuple(sorted(rarity, key=lambda run: (rarity[run], -len(run)))[:_KEPT])


def may_say(body: bytes, headers: Headers, runs: Sequence[bytes]) -> bool:
    """Whether this body may have all these runs, as far as can be seen without reading it."""
    # What does not begin as JSON may be coded, whatever its headers claim.
    return (
        all(run in body for run in runs)
        or b"\\u" in body
        or not body.startswith(_BEGINNINGS)
        or bool(header(headers, b"content-encoding"))
    )


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += reversed(one.values())
        elif isinstance(one, list):
            waiting += reversed(one)


def _runs(text: str) -> Iterator[bytes]:
    shortest = _LONGEST_MARK if "<" in text else _SHORTEST
    return (run.encode() for run in _RUN.findall(text) if len(run) >= shortest)
