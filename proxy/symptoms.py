"""What several replays of a tape show of a program that is not the same every time. Pure: from tape and runs, values.

What is told in several replays is one symptom, with the values of tape and replays side by side.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tapeproxy.proxy.comparing import Discrepancy, Run, discrepancy
from tapeproxy.shim.scan import Level
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.provenance import Provenance
from tapeproxy.tapes.records import Note
from tapeproxy.tapes.requestlines import shorten
from tapeproxy.tapes.violations import Drift, Violation

_MOST = 50
"""Symptoms of violations and drifts; later ones mostly follow from the first."""
_MOST_PLACES = 8
_ORDER = "the same parts in another order: who was first is a matter of timing, or of a folder's or a set's order"
_CHANGES = "another value in each replay: it is read live, or a matter of timing; no tape decides it"
_STAYS = "the same value in each replay: it comes from the code, its arguments, the environment or a file"
_LOOK = "See the findings of the scan for what may have gone into it; docs/LIMITS.md lists what no tape decides."
_FIXES = {
    "egress": "Send it through the proxy (HTTPS_PROXY), or let it pass: --allow HOST:PORT.",
    "websocket": "What the client sends has to be what is on the tape, in its order; see docs/LIMITS.md.",
    "tunnel": "Only HTTP is taped. If it may be live: --allow HOST:PORT.",
    "no-tape": "It passed the recording by: record without --no-tape, or replay with --allow HOST:PORT.",
    "refused": "The tape is of a run that was refused something itself: fork or record again without that.",
    "bypass": "Send it through the proxy (HTTPS_PROXY); if it may be live in a replay: --allow HOST:PORT.",
    "lane": "Another thread or task asked than on the tape: give each its own work, or replay with --match any.",
    "unused": "The program asked for less: something decides otherwise than when it was recorded.",
    "exit": "See what the program printed: tapeproxy verify --times 3 --show-output.",
    "stdout": "Sort what is printed, or keep ids, addresses and what other programs say out of it.",
    "stderr": "Keep ids, addresses and what other programs say out of it.",
    "certificate": "Give the client the certificate of `tapeproxy ca`: it reads none of SSL_CERT_FILE and its kin.",
    "timeout": "Something waits for what does not come: raise --timeout, or see where it waits.",
    "empty": "Is it the right command, and does it honour HTTPS_PROXY? See docs/LIMITS.md.",
}
_PASSED = {
    "bypass": "bypass",
    "websocket-untaped": "websocket",
    "tunnel-untaped": "tunnel",
    "no-tape": "no-tape",
    "client-refused-ca": "certificate",
}
"""Notes on a tape that say that something is not on it, and what they are called here."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place, and what was there: by name (`tape`, `replay 1`, `replays 2, 3`), an excerpt or None for nothing."""

    where: str
    values: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """Something that was not as on the tape, or not the same in two replays.

    `kind` is a stable word; `what` a sentence; `where` a line of the program or a request; `replays` the numbers of
    those in which it was so, empty for what the tape itself says; `hint` a sentence on what the evidence means;
    `origins` sentences on what was read, and on which line, that went into it.
    """

    kind: str
    level: Level
    what: str
    where: str = ""
    replays: tuple[int, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    hint: str = ""
    origins: tuple[str, ...] = ()
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "evidence": [{"where": one.where, "values": dict(one.values)} for one in self.evidence],
            "replays": list(self.replays),
            "origins": list(self.origins),
        }


type Origins = Mapping[tuple[str, str], Sequence[str]]
"""By the request of a violation or drift, and the place in it: sentences on what went into that place."""


def origins(found: Iterable[Provenance]) -> Origins:
    """What a traced replay says, by request and place."""
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in found:
        told[one.request, one.where] += [line.strip() for line in one.to_text().split("\n")[1:]]
    return told


def symptoms(tape: Tape, runs: Sequence[Run], origins: Origins | None = None) -> list[Symptom]:
    """Everything that tape and replays show, worst first."""
    found = [*_of_the_tape(tape), *_faults(runs, origins or {}), *_refusals(runs), *_left_over(runs)]
    found += [*_apart(runs), *_endings(tape, runs), *_notes(runs)]
    return sorted(found, key=lambda symptom: ("error", "warning", "note").index(symptom.level))


def _of_the_tape(tape: Tape) -> Iterator[Symptom]:
    if not tape.exchanges:
        yield Symptom(kind="empty", level="warning", what="there are no exchanges on the tape", fix=_FIXES["empty"])
    passed: dict[tuple[str, str, str], int] = defaultdict(int)
    for note in tape.notes:
        if note.what in _PASSED and note.data.get("what") != "lookup":
            passed[_PASSED[note.what], _passed(note), str(note.data.get("where", ""))] += 1
    for (kind, what, where), times in passed.items():
        often = "" if times == 1 else f" ({times} times)"
        yield Symptom(kind=kind, level="error", what=what + often, where=where, fix=_FIXES[kind])


def _passed(note: Note) -> str:
    return note.text or note.what


def _faults(runs: Sequence[Run], origins: Origins) -> Iterator[Symptom]:
    """Violations and drifts, those of several replays together."""
    grouped: dict[Hashable, list[tuple[int, Violation | Drift]]] = defaultdict(list)
    for run in runs:
        seen: dict[Hashable, int] = defaultdict(int)
        told: list[Violation | Drift] = [*run.replayed.violations, *run.replayed.drifts]
        for found in told:
            key = _key(found)
            seen[key] += 1
            grouped[key, seen[key]].append((run.number, found))
    for group in [*grouped.values()][:_MOST]:
        yield _fault(group, origins)


def _key(found: Violation | Drift) -> Hashable:
    """By what a fault is known again in another replay: not by what may be another value there."""
    if isinstance(found, Drift):
        return "drift", found.what.split(":")[0], tuple(difference.where for difference in found.differences)
    nearest = found.explanation.nearest if found.explanation is not None else None
    return found.kind, nearest or found.request


def _fault(group: Sequence[tuple[int, Violation | Drift]], origins: Origins) -> Symptom:
    first = group[0][1]
    kind = "drift" if isinstance(first, Drift) else first.kind
    where = first.request
    if kind == "egress":  # `connect at FILE:LINE in FUNCTION`
        where = first.request.partition(" at ")[2] or first.request
    evidence = tuple(_side_by_side([(number, _differences(found)) for number, found in group]))
    return Symptom(
        kind=kind,
        level="error",
        what=first.what,
        where=where,
        replays=tuple(dict.fromkeys(number for number, _ in group)),
        evidence=evidence,
        hint=_hint(evidence) if len(group) > 1 else "",
        origins=tuple(
            dict.fromkeys(
                said for _, found in group for one in evidence for said in origins.get((found.request, one.where), ())
            )
        ),
        fix=_FIXES.get(kind, _LOOK),
    )


def _differences(found: Violation | Drift) -> Sequence[Difference]:
    if isinstance(found, Drift):
        return found.differences
    return () if found.explanation is None else found.explanation.differences


def _side_by_side(told: Sequence[tuple[int, Sequence[Difference]]]) -> Iterator[Evidence]:
    """The tape's value of each place, then the replays', equal ones together."""
    places: dict[str, dict[int, Difference]] = defaultdict(dict)
    for number, differences in told:
        for difference in differences:
            places[difference.where].setdefault(number, difference)
    for where, by_run in [*places.items()][:_MOST_PLACES]:
        by_value: dict[str | None, list[int]] = defaultdict(list)
        for number, difference in by_run.items():
            by_value[difference.asked].append(number)
        values = [(_named(numbers), value) for value, numbers in by_value.items()]
        yield Evidence(where, (("tape", next(iter(by_run.values())).taped), *values))


def _named(numbers: Sequence[int]) -> str:
    return f"replay{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _hint(evidence: Sequence[Evidence]) -> str:
    if not evidence:
        return ""
    if all(_is_reordered([value for _, value in one.values]) for one in evidence):
        return _ORDER
    return _CHANGES if max(len(one.values) for one in evidence) > 2 else _STAYS


def _is_reordered(values: Sequence[str | None]) -> bool:
    words = [sorted(re.findall(r"\w+", value)) for value in values if value is not None]
    return len(words) == len(values) and all(one == words[0] for one in words) and len(set(words[0])) > 1


def _refusals(runs: Sequence[Run]) -> Iterator[Symptom]:
    refused: dict[tuple[str, str], list[int]] = defaultdict(list)
    for run in runs:
        for host, reason in run.replayed.refusals.items():
            refused[host, reason].append(run.number)
    for (host, reason), numbers in refused.items():
        what = f"a client refused our certificate for {host} ({reason}), so its requests never came"
        yield Symptom(kind="certificate", level="error", what=what, replays=tuple(numbers), fix=_FIXES["certificate"])


def _left_over(runs: Sequence[Run]) -> Iterator[Symptom]:
    left: dict[tuple[int, ...], list[int]] = defaultdict(list)
    named: dict[int, Exchange] = {}
    for run in runs:
        if run.replayed.unused:
            left[tuple(exchange.number for exchange in run.replayed.unused)].append(run.number)
            named.update((exchange.number, exchange) for exchange in run.replayed.unused)
    for exchanges, numbers in left.items():
        count = "1 exchange was" if len(exchanges) == 1 else f"{len(exchanges)} exchanges were"
        yield Symptom(
            kind="unused",
            level="warning",
            what=f"{count} not asked for",
            where=_exchange(named[exchanges[0]]) + ("" if len(exchanges) == 1 else " …"),
            replays=tuple(numbers),
            fix=_FIXES["unused"],
        )


def _exchange(exchange: Exchange) -> str:
    request = exchange.request
    return f"exchange {exchange.number}, {request.method.decode('latin-1')} {request.url.decode('latin-1')}"


def _apart(runs: Sequence[Run]) -> Iterator[Symptom]:
    """What the replays did differently from each other, besides their faults."""
    grouped: dict[tuple[str, str], list[tuple[Run, Discrepancy]]] = defaultdict(list)
    clean = [replace(run, replayed=replace(run.replayed, violations=[], drifts=[])) for run in runs]
    for run, original in zip(clean, runs, strict=True):
        found = discrepancy(clean[0], run)
        faulty = original.fault() not in (None, "timeout")
        if found is None or (faulty and found.what in ("request", "position", "answers")):
            continue  # what was asked is what the violation tells
        grouped[found.what, found.text].append((run, found))
    for (what, text), group in grouped.items():
        told = [(run.number, found.differences) for run, found in group]
        evidence = tuple(
            Evidence(one.where, (("replay 1", one.values[0][1]), *one.values[1:])) for one in _side_by_side(told)
        )
        where = "" if not evidence else evidence[0].where
        yield Symptom(
            kind=what,
            level="error",
            what=text,
            where=where,
            replays=tuple(run.number for run, _ in group),
            evidence=evidence,
            fix=_FIXES.get(what, _LOOK),
        )


def _endings(tape: Tape, runs: Sequence[Run]) -> Iterator[Symptom]:
    """Replays that ended otherwise than the recording did."""
    if tape.exit is None:
        return
    taped = _ended(tape.exit.code, tape.exit.signal)
    otherwise: dict[str, list[int]] = defaultdict(list)
    said: dict[str, Evidence] = {}
    for run in runs:
        outcome = run.replayed.outcome
        if (
            outcome is not None
            and outcome.stopped_by is None
            and (now := _ended(outcome.code, outcome.signal)) != taped
        ):
            otherwise[now].append(run.number)
            said.setdefault(now, Evidence("the last line on stderr", ((_named([run.number]), _last_line(run)),)))
    for now, numbers in otherwise.items():
        evidence = Evidence("exit", (("tape", taped), (_named(numbers), now)))
        what = "the program ended otherwise than when it was recorded"
        yield Symptom(
            kind="exit",
            level="error",
            what=what,
            replays=tuple(numbers),
            evidence=(evidence, said[now]) if said[now].values[0][1] else (evidence,),
            fix=_FIXES["exit"],
        )


def _last_line(run: Run) -> str:
    return shorten(run.stderr.text.decode(errors="backslashreplace").rstrip().rpartition("\n")[2])


def _ended(code: int | None, signal: str | None) -> str:
    return f"exit {code}" if signal is None else f"killed by {signal}"


def _notes(runs: Sequence[Run]) -> Iterator[Symptom]:
    noted: dict[str, list[int]] = defaultdict(list)
    for run in runs:
        for note in dict.fromkeys(run.replayed.notes):
            noted[note].append(run.number)
    for note, numbers in noted.items():
        yield Symptom(kind="note", level="note", what=note, replays=tuple(numbers))
