"""What a child's head hands on to its replays and forks, and what of a stranger's head is not believed."""

from typing import Any

import pytest

from tapeproxy.tapes.branches import environment_of, inherited, seeds_of
from tapeproxy.tapes.cuts import Cut
from tapeproxy.tapes.forkplan import ForkPlan
from tapeproxy.tapes.records import Head

ONE, TWO = "1" * 64, "2" * 64


def head(**branch: Any) -> Head:
    return Head(branch=branch)


def test_a_child_hands_on_what_it_was_given_and_what_its_parent_had() -> None:
    plan = ForkPlan(
        cut={"m": Cut(3, 9)},
        seeds={"m": TWO, "m/t9": ONE},
        environment={"COLOUR": "blue", "OLD": None, "MY_TOKEN": "x"},
    )
    parent = head(seeds=[["m", 1, ONE]], environment={"COLOUR": "red", "SHAPE": "round"})
    told = inherited(parent, plan)
    assert told["environment"] == {"COLOUR": "blue", "SHAPE": "round", "OLD": None}
    assert seeds_of(Head(branch=told)) == (("m", 1, ONE), ("m", 3, TWO), ("m/t9", 0, ONE))
    assert environment_of(Head(branch=told)) == told["environment"]


def test_a_tape_that_says_nothing_hands_on_nothing() -> None:
    assert inherited(Head(), ForkPlan()) == {}
    assert (seeds_of(Head()), environment_of(Head())) == ((), {})


@pytest.mark.parametrize(
    "rows",
    [
        None,
        3,
        [3],
        [["m", 1]],
        [["m", -1, ONE]],
        [["m", 1, "zz"]],
        [["m\n0 0 m", 1, ONE]],
        [["m", 1, ONE[:-1]]],
        {"m": ONE},
    ],
)
def test_seeds_of_another_form_are_left_out(rows: Any) -> None:
    assert seeds_of(head(seeds=rows)) == ()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONSTARTUP",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "PATH",
        ),
        *(
            "BASH_ENV",
            "ENV",
            "PERL5OPT",
            "RUBYOPT",
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "GIT_SSH_COMMAND",
            "HTTPS_PROXY",
        ),
        *("TAPEPROXY_MODE", "EDITOR", "MY_EDITOR", "HOME", "TMPDIR", "1X", "A B", "", "a=b"),
    ],
)
def test_a_tape_sets_no_variable_that_decides_what_is_run(name: str) -> None:
    assert environment_of(head(environment={name: "x", "COLOUR": "blue", "N": 3})) == {"COLOUR": "blue"}
