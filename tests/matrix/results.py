"""What a run of the matrix has shown of each client, kept as one JSON file a client."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from matrix.runtimes import WORK

from tapeproxy.tapes.exchanges import Exchange

RESULTS = WORK / "results"


@dataclass(frozen=True, slots=True)
class Result:
    """What was shown. `reason`: why nothing was. `reads`: how often the agent read a clock that the tape has.

    `tools`: requests with the results of two calls. `others`: how many of the `asked` requests of a second recording
    are none of this one's: what the tape's clock and chance are needed for. `calls`: exchanges that are read as calls
    of a model that is named, with what was asked and answered.
    """

    version: str = ""
    reason: str = ""
    exchanges: int = 0
    hosts: tuple[str, ...] = ()
    http: tuple[str, ...] = ()
    streamed: int = 0
    overlapped: bool = False
    tools: int = 0
    reads: int = 0
    others: int = 0
    asked: int = 0
    calls: int = 0


def keep(name: str, result: Result) -> None:
    """Write it down, in place of what was there."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    _file(name).write_text(json.dumps(asdict(result), indent=1) + "\n")


def kept(name: str) -> Result | None:
    """What the last run has shown of this client."""
    file = _file(name)
    if not file.exists():
        return None
    fields = json.loads(file.read_text())
    return Result(**fields | {name: tuple(fields[name]) for name in ("hosts", "http")})


def overlap(exchanges: Iterable[Exchange]) -> bool:
    """Whether a request was made while another one had no whole answer yet."""
    over = 0
    for exchange in sorted(exchanges, key=lambda exchange: exchange.request.t):
        if exchange.request.t < over:
            return True
        over = max(over, exchange.end.t if exchange.end else 0)
    return False


def _file(name: str) -> Path:
    return RESULTS / f"{name.replace('/', '+').replace(' ', '')}.json"
