"""What pytest's summary says of tapes: recorded, expired, left over, orphaned."""

import shlex
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from tapeproxy.plugin.session import TapeSession

_SAID = {
    "tape_recorded": "recorded",
    "tape_expired": "older than it may be, record it anew with --tape-mode=all",
    "tape_unused": "answers that were not asked for",
}


def summarise(terminal: Any, session: TapeSession | None) -> None:
    """Write a section, where there is something to say."""
    lines = [] if session is None else [*session.untold]
    late = {} if session is None else session.late
    lines += [line for test, found in late.items() for one in found for line in f"{test}: {one['text']}".splitlines()]
    lines += [f"{place} ({_SAID[name]})" for name, place in _told(terminal)]
    lines += [line for _, block in _told(terminal, {"tape_updated"}) for line in block.splitlines()]
    orphans = [] if session is None else session.orphans()
    lines += [f"{session.shown(path)} (an orphan: no test has it)" for path in orphans if session is not None]
    if lines:
        terminal.section("tapes")
        for line in lines:
            terminal.line(line)
    waiting = [Path(place) for _, place in _told(terminal, {"tape_waiting"})]
    if waiting:
        _settle(terminal, waiting)


def _settle(terminal: Any, waiting: Sequence[Path]) -> None:
    """Ask whether updated tapes are to be written, where there is somebody to ask; else say how."""
    from tapeproxy.proxy.pending import clear, new_beside, replace_tape

    answer = _asked(terminal, f"Write {'it' if len(waiting) == 1 else f'all {len(waiting)}'}? [y/N] ")
    if answer is None:
        terminal.line("not written: the new tapes wait beside the old ones; to look, and to write them:")
        folders = sorted({shlex.quote(_near(path.parent)) for path in waiting})
        terminal.line(f"  tapeproxy update --review {' '.join(folders)}        (or --accept, --reject)")
        return
    for path in waiting:
        if answer:
            replace_tape(path, new_beside(path), keep=False)
        else:
            clear(new_beside(path))
    terminal.line("written" if answer else "not written")


def _near(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _asked(terminal: Any, question: str) -> bool | None:
    """The answer of a user; None where there is none, or no terminal."""
    capture = terminal.config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    try:
        if sys.__stdin__ is None or not (sys.__stdin__.isatty() and terminal.isatty):
            return None
        terminal.write(question, flush=True)
        return sys.__stdin__.readline().strip().lower() in ("y", "yes")
    finally:
        if capture is not None:
            capture.resume_global_capture()


def _told(terminal: Any, names: Container[str] = _SAID.keys()) -> list[tuple[str, str]]:
    reports = [report for reports in terminal.stats.values() for report in reports]
    told = (
        (name, str(place))
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for name, place in report.user_properties
        if name in names
    )
    return sorted(set(told))
