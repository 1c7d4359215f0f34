"""Writes the table of docs/CLIENTS.md from what the runs have shown: `python -m matrix.table` within tests/."""

from collections.abc import Iterator
from typing import Final

from matrix.clients import CLIENTS, Client
from matrix.results import Result, kept
from matrix.runtimes import ROOT

PAGE: Final = ROOT / "docs" / "CLIENTS.md"
BEGIN: Final = "<!-- matrix: written by `make matrix` from tests that ran -->"
END: Final = "<!-- end of matrix -->"
_HEADS: Final = (
    "client",
    "version",
    "replay",
    "exchanges",
    "calls of models",
    "streams",
    "results of two calls",
    "at once",
    "HTTP",
    "clock reads",
    "new in a second run",
)


def render() -> str:
    """The table and, below it, why a client has no row of figures and what to know of the others."""
    rows = [_HEADS, tuple("---" for _ in _HEADS), *(_row(client, kept(client.name)) for client in CLIENTS)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *_notes()])


def written(text: str, table: str) -> str:
    """The page with this table between its markers. Raises ValueError where they are not there once each, in order."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise ValueError(f"{PAGE.name} has not one {BEGIN} before one {END}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _row(client: Client, result: Result | None) -> tuple[str, ...]:
    name = client.name if client.language in ("shell", "Node") else f"{client.name} ({client.language})"
    if result is None or result.reason:
        reason = "not run" if result is None else result.reason
        return (name, "", f"not shown: {reason}", *[""] * (len(_HEADS) - 3))
    return (
        name,
        result.version,
        "✓",
        str(result.exchanges),
        str(result.calls or ""),
        str(result.streamed),
        "✓" if result.tools else "",
        "✓" if result.overlapped else "",
        ", ".join(version.removeprefix("HTTP/") for version in result.http),
        str(result.reads or ""),
        f"{result.others} of {result.asked}",
    )


def _notes() -> Iterator[str]:
    for client in CLIENTS:
        if client.note:
            yield f"- **{client.name}**: {client.note}."


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), render()), encoding="utf-8")
