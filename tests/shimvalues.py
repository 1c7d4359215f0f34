"""What a launcher makes of a recording with --io, for tests that run the shim alone."""

from collections.abc import Iterable
from pathlib import Path

from shimruns import SEED, Line

from tapeproxy.proxy.iovalues import ValueReader, write_values
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redaction import Redactor


def io(mode: str, base: Path, values: Path | None = None) -> dict[str, str]:
    """The variables of --io; `values` is what `write_taped` wrote."""
    out = {"TAPEPROXY_IO": mode, "TAPEPROXY_IO_BASE": str(base)}
    if values is not None:
        out |= {"TAPEPROXY_IO_VALUES": str(values), "TAPEPROXY_IO_OVERLAY": str(values.with_name("overlay"))}
    return out


def write_taped(lines: Iterable[Line], to: Path) -> Path:
    """Write the values among a recording's sidecar lines where a replay's shim finds them; returns the folder."""
    reader = ValueReader(Redactor(bytes(32)), bytes.fromhex(SEED))
    records = [reader.read(line, 0) for line in lines if line["k"] == "value"]
    write_values(Tape(Head(seed=SEED, io=True), values=[(i, r) for i, r in enumerate(records, 1) if r is not None]), to)
    (to.with_name("overlay")).mkdir()
    return to
