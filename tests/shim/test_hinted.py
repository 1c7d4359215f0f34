"""Tools, values, agents and conclusions: told while recording, served in a replay in which no body runs."""

import sys
from pathlib import Path

import pytest
from shimhints import START, recorded, replayed, tape_of, values_of
from shimruns import everywhere, run

from tapeproxy.proxy.hintvalues import write_calls
from tapeproxy.tapes.redaction import Redactor

ALL = """
import asyncio, dataclasses, functools, json, random, time
ran, out = [], []
chance = random.SystemRandom()

@dataclasses.dataclass
class Hit:
    title: str
    score: float

class Odd(Exception):
    def __init__(self, text, *, code):
        super().__init__(text)
        self.code = code

@hints.tool
def search(query, limit=2, *more, deep=False):
    "Find pages."
    ran.append("search")
    return [Hit(query, chance.random()) for _ in range(limit)], {time.time_ns()}

@hints.tool(name="page")
def read_page(slug): ran.append("page"); raise Odd(f"no {slug} {chance.random()}", code=chance.random())

@hints.tool
async def slow(x): ran.append("slow"); await asyncio.sleep(0.001); return (x, chance.random())

@hints.tool
def pieces(n):
    ran.append("pieces")
    for _ in range(n): yield chance.random()
    return chance.random()

@hints.tool
async def stream(n):
    ran.append("stream")
    for _ in range(n): await asyncio.sleep(0); yield chance.random()

@hints.tool
def echo():
    said = chance.random()
    while said != "end":
        try: said = yield said
        except KeyError as error: said = [error.args[0], chance.random()]

@hints.tool
async def echo_later():
    said = chance.random()
    while said != "end":
        try: said = yield said
        except KeyError as error: said = [error.args[0], chance.random()]

@hints.tool
def broken(n):
    yield chance.random()
    raise ValueError(n, chance.random())

class Shop:
    @hints.tool
    def price(self, item): ran.append("price"); return chance.random()
    @hints.tool
    @staticmethod
    def rebate(): return chance.random()
    @classmethod
    @hints.tool
    def name(cls): return chance.random()

def later(): ran.append("later"); return slow.__wrapped__("later")
partly = hints.tool(functools.partial(search.__wrapped__, limit=1), name="partly")

def whole(generator):
    value = yield from generator
    out.append(value)

async def main():
    out.append(await slow("a"))
    out.append([x async for x in stream(3)])
    g = echo_later()
    out.append([await g.asend(None), await g.asend("sent"), await g.athrow(KeyError("thrown"))])
    try: await g.asend("end")
    except StopAsyncIteration: out.append("ended")
    out.append(await asyncio.gather(slow("b"), slow("c")))
    out.append(await hints.tool(later)())
    out.append(await hints.value("slowly", functools.partial(slow.__wrapped__, "d")))

out.append(search("tides"))
out.append(search(query="tides"))
out.append(search("moon", 1, "x", "y", deep=True))
try: read_page("gone")
except Odd as error: out.append([type(error).__name__, str(error), error.code, error.args])
out.append(list(pieces(2)))
out.append(list(whole(pieces(1))))
g = echo(); out.append([next(g), g.send("sent"), g.throw(KeyError("thrown"))])
try: g.send("end")
except StopIteration: out.append("ended")
g = pieces(9); out.append(next(g)); g.close()
try: list(broken(4))
except ValueError as error: out.append(error.args)
out.append([Shop().price("tape"), Shop.rebate(), Shop().name(), partly("z")])
out.append(hints.value("seed", chance.random))
asyncio.run(main())
out.append([search.__name__, search.__doc__, asyncio.iscoroutinefunction(slow)])
print(repr(out), ran, sep="\\n")
"""


@everywhere
def test_a_replay_gives_what_every_kind_of_tool_gave_and_runs_none(python: Path, sidecar: Path) -> None:
    first = recorded(ALL, python=python, sidecar=sidecar)
    assert first.returncode == 0, first.stderr
    again = recorded(ALL, python=python, sidecar=sidecar)
    assert again.stdout != first.stdout  # it is the clock that makes the difference: chance is seeded
    second = replayed(ALL, first, python=python, sidecar=sidecar)
    assert second.returncode == 0, second.stderr
    assert second.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    assert (first.stdout.splitlines()[1] == "[]", second.stdout.splitlines()[1]) == (False, "[]")
    assert not [line for line in (*first.lines, *second.lines) if line["k"] == "violation"]


@everywhere
def test_bodies_run_where_nothing_is_taped_and_with_tools_live(python: Path, sidecar: Path) -> None:
    bare = run(START + ALL, mode="bare", python=python, sidecar=sidecar)
    assert bare.returncode == 0, bare.stderr
    first = recorded(ALL, python=python, sidecar=sidecar)
    live = replayed(ALL, first, python=python, sidecar=sidecar, tools="live")
    off = run(START + ALL, mode="replay", python=python, sidecar=sidecar, reads=first.lines)
    names = [bare.stdout.splitlines()[1], *(done.stdout.splitlines()[1] for done in (first, live, off))]
    assert len(set(names)) == 1
    assert names[0].count("search") == 4
    assert [line["text"] for line in off.of("note") if line["what"] == "hints"] == [
        "the tape was made without them: tools run"
    ]


MOVES = """
import random, time, uuid
@hints.tool
def work(n): return [random.random() for _ in range(n)], time.time(), uuid.uuid4()
first = work(3)
print(random.random(), uuid.uuid4(), time.time() >= first[1])
"""


def test_a_body_moves_nothing_of_the_caller(sidecar: Path) -> None:
    one = recorded(MOVES, python=sys.executable, sidecar=sidecar)
    other = recorded(MOVES.replace("work(3)", "work(9)"), python=sys.executable, sidecar=sidecar)
    second = replayed(MOVES, one, python=sys.executable, sidecar=sidecar)
    assert one.stdout == other.stdout == second.stdout
    (call,) = one.of("value")
    assert (call["lane"], call["data"]["call"]) == ("m", "m/k0")


REFUSED = {
    "other arguments": ('search("b")', "arguments", 0),
    "made before": ('search("a"); search("a")', "used", None),
    "no such tool": ("other()", "name", None),
    "another lane": (
        'import threading; t = threading.Thread(target=lambda: tell("a")); t.start(); t.join()',
        "lane",
        None,
    ),
}


@pytest.mark.parametrize("code, why, near", REFUSED.values(), ids=REFUSED)
def test_what_is_not_on_the_tape_is_refused_and_told(code: str, why: str, near: int | None, sidecar: Path) -> None:
    head = """
ran = []
@hints.tool
def search(query): ran.append(query); return 1
@hints.tool
def other(): ran.append(1)
def tell(query):
    try: search(query)
    except Exception as error: print(type(error).__name__, error)
def go(): pass
"""
    first = recorded(f'{head}search("a")', python=sys.executable, sidecar=sidecar)
    body = "\n    ".join(["", *code.split("; ")])
    second = replayed(
        f"{head}\ntry:{body}\nexcept hints.NotOnTapeError as error: print(type(error).__name__)\nprint(ran)",
        first,
        python=sys.executable,
        sidecar=sidecar,
    )
    assert second.stdout.split()[0] == "NotOnTapeError", second.stderr
    assert second.stdout.splitlines()[-1] == "[]"
    (told,) = second.of("violation")
    assert (told["why"], told.get("taped")) == (why, near)


UNTAPED = """
import threading
@hints.tool
def lock(): return {"a": [threading.Lock()]}
@hints.tool
def big(): return "x" * (9 << 20)
@hints.tool
def items():
    yield 1
    yield threading.Lock()
print(type(lock()["a"][0]).__name__, len(big()), len(list(items())))
hints.final_state(threading.Lock())
"""


def test_what_has_no_form_is_given_and_noted_and_a_replay_says_so(sidecar: Path) -> None:
    first = recorded(UNTAPED, python=sys.executable, sidecar=sidecar)
    assert first.stdout.split() == ["lock", str(9 << 20), "2"]
    notes = [line["text"] for line in first.of("note") if line["what"] == "untaped-result"]
    assert [note.partition(" at ")[0] for note in notes] == ["lock()", "big()", "items()", "final_state()"]
    assert "its ['a'][0] is a lock, which has no form in JSON" in notes[0]
    second = replayed(UNTAPED, first, python=sys.executable, sidecar=sidecar)
    assert "NotOnTapeError" in second.stderr
    assert [line["why"] for line in second.of("violation")] == ["untaped"]


AGENTS = """
import asyncio, threading
@hints.agent("worker")
def work():
    hints.received("planner")
    hints.message("planner", {"done": object()})
@hints.agent("async worker")
async def work_async(): return 7
with hints.agent("planner"):
    hints.message("worker", {"n": 1})
    hints.message("worker", {"n": 2})
    thread = threading.Thread(target=work); thread.start(); thread.join()
    with hints.agent("inner"): pass
async def main():
    async with hints.agent("main task"): pass
    return await work_async()
assert asyncio.run(main()) == 7
assert work.__name__ == "work"
hints.final_state([1, {"ok": True}])
"""


@everywhere
def test_agents_name_lanes_and_messages_say_from_whom(python: Path, sidecar: Path) -> None:
    done = recorded(AGENTS, python=python, sidecar=sidecar)
    assert done.returncode == 0, done.stderr
    names = [(line["id"], line["name"]) for line in done.of("lane") if "asked" in line]
    assert names[:4] == [("m", "planner"), ("m/t0", "worker"), ("m", "inner"), ("m", "planner")]
    assert {name for _, name in names[4:]} == {"main task", "async worker"}
    messages = [
        (line["data"]["from"], line["name"], line["data"]["number"], line["content"])
        for line in done.of("value")
        if line["what"] == "message"
    ]
    assert messages[:3] == [
        ("planner", "worker", 0, '{"n":1}'),
        ("planner", "worker", 1, '{"n":2}'),
        ("worker", "planner", 0, '{"done":{"$":"object","type":"builtins:object"}}'),
    ]
    (final,) = [line for line in done.of("value") if line["what"] == "final"]
    assert (final["lane"], final["content"]) == ("m", '[1,{"ok":true}]')


CANCELLED = """
import asyncio
@hints.tool
async def hangs(): await asyncio.sleep(0.2 if RECORD else 0); await asyncio.sleep(3600)
@hints.tool
async def drips():
    yield 1
    await asyncio.sleep(3600)
async def main():
    for tool in (hangs(), all_of(drips())):
        try: await asyncio.wait_for(tool, 0.3)
        except asyncio.TimeoutError: print("too long")
async def all_of(items):
    async for item in items: print(item)
asyncio.run(main())
"""


@everywhere
def test_a_call_that_was_cancelled_waits_to_be_cancelled(python: Path, sidecar: Path) -> None:
    code = f"RECORD = True\n{CANCELLED}"
    first = recorded(code, python=python, sidecar=sidecar)
    assert first.stdout.split("\n")[:3] == ["too long", "1", "too long"], first.stderr
    second = replayed(code, first, python=python, sidecar=sidecar)
    assert second.stdout == first.stdout, second.stderr
    assert not second.of("violation")


UNKNOWN = """
import sys
if MAKE:
    import decimal
    class Gone(Exception): pass
else:
    decimal = None
@hints.tool
def fails(): raise Gone("it is gone")
@hints.tool
def inexact(): decimal.getcontext().traps[decimal.Inexact] = True; return decimal.Decimal(1) / 3
for tool in (fails, inexact):
    try: tool()
    except Exception as error: print(type(error).__name__, error, isinstance(error, hints.ToolError))
print("decimal" in sys.modules)
"""


def test_a_type_that_is_not_there_becomes_a_tool_error_and_no_module_is_loaded_for_it(sidecar: Path) -> None:
    first = recorded(f"MAKE = True{UNKNOWN}", python=sys.executable, sidecar=sidecar)
    assert first.stdout.splitlines()[0] == "Gone it is gone False", first.stderr
    second = replayed(f"MAKE = False{UNKNOWN}", first, python=sys.executable, sidecar=sidecar)
    lines = second.stdout.splitlines()
    assert lines[0] == "Gone it is gone True"
    assert lines[1].startswith("Inexact ")
    assert (lines[1].endswith("True"), lines[2]) == (True, "False")


SECRETS = """
@hints.tool
def login(user, password): return {"ok": password}
print(login("ada", PASSWORD)["ok"])
"""


def test_secret_arguments_are_the_same_as_any_other_secret(sidecar: Path, tmp_path: Path) -> None:
    secret = "sk-proj-AbCdEf0123456789"
    first = recorded(f"PASSWORD = {secret!r}{SECRETS}", python=sys.executable, sidecar=sidecar)
    (value,) = values_of(first.lines, Redactor(bytes(32), [secret]))
    assert secret not in repr(value)
    write_calls(tape_of([value]), tmp_path / "calls")
    extra = {"TAPEPROXY_HINTS": str(tmp_path / "calls")}
    second = run(
        f"{START}PASSWORD = 'another'{SECRETS}",
        mode="replay",
        python=sys.executable,
        sidecar=sidecar,
        reads=first.lines,
        extra=extra,
    )
    assert second.stdout.startswith("tpx"), second.stderr


# Who is first is no matter of time: a body ends when what came before it has been taken.
FIRST_COME = """
import asyncio, concurrent.futures, threading
names, turns = "abcd", "cbad"
@hints.tool
def search(name): go[name].wait(); return name
@hints.tool
async def search_async(name): await go[name].wait(); return name
order = []
def take(name):
    order.append(name)
    following = turns.index(name) + 1
    if following < len(turns): go[turns[following]].set()
def in_threads():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in concurrent.futures.as_completed([pool.submit(search, name) for name in names]):
            take(future.result())
async def in_tasks():
    go.update({name: asyncio.Event() for name in names})
    go[turns[0]].set()
    for first in asyncio.as_completed([search_async(name) for name in names]):
        take(await first)
go = {name: threading.Event() for name in names}
go[turns[0]].set()
"""
FROM = {"tasks": "asyncio.run(in_tasks())\nprint(*order)", "threads": "in_threads()\nprint(*order)"}


# In the soak: a thread waits for a moment alone, which a busy machine may outlast.
@pytest.mark.parametrize("kind", ["tasks", pytest.param("threads", marks=pytest.mark.soak)])
@everywhere
def test_calls_side_by_side_come_back_in_the_order_of_the_tape(kind: str, python: Path, sidecar: Path) -> None:
    code = FIRST_COME + FROM[kind]
    first = recorded(code, python=python, sidecar=sidecar)
    assert first.stdout == "c b a d\n", first.stderr
    second = replayed(code, first, python=python, sidecar=sidecar)
    assert second.stdout == first.stdout, second.stderr
