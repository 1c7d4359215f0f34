"""docs/DOCTOR.md lists the rules as they are."""

import re
from pathlib import Path

from tapeproxy.shim.scan import RULES

TEXT = (Path(__file__).parents[1] / "docs" / "DOCTOR.md").read_text(encoding="utf-8")


def test_the_table_is_the_rules() -> None:
    rows = re.findall(r"^\| (TP\d+) \| (\w+) \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE)
    assert rows == [(rule.code, rule.level, rule.title, rule.fix) for rule in RULES.values()]
