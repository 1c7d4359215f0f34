"""Holds the list of hard inputs complete: each number that is promised has a test of its own that goes both ways."""

import ast
import re
from pathlib import Path

BY_PROGRAMS = {27, 28, 29, 33, 34}
"""What is about programs and their environment: a whole run is recorded and replayed."""
BY_WIRES = {*range(1, 36)} - BY_PROGRAMS
"""What is about bytes: a client talks to the recorder, then to the tape server."""
FIXTURES = {"wires": BY_WIRES, "cli": BY_PROGRAMS, "recorded": BY_PROGRAMS, "taped": BY_PROGRAMS}
"""What a test asks for that goes such a way; the last two are recordings by the command line that tests share."""


def test_every_hard_input_has_a_test_with_its_number() -> None:
    """Its name says the number, and it asks for both wires, or for the whole program."""
    found: set[int] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or (number := re.match(r"test_(\d\d)_", node.name)) is None:
                continue
            asks = {argument.arg for argument in node.args.args} & FIXTURES.keys()
            assert asks, f"{node.name} goes through no wire"
            found |= {int(number[1])} & set[int]().union(*(FIXTURES[name] for name in asks))
    missing = (BY_WIRES | BY_PROGRAMS) - found
    assert not missing, f"no test that records and replays: {sorted(missing)}"
