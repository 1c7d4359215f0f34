"""What a launcher makes of the hints of a recording, for tests that run the shim alone."""

from collections.abc import Iterable
from pathlib import Path

from shimruns import SEED, Line, Run, run

from tapeproxy.proxy.hintvalues import write_calls
from tapeproxy.proxy.iovalues import ValueReader
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Head, Value
from tapeproxy.tapes.redaction import Redactor

HINTS = Path(__file__).parents[1] / "hints"
START = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("hints", {str(HINTS / "__init__.py")!r})
hints = sys.modules["hints"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hints)
"""
"""Loads the hints as `hints` where tapeproxy is not installed, as a vendored copy would be."""


def values_of(lines: Iterable[Line], redactor: Redactor | None = None) -> list[Value]:
    """The values among a recording's lines, as they come on the tape."""
    reader = ValueReader(redactor or Redactor(bytes(32)), bytes.fromhex(SEED))
    return [value for line in lines if line["k"] == "value" and (value := reader.read(line, 0)) is not None]


def tape_of(values: Iterable[Value]) -> Tape:
    """A tape with these values alone."""
    return Tape(Head(seed=SEED), values=[*enumerate(values, 1)])


def replayed(code: str, first: Run, *, python: Path | str, sidecar: Path, tools: str = "lane") -> Run:
    """Replay a program against what its recording told."""
    path = sidecar.parent / "hints.jsonl"
    path.unlink(missing_ok=True)
    write_calls(tape_of(values_of(first.lines)), path)
    extra = {"TAPEPROXY_HINTS": str(path), "TAPEPROXY_TOOLS": tools}
    return run(START + code, mode="replay", python=python, sidecar=sidecar, reads=first.lines, extra=extra)


def recorded(code: str, *, python: Path | str, sidecar: Path) -> Run:
    """Record a program that uses `hints`."""
    return run(START + code, python=python, sidecar=sidecar)
