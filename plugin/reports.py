"""What each test did with its tape, gathered into one file for `tapeproxy ci`; also from workers of xdist."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tapeproxy.tapes.errors import UsageError


def write_report(path: Path, reports: Iterable[pytest.TestReport]) -> None:
    """Write it; `reports` are those of all tests and phases. Raises UsageError where the file can't be written."""
    document = {"tests": [*_tests(reports)]}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1), "utf-8")
    except OSError as error:
        what = f"the report cannot be written: {(error.strerror or str(error)).lower()}"
        raise UsageError(what, where=str(path)) from None


def _tests(reports: Iterable[pytest.TestReport]) -> Iterator[dict[str, Any]]:
    of_test: dict[str, list[pytest.TestReport]] = {}
    for report in reports:
        of_test.setdefault(report.nodeid, []).append(report)
    for name, phases in of_test.items():
        facts = next((found for phase in phases if (found := getattr(phase, "tape_facts", None))), None)
        if facts is None:
            continue
        failed = next((phase for phase in phases if phase.failed), None)
        call = next((phase for phase in phases if phase.when == "call"), phases[0])
        told = {"test": name, "outcome": "failed" if failed else call.outcome, "took_ns": round(call.duration * 1e9)}
        yield told | facts | ({"longrepr": failed.longreprtext} if failed else {})
