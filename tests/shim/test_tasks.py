"""Lanes of tasks: by who made them, in asyncio and trio, whatever the loop and the library on top."""

import json
from pathlib import Path

import pytest
from shimruns import everywhere, in_fresh_lanes, run, with_packages

HEAD = """
import asyncio, concurrent.futures, contextvars, json, os, sys, threading
from _tapeproxy.lanes import current
def me(): return current().id
out = []
def note(): out.append(me())
async def task(): await asyncio.sleep(0); note()
async def outer(): await asyncio.gather(task(), task()); note()
"""


CASES = [
    ("await task()", "m/a0"),
    ("await asyncio.create_task(task()); note()", "m/a0/a0 m/a0"),
    ("await asyncio.ensure_future(task()); await asyncio.gather(task(), task())", "m/a0/a0 m/a0/a1 m/a0/a2"),
    ("await asyncio.create_task(outer())", "m/a0/a0/a0 m/a0/a0/a1 m/a0/a0"),
    ("out.append(await asyncio.get_running_loop().run_in_executor(None, me))", "m/a0/w0"),
    ("await asyncio.gather(*map(asyncio.ensure_future, [task(), outer()])); note()",
     "m/a0/a0 m/a0/a1/a0 m/a0/a1/a1 m/a0/a1 m/a0"),
    ("done = asyncio.Event(); loop = asyncio.get_running_loop()\n"
     "    loop.call_soon(lambda: (note(), done.set())); await done.wait()", "m/a0"),
    ("t = asyncio.create_task(task()); t.add_done_callback(lambda _: note()); await t; await asyncio.sleep(0)",
     "m/a0/a0 m/a0"),
    ("context = contextvars.copy_context(); context.run(note); note()", "m/a0/c0 m/a0"),
    ("loop = asyncio.get_running_loop()\n"
     "    f = await loop.run_in_executor(None, lambda: asyncio.run_coroutine_threadsafe(task(), loop).result())",
     "m/a0/w0/a0"),
    # Looking names up in threads and racing for a connection takes no number from the agent's own.
    ("loop = asyncio.get_running_loop()\n"
     "    await loop.getaddrinfo('127.0.0.1', 80); await loop.getaddrinfo('localhost', 80)\n"
     "    out.append(await loop.run_in_executor(None, me))", "m/a0/w0"),
]  # fmt: skip


def program(main: str) -> str:
    return f"async def main():\n    {main}\nasyncio.run(main())"


@everywhere
def test_lanes(python: Path, sidecar: Path) -> None:
    ran = in_fresh_lanes(HEAD, [program(main) for main, _ in CASES], python=python, sidecar=sidecar)
    assert dict(ran.json) == {program(main): ids.split() for main, ids in CASES}
    assert not ran.of("note")


@everywhere
@pytest.mark.parametrize("edges", ["1", ""])
@pytest.mark.parametrize(("apart", "after"), [("1", "m/a0/a2"), ("", "m/a0/a%d")])
def test_tasks_that_only_wait_take_no_number_from_others(
    python: Path, sidecar: Path, apart: str, after: str, edges: str
) -> None:
    """Who waits for whichever comes first makes as many of them as there are rounds; on old tapes each has a number."""
    code = (
        HEAD
        + """
lanes = []
async def wait(): await asyncio.Event().wait()
async def main():
    signal, queue = asyncio.Event(), asyncio.Queue()
    made = [asyncio.ensure_future(one) for _ in range(int(sys.argv[1]))
            for one in (signal.wait(), queue.get(), asyncio.sleep(9))]
    own = asyncio.ensure_future(wait())  # the agent's, whatever it does
    await asyncio.gather(task(), return_exceptions=True)
    for one in (*made, own): one.cancel()
    await asyncio.wait([*made, own])
    await asyncio.create_task(task())
asyncio.run(main())
print(*out)
"""
    )
    for rounds in (1, 3):
        extra = {"TAPEPROXY_APART": apart, "TAPEPROXY_EDGES": edges}
        ran = run(code, str(rounds), python=python, sidecar=sidecar, extra=extra)
        last = after if apart else after % (3 * rounds + 2)
        assert ran.stdout.split()[-1] == last, ran.stdout
        assert not ran.of("note")


NEWER = {
    "to_thread": ("out.append(await asyncio.to_thread(me))", "m/a0/c0"),
    "TaskGroup": ("async with asyncio.TaskGroup() as g: g.create_task(task()); g.create_task(task())",
                  "m/a0/a0 m/a0/a1"),
    # Closing a loop takes two tasks, too.
    "Runner": ("await task()\nwith asyncio.Runner() as r: r.run(task()); r.run(task())", "m/a0 m/a1 m/a4"),
    "eager_task_factory": ("asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)\n"
                           "    async def quick(): note()\n    await asyncio.create_task(quick()); note()",
                           "m/a0/a0 m/a0"),
    "timeout": ("async with asyncio.timeout(9): await asyncio.create_task(task())", "m/a0/a0"),
}  # fmt: skip


@everywhere
def test_lanes_of_what_later_pythons_have(python: Path, sidecar: Path) -> None:
    codes = {program(main): ids.split() for main, ids in NEWER.values()}
    absent = f"absent = [name for name in {list(NEWER)!r} if not hasattr(asyncio, name)]\n"
    ran = in_fresh_lanes(HEAD + absent + "print(json.dumps(absent))\n", codes, python=python, sidecar=sidecar)
    missing = [program(NEWER[name][0]) for name in json.loads(ran.stdout.splitlines()[0])]
    got = dict(json.loads(ran.stdout.splitlines()[1]))
    assert {code: ids for code, ids in got.items() if code not in missing} == {
        code: ids for code, ids in codes.items() if code not in missing
    }


@everywhere
def test_as_completed_makes_its_tasks_in_the_order_given(python: Path, sidecar: Path) -> None:
    """asyncio puts the coroutines into a set first, which goes by their addresses."""
    code = (
        HEAD
        + """
import inspect
order = []
async def one(number):
    order.append((number, me()))
    return number
async def main():
    for passes in range(5):
        keep = [one(0) for _ in range(passes * 7)]
        for coroutine in keep: coroutine.close()
        heard = [await first for first in asyncio.as_completed([one(number) for number in range(20)], timeout=9)]
        assert sorted(heard) == list(range(20))
    try:
        for _ in asyncio.as_completed(asyncio.sleep(0)): pass
    except TypeError as error: assert "list" in str(error) or "iterable" in str(error), error
asyncio.run(main())
assert inspect.isgeneratorfunction(asyncio.as_completed) == (sys.version_info < (3, 13))
print(json.dumps(order))
"""
    )
    ran = run(code, python=python, sidecar=sidecar)
    assert json.loads(ran.stdout) == [[n % 20, f"m/a0/a{n}"] for n in range(100)]
    assert not ran.of("note")


@everywhere
def test_an_explicit_context_gets_the_tasks_lane(python: Path, sidecar: Path) -> None:
    code = (
        HEAD
        + """
if sys.version_info < (3, 12): print("m/a0/a0 m/a0 shared"); sys.exit()
async def share(): out.append("shared" if me() == "m/a0" else me())
async def main():
    await asyncio.create_task(task(), context=contextvars.copy_context())
    note()
    await asyncio.create_task(share(), context=asyncio.current_task().get_context())
asyncio.run(main())
print(*out)
"""
    )
    assert run(code, python=python, sidecar=sidecar).stdout.split() == ["m/a0/a0", "m/a0", "shared"]


@everywhere
def test_a_generator_that_the_collector_closes_takes_no_number(python: Path, sidecar: Path) -> None:
    code = (
        HEAD
        + """
import gc
async def forever():
    while True: yield 1
async def main():
    gen = forever(); await gen.__anext__(); del gen; gc.collect()
    await asyncio.sleep(0.01)
    await asyncio.create_task(task())
asyncio.run(main())
print(*out)
"""
    )
    assert run(code, python=python, sidecar=sidecar).stdout.split() == ["m/a0/a0"]


@everywhere
def test_a_subclass_of_a_loop(python: Path, sidecar: Path) -> None:
    code = (
        HEAD
        + """
class Loop(asyncio.SelectorEventLoop):
    def create_task(self, coro, **kwargs): return super().create_task(coro, **kwargs)
loop = Loop(); loop.run_until_complete(outer()); loop.close()
print(*out)
"""
    )
    assert run(code, python=python, sidecar=sidecar).stdout.split() == ["m/a0/a0", "m/a0/a1", "m/a0"]


LIBRARIES = {
    "uvloop": ("import uvloop; uvloop.run(outer())", "m/a0/a0 m/a0/a1 m/a0"),
    "uvloop's executor": ("import uvloop\nasync def main(): out.append(await asyncio.to_thread(me))\n"
                          "uvloop.run(main())", "m/a0/c0"),
    "anyio": ("import anyio\nasync def main():\n"
              "    async with anyio.create_task_group() as g: g.start_soon(task); g.start_soon(task)\n"
              "    out.append(await anyio.to_thread.run_sync(me))\nanyio.run(main)", "m/a0/a0 m/a0/a1 m/a0/c0"),
    "trio": ("import trio\nasync def one(name): await trio.sleep(0); out.append(name + me())\nasync def main():\n"
             "    async with trio.open_nursery() as n: n.start_soon(one, 'a'); n.start_soon(one, 'b')\n"
             "    out.append('c' + await trio.to_thread.run_sync(me))\ntrio.run(main); out.sort()",
             "am/a0/a0 bm/a0/a1 cm/a0/c0"),
    "anyio, trio": ("import anyio, trio\nasync def one(): await anyio.sleep(0); note()\nasync def main():\n"
                    "    async with anyio.create_task_group() as g: g.start_soon(one); g.start_soon(one)\n"
                    "anyio.run(main, backend='trio'); out.sort()", "m/a0/a0 m/a0/a1"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries(name: str, sidecar: Path) -> None:
    python = with_packages(*name.split("'")[0].split(", "))
    code, ids = LIBRARIES[name]
    ran = run(f"{HEAD}{code}\nprint(*out)", python=python, sidecar=sidecar)
    assert ran.stdout.split() == ids.split(), ran.stderr
    assert not ran.of("note")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_connecting_takes_no_number(backend: str, sidecar: Path) -> None:
    """How often a client has to connect is a matter of timing; anyio and trio start tasks for it."""
    python = with_packages("anyio", "trio")
    code = (
        HEAD
        + """
import anyio, socket
server = socket.create_server(("127.0.0.1", 0))
async def one(): note()
async def main():
    for _ in range(2): await (await anyio.connect_tcp("localhost", server.getsockname()[1])).aclose()
    async with anyio.create_task_group() as g: g.start_soon(one)
anyio.run(main, backend=sys.argv[1])
print(*out)
"""
    )
    assert run(code, backend, python=python, sidecar=sidecar).stdout.split() == ["m/a0/a0"]


@pytest.mark.parametrize(
    "sdk", ["openai.AsyncOpenAI", pytest.param("anthropic.AsyncAnthropic", marks=pytest.mark.soak)]
)
def test_an_sdk_that_looks_its_machine_up_takes_no_number(sdk: str, sidecar: Path) -> None:
    """Each request that comes before that is done does it in a thread of its own; how many do is a matter of timing."""
    module, _ = sdk.split(".")
    code = (
        HEAD
        + f"""
import {module}, socket
closed = socket.create_server(("127.0.0.1", 0)); port = closed.getsockname()[1]; closed.close()
client = {sdk}(api_key="none", base_url=f"http://127.0.0.1:{{port}}", max_retries=0)
async def main():
    try: await client.models.list()
    except {module}.APIConnectionError: pass
    out.append(await asyncio.to_thread(me))
asyncio.run(main())
print(*out)
"""
    )
    ran = run(code, python=with_packages(module), sidecar=sidecar)
    assert ran.stdout.split() == ["m/a0/c0"], ran.stderr
    assert not ran.of("note")


@everywhere
def test_a_traceback_through_an_awaited_task_has_no_line_of_ours(python: Path, sidecar: Path) -> None:
    code = """
import asyncio, sys, traceback
async def broken(): raise ValueError
async def main():
    for one in (asyncio.create_task(broken()), asyncio.gather(broken())):
        for _ in 1, 2:
            try: await one
            except ValueError: print(("_tapeproxy" in traceback.format_exc()) == (sys.version_info < (3, 11)))
asyncio.run(main())
"""
    done = run(code, python=python, sidecar=sidecar, extra={"TAPEPROXY_EDGES": "1"})
    assert done.stdout.split() == ["True"] * 4, done.stderr
