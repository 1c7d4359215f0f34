"""Why a request has no answer: the nearest taped request and where the two differ. Pure; for people and `--json`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import Body, Identity, Pairs
from tapeproxy.tapes.matching import Ask, Index, Miss

_CANDIDATES = 64
"""At most so many taped requests are compared in full: those of the same place first, in tape order."""
_EXCERPT = 60
_MOST_DIFFERENCES = 100
LONGEST = 2048
"""Characters of a request line that are kept; clients send longer ones than people read."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two requests differ. `taped` and `asked` are excerpts; None: it is not there."""

    where: str
    taped: str | None
    asked: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """`request` in one line; `used`: how many answers to just this request the tape had, all given out before.

    `nearest` is the number of the taped exchange that comes closest (None: the tape is empty), `score` from 0 to 1,
    `nearest_used` whether its answer was given out already.
    """

    request: str
    used: int
    nearest: int | None = None
    nearest_request: str = ""
    nearest_used: bool = False
    score: float = 0.0
    differences: tuple[Difference, ...] = ()


def explain(miss: Miss, index: Index) -> Explanation:
    """Explain a miss of `index`. Raises ValueError when the request's URL is not absolute."""
    asked = miss.ask.identity()
    line = summary_line(miss.ask)
    if miss.used or miss.elsewhere is not None:
        return Explanation(line, miss.used)
    best: tuple[float, Exchange, bool, Identity] | None = None
    for exchange, ask, used in index.nearby(miss.ask, _CANDIDATES):
        taped = ask.identity()
        score = similarity(taped, asked)
        # An unused answer is the likelier one: it is still waiting for its request.
        if best is None or (score, not used) > (best[0], not best[2]):
            best = (score, exchange, used, taped)
    if best is None:
        return Explanation(line, 0)
    score, exchange, used, taped = best
    request = exchange.request
    nearest_line = summary_line(Ask(request.method, request.url, (), b"", request.inside))
    found = tuple(islice(differences(taped, asked), _MOST_DIFFERENCES))
    return Explanation(line, 0, exchange.number, nearest_line, used, round(score, 3), found)


def summary_line(ask: Ask) -> str:
    """`POST https://host/path?query`, as text that is safe to encode."""
    return shorten(f"{ask.method[:LONGEST].decode('latin-1')} {ask.url[:LONGEST].decode('latin-1')}")


def shorten(text: str) -> str:
    """At most `LONGEST` characters of a text, and a sign that there were more."""
    return text if len(text) < LONGEST else text[: LONGEST - 1] + "…"


def similarity(one: Identity, other: Identity) -> float:
    """How alike two requests are, from 0 to 1: half for where they go, half for what they say."""
    parts = (
        one.method == other.method,
        one.target.host == other.target.host,
        (one.target.scheme, one.target.port) == (other.target.scheme, other.target.port),
        one.target.path == other.target.path,
        one.query == other.query,
    )
    return 0.5 * sum(parts) / len(parts) + 0.5 * _body_similarity(one, other)


def differences(taped: Identity, asked: Identity) -> Iterator[Difference]:
    """Every place where two identities differ, in the order of a request."""
    for where, a, b in (
        ("method", taped.method, asked.method),
        ("scheme", taped.target.scheme, asked.target.scheme),
        ("host", taped.target.authority, asked.target.authority),
        ("path", taped.target.path.decode("latin-1"), asked.target.path.decode("latin-1")),
        ("header content-type", taped.media, asked.media),
    ):
        if a != b:
            yield Difference(where, shorten(a), shorten(b))
    yield from _pair_differences("query", taped.query, asked.query)
    yield from body_differences(taped.body, asked.body)


def body_differences(taped: Body, asked: Body) -> Iterator[Difference]:
    """Where two canonical bodies differ."""
    if taped.form == asked.form == "json":
        yield from json_differences(taped.value, asked.value)
    elif taped.form == asked.form == "form":
        yield from _pair_differences("form field", taped.value, asked.value)
    elif taped.canonical != asked.canonical:
        yield Difference("body", *_excerpts(taped.canonical.decode("latin-1"), asked.canonical.decode("latin-1")))


def json_differences(taped: Any, asked: Any, path: str = "$") -> Iterator[Difference]:
    """Where two JSON values differ, by JSON path, depth first."""
    if isinstance(taped, dict) and isinstance(asked, dict):
        for name in (*taped, *(name for name in asked if name not in taped)):
            yield from json_differences(taped.get(name, _ABSENT), asked.get(name, _ABSENT), f"{path}.{name}")
    elif isinstance(taped, list) and isinstance(asked, list):
        for at in range(max(len(taped), len(asked))):
            a = taped[at] if at < len(taped) else _ABSENT
            b = asked[at] if at < len(asked) else _ABSENT
            yield from json_differences(a, b, f"{path}[{at}]")
    elif type(taped) is not type(asked) or taped != asked:
        yield Difference(shorten(f"body {path}"), *_excerpts(_show(taped), _show(asked)))


def _pair_differences(what: str, taped: Pairs, asked: Pairs) -> Iterator[Difference]:
    names = dict.fromkeys(name for name, _ in (*taped, *asked))
    for name in names:
        a = [value.decode("latin-1") for n, value in taped if n == name]
        b = [value.decode("latin-1") for n, value in asked if n == name]
        if a != b:
            yield Difference(
                shorten(f"{what} {name.decode('latin-1')}"),
                shorten(", ".join(a)) if a else None,
                shorten(", ".join(b)) if b else None,
            )


def _body_similarity(one: Identity, other: Identity) -> float:
    if one.body.canonical == other.body.canonical:
        return 1.0
    if one.body.form == other.body.form == "json":
        a, b = dict(_leaves(one.body.value)), dict(_leaves(other.body.value))
        same = sum(1 for path, value in a.items() if b.get(path, _ABSENT) == value)
        return same / max(len(a), len(b), 1)
    shared = _common_prefix(one.body.canonical, other.body.canonical)
    return shared / max(len(one.body.canonical), len(other.body.canonical), 1)


def _leaves(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}")
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            yield from _leaves(item, f"{path}[{at}]")
    else:
        yield path, (type(value).__name__, repr(value))


def _common_prefix(one: bytes | str, other: bytes | str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _show(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _excerpts(taped: str | None, asked: str | None) -> tuple[str | None, str | None]:
    """Cut both around their first difference when they are long."""
    if taped is None or asked is None:
        return _cut(taped, 0), _cut(asked, 0)
    start = max(_common_prefix(taped, asked) - _EXCERPT // 3, 0)
    if max(len(taped), len(asked)) <= _EXCERPT:
        start = 0
    return _cut(taped, start), _cut(asked, start)


def _cut(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    piece = text[start : start + _EXCERPT]
    return ("…" if start else "") + piece + ("…" if start + _EXCERPT < len(text) else "")
