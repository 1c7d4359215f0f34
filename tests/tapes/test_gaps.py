import difftapes
import pytest

from tapeproxy.tapes.gaps import Gap
from tapeproxy.tapes.reading import PLAIN
from tapeproxy.tapes.sides import Side

SYSTEM = "You are a careful planner of trips. " * 8


def pairs(ours: list[difftapes.Ask], theirs: list[difftapes.Ask]) -> list[tuple[int | None, int | None]]:
    one, other = Side(difftapes.run(*ours), PLAIN), Side(difftapes.run(*theirs), PLAIN)
    gap = Gap(one, other, one.events, other.events)
    return [(a and a.number, b and b.number) for a, b in gap.pairs()]


def turns(count: int, system: str = SYSTEM, *, without: int = -1, word: str = "turn") -> list[difftapes.Ask]:
    """A conversation that grows by a question each turn."""
    texts = [f"{word} {at}: what do you know of topic number {at * 7919}?" for at in range(count)]
    return [difftapes.say("m", system, *texts[: at + 1]) for at in range(count) if at != without]


def test_one_side_alone() -> None:
    assert pairs([difftapes.get("m", "a")], []) == [(1, None)]
    assert pairs([], [difftapes.get("m", "a")]) == [(None, 1)]
    assert pairs([], []) == []


def test_what_is_nearly_the_same_was_changed() -> None:
    assert pairs([difftapes.say("m", SYSTEM + "Where?")], [difftapes.say("m", SYSTEM + "When?")]) == [(1, 1)]


def test_what_goes_elsewhere_came_and_went() -> None:
    found = pairs([difftapes.get("m", "weather/lisbon")], [difftapes.say("m", "Hello")])
    assert sorted(found, key=str) == [(1, None), (None, 1)]


def test_of_several_the_nearest_are_each_other() -> None:
    one, two = (difftapes.say("m", f"{SYSTEM} {word * 9}") for word in ("museum ", "harbour "))
    near = difftapes.say("m", f"{SYSTEM} {'harbour ' * 9}, please")
    assert pairs([one, two], [near]) == [(1, None), (2, 1)]


@pytest.mark.parametrize("count", [5, 60])
@pytest.mark.parametrize("without", [-1, 0, 3])
def test_a_conversation_with_another_prompt_keeps_its_turns(count: int, without: int) -> None:
    """60 turns are too many to compare all: what is new in each tells them."""
    found = pairs(turns(count), turns(count, SYSTEM.replace("careful", "bold"), without=without))
    expected = {(at + 1, None if at == without else at + 1 - (without >= 0 and at > without)) for at in range(count)}
    assert set(found) == expected


def test_many_that_say_nothing_new_are_paired_in_order() -> None:
    ours = [difftapes.get("m", f"a?page={at}") for at in range(120)]
    theirs = [difftapes.get("m", f"a?sheet={at}") for at in range(121)]
    found = pairs(ours, theirs)
    assert found[:120] == [(at, at) for at in range(1, 121)]
    assert found[120:] == [(None, 121)]


def test_long_bodies_are_compared_by_their_ends() -> None:
    def long(start: str, end: str) -> difftapes.Ask:
        return difftapes.say("m", f"{start}{'x' * 300_000}{end}")

    assert pairs([long("a", "b")], [long("a", "c")]) == [(1, 1)]
