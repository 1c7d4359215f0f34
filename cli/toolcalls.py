"""What `show --tools` prints: calls of tools, messages and conclusions on a tape. Yields lines, prints none."""

import json
from collections.abc import Iterator

from tapeproxy.cli.rendering import Cell, Column, Screen, clip, count, duration, printable, table
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hints import CALLS, HINTS, Bodies, Call, call_title
from tapeproxy.tapes.records import Json, Value
from tapeproxy.tapes.values import with_contents

_COLUMNS = (
    Column("value", least=4),
    Column("what", least=16),
    Column("gave", least=16, rank=1),
    Column("asked", right=True, rank=3),
    Column("took", right=True, rank=2),
)
_LONGEST = 120
"""Characters of what a tool gave; --json has it whole."""


def tools_page(path: str, tape: Tape, screen: Screen) -> Iterator[str]:
    """The lines of `show TAPE --tools`."""
    yield screen.paint(printable(path), bold=True)
    yield ""
    rows = _documents(tape)
    if rows:
        yield from table(_COLUMNS, [_cells(row) for row in rows], screen)
        yield ""
    yield count(sum(row["kind"] in CALLS for row in rows), "tool call")


def tools_document(path: str, tape: Tape) -> Json:
    """The document of `show TAPE --tools --json`."""
    return {"tape": path, "values": _documents(tape)}


def _documents(tape: Tape) -> list[Json]:
    """The hints of a tape, in its order: that in which calls ended."""
    asked = Bodies(tape).exchanges(tape)
    values = (value for _, value in with_contents(tape.values) if value.what in HINTS)
    return [_document(value, asked.get(Call.of(value).lane, [])) for value in values]


def _document(value: Value, asked: list[int]) -> Json:
    began, ended = (value.data.get(name) for name in ("began", "ended"))
    return {
        "lane": value.lane,
        "n": value.n,
        "kind": value.what,
        "name": value.name,
        "where": value.where,
        "arguments": _form(value.data.get("args")),
        "from": _text(value.data.get("from")),
        "end": _text(value.data.get("end")) or ("untaped" if "untaped" in value.data else "returned"),
        "error": value.error,
        "untaped": _text(value.data.get("untaped")),
        "value": _form(value.content),
        "exchanges": asked,
        "began_ns": began,
        "took_ns": ended - began if isinstance(began, int) and isinstance(ended, int) else None,
    }


def _text(value: object) -> str | None:
    """What a recorder writes as text; a tape may hold anything there."""
    return value if isinstance(value, str) else None


def _form(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except ValueError:
        return None


def _cells(row: Json) -> list[Cell]:
    gave = json.dumps(row["value"], ensure_ascii=False) if row["value"] is not None else row["untaped"] or row["end"]
    gave = f"{row['error'].rpartition(':')[2]}: {gave}" if row["error"] else gave
    bad = row["end"] not in ("returned", "closed")
    return [
        Cell(f"{row['lane']}#{row['n']}"),
        Cell(_title(row), "cyan" if row["kind"] in CALLS else ""),
        Cell(clip(gave, _LONGEST), "red" if bad else ""),
        Cell(", ".join(map(str, row["exchanges"]))),
        Cell("" if row["took_ns"] is None else duration(row["took_ns"])),
    ]


def _title(row: Json) -> str:
    if row["kind"] in CALLS:
        return call_title(row["kind"], row["name"], json.dumps(row["arguments"], ensure_ascii=False))
    if row["kind"] == "message":
        return f"message from {row['from']} to {row['name']}"
    return "final state"
