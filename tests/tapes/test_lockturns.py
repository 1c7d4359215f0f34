"""Turns at locks without those of lanes that don't run, against a lock that is acquired turn by turn."""

from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.lockturns import without_lanes
from tapeproxy.tapes.records import Edge

type Turn = tuple[str, bool]
"""Whose turn, and whether it gets the lock."""

turns = st.lists(st.tuples(st.sampled_from(["m", "m/t0", "m/k0", "m/k1"]), st.booleans()), max_size=12)


def edges_of(found: list[Turn], maker: str) -> list[Edge]:
    """What a recording writes: where the lock changes hands, and every refusal."""
    edges: list[Edge] = []
    owner = maker
    for n, (lane, acquired) in enumerate(found):
        if not acquired:
            edges.append(Edge(t=1, what="refused", on=f"{maker}#x:0", lane=lane, n=n))
        elif lane != owner:
            edges.append(Edge(t=1, what="acquired", on=f"{maker}#x:0", lane=lane, n=n))
            owner = lane
    return edges


def read_turns(edges: list[Edge], maker: str, many: int) -> list[Turn]:
    """Whose turns they are, as a replay reads it."""
    owner, at = maker, {edge.n: edge for edge in edges}
    out: list[Turn] = []
    for n in range(many):
        edge = at.get(n)
        if edge is not None and edge.what == "acquired":
            owner = edge.lane
        refused = edge is not None and edge.what == "refused"
        out.append((edge.lane if edge is not None else owner, not refused))
    return out


def is_absent(lane: str) -> bool:
    return "/k" in lane


@given(found=turns, maker=st.sampled_from(["m", "m/k0"]))
def test_the_others_turns_come_in_their_order(found: list[Turn], maker: str) -> None:
    edges = edges_of(found, maker)
    assert read_turns(edges, maker, len(found)) == found
    kept = [turn for turn in found if not is_absent(turn[0])]
    assert read_turns([*without_lanes(edges, is_absent)], maker, len(kept)) == kept
    assert [*without_lanes(edges, lambda _: False)] == edges
