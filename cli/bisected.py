"""What a search for a turn has to say: each probe in a line, and what was found in lines or as a document."""

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.redactions import mark
from tapeproxy.cli.rendering import block, clip, count, duration, printable, screen_of
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.bisecting import Told
    from tapeproxy.proxy.commitprobes import CommitProbes, CommitSettings
    from tapeproxy.proxy.stepprobes import StepProbes
    from tapeproxy.tapes.bisecting import Found, Unsound
    from tapeproxy.tapes.stepevents import CallEvent

_LONG = 160


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
    return {
        "bad": _step_document(probes, found.bad),
        "good": _step_name(probes, found.good) if found.good else None,
        "skipped": [_step_name(probes, place) for place in range(found.good + 1, found.bad)],
        "probes": teller.to_json(),
    }


def _step_document(probes: "StepProbes", place: int) -> dict[str, Any]:
    event = probes.event(place)
    if not isinstance(event, int):
        return {
            "event": _step_name(probes, place),
            "lane": probes.causality.name(event.lane),
            "call": event.call.title,
            "gave": _given(probes, event),
        }
    exchange = probes.tape.exchanges[event - 1]
    request, response = exchange.request, exchange.response
    return {
        "event": event,
        "lane": probes.causality.asker(event),
        "request": f"{request.method.decode('latin-1')} {request.url.decode('latin-1')}",
        "status": None if response is None else response.status,
    }


def _step_name(probes: "StepProbes", place: int) -> int | str:
    event = probes.event(place)
    return event if isinstance(event, int) else f"{event.lane}#{event.value.n}"


def _given(probes: "StepProbes", event: "CallEvent") -> str | None:
    """What a call gave, as JSON text, or the error that it raised; None where that is not on the tape."""
    from tapeproxy.tapes.values import with_contents

    at = event.lane, event.value.n
    content = next((one.content for _, one in with_contents(probes.tape.values) if (one.lane, one.n) == at), None)
    text = None if content is None else content.decode(errors="backslashreplace")
    return text if event.value.error is None else " ".join(filter(None, ("raised", event.value.error, text)))


def step_lines(found: "Found", document: dict[str, Any], path: Path) -> Iterator[str]:
    bad, screen = document["bad"], screen_of(sys.stdout)
    yield f"first bad event: {screen.paint(printable(str(bad['event'])), 'red', bold=True)}"
    yield f"  lane     {printable(bad['lane'])}"
    shown = f"to see it: tapeproxy show {shlex.quote(str(path))}"
    if "call" in bad:
        gave = "nothing that is on the tape" if bad["gave"] is None else printable(mark(bad["gave"]))
        yield f"  call     {clip(printable(bad['call']), _LONG)}"
        yield f"  gave     {clip(gave, _LONG)}; {shown} --tools"
    else:
        status = "no answer" if bad["status"] is None else f"status {bad['status']}"
        yield f"  request  {printable(bad['request'])}"
        yield f"  answer   {status}; {shown} {bad['event']}"
    good = document["good"]
    yield "last good event: " + ("none, it is the first" if good is None else printable(str(good)))
    for one in document["skipped"]:
        yield f"could not be tested, and may be the one: event {printable(str(one))}"
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
