"""The whole at once: threads, tasks and a pool that race, and draw the same values, each in its lane, in every run."""

from pathlib import Path

import pytest
from shimruns import everywhere, run, with_packages

RACE = """
import asyncio, concurrent.futures, hashlib, json, os, random, secrets, sys, tempfile, threading, time, uuid
kind = sys.argv[1]
real = open("/dev/urandom", "rb", buffering=0)
out, lock = {}, threading.Lock()
def wait(): return real.read(1)[0] / 256 * 0.002
def draw():
    drawn = [random.random(), random.randint(0, 99), str(uuid.uuid4()), os.urandom(4).hex()]
    return drawn + [secrets.token_hex(3), tempfile.mktemp()]
def slow_draw():
    time.sleep(wait())
    return draw()
def keep(name, value):
    with lock: out[name] = value
async def task(name, sleep, in_thread):
    drawn = []
    for _ in range(3): await sleep(wait()); drawn.append(draw())
    keep(name, drawn + [await in_thread(slow_draw)])
async def asyncio_main(name):
    def in_thread(fn): return asyncio.get_running_loop().run_in_executor(None, fn)
    first = asyncio.create_task(task(name + "a", asyncio.sleep, in_thread))
    await asyncio.gather(first, asyncio.ensure_future(task(name + "b", asyncio.sleep, in_thread)))
async def anyio_main(name):
    import anyio
    async with anyio.create_task_group() as group:
        for letter in "ab": group.start_soon(task, name + letter, anyio.sleep, anyio.to_thread.run_sync)
def work(name):
    time.sleep(wait())
    if kind == "uvloop": __import__("uvloop").run(asyncio_main(name))
    elif kind == "asyncio": asyncio.run(asyncio_main(name))
    else: __import__("anyio").run(anyio_main, name, backend=kind)
threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
for thread in threads: thread.start()
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    keep("pool", [future.result() for future in [pool.submit(slow_draw) for _ in range(6)]])
late = threading.Thread(target=lambda: keep("late", draw())); late.start(); late.join()
for thread in threads: thread.join()
keep("main", draw())
print(json.dumps(out, sort_keys=True))
"""


def race(kind: str, python: Path | str, sidecar: Path, times: int) -> None:
    bare = {run(RACE, kind, mode="bare", python=python, sidecar=sidecar).stdout for _ in range(2)}
    assert len(bare) == 2
    recorded = run(RACE, kind, python=python, sidecar=sidecar)
    assert recorded.json.keys() == {"onea", "oneb", "twoa", "twob", "pool", "late", "main"}
    runs = [run(RACE, kind, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines) for _ in range(times)]
    assert {replayed.stdout for replayed in runs} == {recorded.stdout}


@everywhere
def test_asyncio(python: Path, sidecar: Path) -> None:
    race("asyncio", python, sidecar, 4)


@pytest.mark.parametrize(("kind", "needs"), [("uvloop", ["uvloop"]), ("trio", ["anyio", "trio"])])
def test_other_loops(kind: str, needs: list[str], sidecar: Path) -> None:
    race(kind, with_packages(*needs), sidecar, 4)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "trio"])
def test_fifty_of_fifty(kind: str, sidecar: Path) -> None:
    race(kind, with_packages("anyio", "trio", "uvloop"), sidecar, 50)
