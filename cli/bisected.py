"""What a search for a turn has to say: each probe in a line, and what was found in lines or as a document."""

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.rendering import block, count, duration, printable, screen_of
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.bisecting import Told
    from tapeproxy.proxy.commitprobes import CommitProbes, CommitSettings
    from tapeproxy.proxy.stepprobes import StepProbes
    from tapeproxy.tapes.bisecting import Found, Unsound


class Teller:
    """Says how each probe went, in a line on standard error."""

    def __init__(self, name: Callable[[int], str], noun: str) -> None:
        self.why = ""
        self._name = name
        self._noun = noun
        self._told: list[Told] = []
        self._places: list[int] = []

    def tell(self, told: "Told") -> None:
        """Print one."""
        self._told.append(told)
        self.why = told.judged.why
        place = told.probe.place
        if place not in self._places:
            self._places.append(place)
        colour = {"good": "green", "bad": "red"}.get(told.judged.verdict)
        verdict = screen_of(sys.stderr).paint(told.judged.verdict, colour)
        again = f", attempt {told.probe.attempt}" if told.probe.attempt > 1 else ""
        why = f": {told.judged.why}" if told.judged.why else ""
        left = count(told.probe.left, self._noun)
        click.echo(
            f"tapeproxy: probe {len(self._places)}{again} (of {left}): {printable(self._name(place))}: {verdict}"
            f"{printable(why)}, {duration(told.took_ns)}",
            err=True,
        )

    def to_json(self) -> list[dict[str, Any]]:
        """All of them."""
        return [
            {
                "place": told.probe.place,
                "attempt": told.probe.attempt,
                "verdict": told.judged.verdict,
                "why": told.judged.why,
                "took_ns": told.took_ns,
            }
            for told in self._told
        ]


def unsound_step(found: "Unsound", teller: "Teller") -> UsageError:
    which = "nothing" if found.place == 0 else "all"
    if found.verdict == "skip":
        return UsageError(f"with {which} of the tape the run cannot be tested: {teller.why}")
    if found.place == 0:
        fix = "what is wrong is not in the taped answers: it fails now with live ones, too"
        return UsageError("the check fails with nothing of the tape", fix=fix)
    fix = "only the tape of a run that failed can be bisected; --check and --predicate say what failing is"
    return UsageError("the check does not fail with all of the tape", fix=fix)


def step_document(found: "Found", probes: "StepProbes", teller: "Teller") -> dict[str, Any]:
    exchange = probes.event(found.bad)
    request, response = exchange.request, exchange.response
    return {
        "bad": {
            "event": exchange.number,
            "lane": probes.causality.name(probes.causality.lane(exchange.number)),
            "request": f"{request.method.decode('latin-1')} {request.url.decode('latin-1')}",
            "status": None if response is None else response.status,
        },
        "good": probes.event(found.good).number if found.good else None,
        "skipped": [probes.event(place).number for place in range(found.good + 1, found.bad)],
        "probes": teller.to_json(),
    }


def step_lines(found: "Found", document: dict[str, Any], path: Path) -> Iterator[str]:
    bad, screen = document["bad"], screen_of(sys.stdout)
    status = "no answer" if bad["status"] is None else f"status {bad['status']}"
    yield f"first bad event: {screen.paint(str(bad['event']), 'red', bold=True)}"
    yield f"  lane     {printable(bad['lane'])}"
    yield f"  request  {printable(bad['request'])}"
    yield f"  answer   {status}; to see it: tapeproxy show {shlex.quote(str(path))} {bad['event']}"
    good = document["good"]
    yield "last good event: " + ("none, it is the first" if good is None else str(good))
    for number in document["skipped"]:
        yield f"could not be tested, and may be the one: event {number}"
    yield count(found.probed, "probe")


def unsound_commit(found: "Unsound", settings: "CommitSettings", teller: "Teller") -> UsageError:
    commit = settings.commits[found.place]
    is_good_end = found.place == 0
    called = f"{commit.short} ({commit.subject})"
    if found.verdict == "skip":
        return UsageError(f"the {'good' if is_good_end else 'bad'} commit {called} cannot be tested: {teller.why}")
    if is_good_end:
        fix = "is the tape one of a good run? With a bad run's tape, say with --check what good is"
        return UsageError(f"the check fails at the good commit {called} already", fix=f"{teller.why}\n  {fix}".strip())
    return UsageError(f"the check does not fail at the bad commit {called}")


def commit_lines(found: "Found", probes: "CommitProbes") -> list[str]:
    commits = probes.settings.commits
    bad, good = commits[found.bad], commits[found.good]
    screen = screen_of(sys.stdout)
    lines = [f"first bad commit: {screen.paint(bad.id, 'red', bold=True)}"]
    lines += [f"  author   {printable(bad.author)}, {printable(bad.date)}", f"  subject  {printable(bad.subject)}"]
    if evidence := probes.evidence.get(found.bad):
        lines.append(block(evidence, "  "))
    lines.append(f"last good commit: {good.short} {printable(good.subject)}")
    for commit in commits[found.good + 1 : found.bad]:
        lines.append(f"could not be tested, and may be the one: {commit.short} {printable(commit.subject)}")
    if probes.settings.repository.is_merge(bad):
        merged = f"--commits {bad.short}^1..{bad.short}^2"
        lines.append(f"that is a merge; what it brought in can be searched: {merged}")
    lines.append(f"{count(found.probed, 'probe')}")
    return lines


def commit_document(found: "Found", probes: "CommitProbes", teller: "Teller") -> dict[str, Any]:
    commits = probes.settings.commits

    def document(place: int) -> dict[str, str]:
        commit = commits[place]
        return {"commit": commit.id, "author": commit.author, "date": commit.date, "subject": commit.subject}

    return {
        "bad": document(found.bad) | {"evidence": probes.evidence.get(found.bad, "")},
        "good": document(found.good),
        "skipped": [document(place) for place in range(found.good + 1, found.bad)],
        "probes": teller.to_json(),
    }
