"""Tapes minimized with real agents, offline: what is kept, what the new tape is, and what cannot be minimized."""

import asyncio
import json
import os
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import agentruns
import pytest

from tapeproxy.proxy.checks import ByCommand, ByPredicate
from tapeproxy.proxy.minimizing import Minimized, MinimizeSettings, minimize_tape
from tapeproxy.proxy.replayed import Replayed, ReplaySettings
from tapeproxy.proxy.replaying import replay
from tapeproxy.proxy.tapefile import load
from tapeproxy.proxy.trials import Probed
from tapeproxy.tapes.errors import TapeExistsError, UsageError
from tapeproxy.tapes.predicates import parse_predicate
from tapeproxy.tapes.records import Record

HOST = "http://data.test:8080"
# Asks for page after page, each request with what it heard before; dies of three values in different pages.
AGENT = """
import json, sys, urllib.request

heard, seen = [], {}
for page in range(PAGES):
    asked = urllib.request.Request(HOST + "/page", json.dumps({"page": page, "heard": heard}).encode(), method="POST")
    asked.add_header("Content-Type", "application/json")
    answer = json.load(urllib.request.urlopen(asked, timeout=20))
    for name, value in answer["values"].items():
        seen[f"{page}.{name}"] = value
    heard.append(answer["values"])
if all(seen[key] == value for key, value in POISON.items()):
    raise ValueError("poisoned")
print("fine")
"""


def agent(pages: int, poison: dict[str, Any], source: str = AGENT) -> tuple[str, ...]:
    return (sys.executable, "-c", f"PAGES, POISON, HOST = {pages}, {poison!r}, {HOST!r}\n{source}")


def pages(count: int, each: int) -> list[dict[str, Any]]:
    """What the pages say: `each` values, numbers and strings."""
    return [
        {"values": {f"v{n}": f"text {page}.{n}" if n % 2 else 1000 * page + n + 1 for n in range(each)}}
        for page in range(count)
    ]


def page_tape(path: Path, answers: list[dict[str, Any]]) -> Path:
    records: list[Record] = []
    heard: list[Any] = []
    for page, answer in enumerate(answers):
        text = json.dumps(answer).encode()
        records += agentruns.exchange(
            len(records) + 1,
            HOST + "/page",
            method="POST",
            asked={"page": page, "heard": heard},
            headers=(agentruns.JSON_TYPE,),
            chunks=[text[:20], text[20:]],
        )
        heard.append(answer["values"])
    return agentruns.write_tape(path, records)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def settings(tape: Path, argv: tuple[str, ...], **options: Any) -> MinimizeSettings:
    environment = {"PATH": os.environ["PATH"]}
    run = ReplaySettings(tape=tape, environment=environment, argv=argv)
    return MinimizeSettings(replay=run, output=tape.with_name("small.tape.jsonl.gz"), **options)


def minimized(given: MinimizeSettings) -> tuple[Minimized, list[Probed]]:
    probes: list[Probed] = []
    return minimize_tape(given, probes.append), probes


def replayed(tape: Path, argv: tuple[str, ...]) -> Replayed:
    run = ReplaySettings(tape=tape, environment={"PATH": os.environ["PATH"]}, argv=argv)
    return asyncio.run(replay(run, lambda _: None, lambda _: None))


def poison_of(answers: list[dict[str, Any]], seed: int, count: int = 3) -> dict[str, Any]:
    every = {f"{page}.{name}": value for page, answer in enumerate(answers) for name, value in answer["values"].items()}
    return {key: every[key] for key in random.Random(seed).sample(sorted(every), count)}


@pytest.mark.parametrize(
    ("count", "each", "most"), [(5, 20, 60), pytest.param(10, 50, 70, marks=pytest.mark.soak, id="five-hundred")]
)
def test_of_many_values_the_three_that_matter_are_kept(tmp_path: Path, count: int, each: int, most: int) -> None:
    answers = pages(count, each)
    poison = poison_of(answers, 7)
    argv = agent(count, poison)
    tape = page_tape(tmp_path / "big.tape.jsonl.gz", answers)
    done, probes = minimized(settings(tape, argv, jobs=2))
    wanted = {(int(page) + 1, f"$.values.{name}") for page, _, name in (key.partition(".") for key in poison)}
    assert {*kept(done)} == wanted
    assert {one.value.value for one in done.kept} == {*poison.values()}
    assert (done.values, done.exchanges, done.of, done.stopped) == (count * each, count, count, "")
    assert done.probes == len(probes) <= most
    assert done.failure.startswith("exit code 1, ValueError at <string>:")

    small, ending = load(done.path)
    assert ending.sealed
    assert small.seal is not None
    big = load(tape)[0]
    assert big.seal is not None
    assert small.head.parent is not None
    assert (small.head.parent["name"], small.head.parent["trace"]) == (tape.name, big.seal.trace)
    assert small.head.edit is not None
    assert small.head.edit["minimized"]["values"] == count * each
    assert len(small.head.edit["minimized"]["kept"]) == 3
    again = replayed(done.path, argv)
    assert (again.exit_code, again.served, again.violations, again.drifts) == (1, count, [], [])
    assert again.trace() == small.seal.trace
    texts = (count - 1) * each // 2  # the other half are numbers
    assert small.exchanges[-1].request_body.count(b'""') >= texts - 3, "the requests are those of the small run"


@pytest.fixture
def small_run(tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    answers = pages(5, 4)
    tape = page_tape(tmp_path / "five.tape.jsonl.gz", answers)
    return tape, agent(5, {"1.v2": answers[1]["values"]["v2"], "4.v3": answers[4]["values"]["v3"]})


def kept(done: Minimized) -> list[tuple[int, str]]:
    return [(key.source.number, key.path) for key, _, _ in done.kept]


TWO = [(2, "$.values.v2"), (5, "$.values.v3")]


def test_a_command_or_a_predicate_says_what_the_failure_is(small_run: tuple[Path, tuple[str, ...]]) -> None:
    tape, argv = small_run
    command = ByCommand('! grep -q poisoned "$TAPEPROXY_STDERR"', {"PATH": os.environ["PATH"]})
    assert kept(minimized(settings(tape, argv, check=command))[0]) == TWO
    # What the fifth request said of the second page.
    predicate = ByPredicate(parse_predicate("$.request.body.heard[1].v2!=1003"))
    done, _ = minimized(settings(tape, argv, check=predicate, force=True))
    assert (kept(done), done.failure) == ([TWO[0]], "the check fails")


def test_the_search_can_be_cut_short(small_run: tuple[Path, tuple[str, ...]]) -> None:
    tape, argv = small_run
    done, probes = minimized(settings(tape, argv, most=4))
    assert (done.stopped, done.probes, len(probes)) == ("4 probes were made", 4, 4)
    assert {*TWO} < {*kept(done)}
    assert len(done.kept) == min(probe.kept for probe in probes if probe.failed) < 20
    assert replayed(done.path, argv).exit_code == 1


def test_what_fails_anyway_needs_nothing(small_run: tuple[Path, tuple[str, ...]]) -> None:
    tape, _ = small_run
    done, probes = minimized(settings(tape, agent(1, {})))
    assert (done.kept, len(probes), done.exchanges) == ((), 2, 1)
    assert [exchange.number for exchange in load(done.path)[0].exchanges] == [1], "what was not asked for is gone"
    assert replayed(done.path, agent(1, {})).exit_code == 1


DIES_OTHERWISE = AGENT.replace("if all(", "seen['0.v1'].split()[1]\nif all(")


def test_another_death_is_another_failure(small_run: tuple[Path, tuple[str, ...]]) -> None:
    """With a neutral first page the program dies of an IndexError, with the same exit code."""
    tape, _ = small_run
    done, _ = minimized(settings(tape, agent(5, {"1.v2": 1003}, DIES_OTHERWISE)))
    assert kept(done) == [(1, "$.values.v1"), TWO[0]]


GOES_ELSEWHERE = AGENT.replace(
    'HOST + "/page"', '(HOST if page < 3 or heard[0]["v0"] else "http://else.test") + "/page"'
)


def test_a_run_that_goes_another_way_does_not_fail_whatever_the_check_makes_of_it(
    small_run: tuple[Path, tuple[str, ...]],
) -> None:
    """With a neutral first page it asks another host, is stopped, and so does not exit with 0."""
    tape, _ = small_run
    check = ByPredicate(parse_predicate("$.exit=0"))
    done, _ = minimized(settings(tape, agent(5, {"1.v2": 1003}, GOES_ELSEWHERE), check=check))
    assert kept(done) == [(1, "$.values.v0"), TWO[0]]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda given: replace(given, replay=replace(given.replay, argv=agent(5, {"1.v2": 0}))), "does not fail"),
        (lambda given: replace(given, check=ByPredicate(parse_predicate("$.exit=1"))), "does not fail"),
        (lambda given: replace(given, replay=replace(given.replay, argv=agent(6, {}))), "not on the tape"),
    ],
)
def test_what_cannot_be_minimized(
    change: Callable[[MinimizeSettings], MinimizeSettings], what: str, small_run: tuple[Path, tuple[str, ...]]
) -> None:
    given = settings(*small_run)
    with pytest.raises(UsageError, match=what):
        minimized(change(given))
    assert not given.output.exists()


def test_a_tape_without_values(tmp_path: Path) -> None:
    tape = agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", agentruns.exchange(1, HOST + "/page"))
    with pytest.raises(UsageError, match="nothing on the tape"):
        minimized(settings(tape, agent(1, {})))


def test_a_tape_that_is_there_is_not_replaced(small_run: tuple[Path, tuple[str, ...]]) -> None:
    given = settings(*small_run)
    given.output.write_text("mine")
    with pytest.raises(TapeExistsError):
        minimized(given)
    assert given.output.read_text() == "mine"
