"""What each test did with its tape, gathered into one file for `tapeproxy ci`; also from workers of xdist."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest


def check_place(path: Path) -> None:
    """Raises pytest.UsageError where no report can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise pytest.UsageError(_unwritten(path, error)) from None


def write_report(path: Path, reports: Iterable[pytest.TestReport], late: Mapping[str, Any]) -> str:
    """Write it; `reports` are those of all tests and phases, `late` has the violations of what outlived a test.

    What is to be told where that failed.
    """
    tests = [*_tests(reports)]
    for told in tests:
        if found := late.get(told["test"]):
            said = [told["longrepr"]] if "longrepr" in told else []
            told |= {"outcome": "failed", "longrepr": "\n".join((*said, *(one["text"] for one in found)))}
            told["violations"] += found
    try:
        path.write_text(json.dumps({"tests": tests}, indent=1), "utf-8")
    except OSError as error:  # the tests have run, and what came of them counts
        return f"{_unwritten(path, error)}\n"
    return ""


def _unwritten(path: Path, error: OSError) -> str:
    return f"--tape-report: {path} cannot be written: {(error.strerror or str(error)).lower()}"


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
