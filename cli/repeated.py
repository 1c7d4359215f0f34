"""What is said of several replays of one tape. Knows what a `Repeated` holds; yields lines, prints none."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tapeproxy.cli.rendering import Screen, duration, printable
from tapeproxy.cli.replayed import silence, warnings

if TYPE_CHECKING:
    from tapeproxy.proxy.comparing import Discrepancy, Run
    from tapeproxy.proxy.repeating import Repeated

STOPPED = 130
_SHOWN = 8
"""Places printed of a difference; the document has them all."""


def exit_code(repeated: "Repeated") -> int:
    """What `verify` exits with on account of the replays."""
    from tapeproxy.proxy.replayed import DRIFT, TIMEOUT, VIOLATION

    found = {one.what for run in repeated.runs if (one := repeated.discrepancy(run)) is not None}
    if "violation" in found:
        return VIOLATION
    if found - {"timeout"}:
        return DRIFT
    if found:
        return TIMEOUT
    return STOPPED if repeated.stopped else 0


def lines(repeated: "Repeated", times: int, here: str, screen: Screen) -> Iterator[str]:
    """How the replays went; `times`: how many were asked for, `here`: the working folder."""
    done, difference = len(repeated.runs), repeated.difference
    colour = "red" if difference is not None else "green" if done else None
    yield f"identical replays: {screen.paint(f'{repeated.identical}/{done}', colour, bold=True)}"
    if repeated.stopped:
        yield f"  stopped after {done} of {times}"
    for name, value in _facts(repeated):
        yield f"  {name:<10}  {printable(value)}"
    if difference is not None:
        yield from _told(difference)
    # What every replay has to say is said once.
    yield from dict.fromkeys(line for run in repeated.runs for line in warnings(run.replayed))
    if repeated.runs and (said := silence(repeated.runs[0].replayed, repeated.tape.head.cwd, here, screen)):
        yield said


def document(repeated: "Repeated", times: int) -> dict[str, Any]:
    """The fields that replays add to the document of `verify --json`."""
    difference = repeated.difference
    return {
        "times": times,
        "replays": len(repeated.runs),
        "identical": repeated.identical,
        "stopped": repeated.stopped,
        "as_sealed": repeated.as_sealed,
        "mean_ns": repeated.mean_ns,
        "difference": None if difference is None else difference.to_json(),
        "runs": [_run(run) for run in repeated.runs],
    }


def _facts(repeated: "Repeated") -> Iterator[tuple[str, str]]:
    if not repeated.runs:
        return
    agents = sum(run.replayed.took_ns for run in repeated.runs) // len(repeated.runs)
    yield "mean time", f"{duration(repeated.mean_ns)} a replay, {duration(agents)} of it the agent's"
    traces = {run.trace for run in repeated.runs}
    if len(traces) > 1:
        yield "replayed", f"{len(traces)} different traces"
        return
    sealed = repeated.as_sealed
    said = "" if sealed is None else " (the tape's own)" if sealed else f" (not the tape's own: {_left(repeated)})"
    yield "replayed", f"{traces.pop()}{said}"


def _left(repeated: "Repeated") -> str:
    unused = len(repeated.runs[0].replayed.unused)
    return f"{unused} of {repeated.runs[0].replayed.exchanges} exchanges were not asked for"


def _told(difference: "Discrepancy") -> Iterator[str]:
    kind = f"{difference.what}: " if difference.fault is not None else ""
    yield f"replay {difference.number}: {kind}{printable(difference.text)}"
    if difference.fault is not None:
        yield from ("  " + printable(line) for line in difference.fault.to_text().split("\n")[1:])
    names = "replay 1", f"replay {difference.number}"
    width = max(map(len, names))
    for place in difference.differences[:_SHOWN]:
        yield f"  {printable(place.where)}"
        for name, value in zip(names, (place.taped, place.asked), strict=True):
            yield f"    {name + ':':<{width + 1}} {'(absent)' if value is None else printable(value)}"
    if len(difference.differences) > _SHOWN:
        yield f"  and {len(difference.differences) - _SHOWN} more differences"
    # How it ended stands among the places.
    if also := [what for what in difference.also if what != "exit"]:
        yield f"  {' and '.join(also)} differ{'s' if len(also) == 1 else ''} too"


def _run(run: "Run") -> dict[str, Any]:
    report = run.replayed.to_json(run.trace)
    outputs = {
        name: {"size": o.size, "blake3": o.digest} for name, o in (("stdout", run.stdout), ("stderr", run.stderr))
    }
    return {"number": run.number, "took_ns": run.took_ns, **outputs, "report": report}
