"""What `show --json` prints of a tape: one JSON document. Knows field names, prints nothing.

The names are stable: more may come, none goes or changes its meaning. Times end in `_ns`, are integers, and count from
the tape's start. One exchange: `tapes/documents.py`.
"""

import json
from typing import TYPE_CHECKING

from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.documents import row_document
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Json
from tapeproxy.tapes.redactionrules import is_redacted
from tapeproxy.tapes.summary import Row, summarise, total

if TYPE_CHECKING:
    from tapeproxy.cli.causalview import CausalView


def dump(document: Json) -> str:
    """The text of a document: ASCII only, so that nothing in it can act on a terminal."""
    return json.dumps(document, indent=2)


def tape_document(path: str, tape: Tape, ending: Ending, view: "CausalView | None" = None) -> Json:
    """A whole tape: `show TAPE --json`. `view`: in causal order."""
    head, seal, done = tape.head, tape.seal, tape.exit
    rows = [summarise(exchange) for exchange in tape.exchanges]
    totals = total(tape, rows)
    return {
        "tape": path,
        "format": head.version,
        "by": head.by,
        "started_at": head.started_at,
        "argv": list(head.argv),
        "cwd": head.cwd,
        "sealed": ending.sealed,
        "canonical": ending.canonical,
        "redacted": is_redacted(head.rules),
        "scrubbed": head.scrubbed,
        "outcome": None if seal is None else seal.outcome,
        "exit_code": None if done is None else done.code,
        "signal": None if done is None else done.signal,
        "duration_ns": totals.duration,
        "exchanges": [row_document(row) for row in rows] if view is None else _in_order(rows, view),
        "totals": {
            "exchanges": totals.exchanges,
            "calls": totals.calls,
            "failed": totals.failed,
            "tokens_in": totals.tokens_in,
            "tokens_out": totals.tokens_out,
            "uncounted": totals.uncounted,
            "size": totals.size,
        },
        "notes": [{"at_ns": note.t, "what": note.what, "text": note.text, "data": note.data} for note in tape.notes],
        "lanes": [{"id": lane.id, "name": lane.name, "what": lane.what} for lane in tape.lanes],
    }


def _in_order(rows: list[Row], view: "CausalView") -> list[Json]:
    return [row_document(rows[number - 1]) | view.document(number) for number in view.numbers]
