"""The tape's clock and chance in tests of the plugin: recorded, replayed, and told where they are another way."""

import json

import pytest
from pluginsuites import Suite

from tapeproxy.tapes.cireports import read_report

pytest_plugins = ["pytester"]

STAMPS = """
import asyncio, random, time, uuid
from time import time as now

def stamp():
    return {"time": now(), "id": str(uuid.uuid4()), "number": random.random()}

def post(**more):
    return httpx.post("https://api.test/", json=stamp() | more).text
"""
SIMPLE = (
    STAMPS
    + """
@pytest.mark.tape
def test_one(tape):
    for n in range(3):
        time.sleep(SECONDS)
        post(n=n)
    assert tape.environment.secrets == tape.environment.secrets and tape.environment.cwd
"""
)
TIMES = """
import time
from time import perf_counter

def pytest_runtest_logreport(report):
    assert 0 <= report.duration < 60, report.duration

def pytest_sessionfinish(session):
    assert type(time.time).__name__ == "builtin_function_or_method"
"""


def test_a_test_whose_requests_hold_time_and_chance(suite: Suite, world: list[str]) -> None:
    with (suite.path / "conftest.py").open("a") as file:
        file.write(TIMES)
    suite.file("test_a", SIMPLE.replace("SECONDS", "0.01"))
    suite.run().assert_outcomes(passed=1)
    assert len(world) == 3
    suite.run("--tape-mode=verify").assert_outcomes(passed=1)
    suite.file("test_a", SIMPLE.replace("SECONDS", "300"))
    suite.run("--tape-mode=none", "-p", "xdist", "-n", "2").assert_outcomes(passed=1)
    assert len(world) == 3


WAYS = {
    "value": ("        post(n=n)", "        time.time(); post(n=n)", "*this request is not on the tape"),
    "order": ("range(3)", "(1, 0, 2)", "*this request is not on the tape"),
    "past": (
        "    assert",
        "    time.time()\n    assert",
        "*lane m read its clock at least once after the * of the tape*",
    ),
}


def test_another_way_fails_the_test(suite: Suite, world: list[str]) -> None:
    one = SIMPLE.replace("SECONDS", "0.01").removeprefix(STAMPS)
    names = [*WAYS, "let"]
    suite.file("test_a", STAMPS + "".join(one.replace("test_one", f"test_{name}") for name in names))
    suite.run().assert_outcomes(passed=4)
    told = {
        name: one.replace(before, after).replace("test_one", f"test_{name}")
        for name, (before, after, _) in WAYS.items()
    }
    told["let"] = told["past"].replace("test_past", "test_let").replace("mark.tape", "mark.tape(on_drift='report')")
    suite.file("test_a", STAMPS + "".join(told.values()))
    result = suite.run("--tape-mode=none")
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines([line for name, (*_, said) in WAYS.items() for line in (f"*_ test_{name} _*", said)])
    assert len(world) == 12


def test_tests_of_one_tape_have_lanes_of_their_own(suite: Suite, world: list[str]) -> None:
    tests = "".join(f"\ndef test_{n}():\n    post(n={n})\n" for n in range(3))
    suite.file("test_a", STAMPS + "pytestmark = pytest.mark.tape(scope='module')\n" + tests)
    suite.run().assert_outcomes(passed=3)
    assert len(world) == 3
    suite.run("--tape-mode=verify").assert_outcomes(passed=3)
    suite.run("--tape-mode=none", "-k", "test_2").assert_outcomes(passed=1)
    suite.run("--tape-mode=none", "test_a.py::test_2", "test_a.py::test_0").assert_outcomes(passed=2)


ASYNC = (
    STAMPS
    + """
pytestmark = [pytest.mark.tape, pytest.mark.MARK]

async def apost(client, n):
    await asyncio.sleep(0.01 * n)
    await client.post("https://api.test/", json=stamp() | {"n": n})

async def test_tasks():
    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(apost(client, n) for n in range(3)))
        await apost(client, 4)
        await asyncio.to_thread(post, n=5)
"""
)


@pytest.mark.parametrize(
    ("mark", "options"),
    [
        ("asyncio", ("-p", "pytest_asyncio.plugin")),
        ("asyncio(loop_scope='module')", ("-p", "pytest_asyncio.plugin")),
        ("anyio", ("-k", "asyncio")),
    ],
)
def test_async_tests(suite: Suite, world: list[str], mark: str, options: tuple[str, ...]) -> None:
    if "pytest_asyncio.plugin" in options:
        options = (*options, "-o", "asyncio_default_fixture_loop_scope=function")
    suite.file("test_a", ASYNC.replace("MARK", mark))
    suite.run(*options).assert_outcomes(passed=1)
    assert len(world) == 5
    suite.run("--tape-mode=verify", *options).assert_outcomes(passed=1)


def test_a_test_that_asks_nothing_needs_no_recorder(suite: Suite) -> None:
    (suite.path / "conftest.py").write_text("import sys\nsys.modules['mitmproxy'] = None\n")
    suite.file(
        "test_a",
        STAMPS
        + """
@pytest.mark.tape
def test_silent(tape):
    assert not tape.violations and stamp()

@pytest.mark.tape
def test_asking():
    post()
""",
    )
    result = suite.run_anew()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*there is no such tape yet: recording it needs mitmproxy: pip install*"])
    assert not list(suite.path.glob("tapes/*/*"))


LATE = """
import os, threading

go, gone = threading.Event(), threading.Event()

def flush():
    go.wait(60)
    try:
        get("/one")
    except Exception:
        pass
    gone.set()

pytestmark = pytest.mark.tape(scope="module")

def test_first():
    get("/one")
    if "LATE" in os.environ:
        threading.Thread(target=flush, daemon=True).start()

def test_second():
    go.set()
    assert "LATE" not in os.environ or gone.wait(60)
    assert get("/one") == "/one live"
"""


def test_a_thread_that_outlives_its_test_fails_the_run_and_no_other_test(
    suite: Suite, world: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.file("test_a", LATE)
    suite.run().assert_outcomes(passed=2)
    monkeypatch.setenv("LATE", "1")
    for workers in ("0", "1"):
        result = suite.run("--tape-mode=none", "-p", "xdist", "-n", workers, "--tape-report=out.json")
        result.assert_outcomes(passed=2)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(
            ["test_a.py::test_first: a thread or task of *test_first has asked for this when that was over*"]
        )
        report = json.loads((suite.path / "out.json").read_text())
        told = {entry.name: (entry.code, entry.why) for entry in read_report(report, "out.json")}
        assert told == {"test_a.py::test_first": (3, "1 violation"), "test_a.py::test_second": (0, "")}
    assert world == ["/one", "/one"]
