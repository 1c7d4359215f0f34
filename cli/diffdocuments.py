"""What `diff --json` prints. Knows field names, prints nothing.

The names are stable: more may come, none goes or changes its meaning. `a` and `b` are the two tapes.
"""

from typing import Any

from tapeproxy.cli.diffsides import Shown
from tapeproxy.tapes.comparisons import Details
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.hintdiffs import HintDiff, place_of
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.tapediff import Compared, LaneDiff, LanePair, TapeDiff, relation


def diff_document(shown: tuple[Shown, Shown], diff: TapeDiff) -> Json:
    """A whole diff."""
    return {
        "same": diff.same,
        "relation": relation(shown[0].tape, shown[1].tape),
        "a": _side(shown[0]),
        "b": _side(shown[1]),
        "counts": dict(diff.counts()),
        "branch": None if diff.branch is None else event_document(diff, diff.branch),
        "reads": [
            {"kind": read.kind, "what": read.what, "a": read.ours, "b": read.theirs, "where": read.where}
            for read in diff.reads()
        ],
        "hints": [_hint(found) for found in diff.hints],
        "outcome": [_difference(found) for found in diff.outcome],
        "lanes": [_lane(diff, lane) for lane in diff.lanes],
    }


def event_document(diff: TapeDiff, event: Compared) -> Json:
    """One event, with how it differs."""
    theirs = None if event.theirs is None else diff.theirs.exchange(event.theirs).request
    return {
        "kind": event.kind,
        "a": event.ours,
        "b": event.theirs,
        "lane": _pair(event.lane),
        "changes": list(event.changes),
        "source": None if theirs is None else theirs.source,
        "line": event.request,
        "details": details_document(diff.details(event)),
    }


def details_document(details: Details) -> Json:
    """How an event differs."""
    return {
        "request": [_difference(found) for found in details.request],
        "response": [_difference(found) for found in details.response],
        "context": [
            {"kind": one.kind, "role": one.role, "a": one.taped, "b": one.asked, "text": one.text}
            for one in details.context
        ],
        "tools": details.tools,
    }


def _hint(found: HintDiff) -> Json:
    return {
        "kind": found.kind,
        "a": place_of(found.ours),
        "b": place_of(found.theirs),
        "what": found.what,
        "title": found.title,
        "differences": [_difference(one) for one in found.differences],
    }


def _side(shown: Shown) -> Json:
    head, done, totals = shown.tape.head, shown.tape.exit, shown.totals
    return {
        "tape": shown.path,
        "argv": list(head.argv),
        "started_at": head.started_at,
        "sealed": shown.tape.seal is not None,
        "exit_code": None if done is None else done.code,
        "signal": None if done is None else done.signal,
        "duration_ns": totals.duration,
        "exchanges": totals.exchanges,
        "calls": totals.calls,
        "failed": totals.failed,
        "tokens_in": totals.tokens_in,
        "tokens_out": totals.tokens_out,
    }


def _lane(diff: TapeDiff, lane: LaneDiff) -> Json:
    return _pair(lane.lane) | {
        "counts": dict(lane.counts()),
        "same": [[event.ours, event.theirs] for event in lane.events if event.kind == "same"],
        "events": [event_document(diff, event) for event in lane.events if event.kind != "same"],
    }


def _pair(lane: LanePair) -> Json:
    return {"a": lane.ours, "b": lane.theirs, "name": lane.name}


def _difference(found: Difference) -> dict[str, Any]:
    return {"where": found.where, "a": found.taped, "b": found.asked, "words": found.words, "kind": found.kind}
