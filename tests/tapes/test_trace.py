"""The trace hash of exchanges is the one of their records."""

from pathlib import Path

import agentruns

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.reading import Reading
from tapeproxy.tapes.trace import join_parts, part_of

GOLDEN = Path(__file__).parents[1] / "golden" / "v1.tape.jsonl.gz"


def trace(exchanges: list[Exchange]) -> str:
    return join_parts(part_of(one, Reading(1)) for one in exchanges if not one.request.inside)


def test_all_exchanges_of_a_tape_make_the_trace_in_its_seal(tmp_path: Path) -> None:
    records = agentruns.sample()
    # One of them is asked for twice.
    path = agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", [*records, *agentruns.chat(len(records) + 1)])
    for one in (path, GOLDEN):
        tape, _ = load(one)
        assert tape.seal is not None
        assert trace(tape.exchanges) == tape.seal.trace
        assert trace(tape.exchanges[::-1]) == tape.seal.trace, "the order in which they are given says nothing"


def test_every_exchange_matters(tmp_path: Path) -> None:
    tape, _ = load(agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", agentruns.sample()))
    some = [trace([e for e in tape.exchanges if e is not left_out]) for left_out in tape.exchanges]
    assert len({trace(tape.exchanges), *some}) == 1 + len(tape.exchanges)
