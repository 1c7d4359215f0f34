"""What is said of a replay that is over. Knows what a `Replayed` holds; yields lines, prints none."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.cli.rendering import Screen, count, duration, printable
from tapeproxy.tapes.outcomes import GAP

if TYPE_CHECKING:
    from tapeproxy.proxy.replayed import Replayed
    from tapeproxy.tapes.exchanges import Exchange
    from tapeproxy.tapes.provenance import Provenance

_LISTED = 20
"""Exchanges listed one by one; the report has them all."""


def warnings(result: "Replayed") -> Iterator[str]:
    """What has to be said before the summary, and even where little is to be said."""
    for host, reason in result.refusals.items():
        yield (
            f"warning: a client refused our certificate for {printable(host)} ({printable(reason)}), "
            "so its requests never came; see docs/LIMITS.md"
        )
    for note in result.notes:
        yield f"{'warning' if note.startswith(GAP) else 'note'}: {printable(note)}"
    stopped_by = None if result.outcome is None else result.outcome.stopped_by
    if stopped_by == "violations":
        yield f"stopped the run after {count(len(result.violations), 'violation')}"
    if stopped_by == "timeout":
        yield f"stopped the run after {duration(result.took_ns)} (--timeout)"


def summary(result: "Replayed", tape: Path) -> str:
    """How it went, in one line."""
    counts = [f"{result.served} of {count(result.exchanges, 'exchange')} served"]
    counts += [f"{result.live} inside the run"] if result.live else []
    counts += [f"{count(result.tools, 'tool call')} served"] if result.tools else []
    counts += [f"{len(result.covered)} within tool calls"] if result.covered else []
    counts += [f"{count(len(result.injected), 'fault')} injected"] if result.injected else []
    counts.append(count(len(result.violations), "violation"))
    counts += [count(len(result.drifts), "drift")] if result.drifts else []
    counts += [f"{len(result.unused)} unused"] if result.unused else []
    times = f"{duration(result.took_ns)}, recorded in {duration(result.taped_ns)}"
    return f"replayed {printable(tape.name)}: {', '.join(counts)}; {times}"


def unexplained(result: "Replayed", tape: Path, argv: tuple[str, ...]) -> str:
    """How to learn where a difference comes from; empty where there is none. `argv`: the command, if one was given."""
    import shlex

    misses = [one.explanation for one in result.violations if one.kind == "miss" and one.explanation is not None]
    differing = any(one.differences for one in misses)
    if not differing and not any(one.differences for one in result.drifts):
        return ""
    command = f" -- {shlex.join(argv)}" if argv else ""
    line = f"tapeproxy replay --explain {shlex.quote(str(tape))}{command}"
    return f"{printable(line)} shows which line it came from"


def origins(found: "Iterable[Provenance]", here: str) -> Iterator[str]:
    """Blocks of text on where differences come from, each origin and each hint once; paths under `here` are short."""
    said: set[object] = set()
    hints: set[str] = set()
    same = 0
    for one in found:
        # What an agent has said once comes again in every later request.
        sources = tuple((source.site, source.how) for source in one.sources)
        key = sources or (one.request, one.where, one.hint, one.sites)
        if key in said:
            same += 1
            continue
        said.add(key)
        told = bool(one.sources) and one.hint in hints
        hints.add(one.hint)
        yield (replace(one, hint="") if told else one).to_text().replace(f"{here}{os.sep}", "")
    if same:
        yield f"{count(same, 'more difference')} of the same origin"


def listing(unused: "Sequence[Exchange]", screen: Screen) -> Iterator[str]:
    """The exchanges that were not asked for, where all were to be (--require-all)."""
    yield f"{screen.paint('unused', 'red', bold=True)}: --require-all, and {_not_asked(len(unused))}:"
    for exchange in unused[:_LISTED]:
        request = exchange.request
        line = f"{request.method.decode('latin-1')} {request.url.decode('latin-1')}"
        yield f"  {exchange.number:>3}  {printable(line)}"
    if len(unused) > _LISTED:
        yield f"  and {len(unused) - _LISTED} more; --report lists them all"


def silence(result: "Replayed", taped_in: str, here: str, screen: Screen) -> str:
    """A warning, in lines, that the replay proved nothing; empty when it did. `taped_in`, `here`: working folders."""
    head = screen.paint("warning", "yellow", bold=True)
    if not result.exchanges and not result.tools:
        return f"{head}: there are no exchanges on the tape, so nothing was replayed"
    if result.served or result.tools or result.violations or not result.unused:
        return ""
    ended = ""
    if result.outcome is not None and result.outcome.returncode and result.outcome.stopped_by is None:
        code, signal = result.outcome.code, result.outcome.signal
        ended = f"; it exited {code}" if signal is None else f"; it was killed by {signal}"
    lines = [f"{head}: the agent asked for nothing that is on the tape: {_not_asked(len(result.unused))}{ended}"]
    if taped_in and taped_in != here:
        lines.append(f"  it was recorded in {printable(taped_in)}, you are in {printable(here)}")
    lines.append("  is it the right command, and does it honour HTTPS_PROXY? See docs/LIMITS.md")
    return "\n".join(lines)


def _not_asked(n: int) -> str:
    return "1 exchange was not asked for" if n == 1 else f"{n} exchanges were not asked for"
