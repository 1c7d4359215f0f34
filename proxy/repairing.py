"""`repair`: a tape whose recorder was killed, and the sidecar files beside it, become one whole tape.

Knows files; what is kept and what is said about it is `tapes/repairing.py`'s.
"""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tapeproxy.proxy.drafts import drafted
from tapeproxy.proxy.iovalues import ValueReader
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.shimming import epoch_ns
from tapeproxy.proxy.sidecar import Sidecars, find_folder, to_record
from tapeproxy.proxy.tapefile import is_being_written, is_locked, read_entries, read_pieces
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import in_order
from tapeproxy.tapes.lanes import ANSWER, SERVE, START
from tapeproxy.tapes.mcptaping import McpTaping
from tapeproxy.tapes.records import Edge, Lane, Note, Record, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.repairing import Kept, Losses, closing_note, rewritten, told
from tapeproxy.tapes.secretvars import secret_values


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of a tape. `facts` say what was done; none: there was nothing to do, and no file was written."""

    path: Path
    facts: tuple[str, ...] = ()


def repair(tape: Path, output: Path, environment: Mapping[str, str], *, to_damage: bool = False) -> Repaired:
    """Close an interrupted tape: write it to `output`, which may be the tape itself, with a note and a seal.

    What the shims had written is redacted by the secrets in `environment`. A tape with a seal is left alone. A damaged
    one is refused, unless `to_damage` keeps what comes before. Raises TapeFormatError, TapeExistsError, TapeWriteError,
    UsageError.
    """
    if is_being_written(tape):
        raise UsageError("the tape is being written; its recorder still runs", where=str(tape))
    if is_locked(tape):
        what = "an encrypted tape is not repaired: that would take its secret, and write it anew"
        raise UsageError(what, where=str(tape), fix="see what is in it with: tapeproxy decrypt")
    kept, ending, damage = _survey(tape)
    if ending is not None and ending.sealed:
        return Repaired(tape)
    if damage is not None and not to_damage:
        raise _refusal(damage)
    folder = find_folder(tape, kept.head.seed)
    added, left_out = _leftovers(folder, kept, environment) if folder else ([], 0)
    losses = Losses(
        bytes=0 if ending is None else ending.lost,
        shim_lines=left_out,
        damage="" if damage is None else f"line {damage.place.line} is damaged: {damage.what}",
    )
    note = closing_note(kept, losses, len(added))
    in_place = output.exists() and output.samefile(tape)
    place = output.resolve() if in_place else output  # a link to the tape stays one
    with drafted(place, force=in_place) as file:
        for data in rewritten(read_pieces(tape), kept, [*added, note]):
            file.write(data)
    if in_place and folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return Repaired(output, tuple(told(kept, losses, len(added))))


def _survey(tape: Path) -> tuple[Kept, Ending | None, TapeFormatError | None]:
    """Read the tape as far as it is good: what that is, and how it ends or what is wrong with it at its line.

    Raises TapeFormatError where there is not even a head.
    """
    endings: list[Ending] = []
    kept, damage, good = Kept(str(tape)), None, None
    try:
        for _ in in_order(read_entries(tape, endings), str(tape)):
            pass
    except TapeFormatError as error:
        if error.place.line <= 1:
            raise
        damage, good = error, error.place.line - 1
    try:
        for entry in islice(read_entries(tape), good):
            kept.see(entry)
    except TapeFormatError as error:
        damage = error
    return kept, None if damage else endings[0], damage


def _refusal(damage: TapeFormatError) -> TapeFormatError:
    good = damage.place.line - 1
    fix = f"the {good} records before it are intact: take the tape again from where it came, or keep them: --to-damage"
    return TapeFormatError(damage.what, place=damage.place, fix=fix)


def _leftovers(folder: Path, kept: Kept, environment: Mapping[str, str]) -> tuple[list[Record], int]:
    """What the shims had written that is not on the tape, and how many of their lines have to be left out.

    A text that came from the agent is only taped where every secret variable of the run is there to redact it by.
    """
    redactor = Redactor(load_key(), secret_values(environment))
    redactable = all(environment.get(name) for name in kept.head.secrets)
    epoch, added, left_out = epoch_ns(kept.head.started_at), list[Record](), 0
    values = ValueReader(redactor, bytes.fromhex(kept.head.seed or ""), epoch)
    sidecars = Sidecars(folder)
    servers, said = McpTaping(redactor, epoch, kept.servers), 0
    try:
        for line in sidecars.drain():
            if line["k"] == "mcp":
                said += line.get("what") == "client"
                if redactable:
                    servers.take(line, sys.maxsize)
                continue
            is_value = line["k"] == "value"
            record = values.read(line, kept.t) if is_value else to_record(line, kept.t, epoch, redactor)
            if record is None or not kept.lacks(record):
                continue
            # A token of an edge may be the agent's own text; the names of lanes are not.
            told = isinstance(record, Note | Value) or (isinstance(record, Edge) and _is_own_token(record))
            if told and not redactable:
                left_out += 1
                continue
            if isinstance(record, Lane) and record.name is not None and not redactable:
                record = Lane(t=record.t, id=record.id, what=record.what, origin=record.origin)
            added.append(record)
        left_out += 0 if redactable else max(said - kept.servers.taped, 0)
        return [*kept.servers.added, *added], left_out + sidecars.unfinished
    finally:
        sidecars.release()


def beside(tape: Path) -> Path:
    """What a repaired tape is called: `x.tape.jsonl.gz` becomes `x-repaired.tape.jsonl.gz`."""
    name = tape.name
    suffix = next((suffix for suffix in (".tape.jsonl.gz", ".jsonl.gz") if name.endswith(suffix)), tape.suffix)
    return tape.with_name(f"{name[: len(name) - len(suffix)]}-repaired{suffix}")


def _is_own_token(edge: Edge) -> bool:
    if edge.asked is None or edge.at is not None:
        return False
    return edge.what not in (SERVE, ANSWER, START, "exit", "result")
