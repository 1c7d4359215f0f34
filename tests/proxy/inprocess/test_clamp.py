"""Clock and chance within a replay of this interpreter: the tape's for what runs in it, real ones for others."""

import asyncio
import contextlib
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from random import choice
from random import random as number
from time import monotonic as monotonic_by_name
from time import time as time_by_name
from typing import Any
from uuid import uuid4

import aiohttp
import freezegun
import httpx
import inprocesstapes
import pytest
import requests
import time_machine
from origin import Call, Origin

import tapeproxy
from tapeproxy.proxy.importing import ImportSettings, import_file
from tapeproxy.proxy.inprocess.replays import TapeDriftError, TapeViolationError
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.replaying import Wire
from tapeproxy.proxy.tapefile import load
from tapeproxy.shim.inject._tapeproxy import timeline
from tapeproxy.tapes.errors import UsageError

REAL = {"time": time.time, "urandom": os.urandom}
"""Not by name, which would mean ours within a context."""
OLD_POOL = ThreadPoolExecutor(1)
OLD_POOL.submit(len, "").result()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


def values() -> dict[str, Any]:
    """All that a request may be made of, by whatever name it is known here."""
    return {
        "time": time.time(),
        "by name": time_by_name(),
        "monotonic": [time.monotonic(), monotonic_by_name(), time.perf_counter()],
        "now": datetime.now().astimezone().isoformat(),
        "today": date.today().isoformat(),
        "local": time.strftime("%Y-%m-%d %H:%M:%S"),
        "uuid": [str(uuid4()), str(uuid.uuid1())],
        "random": [random.random(), number(), choice(range(1000)), random.Random().random()],
        "entropy": [os.urandom(4).hex(), secrets.token_hex(4), secrets.choice("abcdef")],
        "tempfile": Path(tempfile.mktemp()).name,
    }


def in_all_flows(post: Callable[[dict[str, Any]], object]) -> None:
    """Ask in the flow itself, in threads, in items of old and new pools, in tasks, and after waits."""
    post(values())
    thread = threading.Thread(target=lambda: post(values()))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda item: post({"item": item, **values()}), range(3)))
    OLD_POOL.submit(lambda: post(values())).result()
    time.sleep(0.01)
    asyncio.run(in_tasks())
    post(values())


async def in_tasks() -> None:
    async with httpx.AsyncClient() as client, aiohttp.ClientSession() as session:

        async def ask(task: int) -> None:
            await asyncio.sleep(0.01)
            await client.post("https://api.test/task", json={"task": task, **values()})
            async with session.post("https://api.test/aiohttp", json={"task": task, **values()}) as response:
                await response.read()
            url, body = "https://api.test/thread", {"task": task}
            await asyncio.to_thread(lambda: requests.post(url, json=body | values(), timeout=10))

        await asyncio.gather(ask(1), ask(2))


def post(body: dict[str, Any]) -> None:
    httpx.post("https://api.test/", json=body)


type Recorder = Callable[[Callable[[], object]], Path]


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """Records what a function asks of api.test."""

    async def answer(call: Call) -> None:
        await call.head("200 OK", "Content-Length: 2")
        await call.send(b"ok")

    folder = tmp_path_factory.mktemp("taped")

    def record(work: Callable[[], object]) -> Path:
        path = folder / f"{len(list(folder.iterdir()))}.tape.jsonl.gz"
        with Origin(answer) as origin, tapeproxy.record(path, hosts={"api.test": origin.url}):
            work()
        return path

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAPEPROXY_HOME", str(folder / "home"))
        yield record


@pytest.fixture(scope="module")
def recorded(taped: Recorder) -> Path:
    """A tape of `in_all_flows`."""
    return taped(lambda: in_all_flows(post))


@pytest.fixture(scope="module")
def simple(taped: Recorder) -> Path:
    """A tape of `ask`."""
    return taped(ask)


def ask() -> None:
    """Make two requests that hold what the lane's clock and streams give next."""
    post({"n": 1, "values": [time.time(), random.random(), str(uuid4())]})
    post({"n": 2, "values": [time.time(), random.random(), str(uuid4())]})


def test_requests_that_hold_clock_and_chance_replay(recorded: Path) -> None:
    for _ in range(2):
        with tapeproxy.replay(recorded) as run:
            in_all_flows(post)
        assert (run.violations, run.drifts, list(run.unused)) == ([], [], [])
        assert len(run.exchanges) == 13


def test_the_tape_has_lanes_and_says_so(recorded: Path) -> None:
    tape = load(recorded)[0]
    assert tape.head.rules["within"] == 1
    lanes = [exchange.request.lane for exchange in tape.exchanges]
    assert {"m", "m/t0", "m/w0", "m/w1", "m/w2", "m/w3"} <= set(lanes)
    assert lanes[0] == lanes[-1] == "m"
    assert not any(lane is None or lane.startswith("?") for lane in lanes)


def test_another_process_has_no_use_for_its_clock(recorded: Path) -> None:
    wire = Wire.open(ReplaySettings(tape=recorded, environment=dict(os.environ)))
    assert wire.tape.head.seed is None
    assert "recorded within an interpreter" in wire.notes[0]


def more_reads() -> None:
    post({"n": 1, "values": [time.time(), random.random(), str(uuid4())]})
    moment = time.time()
    time.time()
    post({"n": 2, "values": [moment, random.random(), str(uuid4())]})


def other_values() -> None:
    random.random()
    ask()


def past_the_end() -> None:
    ask()
    time.time()


WAYS: dict[str, tuple[Callable[[], None], type[Exception], str]] = {
    "the same": (ask, type(None), ""),  # type: ignore[dict-item]  # no error
    "more reads": (more_reads, TapeDriftError, "clock reads before it"),
    "other values": (other_values, TapeViolationError, "not on the tape"),
    "past the end": (
        past_the_end,
        TapeDriftError,
        r"lane m read its clock once after the .* of the tape.*test_clamp",
    ),
}


@pytest.mark.parametrize(("way", "error", "said"), WAYS.values(), ids=WAYS.keys())
def test_another_way_to_a_request_is_told(
    simple: Path, way: Callable[[], None], error: type[Exception], said: str
) -> None:
    if way is ask:
        with tapeproxy.replay(simple) as run:
            way()
        assert run.drifts == []
        return
    with pytest.raises(error, match=said), tapeproxy.replay(simple):
        way()


def test_a_drift_may_be_reported_only(simple: Path) -> None:
    with tapeproxy.replay(simple, on_drift="report") as run:
        more_reads()
    assert run.drifts[0].what == "lane m came another way to the request of exchange 2"


def same_in_threads() -> None:
    for _ in range(2):
        thread = threading.Thread(target=post, args=({"n": 1},))
        thread.start()
        thread.join()


def test_each_lane_has_its_own_answers(taped: Recorder) -> None:
    tape = taped(same_in_threads)
    with tapeproxy.replay(tape) as run:
        same_in_threads()
        assert [exchange.request.lane for exchange in run.exchanges] == ["m/t0", "m/t1"]

    def twice() -> None:
        post({"n": 1})
        post({"n": 1})

    def in_one_thread() -> None:
        thread = threading.Thread(target=twice)
        thread.start()
        thread.join()

    with pytest.raises(TapeViolationError, match="the tape has this request for lane m/t1"), tapeproxy.replay(tape):
        in_one_thread()
    with tapeproxy.replay(tape, match="any") as run:
        in_one_thread()
    assert run.violations == []


NAMES = (
    *((time, name) for name in ("time", "time_ns", "monotonic", "perf_counter", "sleep", "localtime", "strftime")),
    *((random, name) for name in ("random", "choice", "seed", "_urandom", "_inst")),
    *((os, name) for name in ("urandom", "getrandom")),
    *((datetime, name) for name in ("now", "utcnow")),
    *((threading.Thread, name) for name in ("start", "_bootstrap_inner")),
    *((asyncio, name) for name in ("sleep", "as_completed")),
    *((asyncio.BaseEventLoop, name) for name in ("create_task", "getaddrinfo")),
    *((uuid, name) for name in ("uuid1", "_node")),
    *((sys.modules[__name__], name) for name in ("time_by_name", "monotonic_by_name", "number", "choice")),
    (date, "today"),
    (random.Random, "seed"),
    (threading, "time"),
)


def test_all_is_put_back(simple: Path) -> None:
    before = [vars(owner).get(name) for owner, name in NAMES]
    state, finders = random.getstate(), list(sys.meta_path)
    for _ in range(2):
        with tapeproxy.replay(simple):
            assert time.time is not REAL["time"]
            assert time_by_name is time.time
            ask()
        assert [
            name for (owner, name), was in zip(NAMES, before, strict=True) if vars(owner).get(name) is not was
        ] == []
    assert random.getstate() == state
    assert sys.meta_path == finders
    assert abs(time.time() - REAL["time"]()) < 3600


def test_what_code_has_kept_is_real_again(simple: Path) -> None:
    with tapeproxy.replay(simple, on_drift="report"):
        kept, entropy = time.time, os.urandom
        taped = kept()
    assert kept is not REAL["time"]
    assert kept() > taped
    assert len({entropy(8), entropy(8), REAL["urandom"](8)}) == 3


def test_seeds_that_code_sets_keep_their_meaning(simple: Path) -> None:
    wanted = random.Random(7).random()
    with tapeproxy.replay(simple):
        random.seed(7)
        assert random.random() == wanted
        random.seed()
        ask_nothing_of_it = random.random()
    assert ask_nothing_of_it != wanted


class TestOthers:
    """Who was there before sees what is real."""

    def test_a_thread(self, simple: Path) -> None:
        begun, go = threading.Event(), threading.Event()
        seen: list[float] = []

        def look() -> None:
            begun.set()
            go.wait(10)
            seen.extend((time.time(), time.monotonic(), datetime.now().timestamp(), random.random()))

        thread = threading.Thread(target=look)
        thread.start()
        begun.wait(10)
        with tapeproxy.replay(simple, on_drift="report"):
            go.set()
            thread.join()
            assert time.time() < seen[0], "the tape's time is that of its recording"
        assert seen[0] == pytest.approx(REAL["time"](), abs=600)
        assert seen[1] == pytest.approx(time.monotonic(), abs=600)
        assert seen[2] == pytest.approx(REAL["time"](), abs=600)

    def test_an_import(self, simple: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "import random, time\nfrom time import time as now\nAT = [time.time(), random.random(), now()]\n"
        (tmp_path / "imported_late.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        with tapeproxy.replay(simple):
            imported = __import__("imported_late")
            ask()
        assert imported.AT[2] == pytest.approx(REAL["time"](), abs=600)
        assert imported.now is REAL["time"]

    def test_a_loop_and_its_tasks(self, simple: Path) -> None:
        seen: list[float] = []

        async def work() -> None:
            go = asyncio.Event()

            async def look() -> None:
                await go.wait()
                seen.append(time.time())

            task = asyncio.create_task(look())
            await asyncio.sleep(0)
            async with tapeproxy.replay(simple):
                await asyncio.to_thread(lambda: None)
                go.set()
                await task
                ask()

        asyncio.run(work())
        assert seen[0] == pytest.approx(REAL["time"](), abs=600)


WAITING = """
def wait(seconds):
    time.sleep(seconds)

    async def work():
        await asyncio.gather(asyncio.sleep(seconds), asyncio.sleep(seconds / 2))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), seconds)

    asyncio.run(work())
    httpx.post("https://api.test/", json={"after": time.time()})
"""
ALONE = f"""
import asyncio, contextlib, sys, time
import httpx, tapeproxy
from tapeproxy.shim.inject._tapeproxy import timeline
{WAITING}
with tapeproxy.replay(sys.argv[1]) as run:
    wait(0.02)
assert run.drifts == []
assert timeline._leapt > 0
before = timeline._leapt
with tapeproxy.replay(sys.argv[1], on_drift="report") as run:
    time.sleep(100)
assert timeline._leapt - before > 99e9
"""


def test_waits_are_skipped(taped: Recorder) -> None:
    """In a process of its own: another test's thread that is at work here is waited for."""
    names: dict[str, Any] = {"asyncio": asyncio, "contextlib": contextlib, "httpx": httpx, "time": time}
    exec(WAITING, names)  # the same text is run in the replay
    tape = taped(lambda: names["wait"](0.02))
    done = subprocess.run([sys.executable, "-c", ALONE, str(tape)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


CASSETTE = {
    "interactions": [
        {
            "request": {"method": "GET", "uri": "https://api.test/busy"},
            "response": {"status": {"code": code, "message": ""}, "headers": {"retry-after": ["20"]}},
        }
        for code in (429, 200)
    ]
}
WITHOUT_A_CLOCK = f"""
import asyncio, contextlib, datetime, random, sys, time
from time import sleep as nap
import httpx, tapeproxy
from tapeproxy.shim.inject._tapeproxy import timeline
{WAITING}
clocks = lambda: (time.time(), time.monotonic(), time.perf_counter(), datetime.datetime.now().timestamp())
real, random_number, spent = time.time, random.random, time.process_time()
random.seed(7)
numbers = [random.random() for _ in range(4)]
random.seed(7)
began = clocks()
with tapeproxy.replay(sys.argv[1]) as run:
    assert all(abs(now - then) < 30 for now, then in zip(clocks(), began))
    inside = clocks()
    while (answer := httpx.get("https://api.test/busy")).status_code != 200:
        nap(float(answer.headers["retry-after"]))
    asyncio.run(asyncio.sleep(100))
    assert all(119 < now - then < 150 for now, then in zip(clocks(), inside)), (clocks(), inside)
    assert time.process_time() - spent < 60
    assert [random.random(), random_number()] == numbers[:2]
    with tapeproxy.replay(sys.argv[2]) as inner:
        wait(0.02)
    assert inner.drifts == []
    leapt = timeline._leapt
    time.sleep(100)
    assert timeline._leapt - leapt > 99e9
    assert [random.random(), random_number()] == numbers[2:]
assert time.time is real
assert all(now - then < 60 for now, then in zip(clocks(), began))
"""


def test_waits_are_skipped_where_the_tape_has_no_clock(taped: Recorder, tmp_path: Path) -> None:
    """Of an imported one `Retry-After: 20` is not waited for, chance is the program's own; a tape within has its."""
    names: dict[str, Any] = {"asyncio": asyncio, "contextlib": contextlib, "httpx": httpx, "time": time}
    exec(WAITING, names)
    within, source, tape = taped(lambda: names["wait"](0.02)), tmp_path / "c.json", tmp_path / "c.tape.jsonl.gz"
    source.write_text(json.dumps(CASSETTE))
    import_file(ImportSettings(source=source, output=tape, environment={}))
    run = [sys.executable, "-c", WITHOUT_A_CLOCK, str(tape), str(within)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_wait_for_a_thread_at_work_is_real(simple: Path) -> None:
    done = threading.Event()
    leapt = timeline._leapt

    def work() -> None:
        while not done.is_set():
            sum(range(1000))

    with tapeproxy.replay(simple):
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.05)
        done.set()
        thread.join()
        assert timeline._leapt == leapt
        ask()


class TestContexts:
    """Several at once."""

    def test_one_within_the_other(self, simple: Path, taped: Recorder) -> None:
        other = taped(lambda: post({"other": [time.time(), random.random()]}))
        with tapeproxy.replay(simple):
            post({"n": 1, "values": [time.time(), random.random(), str(uuid4())]})
            with tapeproxy.replay(other):
                post({"other": [time.time(), random.random()]})
            post({"n": 2, "values": [time.time(), random.random(), str(uuid4())]})

    def test_one_beside_the_other(self, simple: Path) -> None:
        opened, over = threading.Event(), threading.Event()

        def hold() -> None:
            with tapeproxy.replay(simple, on_drift="report"):
                opened.set()
                over.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        opened.wait(10)
        try:
            with pytest.raises(UsageError, match="another tape's already"), tapeproxy.replay(simple):
                pass
        finally:
            over.set()
            thread.join()
        assert time.time is REAL["time"]

    def test_a_tape_without_a_clock_leaves_it_alone(self, tmp_path: Path) -> None:
        with tapeproxy.replay(inprocesstapes.gets(tmp_path, "/one")) as run:
            assert time.time is REAL["time"]
            assert httpx.get("https://api.test/one").text == "/one"
        assert run.drifts == []

    def test_async(self, simple: Path) -> None:
        async def work() -> None:
            async with tapeproxy.replay(simple):
                await asyncio.to_thread(lambda: None)
                ask()
            assert time.time is REAL["time"]

        asyncio.run(work())


class TestOtherTools:
    """Who else reaches into the clock, within a context or around it."""

    @pytest.mark.parametrize("tool", [freezegun.freeze_time, lambda at: time_machine.travel(at, tick=False)])
    def test_within(self, taped: Recorder, tool: Callable[[str], Any]) -> None:
        def work() -> None:
            before = time.time()
            with tool("2001-01-01"):
                frozen = [time.time(), time_by_name(), datetime.now().timestamp()]
            post({"before": before, "frozen": frozen, "after": [time.time(), time_by_name()]})

        tape = taped(work)
        with tapeproxy.replay(tape) as run:
            work()
        assert run.violations == []
        assert "978307200" in repr(load(tape)[0].exchanges[0].request.body)
        assert time.time is REAL["time"]
        assert time_by_name is REAL["time"]

    @pytest.mark.parametrize("tool", [freezegun.freeze_time, lambda at: time_machine.travel(at, tick=False)])
    def test_around(self, simple: Path, tool: Callable[[str], Any]) -> None:
        with tool("2001-01-01"), tapeproxy.replay(simple, on_drift="report"):
            assert time.time() == 978307200
        assert time.time is REAL["time"]
        with tool("2001-01-01"):
            assert time_by_name() == 978307200


def test_the_environment_of_the_run(simple: Path) -> None:
    with tapeproxy.replay(simple) as run:
        ask()
        assert run.environment.cwd == str(Path.cwd())
        assert run.environment.python == ".".join(map(str, sys.version_info[:3]))
        assert run.environment.placeholders == ()


def test_a_tape_that_was_changed_is_read_again(tmp_path: Path) -> None:
    for text in ("/one", "/two"):
        with tapeproxy.replay(inprocesstapes.gets(tmp_path, text)):
            assert httpx.get(f"https://api.test{text}").text == text
