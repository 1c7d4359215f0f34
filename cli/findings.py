"""How findings of the scan are shown. Yields lines, prints none."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tapeproxy.cli.rendering import Screen, count, printable

if TYPE_CHECKING:
    from tapeproxy.shim.scan import Finding, Level

LEVELS: "tuple[Level, ...]" = ("error", "warning", "note")
"""Worst first."""
COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
_SHOWN = 20
"""Places of one rule that are listed."""


def listing(findings: "Iterable[Finding]", screen: Screen) -> Iterator[str]:
    """The findings, a paragraph a rule, worst first."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule.code, []).append(finding)
    for code in sorted(by_rule, key=lambda code: (LEVELS.index(by_rule[code][0].rule.level), code)):
        rule = by_rule[code][0].rule
        yield f"{screen.paint(rule.level, COLOURS[rule.level], bold=True)} {code}: {rule.title}"
        for finding in by_rule[code][:_SHOWN]:
            yield f"  {printable(finding.place)}  {printable(finding.what)}"
            if finding.text:
                yield f"      {printable(finding.text)}"
        if len(by_rule[code]) > _SHOWN:
            yield f"  and {len(by_rule[code]) - _SHOWN} more; --json lists them all"
        yield f"  why: {rule.why}"
        yield f"  fix: {rule.fix}"
        yield ""


def summary(levels: "Iterable[Level]") -> str:
    """`1 error, 2 warnings`; empty when there is nothing."""
    counts = Counter(levels)
    return ", ".join(count(counts[level], level) for level in LEVELS if counts[level])
