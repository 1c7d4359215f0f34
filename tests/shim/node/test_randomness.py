"""Chance in Node: every way to draw is the lane's, and its bytes are those of a Python's lane of that name."""

import sys
from pathlib import Path

import shimruns
from noderuns import run_node

PROGRAMS = Path(__file__).parent / "programs"


def test_every_way_to_draw_gives_the_same_again(tmp_path: Path) -> None:
    first = run_node(PROGRAMS / "chances.mjs", folder=tmp_path)
    again = run_node(PROGRAMS / "chances.mjs", folder=tmp_path, mode="replay")
    assert (first.stderr, again.json) == ("", first.json)
    bare = run_node(PROGRAMS / "chances.mjs", folder=tmp_path, mode="bare")
    assert bare.stderr == ""
    assert not [name for name in first.json if first.json[name] == bare.json[name] and name not in ("none", "intLater")]
    other = run_node(PROGRAMS / "chances.mjs", folder=tmp_path, extra={"TAPEPROXY_SEED": "0d" * 32})
    assert other.json["uuid"] != first.json["uuid"]


def test_a_lane_has_the_bytes_that_it_has_in_python(tmp_path: Path) -> None:
    sizes = [1, 7, 160, 1, 200, 1300, 100, 5000, 40]
    program = tmp_path / "a.cjs"
    program.write_text(
        f"const {{randomBytes}} = require('crypto');"
        f"console.log(JSON.stringify({sizes}.map((n) => randomBytes(n).toString('hex'))));"
    )
    code = f"import json, os; print(json.dumps([os.urandom(n).hex() for n in {sizes}]))"
    lane = {"TAPEPROXY_LANE": "m/js"}
    python = shimruns.run(code, python=sys.executable, sidecar=tmp_path / "python", extra=lane)
    assert run_node(program, folder=tmp_path).json == python.json


def test_a_lane_gets_another_seed_where_a_fork_gave_it_one(tmp_path: Path) -> None:
    program = tmp_path / "a.cjs"
    program.write_text("console.log(JSON.stringify([Math.random(), require('crypto').randomUUID()]));")
    seeds = {"TAPEPROXY_SEEDS": f"{'11' * 32} 0 m/js"}
    ours, others = (run_node(program, folder=tmp_path, extra=extra).json for extra in ({}, seeds))
    assert ours[0] != others[0] and ours[1] != others[1]
