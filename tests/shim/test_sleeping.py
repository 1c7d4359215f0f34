"""Waiting: real while recording, cut short in a replay, but never ahead of work, a child or an answer still to come."""

import http.server
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from shimruns import everywhere, run, with_packages

REAL = "import threading; real = threading._time; began = real()\n"  # what locks wait by stays real
TOOK = "\nprint(round(real() - began, 3))"


def both(code: str, python: Path | str, sidecar: Path, *args: str) -> tuple[list[str], float, float]:
    """Record and replay: what both printed, and how long each took in seconds."""
    code = REAL + code + TOOK
    recorded = run(code, *args, python=python, sidecar=sidecar)
    replayed = run(code, *args, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    assert recorded.returncode == replayed.returncode == 0, recorded.stderr + replayed.stderr
    *lines, took = recorded.stdout.splitlines()
    *again, took_again = replayed.stdout.splitlines()
    assert again == lines, replayed.stderr
    return lines, float(took), float(took_again)


def replay(code: str, python: Path | str, sidecar: Path, *args: str) -> tuple[list[str], float]:
    """Replay without a tape: what it printed, and how long it took in seconds."""
    done = run(REAL + code + TOOK, *args, mode="replay", python=python, sidecar=sidecar)
    assert done.returncode == 0, done.stderr
    *lines, took = done.stdout.splitlines()
    return lines, float(took)


@everywhere
def test_sleep(python: Path, sidecar: Path) -> None:
    code = """if True:
        import time
        for seconds in (0, 0.00005, 0.1, 0.4):
            start, wall = time.monotonic(), time.time()
            time.sleep(seconds)
            assert time.monotonic() - start >= seconds and time.time() - wall >= seconds
            print(time.time(), time.monotonic())"""
    both(code, python, sidecar)
    _, took = replay("import time; time.sleep(60)", python, sidecar)
    assert took < 30


ARGUMENTS = """
import json, time
def outcome(seconds):
    try: return repr(time.sleep(seconds))
    except Exception as error: return [type(error).__name__, str(error)]
class Index:
    def __index__(self): return 0
print(json.dumps([outcome(seconds) for seconds in (
    0, False, 0.0, Index(), -1, -1e-12, float("nan"), float("inf"), 1e30, 10**30, -(10**30), "1", None, [], 1j)]))
"""


@everywhere
def test_arguments_are_judged_as_ever(python: Path, sidecar: Path) -> None:
    bare = run(ARGUMENTS, mode="bare", python=python, sidecar=sidecar)
    for mode in ("record", "replay"):
        assert run(ARGUMENTS, mode=mode, python=python, sidecar=sidecar).json == bare.json


@everywhere
def test_an_alarm_goes_off_in_time_that_is_skipped(python: Path, sidecar: Path) -> None:
    code = """if True:
        import asyncio, signal, time
        class Late(Exception): pass
        def late(*_): raise Late
        signal.signal(signal.SIGALRM, late)
        signal.alarm(1)
        slept = 0
        try:
            while True: time.sleep(0.35); slept += 1
        except Late: print("late", slept)
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        try: asyncio.run(asyncio.sleep(5))
        except Late: print("late again")
        rung = []
        signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
        time.sleep(0.75)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(len(rung))"""
    lines, recorded, replayed = both(code, python, sidecar)
    assert lines == ["late 2", "late again", "2"]
    assert replayed < recorded - 0.5


@everywhere
def test_a_sleep_that_a_signal_breaks_off(python: Path, sidecar: Path) -> None:
    code = """if True:
        import signal, time
        def ring(*_): raise KeyError("rang")
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try: time.sleep(20)
        except KeyError: print(round(time.monotonic()) < 10**9)"""
    assert run(code, python=python, sidecar=sidecar).stdout == "True\n"


BUSY = """
import time
def work(seconds):
    end = real() + seconds
    while real() < end: pass
"""


@everywhere
def test_a_sleeper_does_not_overtake_a_thread_at_work(python: Path, sidecar: Path) -> None:
    code = """
done = []
thread = threading.Thread(target=lambda: (work(0.3), done.append(1)))
thread.start()
time.sleep(5)
print("done:", done)
"""
    lines, took = replay(BUSY + code, python, sidecar)
    assert lines == ["done: [1]"]
    assert 0.3 <= took < 3


@everywhere
def test_sleepers_wake_in_order(python: Path, sidecar: Path) -> None:
    code = """
order = []
def sleep(seconds): time.sleep(seconds); order.append(seconds)
threads = [threading.Thread(target=sleep, args=(seconds,)) for seconds in (9, 3, 6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(order)
"""
    lines, took = replay(BUSY + code, python, sidecar)
    assert lines == ["[3, 6, 9]"]
    assert took < 3


@everywhere
def test_who_polls_for_a_child_finds_it(python: Path, sidecar: Path, tmp_path: Path) -> None:
    code = """
import os, subprocess, sys
child = subprocess.Popen(["sh", "-c", "sleep 0.3; touch " + sys.argv[1] + "; sleep 0.3"])
for _ in range(20):
    if os.path.exists(sys.argv[1]): break
    time.sleep(0.1)
print("up:", os.path.exists(sys.argv[1]))
os.unlink(sys.argv[1])
child.wait()
"""
    lines, _ = replay(BUSY + code, python, sidecar, str(tmp_path / "up"))
    assert lines == ["up: True"]


@everywhere
def test_polling_burns_no_core(python: Path, sidecar: Path) -> None:
    code = """if True:
        import time
        late = []
        thread = threading.Thread(target=lambda: (threading.Event().wait(0.6), late.append(1)))
        thread.start()
        while not late: time.sleep(0.01)
        polls = 0
        start = real()
        while real() < start + 0.4: time.sleep(0.01)
        thread.join()"""
    used = "\nimport resource; print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))"
    replayed = run(REAL + code + used, mode="replay", python=python, sidecar=sidecar)
    assert replayed.json < 0.5, replayed.stderr


ASYNC = """
import asyncio, sys, time
async def timed_out(wait, timeout):
    try: return await asyncio.wait_for(wait, timeout)
    except asyncio.TimeoutError: return "timed out"
def run(main):
    if "uvloop" in sys.argv: import uvloop; uvloop.install()
    asyncio.run(main())
"""


@everywhere
def test_asyncio_sleeps_and_timeouts(python: Path, sidecar: Path) -> None:
    code = """
async def main():
    start, order = time.monotonic(), []
    async def sleep(seconds):
        await asyncio.sleep(seconds)
        order.append((seconds, time.time()))
    await asyncio.gather(sleep(0.5), sleep(0.1), sleep(0.3))
    print(order, await timed_out(asyncio.sleep(0.4), 0.1), await timed_out(asyncio.sleep(0.1, "slept"), 5))
    print(time.monotonic() - start)
    loop = asyncio.get_running_loop()
    before = loop.time()
    await asyncio.sleep(0.2)
    assert 0.2 <= loop.time() - before < 5
run(main)
"""
    lines, recorded, _ = both(ASYNC + code, python, sidecar)
    assert "timed out slept" in lines[0]
    assert 0.7 <= float(lines[1]) < recorded
    _, took = replay(ASYNC + "asyncio.run(asyncio.sleep(60))", python, sidecar)
    assert took < 30


@everywhere
def test_a_loop_waits_for_threads_and_children(python: Path, sidecar: Path) -> None:
    code = """
import os, signal
async def main():
    loop = asyncio.get_running_loop()
    print(await timed_out(loop.run_in_executor(None, work, 0.2), 5))
    child = await asyncio.create_subprocess_exec("sleep", "0.2")
    print(await timed_out(child.wait(), 5))
    read, write = os.pipe()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb"))
    thread = threading.Thread(target=lambda: (work(0.2), os.write(write, b"x")))
    thread.start()
    print(await timed_out(reader.read(1), 5))
    thread.join()
    os.close(write)
    both = asyncio.gather(loop.run_in_executor(None, time.sleep, 3), asyncio.sleep(4))
    print(await timed_out(both, 5))
    print(await timed_out(loop.run_in_executor(None, time.sleep, 5), 3))
run(main)
"""
    lines, took = replay(BUSY + ASYNC + code, python, sidecar)
    assert lines == ["None", "0", "b'x'", "[None, None]", "timed out"]
    assert 0.6 <= took < 5


@everywhere
def test_two_loops_in_two_threads(python: Path, sidecar: Path) -> None:
    code = """
async def main(): return await timed_out(asyncio.sleep(3, "slept"), 5)
loop = asyncio.new_event_loop()
thread = threading.Thread(target=loop.run_forever)
thread.start()
future = asyncio.run_coroutine_threadsafe(main(), loop)
print(asyncio.run(timed_out(asyncio.sleep(4, "slept"), 5)), future.result(10))
print(asyncio.run_coroutine_threadsafe(main(), loop).result(10))
loop.call_soon_threadsafe(loop.stop)
thread.join()
loop.close()
"""
    lines, took = replay(ASYNC + code, python, sidecar)
    assert lines == ["slept slept", "slept"]
    assert took < 3


@everywhere
def test_a_timed_wait_for_a_lock_is_not_overtaken(python: Path, sidecar: Path) -> None:
    code = """
order = []
event = threading.Event()
def wait(seconds): order.append((seconds, event.wait(seconds)))
thread = threading.Thread(target=wait, args=(0.4,))
thread.start()
time.sleep(3)
order.append("main")
thread.join(timeout=60)
asyncio.run(asyncio.sleep(3))
thread = threading.Thread(target=wait, args=(60,))
thread.start()
asyncio.run(asyncio.sleep(3))
event.set()
thread.join(timeout=60)
print(order)
"""
    lines, took = replay(ASYNC + code, python, sidecar)
    assert lines == ["[(0.4, False), 'main', (60, True)]"]
    assert 0.4 <= took < 5


@everywhere
def test_a_library_that_looks_after_itself_is_of_no_concern(python: Path, sidecar: Path, tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "telemetry.py").write_text(
        "import queue, threading\n"
        "def run(events):\n"
        "    while True:\n"
        "        try: events.get(timeout=0.7)\n"
        "        except queue.Empty: pass\n"
        "threading.Thread(target=run, args=(queue.Queue(),), daemon=True).start()\n"
    )
    code = "import sys; sys.path.insert(0, sys.argv[1]); import telemetry; asyncio.run(asyncio.sleep(4)); time.sleep(4)"
    _, took = replay(ASYNC + code, python, sidecar, str(library))
    assert took < 3


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers 503 three times of four, and the fourth time takes half a second."""

    protocol_version = "HTTP/1.1"
    requests = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        Provider.requests += 1
        if Provider.requests % 4:
            self.answer(503, {"error": {"message": "busy"}}, {"retry-after": "2.7"})
        else:
            time.sleep(0.5)
            message = {"role": "assistant", "content": "at last"}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            completion = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            self.answer(200, completion, {})

    def answer(self, status: int, body: object, headers: dict[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[int]:
    """The port of a Provider that has not been asked yet."""
    Provider.requests = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


SDK = """
import sys, time
async def main():
    from openai import AsyncOpenAI, DefaultAioHttpClient
    http = DefaultAioHttpClient() if "aiohttp" in sys.argv else None
    url = "http://127.0.0.1:" + sys.argv[1] + "/v1"
    client = AsyncOpenAI(api_key="x", base_url=url, max_retries=3, timeout=3, http_client=http)
    start, wall = real(), time.time()
    answer = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    print(json.dumps([answer.choices[0].message.content, real() - start, time.time() - wall]))
    await client.close()
import json
if "uvloop" in sys.argv:
    import uvloop; uvloop.run(main())
elif "trio" in sys.argv:
    import trio; trio.run(main)
else:
    import asyncio; asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("kind", "needs"),
    [
        ("asyncio", ["openai"]),
        pytest.param("aiohttp", ["openai", "aiohttp"], marks=pytest.mark.soak),
        ("trio", ["openai", "trio"]),
        pytest.param("uvloop", ["openai", "uvloop"], marks=pytest.mark.soak),
    ],
)
def test_back_off_costs_nothing_and_an_answer_is_awaited(
    kind: str, needs: list[str], provider: int, sidecar: Path
) -> None:
    """Three 503s with 8 s of back-off in all, then an answer that its own timeout must not overtake."""
    python = with_packages(*needs)
    allow = {"TAPEPROXY_ALLOW": f"127.0.0.1:{provider}"}
    done = run(REAL + SDK, str(provider), kind, mode="replay", python=python, sidecar=sidecar, extra=allow)
    answer, took, waited = done.json
    assert answer == "at last"
    assert 0.5 <= took < 6
    assert waited >= 8
    assert not done.of("violation")


def test_a_sleeping_task_waits_for_the_answer_of_another(provider: int, sidecar: Path) -> None:
    code = """if True:
        import asyncio, sys, time
        async def ask():
            reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
            for _ in range(4):
                writer.write(b"POST / HTTP/1.1\\r\\nContent-Length: 0\\r\\n\\r\\n")
                head = await asyncio.wait_for(reader.readuntil(b"\\r\\n\\r\\n"), 5)
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\\r")[0]))
            writer.close()
            return head.split()[1]
        async def main():
            async def sleep():
                await asyncio.sleep(3)
                return asking.done()
            asking = asyncio.ensure_future(ask())
            print(await asyncio.gather(asking, sleep()))
        asyncio.run(main())"""
    allow = {"TAPEPROXY_ALLOW": f"127.0.0.1:{provider}"}
    done = run(code, str(provider), mode="replay", python=sys.executable, sidecar=sidecar, extra=allow)
    assert done.stdout == "[b'200', True]\n", done.stderr


@pytest.mark.parametrize("kind", ["uvloop", "trio"])
def test_other_loops(kind: str, sidecar: Path) -> None:
    code = """
import sys, time
def trio_main():
    import trio
    async def main():
        order = []
        async def sleep(seconds):
            await trio.sleep(seconds)
            order.append((seconds, time.time()))
        async with trio.open_nursery() as nursery:
            for seconds in (0.9, 0.3, 0.6): nursery.start_soon(sleep, seconds)
        print(order)
        with trio.move_on_after(0.4): await trio.sleep(1)
        with trio.move_on_after(5): print(await trio.to_thread.run_sync(lambda: work(0.3)))
        start = trio.current_time()
        with trio.move_on_after(5): await trio.to_thread.run_sync(time.sleep, 0.4); print("slept")
        assert 0.4 <= trio.current_time() - start < 5
    trio.run(main)
async def uvloop_main():
    order, loop = [], asyncio.get_running_loop()
    async def sleep(seconds):
        await asyncio.sleep(seconds)
        order.append((seconds, time.time()))
    await asyncio.gather(sleep(0.9), sleep(0.3), sleep(0.6))
    loop.call_later(0.1, order.append, "later")
    loop.call_later(0.1, order.append, "cancelled").cancel()
    loop.call_at(loop.time() + 0.05, order.append, "at")
    print(await timed_out(asyncio.sleep(0.9), 0.4), order)
    print(await timed_out(loop.run_in_executor(None, work, 0.3), 5))
    print("slept")
trio_main() if "trio" in sys.argv else run(uvloop_main)
"""
    python = with_packages(kind)
    lines, recorded, replayed = both(BUSY + ASYNC + code, python, sidecar, kind)
    assert lines[-2:] == ["None", "slept"]
    assert 0.3 <= replayed < recorded - 0.5
