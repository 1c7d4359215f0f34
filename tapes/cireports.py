"""What reports say, as one kind of entry each: of `replay --report`, of `verify --json`, of pytest. Pure.

A report may be anybody's file: what is not one of ours is a ValueError that says where, and no field is believed to
have the type that it should have.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Final

from tapeproxy.tapes.differences import Difference, difference_text
from tapeproxy.tapes.outcomes import GAP
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.reportfields import dict_of, list_of, text_of, whole_of
from tapeproxy.tapes.usage import Usage

_FAILED: Final = 1
_VIOLATION: Final = 3
_DRIFT: Final = 4
_BAD_TAPE: Final = 5
_WORST: Final = (_VIOLATION, _DRIFT, _BAD_TAPE, 124, 130)
"""Exit codes, the worst first; any other but 0 comes after them."""
_MOST_DIFFERENCES: Final = 8


@dataclass(frozen=True, slots=True)
class Told:
    """Something that went wrong: a `violation`, a `drift`, a `difference`, or how a test `failed`; as lines of text."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One replay, or one test. `name`: what ran. `code`: as the command exits, 0 for what passed; `why` it did not.

    `waited_ns`: what its answers took when they were recorded, `took_ns`: what it took now. `kept`: tapes of what it
    did. `file`: whom to tell of it.
    """

    name: str
    tape: str
    code: int
    why: str = ""
    answered: int = 0
    exchanges: int = 0
    waited_ns: int = 0
    took_ns: int = 0
    usage: tuple[Usage, ...] = ()
    told: tuple[Told, ...] = ()
    kept: tuple[str, ...] = ()
    file: str = ""

    def to_json(self) -> Json:
        return asdict(self) | {
            "usage": [one.to_json() for one in self.usage],
            "told": [asdict(one) for one in self.told],
        }


def worst(codes: Iterable[int]) -> int:
    """The code that says most of several."""
    found = {code for code in codes if code}
    return next((code for code in _WORST if code in found), max(found, default=0))


def read_report(document: object, name: str) -> list[Entry]:
    """The entries of a report called `name`. Raises ValueError for what is none of ours."""
    if not isinstance(document, dict):
        raise ValueError("it is no report of tapeproxy: it is no JSON object")
    found: Json = document
    if "tests" in found:
        return [_test(one, f"tests[{at}]") for at, one in enumerate(list_of(found, "tests"))]
    if "test" in found and "longrepr" in found:
        return [_test(found | {"outcome": "failed"}, "")]
    if "finding" in found and "good" in found:
        return [*_verified(found)]
    if "exit_code" in found and "violations" in found:
        return [_replay(found, text_of(found, "tape") or name)]
    raise ValueError("it is no report of tapeproxy: neither of replay --report, nor of verify --json, nor of pytest")


def _replay(report: Json, name: str) -> Entry:
    code = whole_of(report, "exit_code")
    violations, drifts = _faults(report, "violation"), _faults(report, "drift")
    stopped = text_of(report, "stopped_by")
    reasons = [*_counts(violations, drifts)]
    reasons += [f"stopped: {stopped}"] if stopped else []
    if code and not reasons:
        left = len(list_of(report, "unused"))
        reasons = [f"{left} exchanges not asked for"] if code == _DRIFT and left else [f"exit {code}"]
    return Entry(
        name=name,
        tape=text_of(report, "tape") or name,
        code=code,
        why=", ".join([*reasons, *_gaps(report, "notes")]),
        answered=whole_of(report, "served"),
        exchanges=whole_of(report, "exchanges"),
        waited_ns=whole_of(report, "taped_ns"),
        took_ns=whole_of(report, "took_ns"),
        usage=_usage(report),
        told=(*violations, *drifts),
        file=text_of(report, "tape") or name,
    )


def _verified(report: Json) -> Iterator[Entry]:
    """A check of the tape, and each replay that was made of it."""
    tape = text_of(report, "tape")
    good = report["good"] is True
    finding = Told("tape", f"{text_of(report, 'finding')}: {text_of(report, 'what')}")
    yield Entry(
        name=f"{tape} (verified)",
        tape=tape,
        code=0 if good else _BAD_TAPE,
        why=", ".join(([] if good else [text_of(report, "finding")]) + _gaps(report, "gaps")),
        told=() if good else (finding,),
        file=tape,
    )
    runs = [dict_of(one, f"runs[{at}]") for at, one in enumerate(list_of(report, "runs"))]
    for run in runs:
        name = f"{tape} (replay {whole_of(run, 'number')})"
        entry = replace(_replay(dict_of(run.get("report"), "report"), name), name=name, tape=tape, file=tape)
        difference = report.get("difference")
        if isinstance(difference, dict) and difference.get("replay") == run.get("number"):
            told = Told("difference", "\n".join(_difference_lines(text_of(difference, "text"), difference)))
            why = entry.why or f"another {text_of(difference, 'what')} than in replay 1"
            entry = replace(entry, told=(*entry.told, told), why=why, code=entry.code or _DRIFT)
        yield entry


def _test(value: object, where: str) -> Entry:
    report = dict_of(value, where)
    name = text_of(report, "test")
    violations = _faults(report, "violation")
    programs = [
        _replay(dict_of(one, "programs"), text_of(dict_of(one, "programs"), "tape"))
        for one in list_of(report, "programs")
    ]
    outcome = text_of(report, "outcome")
    longrepr = text_of(report, "longrepr")
    failed = outcome == "failed"
    told = [*violations, *(told for one in programs for told in one.told)]
    if failed and longrepr and not told:
        told = [Told("failed", longrepr)]
    reasons = [*_counts(violations, ()), *(one.why for one in programs if one.told)]
    return Entry(
        name=name,
        tape=text_of(report, "tape"),
        code=(_VIOLATION if violations else _FAILED) if failed else 0,
        why=", ".join(reasons) or (reason_of(longrepr) if failed else "" if outcome == "passed" else outcome),
        answered=len(list_of(report, "answered")) + sum(one.answered for one in programs),
        exchanges=whole_of(report, "exchanges") + sum(one.exchanges for one in programs),
        waited_ns=whole_of(report, "waited_ns") + sum(one.waited_ns for one in programs),
        took_ns=whole_of(report, "took_ns"),
        usage=(*_usage(report), *(usage for one in programs for usage in one.usage)),
        told=tuple(told),
        kept=tuple(text_of({"kept": one}, "kept") for one in list_of(report, "kept")),
        file=name.partition("::")[0],
    )


def _gaps(report: Json, name: str) -> list[str]:
    """What the recorder of the tape knew to be missing on it."""
    texts = (text_of({name: one}, name) for one in list_of(report, name))
    return [text for text in texts if text.startswith(GAP)]


def reason_of(longrepr: str) -> str:
    """Why a test failed, in a line: what pytest marks with E, or else the first line that it has."""
    lines = [line for line in longrepr.splitlines() if line.startswith("E ")] or longrepr.strip().splitlines() or [""]
    return lines[0].removeprefix("E").strip()


def _counts(violations: Iterable[Told], drifts: Iterable[Told]) -> Iterator[str]:
    for noun, found in (("violation", len(list(violations))), ("drift", len(list(drifts)))):
        if found:
            yield f"{found} {noun}{'' if found == 1 else 's'}"


def _faults(report: Json, kind: str) -> tuple[Told, ...]:
    faults = [dict_of(one, f"{kind}s[{at}]") for at, one in enumerate(list_of(report, f"{kind}s"))]
    return tuple(Told(kind, "\n".join(_fault_lines(one))) for one in faults)


def _fault_lines(fault: Json) -> Iterator[str]:
    """What a terminal shows of it, from its report."""
    yield text_of(fault, "what")
    yield f"  request: {text_of(fault, 'request')}"
    nearest = fault.get("nearest")
    if isinstance(nearest, dict):
        score = nearest.get("score")
        alike = f", {score:.0%} alike" if isinstance(score, int | float) else ""
        why = text_of(nearest, "why")
        yield f"  nearest: exchange {whole_of(nearest, 'exchange')}{alike}; not taken, because {why}"
        yield from _difference_lines("", nearest)
    yield from _difference_lines("", fault)


def _difference_lines(first: str, holder: Json) -> Iterator[str]:
    if first:
        yield first
    found = list_of(holder, "differences")
    for at, one in enumerate(found[:_MOST_DIFFERENCES]):
        given = dict_of(one, f"differences[{at}]")
        taped, asked = (text_of(given, name) if given.get(name) is not None else None for name in ("taped", "asked"))
        words, kind, rule = (text_of(given, name) for name in ("words", "kind", "rule"))
        yield difference_text(Difference(text_of(given, "where"), taped, asked, words, kind, rule))
    if len(found) > _MOST_DIFFERENCES:
        yield f"  and {len(found) - _MOST_DIFFERENCES} more differences"


def _usage(report: Json) -> tuple[Usage, ...]:
    return tuple(
        Usage(
            text_of(row, "model"),
            whole_of(row, "calls"),
            whole_of(row, "tokens_in"),
            whole_of(row, "tokens_out"),
            whole_of(row, "uncounted"),
            whole_of(row, "tokens_cached"),
            whole_of(row, "tokens_written"),
        )
        for row in (dict_of(one, f"usage[{at}]") for at, one in enumerate(list_of(report, "usage")))
    )
