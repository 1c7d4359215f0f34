"""What pytest's summary says of tapes: recorded, expired, left over, orphaned."""

from typing import Any

from tapeproxy.plugin.session import TapeSession

_SAID = {
    "tape_recorded": "recorded",
    "tape_expired": "older than it may be, record it anew with --tape-mode=all",
    "tape_unused": "answers that were not asked for",
}


def summarise(terminal: Any, session: TapeSession | None) -> None:
    """Write a section, where there is something to say."""
    lines = [f"{place} ({_SAID[name]})" for name, place in _told(terminal)]
    orphans = [] if session is None else session.orphans()
    lines += [f"{session.shown(path)} (an orphan: no test has it)" for path in orphans if session is not None]
    if lines:
        terminal.section("tapes")
        for line in lines:
            terminal.line(line)


def _told(terminal: Any) -> list[tuple[str, str]]:
    reports = [report for reports in terminal.stats.values() for report in reports]
    told = (
        (name, str(place))
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for name, place in report.user_properties
        if name in _SAID
    )
    return sorted(set(told))
