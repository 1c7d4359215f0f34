"""Branches of one Node process: each has its own stream, in whatever order they come to run."""

import json
from pathlib import Path
from typing import Any

from noderuns import run_node

PROGRAMS = Path(__file__).parent / "programs"


def drawn(value: Any) -> list[Any]:
    return [value] if not isinstance(value, list) else [one for inner in value for one in drawn(inner)]


def test_branches_draw_the_same_in_whatever_order_they_go_on(tmp_path: Path) -> None:
    program = PROGRAMS / "branches.mjs"
    ended = [
        run_node(program, *waits, folder=tmp_path) for waits in (["1", "16", "8"], ["16", "1", "8"], ["4", "4", "4"])
    ]
    first = ended[0].json
    assert [run.json for run in ended] == [first] * 3
    values = drawn(list(first.values()))
    assert len(set(map(json.dumps, values))) == len(values)


def test_a_sequential_program_is_one_lane(tmp_path: Path) -> None:
    program = tmp_path / "a.mjs"
    program.write_text("""
import { setTimeout as sleep } from 'node:timers/promises';
for (let n = 0; n < 3; n++) { Date.now(); await sleep(2); }
async function step() { await null; return Date.now(); }
await step();
""")
    run = run_node(program, folder=tmp_path)
    assert [line["id"] for line in run.of("lane")][:1] == ["m/js"]
    assert {line["lane"]: line["reads"] for line in run.of("end")}["m/js"] == 3
    assert [line["slept"] for line in run.of("clock") if line["lane"] == "m/js" and line["n"]] == [True, True]
