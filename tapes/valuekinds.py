"""What class a value looks like: a uuid, a time, a token … the usual noise in requests. Knows shapes, no meaning."""

import re
from collections.abc import Callable
from typing import Final

_HEX = r"[0-9a-fA-F]"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_KINDS: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "uuid": rf"(?:urn:uuid:)?{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
        "JWT": r"eyJ[\w-]+\.[\w-]+\.[\w-]*",
        "timestamp": (
            rf"\d{{4}}-\d{{2}}-\d{{2}}[T ]{_TIME}(?:Z|[+-]\d{{2}}:?\d{{2}})?"
            rf"|(?:[A-Z][a-z]{{2}}, )?\d{{1,2}} {_MONTH} \d{{4}}(?: {_TIME}.*)?"
            rf"|{_MONTH} \d{{1,2}},? \d{{4}}(?:,? {_TIME}.*)?|\d{{8}}T\d{{6}}Z?"
        ),
        "date": r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}",
        "time of day": rf"{_TIME}(?: ?[AP]M)?",
        "multipart boundary": r"-{2,}[\w'()+,./:=?-]*\w{12,}|(?:WebKitFormBoundary|boundary)\w{8,}",
        "memory address": rf"0x{_HEX}{{6,16}}",
        "path": r"(?:[A-Za-z]:[\\/]|~?/)[^\s\"']+|file://\S+",
        "version": r"v?\d+\.\d+(?:\.\d+)+(?:[-+.]?\w+)*",
        "hash": rf"(?:{_HEX}{{32}}|{_HEX}{{40}}|{_HEX}{{64}})",
        "id": r"[a-z][a-z0-9]{1,15}[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}",
    }.items()
}
# 2001 to 2049, in seconds, milliseconds, microseconds or nanoseconds.
_EPOCH = re.compile(r"(?:[1-2]\d{9}(?:\.\d+)?|[1-2]\d{12}|[1-2]\d{15}|[1-2]\d{18})")
_WHOLE = re.compile(r"-?\d{1,15}")
_RANDOM = re.compile(r"[A-Za-z0-9_+/=-]{16,}")
_PATTERNS: Final = {
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}",
    "timestamp": r"\d[\dT:.,+Z-]*[\dZ](?: \d\d?:[\d:.]*\d)?",
    "date": r"\d[\d./-]*\d",
    "time of day": r"\d\d?:[\d:.,]*\d",
    "memory address": r"0x[0-9a-fA-F]+",
    "JWT": r"eyJ[\w.-]+",
    "hash": r"[0-9a-fA-F]{32,64}",
    "version": r"v?\d[\w.+-]*\w",
    "path": r"[^\s\"\\]*[\w/]",
    "id": r"\w+[_-]\w+",
    "random text": r"[\w+/=-]+",
    "number": r"-?\d+",
    "counter": r"-?\d+",
}
"""How to find a value of a kind inside of a text, however it is written there: looser than what tells the kinds."""
_VAGUE = frozenset({"timestamp", "date", "version", "path", "id", "random text", "number", "counter"})
# What JSON writes as it is.
_LEAD = re.compile(r"[^\"\\\x00-\x1f]{1,40}$")
_CLOSE = 1000
"""Counters of two runs are no further apart."""


def value_kind(value: str) -> str:
    """The class of one value: uuid, JWT, timestamp, …, number, random text; empty when it is nothing special."""
    text = value.strip()
    for name, pattern in _KINDS.items():
        if pattern.fullmatch(text):
            return name
    if _EPOCH.fullmatch(text):
        return "timestamp"
    if _WHOLE.fullmatch(text):
        return "number"
    return "random text" if _looks_random(text) else ""


def pair_kind(taped: str, asked: str) -> str:
    """The class that both values are of; empty when they are of none, or not of the same."""
    kind = value_kind(taped)
    if not kind or kind != value_kind(asked):
        return ""
    if kind != "number":
        return kind
    return "counter" if 0 < abs(int(taped) - int(asked)) <= _CLOSE else ""


def noise_pattern(kind: str, before: str) -> tuple[str, str] | None:
    """A regular expression, with its replacement, for values of a kind that come after the text `before`.

    None where it would have to match too much: a number, or what is anyone's guess, without a word in front.
    """
    pattern = _PATTERNS.get(kind)
    lead = _LEAD.search(before)
    anchor = lead[0] if lead is not None and lead[0].strip() else ""
    if pattern is None or (kind in _VAGUE and not anchor):
        return None
    return re.escape(anchor).replace("\\ ", " ") + pattern, f"{anchor}<{kind}>"


def _looks_random(text: str) -> bool:
    """Letters of both cases and digits, or hex: what no one writes by hand."""
    if not _RANDOM.fullmatch(text):
        return False
    tests: tuple[Callable[[str], bool], ...] = (str.isdigit, str.islower, str.isupper)
    classes = sum(any(test(char) for char in text) for test in tests)
    return classes == len(tests) or (classes == 2 and any(char.isdigit() for char in text) and len(set(text)) >= 10)
