"""Clocks of Node: what a Date is stays what it was, and a replay reads what the recording read."""

from pathlib import Path

import pytest
from noderuns import run_node

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("mode", ["bare", "record", "replay"])
def test_dates_and_timers_are_what_they_were(mode: str, tmp_path: Path) -> None:
    run = run_node(PROGRAMS / "dates.cjs", folder=tmp_path, mode=mode)  # type: ignore[arg-type]  # one of them
    assert run.json == {}


def test_a_replay_reads_the_same_at_once(tmp_path: Path) -> None:
    recorded = run_node(PROGRAMS / "readings.mjs", folder=tmp_path)
    assert recorded.stderr == ""
    replayed = run_node(PROGRAMS / "readings.mjs", folder=tmp_path, mode="replay", reads=recorded.lines)
    assert replayed.json == recorded.json
    assert [line for line in replayed.of("note") if line["what"] == "clock-past-end"] == []
    assert run_node(PROGRAMS / "readings.mjs", folder=tmp_path).json != recorded.json


def test_a_long_sleep_of_a_replay_is_none(tmp_path: Path) -> None:
    program = tmp_path / "a.mjs"
    program.write_text("""
const begun = process.env.REAL_BEGIN;
const late = setTimeout(() => console.log('never'), 5000000);
await new Promise((resolve) => setTimeout(resolve, 3000000));
await Promise.race([new Promise((resolve) => setTimeout(resolve, 600000)), fetch('data:,x')]);
clearTimeout(late);
console.log('done');
process.exit();
""")
    replayed = run_node(program, folder=tmp_path, mode="replay")
    assert replayed.stdout == "done\n", replayed.stderr


def test_reads_past_the_end_are_told_once_with_their_line(tmp_path: Path) -> None:
    program = tmp_path / "a.cjs"
    program.write_text("for (let n = 0; n < Number(process.argv[2]); n++) Date.now();\n")
    recorded = run_node(program, "3", folder=tmp_path)
    replayed = run_node(program, "9", folder=tmp_path, mode="replay", reads=recorded.lines)
    (note,) = replayed.of("note")
    told = {"lane": "m/js", "reads": 3, "taped": 3, "grade": "soft", "where": f"{program}:1"}
    assert (note["what"], note["data"]) == ("clock-past-end", told)
    assert replayed.of("end")[0]["reads"] == 9
