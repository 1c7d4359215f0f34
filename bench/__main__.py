"""`python -m bench`: measure all rows, or those named, print the table and write docs/BENCHMARKS.md."""

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench import machine, report
from bench.figures import Bench, Line, Skipped
from bench.rows import ROWS

_DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "BENCHMARKS.md"


def main(argv: list[str]) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure tapeproxy beside its peers.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"which rows (default: all): {', '.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="see that it runs; the figures mean nothing")
    parser.add_argument(
        "--output", type=Path, help="the document to write; default: docs/BENCHMARKS.md if all rows ran"
    )
    given = parser.parse_args(argv)
    if unknown := set(given.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    results = _measure(given.rows or list(ROWS), quick=given.quick)
    print(report.terminal(results))
    output: Path | None = given.output or (None if given.rows or given.quick else _DOCUMENT)
    if output is not None:
        output.write_text(report.document(results, machine.describe(), f"{datetime.now(UTC):%Y-%m-%d}"))
        print(f"written: {output}")


def _measure(names: list[str], *, quick: bool) -> list[Line | Skipped]:
    results: list[Line | Skipped] = []
    with tempfile.TemporaryDirectory(prefix="tapeproxy-bench-") as folder:
        for name in names:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            place = Path(folder) / name
            place.mkdir()
            results += ROWS[name](Bench(place, quick))
    return results


if __name__ == "__main__":
    main(sys.argv[1:])
