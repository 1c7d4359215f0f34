"""The page of `diff --html`: one file, without scripts, that asks the network for nothing. Compares nothing.

Whatever comes from a tape is text: it goes through `_text`, which escapes markup and spells out characters that would
act, hide or turn the writing direction. The page's own policy forbids scripts, in case that were not enough.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final

from tapeproxy.cli.diffpages import count_words, headline, lane_label, numbers, side_facts
from tapeproxy.cli.diffsides import Shown
from tapeproxy.cli.diffstyle import STYLE
from tapeproxy.cli.redactions import mark
from tapeproxy.cli.rendering import count, duration
from tapeproxy.tapes.comparisons import Details, gist
from tapeproxy.tapes.contexts import ContextChange, message_text
from tapeproxy.tapes.conversation import Message
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.hintdiffs import HintDiff
from tapeproxy.tapes.invisible import spelled
from tapeproxy.tapes.sides import Side
from tapeproxy.tapes.summary import summarise
from tapeproxy.tapes.tapediff import Compared, LaneDiff, TapeDiff, relation
from tapeproxy.tapes.wording import word_runs

_OPENED: Final = 500
"""Events that can be opened on the page; of more there is a line each."""
_ROWS: Final = 5000
"""Events that have a line."""
_LONGEST: Final = 20_000
"""Characters of a message."""
_SAME: Final = 200
"""Events of a row of same ones that are listed."""
_READS: Final = 100


def diff_html(shown: tuple[Shown, Shown], diff: TapeDiff) -> Iterator[str]:
    """The page, piece by piece."""
    yield _head()
    yield f'<h1><span class="chip {"extra" if diff.same else "changed"}">{"same" if diff.same else "different"}</span> '
    yield f"{escape(headline(diff).partition(': ')[2])}</h1>\n"
    yield '<div class="two">'
    for name, side in zip("AB", shown, strict=True):
        yield f'<div class="card"><span class="side">{name}</span>{_text(side.path)}'
        yield f'<div class="dim small">{_text(side_facts(side))}</div></div>'
    yield "</div>\n"
    if told := relation(shown[0].tape, shown[1].tape):
        yield f"<p>{_text(told)}</p>\n"
    for found in diff.outcome:
        was, now = _text(_or_absent(found.taped)), _text(_or_absent(found.asked))
        yield f"<p>The runs ended otherwise: {_text(found.where)}: {was} in A, {now} in B.</p>\n"
    if diff.branch is not None:
        yield f'<p><a href="#branch">To the branch point</a>: {escape(numbers(diff.branch))}, '
        yield f"{_text(lane_label(diff.branch.lane))}</p>\n"
    if diff.hints:
        yield from _hints(diff.hints)
    page = _Page(diff)
    for lane in diff.lanes:
        yield from page.lane(lane)
    yield "<footer>A row opens with a click, or with Enter. Red is A, green is B. Times are not compared.</footer>\n"
    yield "</body></html>\n"


class _Page:
    """The lanes of a diff, with a budget for what is told of each event."""

    def __init__(self, diff: TapeDiff) -> None:
        self._diff = diff
        self._opened = 0
        self._rows = 0

    def lane(self, lane: LaneDiff) -> Iterator[str]:
        yield f'<section><h2>{_text(lane_label(lane.lane))} <span class="chip">'
        yield f"{escape(count_words(lane.counts()))}</span></h2>\n"
        for same, group in groupby(lane.events, key=lambda event: event.kind == "same"):
            if same:
                yield from _same_rows(list(group))
            else:
                for event in group:
                    yield from self._event(event)
        yield "</section>\n"

    def _event(self, event: Compared) -> Iterator[str]:
        branch = event == self._diff.branch
        self._rows += 1
        if self._rows > _ROWS and not branch:
            if self._rows == _ROWS + 1:
                yield '<p class="dim">More events differ than a page can show; --json has them all.</p>\n'
            return
        opens = branch or (event.kind == "changed" and self._opened < _OPENED)
        self._opened += opens
        classes = f"event e-{event.kind}{' branch' if branch else ''}"
        mark_ = ' id="branch"' if branch else ""
        if not opens:
            yield f'<div class="{classes}"{mark_}><div class="plain">{self._cells(event, branch=branch)}</div></div>\n'
            return
        yield f'<details class="{classes}"{mark_}{" open" if branch else ""}>'
        yield f'<summary>{self._cells(event, branch=branch)}</summary><div class="inside">'
        yield from _details(self._diff.details(event), event)
        if branch:
            yield from self._reads()
        yield "</div></details>\n"

    def _cells(self, event: Compared, *, branch: bool) -> str:
        words = [event.kind, *event.changes]
        chips = "".join(f' <span class="chip {event.kind}">{escape(word)}</span>' for word in words)
        flag = '<span class="chip flag">branch point</span>' if branch else ""
        cells = _cell(self._diff.ours, event.ours) + _cell(self._diff.theirs, event.theirs)
        return f'<div class="two">{cells}</div><div class="chips">{flag}{chips}</div>'

    def _reads(self) -> Iterator[str]:
        reads = self._diff.reads()
        if not reads:
            return
        yield "<h3>read otherwise before</h3><table><tr><th>what</th><th>A</th><th>B</th></tr>"
        for read in reads[:_READS]:
            where = f'<div class="dim small">{_text(read.where)}</div>' if read.where else ""
            yield f"<tr><td>{read.kind}: {_text(read.what)}{where}</td>{_values(read.ours, read.theirs)}</tr>"
        yield "</table>"


def _head() -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>tapeproxy diff</title>\n<style>{STYLE}</style></head>\n<body>\n"
    )


def _text(text: str) -> str:
    """Text from a tape as markup that is only text."""
    safe = spelled(escape(mark(text)), lambda form: f'<span class="ctl">{escape(form)}</span>')
    return f'<bdi class="t">{safe}</bdi>'


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n… and {len(text) - _LONGEST} more characters"


def _cell(side: Side, number: int | None) -> str:
    if number is None:
        return '<div class="cell none">not there</div>'
    exchange = side.exchange(number)
    row = summarise(exchange)
    line = f"{row.method} {row.target.host}{row.target.path}"
    facts = [row.result, row.model or "", "" if row.total is None else duration(row.total)]
    if row.tokens_in is not None or row.tokens_out is not None:
        facts.append(f"{row.tokens_in or 0} tokens in, {row.tokens_out or 0} out")
    facts.append(exchange.request.source or "")
    return (
        f'<div class="cell"><span class="no">{number}</span><span class="mono">{_text(line)}</span>'
        f"{_gist(exchange)}"
        f'<div class="dim small">{_text(" · ".join(filter(None, facts)))}</div></div>'
    )


def _gist(exchange: Exchange) -> str:
    said = gist(exchange)
    return f'<div class="small">{_text(said)}</div>' if said else ""


def _hints(hints: Sequence[HintDiff]) -> Iterator[str]:
    yield f'<section><h2>What hints told <span class="chip">{escape(count(len(hints), "hint"))}</span></h2>\n'
    for hint in hints[:_ROWS]:
        yield f'<p><span class="chip {hint.kind}">{hint.kind}</span> '
        yield f'<span class="mono">{_text(hint.label)}</span></p>\n'
        if hint.differences:
            yield from _differences(hint.differences)
    if len(hints) > _ROWS:
        yield f'<p class="dim">And {len(hints) - _ROWS} more; --json has them all.</p>\n'
    yield "</section>\n"


def _same_rows(events: Sequence[Compared]) -> Iterator[str]:
    yield f'<details class="same"><summary>{escape(count(len(events), "exchange"))} the same</summary><ol>'
    for event in events[:_SAME]:
        both = f"{event.ours}" if event.ours == event.theirs else f"{event.ours} / {event.theirs}"
        yield f'<li><span class="no">{both}</span><span class="mono">{_text(event.request)}</span></li>'
    if len(events) > _SAME:
        yield f"<li>and {len(events) - _SAME} more</li>"
    yield "</ol></details>\n"


def _details(details: Details, event: Compared) -> Iterator[str]:
    if details.tools:
        yield f"<p>{_text(details.tools)}</p>"
    if details.context:
        yield "<h3>context</h3>"
        yield from _context(details.context, *details.messages)
    for what, found in (("request", details.request), ("response", details.response)):
        if found:
            yield f"<h3>{what}</h3>"
            yield from _differences(found)
    if not (details.context or details.request or details.response):
        what = "It is on one tape only." if event.ours is None or event.theirs is None else "It is the same, elsewhere."
        yield f"<p>{what}</p>"


def _differences(found: Iterable[Difference]) -> Iterator[str]:
    yield "<table><tr><th>where</th><th>A</th><th>B</th></tr>"
    for one in found:
        where = one.where.removeprefix("body ").removeprefix("answer ")
        kind = f'<div class="dim small">both look like a {escape(one.kind)}</div>' if one.kind else ""
        yield f'<tr><td class="mono">{_text(where)}{kind}</td>{_values(one.taped, one.asked)}</tr>'
        if one.words:
            yield f'<tr><td></td><td colspan="2">{_text(one.words)}</td></tr>'
    yield "</table>"


def _values(ours: str | None, theirs: str | None) -> str:
    return "".join(
        f'<td class="{name}">{_text(_or_absent(value))}</td>' for name, value in (("was", ours), ("now", theirs))
    )


def _or_absent(value: str | None) -> str:
    return "(absent)" if value is None else value


def _context(changes: Sequence[ContextChange], a: Sequence[Message], b: Sequence[Message]) -> Iterator[str]:
    """All messages of both calls, those that both have folded away."""
    at = 0  # the next message of b
    changed_a = {change.taped for change in changes}
    changed_b = {change.asked for change in changes}
    for change in changes:
        if change.asked is not None:
            until = change.asked
        else:
            assert change.taped is not None
            before = sum(place not in changed_a for place in range(change.taped))
            kept = [place for place in range(len(b)) if place not in changed_b]
            until = kept[before - 1] + 1 if before else 0
        yield from _unchanged(b[at:until])
        at = max(at, until)
        yield _changed(change, a, b)
        at = at + 1 if change.asked is not None else at
    yield from _unchanged(b[at:])


def _unchanged(messages: Sequence[Message]) -> Iterator[str]:
    if not messages:
        return
    yield f'<details class="same"><summary>{escape(count(len(messages), "message"))} the same</summary>'
    for message in messages:
        yield f'<div class="message"><span class="dim small">{_text(message.role)}</span>'
        yield f"<pre>{_text(_cut(message_text(message)))}</pre></div>"
    yield "</details>"


def _changed(change: ContextChange, a: Sequence[Message], b: Sequence[Message]) -> str:
    was = "" if change.taped is None else _cut(message_text(a[change.taped]))
    now = "" if change.asked is None else _cut(message_text(b[change.asked]))
    if change.taped is None or change.asked is None:
        text = _text(was or now)
    else:
        tags = {"out": "del", "in": "ins"}
        pieces = ((tags.get(what, "span"), _text(piece)) for what, piece in word_runs(was, now))
        text = "".join(f"<{tag}>{piece}</{tag}>" for tag, piece in pieces)
    at = change.asked if change.asked is not None else change.taped
    return (
        f'<div class="message m-{change.kind}"><span class="chip k-{change.kind}">{change.kind.upper()}</span> '
        f'<span class="dim small">message {at}, {_text(change.role)}</span><pre>{text}</pre></div>'
    )
