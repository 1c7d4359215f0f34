"""What `why` found, as a JSON object and in words. Pure."""

from typing import Final

from tapeproxy.tapes.records import Json
from tapeproxy.tapes.valuekinds import value_kind
from tapeproxy.tapes.whysources import Told
from tapeproxy.tapes.whyspans import Span, Why

_AROUND: Final = 60
"""Characters of a source that are told before and behind the words."""


def why_document(why: Why) -> Json:
    """`event`, `previous`, `fresh`, `whole`, and `texts`: place, text and spans. See `tapeproxy why --help`."""
    return {
        "event": why.number,
        "previous": why.previous,
        "fresh": why.fresh,
        "whole": why.whole,
        "texts": [
            {"place": text.place, "text": text.text, "spans": [_span(span) for span in text.spans]}
            for text in why.texts
        ],
    }


def told_words(told: Told) -> str:
    """What a source is, in a few words: `the answer of event 2, $.text`."""
    match told.kind:
        case "answer":
            return f"the answer of event {told.number}, {told.leaf.place}"
        case "value":
            where = f" at {told.where}" if told.where else ""
            place = f", {told.leaf.place}" if told.leaf.keys else ""
            return f"{told.what} {told.name}{where} ({told.lane}#{told.n}){place}"
        case "clock":
            within = " in that second" if told.name else ""
            return f"the clock{within}, read {told.n} of lane {told.lane}"
        case "chance":
            return f"chance: {told.name} that lane {told.lane} drew, byte {told.n} of its stream"
        case "argv":
            return f"the command line, {told.leaf.place}"
        case "cwd":
            return "the folder that the agent ran in"


def own_words(span: Span) -> str:
    """What is to be said of words that come from nowhere."""
    kind = value_kind(span.text)
    return f"the agent's own: it looks like a {kind}" if kind and kind != "number" else "the agent's own words"


def _span(span: Span) -> Json:
    out: Json = {"start": span.start, "end": span.end, "text": span.text}
    if span.told is None:
        out["source"] = None
        out["looks_like"] = value_kind(span.text) or None
    else:
        out["source"] = _told(span.told) | {"start": span.told_start, "end": span.told_end, "around": _around(span)}
        out["others"] = [_told(told) for told in span.others]
        out["came"] = [_span(one) for one in span.came]
    if span.passed is not None:
        out["asked_in"] = {"event": span.passed[0], "path": span.passed[1]}
    if span.since is not None:
        out["since"] = span.since
    return out


def _around(span: Span) -> list[str]:
    """The words where they came from: what stands before them, they themselves, and what stands behind."""
    assert span.told is not None
    text, start, end = span.told.leaf.text, span.told_start, span.told_end
    if span.told.kind in ("clock", "chance"):  # it was found by what it is, not by where it stands
        return ["", text[start:end], ""]
    return [text[max(0, start - _AROUND) : start], text[start:end], text[end : end + _AROUND]]


def _told(told: Told) -> Json:
    out: Json = {"kind": told.kind, "path": told.leaf.place, "words": told_words(told)}
    if told.kind == "answer":
        out["event"] = told.number
    if told.kind == "value":
        out |= {"lane": told.lane, "n": told.n, "what": told.what, "name": told.name, "where": told.where or None}
    if told.kind in ("clock", "chance"):
        out |= {"lane": told.lane, "n": told.n}
    return out
