"""Where secrets stand in bytes, and where one may have begun that goes on. Knows places, not what becomes of them.

Big bodies are mostly words too short for a key: keys are looked for in the runs of at least `RUN` word characters, with
a little of what stands before each, which takes a tenth of the time.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tapeproxy.tapes.assignments import assigned, assignment_open
from tapeproxy.tapes.redactionrules import ASSIGNED, LOOKS, VERSION
from tapeproxy.tapes.remembering import Memory
from tapeproxy.tapes.secretfields import FIELD, LISTED, NAMED, NAMING, is_telling, is_usual, string_end
from tapeproxy.tapes.secretforms import Form, forms_of
from tapeproxy.tapes.secretnames import SCHEMES, is_secret_field, is_secret_header, is_secret_pair
from tapeproxy.tapes.secretpatterns import (
    BROKEN_PEM,
    FORMATS,
    INSIDE_URLS,
    MOST,
    PEM,
    RUN,
    SPACED,
    WORDS,
    Format,
)
from tapeproxy.tapes.secretruns import NO_RUNS, flat, marks_in, runs_of
from tapeproxy.tapes.spans import Span, settle

HOLD: Final = 3
"""What ends in fewer bytes of a secret's beginning is not taken for its beginning."""
WINDOW: Final = 256
"""Bytes at the end of a text in which what a user's pattern matches may have begun."""
_TELLING: Final = 8
"""Of a secret that a text breaks off in, so many bytes are worth hiding; fewer are any word's."""
_NEAR: Final = 256
_BESIDE: Final = NAMING | {b"value"}
_BIG: Final = 2 * MOST
_SPACED: Final = tuple(one.mark for one in SPACED if one is not PEM)
_STARTS: Final = tuple((one.mark, n) for one in FORMATS for n in range(HOLD, len(one.mark)))
_QUERY: Final = re.compile(rb"[?&;#]([A-Za-z][A-Za-z0-9_.-]{1,40})=([^&\s\"'<>\\#;]+)")
_SCHEME: Final = re.compile(rb"(?i)(?:" + b"|".join(sorted(SCHEMES)) + rb") +(?=\S)")


class Finder:
    """Finds the values `secrets`; by `looks`, a version of redaction, what has the look or the name of a secret (0:
    nothing has, 3: also what is assigned to one in running text, and the `value` beside a `name`); fields of the names
    `fields` (lower case); and what `patterns` match: their group 1, if there is one.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        *,
        looks: int = VERSION,
        fields: frozenset[bytes] = frozenset(),
        patterns: tuple[re.Pattern[bytes], ...] = (),
    ) -> None:
        forms: dict[bytes, Form] = {}
        for secret in secrets:
            for form in forms_of(secret.encode(errors="surrogateescape")):
                forms.setdefault(form.text, form)
        ordered = sorted(forms.values(), key=lambda form: -len(form.text))
        self._in_runs = tuple((probe, form) for form in ordered if (probe := _probe(form)))
        self._anywhere = tuple(form for form in ordered if not _probe(form))
        self._forms = tuple(ordered)
        self._long = tuple(form for form in ordered if len(form.text) > _NEAR)
        self._memory = Memory()
        self.shortest = min((len(secret) for secret in forms), default=MOST)
        """The length of the shortest form of a known secret."""
        self._secrets = frozenset(form.secret for form in ordered)
        self._starts: dict[bytes, list[tuple[bytes, int, Form | None]]] | None = None
        self._looks = looks >= LOOKS
        self._assigned = looks >= ASSIGNED
        self._names = fields
        self._patterns = patterns

    @property
    def idle(self) -> bool:
        """Whether there is nothing that it could find."""
        return not (self._forms or self._looks or self._names or self._patterns)

    def spans(self, text: bytes) -> list[Span]:
        """The secrets in `text`, in order, none in or across another."""
        found = self._found(text)
        return settle(text, found) if len(found) > 1 else found

    def spans_again(self, text: bytes) -> list[Span]:
        """`spans` of what may be an earlier text that has grown."""
        return self._memory.spans(text, self.spans) if len(text) >= _BIG and self._looks else self.spans(text)

    def open_at(self, text: bytes, spans: list[Span]) -> int:
        """Where in `text` begins what may become a secret when more text comes; len(text) if nothing does.

        `spans`: the secrets in it. What is a known one, whole, is taken for no other.
        """
        at = [len(text), *self._long_at(text)]
        if self._patterns:
            at.append(max(len(text) - WINDOW, 0))
        at += (len(text) - n for begun, n, _ in self._beginnings().get(text[-HOLD:], ()) if text.endswith(begun[:n]))
        if self._looks:
            known = spans[-1].start if spans and spans[-1].secret in self._secrets else len(text)
            at += (place for place in _going(text) if place < known)
            if self._assigned and (place := assignment_open(text)) is not None and place < known:
                at.append(place)
        if self._looks or self._names:
            at += self._open_field(text)
        return min(at)

    def ending(self, text: bytes) -> list[Span]:
        """The secrets in `text` when nothing follows: also the one it breaks off in, if enough is there to tell."""
        spans = self.spans(text)
        begun = self._begun(text)
        if begun is None:
            return spans
        if spans and spans[-1].end > begun.start:
            if begun.whole == 0 or spans[-1].start < begun.start or spans[-1].secret in self._secrets:
                return spans
            spans.pop()
        return [*spans, begun]

    def _begun(self, text: bytes) -> Span | None:
        best: Span | None = None
        for begun, length, form in self._beginnings().get(text[-HOLD:], ()):
            if form is not None and length >= _TELLING and text.endswith(begun[:length]):
                span = Span(len(text) - length, len(text), form.secret, len(begun))
                best = span if best is None or span.start < best.start else best
        if best is not None:
            return best
        places = [*self._long_at(text), *(_broken_off(text) if self._looks else ())]
        if self._looks or self._names:
            places += (at for at in self._open_field(text) if is_telling(True, text[at:]))
        at = min(places, default=len(text))
        return Span(at, len(text), text[at:]) if places else None

    def _found(self, text: bytes) -> list[Span]:
        found: list[Span] = []
        for form in self._anywhere:
            if form.text in text:
                found += _occurrences(text, form)
        runs = runs_of(text) if self._in_runs or self._looks else NO_RUNS
        if runs.whole:
            for probe, form in self._in_runs:
                if probe in runs.whole:
                    found += _occurrences(text, form)
            if self._looks and (marks := marks_in(runs.keyed)):
                found += (Span(*span, text[slice(*span)]) for one in _present(marks) for span in one.find(text))
            if self._looks and b"-----" in runs.keyed:
                found += (Span(*span, text[slice(*span)]) for span in PEM.find(text))
        if self._looks and b"://" in text:
            found += _in_urls(text)
        if self._assigned:
            found += (Span(*span, text[slice(*span)]) for span in assigned(text, runs.keyed))
        if self._looks or self._names:
            self._in_fields(text, found)
        for pattern in self._patterns:
            group = 1 if pattern.groups else 0
            found += (Span(*match.span(group), match[group]) for match in pattern.finditer(text) if match[group])
        return found

    def _in_fields(self, text: bytes, found: list[Span]) -> None:
        field = LISTED if self._assigned else FIELD
        match = field.search(text) if b'"' in text and self._has_field(text) else None
        beside: bool | None = False
        while match is not None:
            at = match
            match = field.search(text, at.end())
            says, beside = beside if at[1] == b"value" else self._is_secret(at[1]), False
            if says is False and at[1] not in NAMING:
                continue
            start = at.end()
            end = string_end(text, start, len(at[2]))
            if self._assigned and at[1] in NAMING and match is not None and match[1] == b"value":
                beside = self._names_secret(text[start:end])
            if says is False:
                continue
            match = field.search(text, end)
            if scheme := _SCHEME.match(text, start, end):
                start = scheme.end()
            value = text[start:end]
            if value and (at[1].lower() in self._names or is_telling(says, value)):
                found.append(Span(start, end, value))

    def _has_field(self, text: bytes) -> bool:
        """Whether any field in a text has a name that says something: most have none, and all are looked at at once."""
        names = set(NAMED.findall(text))
        return not names.isdisjoint(_BESIDE) or any(self._is_secret(name) is not False for name in names)

    def _is_secret(self, name: bytes) -> bool | None:
        """Whether a field of this name is a secret; None: if it looks like one."""
        if self._names and name.lower() in self._names:
            return True
        return is_secret_field(name) if self._looks else False

    def _names_secret(self, name: bytes) -> bool | None:
        return True if is_secret_header(name) else self._is_secret(name)

    def _open_field(self, text: bytes) -> Iterator[int]:
        """Where the value of the last field of a secret begins, if it does not end."""
        if text.endswith(b"\n"):
            return  # no JSON string holds a line end
        start = max(len(text) - MOST, 0)
        last = None
        beside: bytes | None = None
        for match in (LISTED if self._assigned else FIELD).finditer(text, start):
            says = self._is_secret(match[1])
            if match[1] == b"value" and beside is not None:
                says = self._names_secret(beside)
            last = match if says is not False else last
            naming = self._assigned and match[1] in NAMING
            beside = text[match.end() : string_end(text, match.end(), len(match[2]))] if naming else None
        if last is not None and string_end(text, last.end(), len(last[2])) == len(text):
            yield last.end()

    def _long_at(self, text: bytes) -> Iterator[int]:
        """Where a long known secret, of which more than `_NEAR` bytes are there, has begun."""
        for form in self._long:
            at = text.rfind(form.text[:_NEAR])
            if at >= 0 and len(text) - at < len(form.text) and form.text.startswith(text[at:]):
                yield at

    def _beginnings(self) -> dict[bytes, list[tuple[bytes, int, Form | None]]]:
        """The last bytes of every possible beginning of a secret -> those: one look-up a piece of a stream."""
        if self._starts is None:
            self._starts = {}
            if self._looks:
                for mark, n in _STARTS:
                    self._starts.setdefault(mark[n - HOLD : n], []).append((mark, n, None))
            for form in self._forms:
                for n in range(HOLD, min(len(form.text), _NEAR + 1)):
                    self._starts.setdefault(form.text[n - HOLD : n], []).append((form.text, n, form))
        return self._starts


def _going(text: bytes) -> Iterator[int]:
    """Where what looks like a secret goes on to the end of `text`."""
    late = max(len(text) - MOST, 0)
    if text.find(PEM.mark, late) >= 0:
        yield from _open(text, late, {PEM.mark})
    if text.endswith(b"\n"):
        return  # nothing else goes on after it
    word = _last_word(text)
    if len(text) - word >= HOLD and (marks := marks_in(text[word:])):
        yield from _open(text, word, marks)
    near = max(len(text) - _NEAR, 0)
    if marks := {mark for mark in _SPACED if text.find(mark, near) >= 0}:
        yield from _open(text, near, marks)
    if text.find(b"://", near) >= 0:
        yield from _open(text, near, {INSIDE_URLS.mark})
        for match in _QUERY.finditer(text, near):
            if match.end() == len(text) and is_secret_pair(match[1]) is not False:
                yield match.start(2)


def _last_word(text: bytes) -> int:
    """Where the run of word characters begins with which `text` ends, or the last `MOST` bytes of it."""
    start = max(len(text) - MOST, 0)
    return start + flat(text[start:]).rfind(b" ") + 1


def _broken_off(text: bytes) -> Iterator[int]:
    """Where a key begins that `text` breaks off in, and a private key of which some is there."""
    word = _last_word(text)
    for one in WORDS:
        at = one.open_at(text, word) if one.mark in text[word:] else None
        if at is not None and one.holds(text[at:]) and len(text) - at - len(one.mark) >= _TELLING:
            yield at
    if (match := BROKEN_PEM.search(text, max(len(text) - MOST, 0))) is not None:
        yield match.start(1)


def _open(text: bytes, start: int, marks: set[bytes]) -> Iterator[int]:
    for one in (*FORMATS, INSIDE_URLS):
        if one.mark in marks and (at := one.open_at(text, start)) is not None:
            yield at


def _probe(form: Form) -> bytes:
    """What stands in a run wherever the form stands; empty when nothing does."""
    if form.encoded:
        return form.text
    longest = max(flat(form.text).split(b" "), key=len)
    if len(longest) < RUN:
        return b""
    at = flat(form.text).find(longest)
    return form.text[at : at + len(longest)]


def _present(marks: set[bytes]) -> list[Format]:
    return [one for one in FORMATS if one.mark in marks] if marks else []


def _occurrences(text: bytes, form: Form) -> Iterator[Span]:
    at = text.find(form.text)
    while at >= 0:
        end = at + len(form.text)
        yield Span(*form.widened(text, at, end), form.secret)
        at = text.find(form.text, end)


def _in_urls(text: bytes) -> Iterator[Span]:
    for start, end in INSIDE_URLS.find(text):
        if not is_usual(text[start:end]):
            yield Span(start, end, text[start:end])
    for match in _QUERY.finditer(text):
        says = is_secret_pair(match[1])
        if says is not False and is_telling(says, match[2]):
            yield Span(*match.span(2), match[2])
