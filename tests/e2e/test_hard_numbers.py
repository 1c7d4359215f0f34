"""Holds the list of hard inputs complete: each number that is promised has a test of its own that goes both ways."""

import ast
import re
from pathlib import Path

PROMISED = {*range(1, 27), 30, 32, 35}


def test_every_hard_input_has_a_test_with_its_number() -> None:
    """Its name says the number, and it asks for both wires, or for the whole program."""
    found: set[int] = set()
    for path in Path(__file__).parent.glob("test_hard_*.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or (number := re.match(r"test_(\d\d)_", node.name)) is None:
                continue
            asks = {argument.arg for argument in node.args.args}
            assert asks & {"wires", "cli"}, f"{node.name} goes through no wire"
            found |= {int(number[1])} if "wires" in asks else set()
    assert found >= PROMISED, f"no test through both wires: {sorted(PROMISED - found)}"
