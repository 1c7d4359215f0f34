"""Where two requests differ, place by place, and what would make it no difference. Pure; for people and reports."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from shlex import quote
from typing import Any, Final

import orjson

from tapeproxy.tapes.bodyforms import Body, Pairs, PartValue
from tapeproxy.tapes.identity import Identity
from tapeproxy.tapes.requestlines import shorten
from tapeproxy.tapes.valuekinds import noise_pattern, pair_kind
from tapeproxy.tapes.wording import excerpts, word_changes, word_diff

_MOST_ALIGNED = 1 << 16
"""Lists whose differing middles multiply to more are compared item by item, in order."""
_ABSENT: Final = object()
_BARE = re.compile(r"[^\W\d][\w-]*")
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two requests differ. `taped` and `asked` are excerpts; None: it is not there.

    `words`: of longer texts, the changed words with some around them (`[-taped-]{+asked+}`). `kind`: what both values
    look like (uuid, timestamp, counter …), empty when nothing special. `rule`: the matching rule that would make it no
    difference, as `ignore-json $.metadata.id`; empty when there is none to recommend.
    """

    where: str
    taped: str | None
    asked: str | None
    words: str = ""
    kind: str = ""
    rule: str = ""


def differences(taped: Identity, asked: Identity) -> Iterator[Difference]:
    """Every place where two identities differ, in the order of a request."""
    for where, a, b in (
        ("method", taped.method, asked.method),
        ("scheme", taped.target.scheme, asked.target.scheme),
        ("host", taped.target.authority, asked.target.authority),
    ):
        if a != b:
            yield Difference(where, shorten(a), shorten(b))
    paths = taped.target.path.decode("latin-1"), asked.target.path.decode("latin-1")
    if paths[0] != paths[1]:
        yield _path_difference(*paths)
    if taped.media != asked.media:
        rule = "ignore-header content-type"
        yield Difference("header content-type", shorten(taped.media), shorten(asked.media), rule=rule)
    yield from _pair_differences("query", taped.query, asked.query, "ignore-query")
    yield from _pair_differences("header", taped.headers, asked.headers, "ignore-header")
    yield from body_differences(taped.body, asked.body)


def body_differences(taped: Body, asked: Body) -> Iterator[Difference]:
    """Where two canonical bodies differ."""
    if taped.form == asked.form == "json":
        yield from json_differences(taped.value, asked.value)
    elif taped.form == asked.form == "lines":
        yield from _line_differences(taped.value, asked.value)
    elif taped.form == asked.form == "multipart" and _in_parts(taped) and _in_parts(asked):
        yield from _part_differences(taped.value, asked.value)
    elif taped.form == asked.form == "form":
        yield from _pair_differences("form field", taped.value, asked.value, "ignore-form")
    elif taped.canonical != asked.canonical and "large" in (taped.form, asked.form):
        yield Difference("body, too large to be compared by value", *(_summary(one) for one in (taped, asked)))
    elif taped.canonical != asked.canonical:
        yield _text_difference("body", readable(taped.canonical), readable(asked.canonical), rule="")


def _summary(body: Body) -> str:
    return readable(body.canonical) if body.form == "large" else f"a body of {len(body.canonical)} bytes ({body.form})"


def json_differences(taped: Any, asked: Any, path: str = "$") -> Iterator[Difference]:
    """Where two JSON values differ, by JSON path, depth first. In lists, what was put in or left out is found as such.

    An index is that of the request; of what is only on the tape, that of the tape.
    """
    if isinstance(taped, dict) and isinstance(asked, dict):
        for name in (*taped, *(name for name in asked if name not in taped)):
            yield from json_differences(taped.get(name, _ABSENT), asked.get(name, _ABSENT), path + json_member(name))
    elif isinstance(taped, list) and isinstance(asked, list):
        for a, b in _aligned(taped, asked):
            was = _ABSENT if a is None else taped[a]
            now = _ABSENT if b is None else asked[b]
            yield from json_differences(was, now, f"{path}[{a if b is None else b}]")
    elif type(taped) is not type(asked) or taped != asked:
        yield _json_difference(path, taped, asked)


def difference_text(difference: Difference) -> str:
    """A difference in a few lines for a terminal; the caller escapes control characters."""
    taped = "(absent)" if difference.taped is None else difference.taped
    asked = "(absent)" if difference.asked is None else difference.asked
    lines = [f"    {difference.where}", f"      tape: {taped}", f"      now:  {asked}"]
    if difference.words:
        lines.append(f"      that is: {difference.words}")
    if difference.kind or difference.rule:
        kind = f"both look like a {difference.kind}; " if difference.kind else ""
        rule, _, value = difference.rule.partition(" ")
        lines.append(f"      {kind}if it is noise: " + (f"--{rule} {quote(value)}" if rule else "no rule can tell"))
    return "\n".join(lines)


def _line_differences(taped: list[Any], asked: list[Any]) -> Iterator[Difference]:
    """Where lines of JSON differ: paths begin at the line, as those of rules do."""
    for a, b in _aligned(taped, asked):
        was = _ABSENT if a is None else taped[a]
        now = _ABSENT if b is None else asked[b]
        number = 1 + ((a or 0) if b is None else b)
        for found in json_differences(was, now):
            yield replace(found, where=f"line {number} {found.where}")


def part_label(number: int, part: PartValue) -> str:
    """What a part of a multipart body is called: `part 1 (name)`."""
    return shorten(f"part {number} ({part.name})" if part.name else f"part {number}")


def _in_parts(body: Body) -> bool:
    return isinstance(body.value, list)  # in version 1 of identity it is bytes


def _part_differences(taped: list[PartValue], asked: list[PartValue]) -> Iterator[Difference]:
    if len(taped) != len(asked):
        yield Difference("number of parts", str(len(taped)), str(len(asked)))
    for number, (one, other) in enumerate(zip(taped, asked, strict=False), 1):
        part = part_label(number, one)
        rule = f"ignore-form {one.name}" if one.name and one.name == other.name else ""
        for found in _pair_differences("header", one.headers, other.headers, ""):
            yield replace(found, where=f"{part} {found.where}", rule=rule)
        for found in body_differences(one.body, other.body):
            yield replace(found, where=f"{part} {found.where}", rule=found.rule or rule)


def _json_difference(path: str, taped: Any, asked: Any) -> Difference:
    rule = f"ignore-json {_INDEX.sub('[*]', path)}" if path != "$" else ""
    return _text_difference(shorten(f"body {path}"), _show(taped), _show(asked), rule=rule)


def _text_difference(where: str, taped: str | None, asked: str | None, *, rule: str) -> Difference:
    """A difference of two values, of which one may be missing. Noise inside of a longer text wants a rewrite."""
    if taped is None or asked is None:
        return Difference(where, *excerpts(taped, asked), rule=rule)
    kind, words = pair_kind(taped, asked), ""
    if not kind and len(taped.split()) > 1:
        words, rule = word_diff(taped, asked), ""
        changes = word_changes(taped, asked)
        kinds = {pair_kind(change.taped, change.asked) for change in changes}
        kind = kinds.pop() if len(kinds) == 1 else ""
        # One rule can take care of one noisy word; of many, whoever reads this has to judge.
        if (noise := noise_pattern(kind, changes[0].before)) and len(changes) == 1:
            rule = _rewrite("rewrite-body", *noise)
    return Difference(where, *excerpts(taped, asked), words=words, kind=kind, rule=rule)


def _path_difference(taped: str, asked: str) -> Difference:
    """A difference of two URL paths. One noisy segment can be rewritten."""
    pairs = list(zip(taped.split("/"), asked.split("/"), strict=False))
    changed = [at for at, (was, now) in enumerate(pairs) if was != now]
    kind = rule = ""
    if len(changed) == 1 and taped.count("/") == asked.count("/"):
        kind = pair_kind(*pairs[changed[0]])
        before = "".join(f"{now}/" for _, now in pairs[max(changed[0] - 2, 0) : changed[0]])
        if noise := noise_pattern(kind, before):
            rule = _rewrite("rewrite-url", *noise)
    return Difference("path", *excerpts(taped, asked), kind=kind, rule=rule)


def _rewrite(rule: str, pattern: str, replacement: str) -> str:
    return f"{rule} " + "=".join(side.replace("=", "\\=") for side in (pattern, replacement))


def _pair_differences(what: str, taped: Pairs, asked: Pairs, rule: str) -> Iterator[Difference]:
    for name in dict.fromkeys(name for name, _ in (*taped, *asked)):
        a = [value.decode("latin-1") for n, value in taped if n == name]
        b = [value.decode("latin-1") for n, value in asked if n == name]
        if a != b:
            text = name.decode("latin-1")
            was, now = ", ".join(a) if a else None, ", ".join(b) if b else None
            yield _text_difference(shorten(f"{what} {text}"), was, now, rule=f"{rule} {text}")


def _aligned(taped: Sequence[Any], asked: Sequence[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Indexes of the items that stand for each other and differ, or stand for nothing (None)."""
    ours, theirs = list(map(_key, taped)), list(map(_key, asked))  # to Python, 1 and true are equal
    start = next(
        (at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
    )
    tails = zip(reversed(ours[start:]), reversed(theirs[start:]), strict=False)
    end = next((at for at, (a, b) in enumerate(tails) if a != b), min(len(ours), len(theirs)) - start)
    a, b = range(start, len(ours) - end), range(start, len(theirs) - end)
    in_order = len(a) == len(b) or len(a) * len(b) > _MOST_ALIGNED
    pairs = _paired(a, b) if in_order else _opened(ours, theirs, a, b)
    for was, now in pairs:
        if was is None or now is None or ours[was] != theirs[now]:
            yield was, now


def _opened(ours: list[bytes], theirs: list[bytes], a: range, b: range) -> Iterator[tuple[int | None, int | None]]:
    matcher = SequenceMatcher(None, ours[a.start : a.stop], theirs[b.start : b.stop])
    for what, a0, a1, b0, b1 in matcher.get_opcodes():
        if what != "equal":
            yield from _paired(a[a0:a1], b[b0:b1])


def _paired(a: range, b: range) -> Iterator[tuple[int | None, int | None]]:
    for at in range(max(len(a), len(b))):
        yield a[at] if at < len(a) else None, b[at] if at < len(b) else None


def _key(item: Any) -> bytes:
    try:
        return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer past 64 bits, or nested too deeply
        return repr(item).encode(errors="surrogatepass")


def json_member(name: str) -> str:
    """A member's step in a JSON path."""
    return f".{name}" if _BARE.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"


def _show(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def readable(canonical: bytes) -> str:
    """A body that is no JSON, as text."""
    try:
        return canonical.decode()
    except UnicodeDecodeError:
        return canonical.decode("latin-1")
