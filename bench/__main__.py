"""`python -m bench`: measure all rows, or those named, print the table and write docs/BENCHMARKS.md."""

import argparse
import compileall
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

from bench import machine, peers, report
from bench.figures import Bench, Line, Skipped
from bench.processes import ROOT
from bench.rows import ROWS

_DOCUMENT = ROOT / "docs" / "BENCHMARKS.md"


def main(argv: list[str]) -> int:
    """Measure and report. Returns 1 if something of ours could not be measured."""
    given = _arguments(argv)
    if not (given.quick or given.no_install):
        peers.install(_say)
    # Byte code is there where tapeproxy is installed, and not where a checkout may not write it.
    for folder in ("proxy", "addons", "tapes", "cli", "shim"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    busy = machine.load()
    results = _measure(given.rows or list(ROWS), quick=given.quick, full=given.full)
    print(report.terminal(results))
    output: Path | None = given.output or (None if given.rows or given.quick else _DOCUMENT)
    if output is not None:
        facts = machine.describe(busy) | peers.versions()
        output.write_text(report.document(results, facts, f"{datetime.now(UTC):%Y-%m-%d}"))
        print(f"written: {output}")
    return 1 if any(isinstance(one, Skipped) and one.ours_failed for one in results) else 0


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure tapeproxy beside its peers.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"which rows (default: all): {', '.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="see that it runs; the figures mean nothing")
    parser.add_argument("--full", action="store_true", help="a tape of 1 GB instead of 100 MB")
    parser.add_argument("--no-install", action="store_true", help="take the peers that are there")
    parser.add_argument(
        "--output", type=Path, help="the document to write; default: docs/BENCHMARKS.md if all rows ran"
    )
    given = parser.parse_args(argv)
    if unknown := set(given.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    return given


def _measure(names: list[str], *, quick: bool, full: bool) -> list[Line | Skipped]:
    results: list[Line | Skipped] = []
    with tempfile.TemporaryDirectory(prefix="tapeproxy-bench-") as folder:
        for number, name in enumerate(names, 1):
            _say(f"{name} ({number} of {len(names)}) ...")
            place = Path(folder) / name
            place.mkdir()
            began = time.monotonic()
            results += _row(name, Bench(place, quick, full, say=lambda line: _say(f"  {line}")))
            _say(f"{name}: {time.monotonic() - began:.0f} s")
    return results


def _row(name: str, bench: Bench) -> list[Line | Skipped]:
    """The lines of a row; a row that fails outside its contests is one line that says so, and the others go on."""
    lines: list[Line | Skipped] = []
    try:
        lines.extend(ROWS[name](bench))
    except Exception as error:  # whatever it is, the other rows are measured; this one tells, and the exit code does
        traceback.print_exc()
        lines.append(Skipped(f"row `{name}`", f"{type(error).__name__}: {error}", ours_failed=True))
    return lines


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
