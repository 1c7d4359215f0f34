"""What is told of another order."""

import pytest

from tapeproxy.tapes.order import CompletionOrder, Disorder
from tapeproxy.tapes.records import Done


def completed(*lanes: str) -> list[Done]:
    return [Done(t=0, lane=lane, parent="m") for lane in lanes]


@pytest.mark.parametrize(
    ("taped", "now", "told"),
    [
        ("012", "012", None),
        ("0123", "0213", ("12", "21")),
        ("012", "201", ("012", "201")),
        ("012", "02", None),
        ("02", "0 1 2", None),
        ("012", "", None),
        ("", "10", None),
    ],
)
def test_another_order(taped: str, now: str, told: tuple[str, str] | None) -> None:
    order = CompletionOrder(completed(*taped))
    for lane in now.replace(" ", ""):
        order.done(lane, "m")
    expected = [] if told is None else [Disorder("m", tuple(told[0]), tuple(told[1]))]
    assert list(order.disorders()) == expected
