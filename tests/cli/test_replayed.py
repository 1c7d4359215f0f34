import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tapeproxy.cli.rendering import Screen
from tapeproxy.cli.replayed import listing, origins, silence, summary, unexplained, warnings
from tapeproxy.proxy.replayed import Replayed
from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.tapes.differences import Difference
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.explain import Explanation
from tapeproxy.tapes.provenance import Provenance, Source
from tapeproxy.tapes.readings import Site
from tapeproxy.tapes.records import Request
from tapeproxy.tapes.violations import Drift, Violation

README = (Path(__file__).parents[2] / "README.md").read_text()
REFERENCE = (Path(__file__).parents[2] / "docs" / "CLI.md").read_text()
VIOLATION = Violation("miss", "GET http://x.test/", "this request is not on the tape")


def unused(count: int) -> list[Exchange]:
    asked = Request(t=0, method=b"GET", url=b"http://x.test/\x1b[2J")
    return [Exchange(n, n, asked) for n in range(1, count + 1)]


def replayed(code: int = 0, **fields: Any) -> Replayed:
    outcome = Outcome(code, 1, None)
    result = Replayed(0, outcome, served=5, live=0, exchanges=5, taped_ns=14_200_000_000, took_ns=912_000_000)
    return dataclasses.replace(result, **fields)


def test_the_line_in_the_readme_is_a_real_one() -> None:
    line = summary(replayed(), Path(".tapes/20261129T201104Z-agent.tape.jsonl.gz"))
    assert f"\n   tapeproxy: {line}\n" in README


def test_everything_that_a_summary_counts() -> None:
    result = replayed(served=1, live=2, violations=[VIOLATION], unused=unused(3), drifts=[])
    assert ": 1 of 5 exchanges served, 2 inside the run, 1 violation, 3 unused; 912 ms, " in summary(result, Path("x"))


def quiet(result: Replayed, taped_in: str = "/a", here: str = "/a") -> list[str]:
    return silence(result, taped_in, here, Screen()).splitlines()


@pytest.mark.parametrize(
    ("code", "ended"), [(0, ""), (2, "; it exited 2"), (-9, "; it was killed by SIGKILL")], ids=["0", "2", "killed"]
)
def test_a_replay_that_served_nothing_is_no_success(code: int, ended: str) -> None:
    first, *rest = quiet(replayed(code, served=0, unused=unused(5)))
    said = "the agent asked for nothing that is on the tape: 5 exchanges were not asked for"
    assert first == f"warning: {said}{ended}"
    assert rest == ["  is it the right command, and does it honour HTTPS_PROXY? See docs/LIMITS.md"]


def test_another_folder_is_named() -> None:
    result = replayed(served=0, unused=unused(1))
    assert quiet(result, "/taped\x1b", "/here")[1] == "  it was recorded in /taped\\x1b, you are in /here"
    assert len(quiet(result, "", "/here")) == 2


def test_a_tape_without_exchanges_proves_nothing() -> None:
    assert quiet(replayed(served=0, exchanges=0)) == [
        "warning: there are no exchanges on the tape, so nothing was replayed"
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"served": 1, "unused": unused(4)},
        {"served": 0, "unused": unused(5), "violations": [VIOLATION]},
        {"served": 0, "live": 5},
    ],
    ids=["one was served", "a violation says enough", "all of it is inside the run"],
)
def test_there_is_nothing_to_warn_of(fields: dict[str, Any]) -> None:
    assert quiet(replayed(**fields)) == []


def test_a_warning_is_coloured_where_there_is_colour() -> None:
    assert silence(replayed(served=0, exchanges=0), "", "", Screen(colour=True)).startswith("\x1b[33m")


def test_unused_exchanges_are_listed() -> None:
    lines = [*listing(unused(22), Screen())]
    assert lines[0] == "unused: --require-all, and 22 exchanges were not asked for:"
    assert lines[1] == "    1  GET http://x.test/\\x1b[2J"
    assert lines[20:] == ["   20  GET http://x.test/\\x1b[2J", "  and 2 more; --report lists them all"]
    assert next(listing(unused(1), Screen())) == "unused: --require-all, and 1 exchange was not asked for:"


def test_why_a_run_was_stopped_comes_first() -> None:
    stopped = replayed(outcome=Outcome(-15, 1, "timeout"), refusals={"x.test\x1b": "unknown ca"}, notes=["odd"])
    assert [*warnings(stopped)] == [
        "warning: a client refused our certificate for x.test\\x1b (unknown ca), so its requests never came; "
        "see docs/LIMITS.md",
        "note: odd",
        "stopped the run after 912 ms (--timeout)",
    ]
    spun = replayed(outcome=Outcome(-15, 1, "violations"), violations=[VIOLATION] * 20)
    assert [*warnings(spun)] == ["stopped the run after 20 violations"]


def test_the_reference_names_every_field_of_a_report() -> None:
    assert [name for name in replayed().to_json() if f"`{name}`" not in REFERENCE] == []


def test_each_origin_and_each_hint_is_said_once() -> None:
    def found(path: str, line: int) -> Provenance:
        site = Site("time.time", (f"/here/agent.py:{line} in main",))
        return Provenance("GET http://x.test/", path, "1", (Source("value", "1", site, "m"),), hint="Because.")

    guessed = Provenance("GET http://x.test/", "body", "1", hint="It looks odd.")
    blocks = [*origins([found("$.a", 3), found("$.b", 3), found("$.c", 4), guessed], "/here")]
    assert [block.count("Because.") for block in blocks] == [1, 0, 0, 0]
    assert "read at agent.py:3 in main" in blocks[0]
    assert "$.c" in blocks[1]
    assert "It looks odd." in blocks[2]
    assert blocks[3:] == ["1 more difference of the same origin"]


def test_how_to_learn_more_is_said_where_something_differs() -> None:
    differs = Difference("body $.a", "1", "2")
    explanation = Explanation("GET http://x.test/", 0, nearest=1, differences=(differs,))
    violation = dataclasses.replace(VIOLATION, explanation=explanation)
    used_up = dataclasses.replace(violation, kind="used-up")
    line = "tapeproxy replay --explain 'a b' -- python x.py shows which line it came from"
    assert unexplained(replayed(violations=[violation]), Path("a b"), ("python", "x.py")) == line
    assert unexplained(replayed(drifts=[Drift("lane m", "", (differs,))]), Path("a b"), ("python", "x.py")) == line
    assert unexplained(replayed(violations=[VIOLATION, used_up]), Path("a"), ()) == ""
    assert unexplained(replayed(), Path("a"), ()) == ""
