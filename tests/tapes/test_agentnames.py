"""Who asked, on tapes whose lanes were several agents in turn."""

import difftapes
import pytest
from difftapes import get

from tapeproxy.tapes.agentnames import askers_of, names_of
from tapeproxy.tapes.causality import Causality
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Lane
from tapeproxy.tapes.tapediff import diff_tapes, only_lane


def tape(*names: tuple[str, str, int | None], last: str = "ok") -> Tape:
    """m asks, m/t0 asks, m asks twice more. `names`: lane, name, and after how many requests; None: no hint."""
    asks = [get("m", "a"), get("m/t0", "b"), get("m", "c"), get("m", "d", last)]
    lanes = [Lane(t=0, id=lane, what="", name=name, asked=asked) for lane, name, asked in names]
    return difftapes.read(difftapes.records(asks, first=lanes))


@pytest.mark.parametrize(
    ("names", "askers", "lanes"),
    [
        ((), {}, {}),
        ((("m", "main", None),), {1: "main", 3: "main", 4: "main"}, {"m": "main"}),
        (
            (("m", "", None), ("m", "planner", 0), ("m/t0", "worker", 0), ("m", "synthesizer", 1)),
            {1: "planner", 2: "worker", 3: "synthesizer", 4: "synthesizer"},
            {"m": "planner, synthesizer", "m/t0": "worker"},
        ),
        # Who was called something else before anything was asked was never called so.
        ((("m/t0", "Thread-1", None), ("m/t0", "a", 0), ("m/t0", "b", 0)), {2: "b"}, {"m/t0": "b"}),
        # Back to the first one.
        ((("m", "a", 0), ("m", "b", 1), ("m", "a", 2)), {1: "a", 3: "b", 4: "a"}, {"m": "a, b"}),
        # One name for two lanes names none.
        ((("m", "a", 0), ("m", "b", 1), ("m/t0", "a", 0)), {3: "b", 4: "b"}, {"m": "a, b", "m/t0": "a"}),
        ((("m", "late", 1),), {1: "late", 3: "late", 4: "late"}, {"m": "late"}),
    ],
)
def test_who_asked(
    names: tuple[tuple[str, str, int | None], ...], askers: dict[int, str], lanes: dict[str, str]
) -> None:
    made = tape(*names)
    assert askers_of(made) == askers
    assert names_of(made) == lanes
    assert askers_of(made, unique=False).keys() >= askers.keys()


def test_an_exchange_is_named_by_who_asked_and_its_lane_by_all() -> None:
    made = tape(("m", "planner", 0), ("m", "synthesizer", 1))
    causality = Causality.of(made)
    assert [causality.asker(number) for number in (1, 2, 3)] == ["planner (m)", "m/t0", "synthesizer (m)"]
    assert causality.name("m") == "planner, synthesizer (m)"


@pytest.mark.parametrize("lane", ["planner", "synthesizer", "m", "planner, synthesizer"])
def test_one_lane_of_a_diff_by_any_of_its_names(lane: str) -> None:
    names = ("m", "planner", 0), ("m", "synthesizer", 1)
    diff = only_lane(diff_tapes(tape(*names), tape(*names, last="other")), lane)
    assert [(one.lane.ours, one.lane.name) for one in diff.lanes] == [("m", "planner, synthesizer")]
