import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import agentruns
import difftapes
import pytest
from click.testing import CliRunner, Result
from difftapes import Ask, get, say

from tapeproxy.cli.diff import command
from tapeproxy.cli.diffpages import diff_page
from tapeproxy.cli.diffsides import Shown
from tapeproxy.cli.rendering import Screen
from tapeproxy.tapes.errors import NoTapeError, TapeFormatError, UsageError
from tapeproxy.tapes.records import Request, Value
from tapeproxy.tapes.tapediff import diff_tapes

HOSTILE = "\x1b[31m<script>alert(1)</script>\u202eevil\r\n\x07"
OURS = (
    say("m", "Plan a weekend", answer="Ask around."),
    get("m/t0", "weather", '{"degrees": 18}', headers=((b"Content-Type", b"application/json"),)),
    say("m/t0", "It is 18 degrees", temperature=0.5),
    get("m/t1", "food"),
    get("m/t1", "maps"),
)
THEIRS = (
    OURS[0],
    get("m/t0", "weather", '{"degrees": 31}', headers=((b"Content-Type", b"application/json"),)),
    say("m/t0", "It is 31 degrees", "Mind the heat", temperature=0.9),
    get("m/t1", "food"),
    get("m/t2", "mail", status=500),
)
NAMES = {"m/t0": "worker_a", "m/t1": "worker_b"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two tapes that differ, in the working folder."""
    monkeypatch.chdir(tmp_path)
    difftapes.write(Path("a.tape.jsonl.gz"), *OURS, names=NAMES)
    difftapes.write(Path("b.tape.jsonl.gz"), *THEIRS, names=NAMES, code=1)
    yield


def run(*args: str) -> Result:
    result = CliRunner().invoke(command, args, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def lines(*args: str) -> list[str]:
    return run("a.tape.jsonl.gz", "b.tape.jsonl.gz", *args).output.splitlines()


def document(*args: str) -> Any:
    return json.loads(run(*(args or ("a.tape.jsonl.gz", "b.tape.jsonl.gz")), "--json").output)


PAGE = """\
different: 2 changed, 1 missing, 1 extra, 2 same; they part at exchange 2
A  a.tape.jsonl.gz
   python agent.py 'a b', 1.00 s, exit 0, 5 exchanges
B  b.tape.jsonl.gz
   python agent.py 'a b', 1.00 s, exit 1, 5 exchanges
the runs ended otherwise: exit: code 0 -> code 1

branch point: exchange 2, changed, in worker_a (m/t0)
  GET https://service.test/weather
  response
  response $.degrees: 18 -> 31

worker_a (m/t0): 2 changed
      2     2 ~ GET https://service.test/weather  [response]  <- branch point
      3     3 ~ POST https://api.openai.com/v1/chat/completions  user: It is 18 degrees  [request]

worker_b (m/t1): 1 missing, 1 same
      5     - - GET https://service.test/maps

m/t2: 1 extra
      -     5 + GET https://service.test/mail

nothing differs in 1 other lane, 1 exchange: m
"""


def test_the_branch_point_comes_first_and_then_the_lanes() -> None:
    result = run("a.tape.jsonl.gz", "b.tape.jsonl.gz")
    assert result.output == PAGE
    assert result.return_value == 1


def test_the_same_tape() -> None:
    result = run("a.tape.jsonl.gz", "a.tape.jsonl.gz")
    assert result.output.splitlines()[0] == "the same: 5 exchanges"
    assert result.return_value == 0


def test_what_hints_told() -> None:
    """The requests are the same, so there is no branch point."""
    for name, gave in (("one", 1), ("two", 2)):
        call = Value(t=1, lane="m", n=0, what="tool", name="step", content=b'{"v":%d}' % gave, data={"args": "{}"})
        said = Value(t=1, lane="m", n=1, what="message", name="bob\x1b", content=b'"%d"' % gave)
        agentruns.write_tape(Path(f"{name}.tape.jsonl.gz"), [*difftapes.records([get("m", "a")]), call, said])
    tapes = "one.tape.jsonl.gz", "two.tape.jsonl.gz"
    told = run(*tapes, "--html", "page.html").output.splitlines()
    assert told[0] == "different: 1 same; 2 hints not the same"
    assert told[told.index("what hints told (tools, values, messages): 2 changed") :][:5] == [
        "what hints told (tools, values, messages): 2 changed",
        "  ~ m#0 step()",
        "      $.v: 1 -> 2",
        "  ~ m#1 message to bob\\x1b",
        "      $: 1 -> 2",
    ]
    found = json.loads(run(*tapes, "--json").output)
    assert (found["same"], found["branch"]) == (False, None)
    assert [(one["kind"], one["a"], one["what"]) for one in found["hints"]] == [
        ("changed", "m#0", "tool"),
        ("changed", "m#1", "message"),
    ]
    page = Path("page.html").read_text()
    assert "m#0 step()" in page and "$.v" in page and "\x1b" not in page
    assert run(*tapes).return_value == 1


def test_with_context_every_event_says_what_changed() -> None:
    assert "        injected message 1 (user): Mind the heat" in lines("--context")
    assert "        changed message 0 (user): It is [-18-]{+31+} degrees" in lines("--context")
    assert "        request $.temperature: 0.5 -> 0.9" in lines("--context")


def test_one_lane() -> None:
    result = run("a.tape.jsonl.gz", "b.tape.jsonl.gz", "--lane", "worker_b")
    assert result.output.splitlines()[0] == "different: 1 missing, 1 same; they part at exchange 5 of A"
    assert "worker_a" not in result.output
    assert run("a.tape.jsonl.gz", "b.tape.jsonl.gz", "--lane", "m").return_value == 0
    with pytest.raises(UsageError, match="no request is of a lane 'x'"):
        run("a.tape.jsonl.gz", "b.tape.jsonl.gz", "--lane", "x")


def test_many_events_are_cut_unless_their_lane_is_asked_for() -> None:
    difftapes.write(Path("long.tape.jsonl.gz"), *(get("m", f"p{at}") for at in range(30)))
    difftapes.write(Path("none.tape.jsonl.gz"))
    both = "long.tape.jsonl.gz", "none.tape.jsonl.gz"
    assert "  and 10 more; --lane m lists them all" in run(*both).output.splitlines()
    assert len([line for line in run(*both, "--lane", "m").output.splitlines() if " - GET" in line]) == 30


def test_strictly() -> None:
    difftapes.write(Path("c.tape.jsonl.gz"), say("m", "Plan a weekend", answer="Ask around.", call_id="c22"))
    difftapes.write(Path("d.tape.jsonl.gz"), OURS[0])
    assert run("c.tape.jsonl.gz", "d.tape.jsonl.gz").return_value == 0
    assert run("c.tape.jsonl.gz", "d.tape.jsonl.gz", "--strict").return_value == 1


def test_the_document() -> None:
    found = document()
    assert (found["same"], found["relation"]) == (False, "")
    assert (found["a"]["exit_code"], found["b"]["exit_code"], found["b"]["exchanges"]) == (0, 1, 5)
    assert found["counts"] == {"same": 2, "moved": 0, "changed": 2, "missing": 1, "extra": 1}
    assert found["branch"] == {
        "kind": "changed",
        "a": 2,
        "b": 2,
        "lane": {"a": "m/t0", "b": "m/t0", "name": "worker_a"},
        "changes": ["response"],
        "source": None,
        "line": "GET https://service.test/weather",
        "details": {
            "request": [],
            "response": [{"where": "body $.degrees", "a": "18", "b": "31", "words": "", "kind": ""}],
            "context": [],
            "tools": "",
        },
    }
    assert found["outcome"][0]["where"] == "exit"
    assert [(lane["a"], lane["b"], lane["same"], len(lane["events"])) for lane in found["lanes"]] == [
        ("m", "m", [[1, 1]], 0),
        ("m/t0", "m/t0", [], 2),
        ("m/t1", "m/t1", [[4, 4]], 1),
        (None, "m/t2", [], 1),
    ]
    assert document("a.tape.jsonl.gz", "a.tape.jsonl.gz")["branch"] is None


def test_the_source_of_a_forks_exchanges_is_told() -> None:
    made = difftapes.records(THEIRS[:2])
    made = [replace(one, source="mutated") if isinstance(one, Request) else one for one in made]
    agentruns.write_tape(Path("fork.tape.jsonl.gz"), made)
    assert "  mutated in B" in run("a.tape.jsonl.gz", "fork.tape.jsonl.gz").output.splitlines()
    assert document("a.tape.jsonl.gz", "fork.tape.jsonl.gz")["branch"]["source"] == "mutated"


def test_a_tape_that_is_damaged_or_not_there() -> None:
    data = Path("a.tape.jsonl.gz").read_bytes()
    Path("bad.tape.jsonl.gz").write_bytes(data[:100] + b"\0\0\0" + data[103:])
    with pytest.raises(TapeFormatError) as damaged:
        run("a.tape.jsonl.gz", "bad.tape.jsonl.gz")
    assert damaged.value.exit_code == 5
    with pytest.raises(NoTapeError):
        run("a.tape.jsonl.gz", "nowhere.tape.jsonl.gz")


def hostile() -> tuple[Ask, Ask]:
    return say("m", HOSTILE, answer=HOSTILE), say("m", HOSTILE + HOSTILE, answer=HOSTILE[::-1])


def test_what_a_tape_says_does_not_act_on_the_terminal() -> None:
    difftapes.write(Path("x.tape.jsonl.gz"), hostile()[0], names={"m": HOSTILE})
    difftapes.write(Path("y.tape.jsonl.gz"), hostile()[1], get("m/t0\x1b[2J", "a"), names={"m": HOSTILE})
    for args in ((), ("--context",), ("--lane", "m")):
        output = run("x.tape.jsonl.gz", "y.tape.jsonl.gz", *args).output
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", output) is None
    assert run("x.tape.jsonl.gz", "y.tape.jsonl.gz", "--json").output.isascii()


def test_colour_only_where_there_is_colour() -> None:
    from tapeproxy.proxy.tapefile import load

    shown = tuple(Shown(name, load(Path(name))[0]) for name in ("a.tape.jsonl.gz", "b.tape.jsonl.gz"))
    diff = diff_tapes(shown[0].tape, shown[1].tape)
    sides = shown[0], shown[1]
    plain = list(diff_page(sides, diff, Screen(), context=True, whole=False))
    colour = list(diff_page(sides, diff, Screen(80, True), context=True, whole=False))
    assert not any("\x1b" in line for line in plain)
    assert any("\x1b[32m" in line for line in colour)
