"""How the symptoms of a program are shown. Yields lines, prints none."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tapeproxy.cli.findings import COLOURS
from tapeproxy.cli.rendering import Screen, printable

if TYPE_CHECKING:
    from tapeproxy.proxy.symptoms import Evidence, Symptom


def listing(symptoms: "Sequence[Symptom]", replays: int, screen: Screen) -> Iterator[str]:
    """The symptoms, a paragraph each. `replays`: how many there were."""
    for symptom in symptoms:
        level = screen.paint(symptom.level, COLOURS[symptom.level], bold=True)
        yield f"{level} {symptom.kind}: {printable(symptom.what)}"
        if symptom.where:
            yield f"  at: {printable(symptom.where)}"
        for evidence in symptom.evidence:
            yield from _side_by_side(evidence)
        yield from (f"  from: {printable(origin)}" for origin in symptom.origins)
        if symptom.replays:
            yield f"  in {len(symptom.replays)} of {replays} replays{': ' + symptom.hint if symptom.hint else ''}"
        if symptom.fix:
            yield f"  fix: {symptom.fix}"
        yield ""


def _side_by_side(evidence: "Evidence") -> Iterator[str]:
    yield f"  {printable(evidence.where)}"
    width = max(len(name) for name, _ in evidence.values)
    for name, value in evidence.values:
        yield f"    {name + ':':<{width + 1}} {'(absent)' if value is None else printable(value)}"
