"""Where lanes learn of each other: which edges are told, and that what has nothing new costs none."""

import json
import sys
from pathlib import Path

import pytest
from shimruns import Run, everywhere, run

HEAD = """
import asyncio, concurrent.futures, json, multiprocessing, os, queue, subprocess, sys, threading, time
from _tapeproxy.attribution import tag
from _tapeproxy.lanes import current
def ask(*_): return tag()
async def ask_later(*_): await asyncio.sleep(0); return tag()
"""
ON = {"TAPEPROXY_EDGES": "2"}
OLD = {"TAPEPROXY_EDGES": "1"}


def told(found: Run) -> list[str]:
    """The edges as `LANE ASKED WHAT ON@PLACE`, in their order in each lane, lanes sorted."""
    rows = []
    for line in found.of("edge"):
        at = "" if "at" not in line else "@{}.{}".format(*line["at"])
        out = ">" if line.get("out") else ""
        row = f"{line['lane']} {line['asked']} {out}{line['what']} {line['on']}{at}"
        rows.append((line["lane"], bool(out), line["n"], row))
    return [row for *_, row in sorted(rows)]


def origins(found: Run) -> dict[str, str]:
    return {line["id"]: "{}@{}.{}".format(*line["from"]) for line in found.of("lane") if "from" in line}


def edges(code: str, python: Path, sidecar: Path, *args: str, rules: dict[str, str] = ON) -> Run:
    found = run(HEAD + code, *args, python=python, sidecar=sidecar, extra=rules)
    assert found.returncode == 0, found.stderr
    assert not found.of("note"), found.of("note")
    return found


# Those of version 2 of the rules.
WORKERS = """
def work():
    while True: q.get(); ask(); q.task_done()
for _ in range(2): threading.Thread(target=work, daemon=True).start()
"""
MORE = [
    ("q = queue.Queue()" + WORKERS.replace("range(2)", "range(1)") + "q.put(1); q.join()", "m 0 done m/t0@1.0"),
    (
        # Each works on one: the other waits at the barrier, and nobody has asked before.
        "q, b = queue.Queue(), threading.Barrier(2)\n"
        + WORKERS.replace("q.get()", "q.get(); b.wait()")
        + "q.put(1); q.put(2); q.join(); ask(); q.join(); ask(); q.put(1); q.put(2); q.join()",
        "m 0 done m/t0@1.0; m 0 done m/t1@1.0; m 2 done m/t0@2.2; m 2 done m/t1@2.2; "
        "m/t0 1 get m@2.2; m/t0 1 barrier m/t1@1.1; m/t1 1 get m@2.2; m/t1 1 barrier m/t0@1.1",
    ),
    (
        "q = queue.SimpleQueue()\ndef work(): q.get(); q.get_nowait(); ask(); q.put_nowait(1)\n"
        "ask(); t = threading.Thread(target=work); ask(); q.put(1); q.put(None); t.start(); q.get()\n"
        "try: q.get_nowait()\nexcept queue.Empty: t.join()",
        "m 2 get m/t0@1.0",
    ),
    (
        "b, e = threading.Barrier(2), threading.Event()\n"
        "def work():\n    for _ in range(2): ask(); b.wait()\n    e.wait()\n"
        "t = threading.Thread(target=work); t.start(); b.wait(); ask(); b.wait(); e.set(); t.join()",
        "m 0 barrier m/t0@1.0; m 1 barrier m/t0@2.0; m/t0 2 barrier m@1.1",
    ),
    (
        "b = threading.Barrier(2)\ntry: b.wait(0)\nexcept threading.BrokenBarrierError: b.reset()\n"
        "def work(): ask(); b.wait()\nt = threading.Thread(target=work); t.start(); b.wait(); ask(); t.join()",
        "m 0 barrier m/t0@1.0",
    ),
    (
        "pool = concurrent.futures.ThreadPoolExecutor(1)\n"
        "for one in concurrent.futures.as_completed([pool.submit(ask)]): ask()",
        "m 0 result m/w0@1.0",
    ),
    (
        "loop = asyncio.new_event_loop(); threading.Thread(target=loop.run_forever, daemon=True).start()\n"
        "async def work(): await asyncio.create_task(ask_later())\n"
        "asyncio.run_coroutine_threadsafe(work(), loop).result(); ask()\n"
        "async def fail(): ask(); raise ValueError\n"
        "assert asyncio.run_coroutine_threadsafe(fail(), loop).exception(); ask()",
        "m 0 result m/a0@0.1; m 1 result m/a1@1.0; m/a0 0 await m/a0/a0@1.0",
    ),
    (
        "async def main():\n    q = asyncio.Queue()\n    async def work():\n"
        "        while True: await q.get(); await asyncio.sleep(0); ask(); q.task_done()\n"
        "    t = [asyncio.create_task(work()) for _ in range(2)]\n"
        "    for _ in t: q.put_nowait(1)\n    await q.join(); ask()\nasyncio.run(main())",
        "m/a0 0 event m/a0/a1@1.0; m/a0 0 done m/a0/a0@1.0",
    ),
]
CASES = [
    ("t = threading.Thread(target=ask); t.start(); t.join()", "m 0 join m/t0@1.0"),
    # Who asked nothing and learned nothing has nothing to say.
    ("t = threading.Thread(target=print); t.start(); t.join()", ""),
    ("t = threading.Thread(target=ask); t.start(); t.join(); t.join()", "m 0 join m/t0@1.0"),
    (
        "def outer(): u = threading.Thread(target=ask); u.start(); u.join()\n"
        "t = threading.Thread(target=outer); t.start(); t.join()",
        "m 0 join m/t0@0.1; m/t0 0 join m/t0/t0@1.0",
    ),
    (
        "with concurrent.futures.ThreadPoolExecutor(2) as pool:\n    fs = [pool.submit(ask) for _ in range(3)]",
        "m 0 join m/w0@1.0; m 0 join m/w1@1.0; m 0 join m/w2@1.0",
    ),
    (
        "pool = concurrent.futures.ThreadPoolExecutor(1); f = pool.submit(ask); f.result(); ask(); f.result()",
        "m 0 result m/w0@1.0",
    ),
    (
        "def fail(): ask(); raise ValueError\n"
        "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n"
        "    f = pool.submit(fail); assert isinstance(f.exception(), ValueError)",
        "m 0 result m/w0@1.0",
    ),
    (
        "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n"
        "    concurrent.futures.wait([pool.submit(ask), pool.submit(ask)])",
        "m 0 result m/w0@1.0; m 0 result m/w1@1.0",
    ),
    (
        "q = queue.Queue(); ask(); q.put(1)\n"
        "def work(): q.get(); q.get(); ask()\n"
        "t = threading.Thread(target=work); t.start(); ask(); q.put(1); t.join()",
        "m 2 join m/t0@1.1; m/t0 0 get m@2.0",
    ),
    (
        "q = queue.PriorityQueue(); e = threading.Event()\n"
        "def work(n): ask(); q.put(n)\n"
        "for n in 2, 1: t = threading.Thread(target=work, args=(n,)); t.start(); t.join()\n"
        "def take(): [q.get() for _ in range(2)]; ask()\n"
        "t = threading.Thread(target=take); t.start(); t.join()",
        "m 0 join m/t0@1.0; m 0 join m/t1@1.0; m 0 join m/t2@1.2; m/t2 0 get m/t1@1.0; m/t2 0 get m/t0@1.0",
    ),
    (
        "e = threading.Event()\ndef work(): e.wait(); ask()\n"
        "t = threading.Thread(target=work); t.start(); ask(); e.set(); t.join()",
        "m 1 join m/t0@1.1; m/t0 0 event m@1.0",
    ),
    (
        "async def main(): await asyncio.create_task(ask_later())\nasyncio.run(main())",
        "m 0 await m/a0@0.1; m/a0 0 await m/a0/a0@1.0",
    ),
    (
        "async def main():\n    a, b = asyncio.create_task(ask_later()), asyncio.create_task(ask_later())\n"
        "    await b; ask(); await a\nasyncio.run(main()); ask()",
        "m 0 await m/a0@1.2; m/a0 0 await m/a0/a1@1.0; m/a0 1 await m/a0/a0@1.0",
    ),
    (
        "async def main(): await asyncio.gather(ask_later(), ask_later()); ask()\nasyncio.run(main())",
        "m/a0 0 await m/a0/a0@1.0; m/a0 0 await m/a0/a1@1.0",
    ),
    (
        "async def main():\n    t = [asyncio.create_task(ask_later()) for _ in range(2)]\n"
        "    g = asyncio.gather(*t); await asyncio.sleep(0.01); ask(); await g\nasyncio.run(main())",
        "m/a0 1 await m/a0/a0@1.0; m/a0 1 await m/a0/a1@1.0",
    ),
    (
        "async def main():\n    await asyncio.wait([asyncio.create_task(ask_later()) for _ in range(2)])\n"
        "asyncio.run(main())",
        "m/a0 0 await m/a0/a0@1.0; m/a0 0 await m/a0/a1@1.0",
    ),
    (
        "async def main():\n    for one in asyncio.as_completed([ask_later()]): await one\nasyncio.run(main())",
        "m/a0 0 await m/a0/a0@1.0",
    ),
    (
        "async def main():\n    q = asyncio.Queue()\n    async def work(): await q.get(); ask()\n"
        "    t = asyncio.create_task(work()); await asyncio.sleep(0); ask(); await q.put(1)\n"
        "    await t\nasyncio.run(main())",
        "m/a0 1 await m/a0/a0@1.1; m/a0/a0 0 get m/a0@1.0",
    ),
    (
        "async def main():\n    e = asyncio.Event()\n    async def work(): await e.wait(); ask()\n"
        "    t = asyncio.create_task(work()); await asyncio.sleep(0); ask(); e.set(); await t\nasyncio.run(main())",
        "m/a0 1 await m/a0/a0@1.1; m/a0/a0 0 event m/a0@1.0",
    ),
    (
        "async def main(): await asyncio.get_running_loop().run_in_executor(None, ask); ask()\nasyncio.run(main())",
        "m/a0 0 await m/a0/w0@1.0",
    ),
    (
        "async def main(): await asyncio.to_thread(ask); ask()\nasyncio.run(main())",
        "m/a0 0 await m/a0/w0@0.1; m/a0/w0 0 context m/a0/c0@1.0",
    ),
    *MORE,
    ("ask(); subprocess.run([sys.executable, '-c', '1'])", "m 1 exit m/p0; m 1 >start m/p0"),
    (
        "ask(); pool = concurrent.futures.ThreadPoolExecutor(1)\n"
        "pool.submit(subprocess.run, [sys.executable, '-c', '1']).result()",
        "m 1 result m/w0@0.1; m 1 >start m/w0/p0; m/w0 0 exit m/w0/p0",
    ),
]


# Each in a fork of its own, whose lane stands for a main one: a process for each would take a minute.
DRIVER = """
for code in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        try:
            exec(code, globals())
            status = 0
        except BaseException as error:
            print(code, repr(error), file=sys.stderr)
            status = 1
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
"""


@everywhere
def test_edges(python: Path, sidecar: Path) -> None:
    given = json.dumps([code for code, _ in CASES])
    found = edges(DRIVER, python, sidecar, given)
    rows = told(found)
    for number, (code, wanted) in enumerate(CASES):
        mine = [row.replace(f"m/f{number}", "m") for row in rows if row.startswith((f"m/f{number} ", f"m/f{number}/"))]
        # asyncio.run() ends in the main lane, which learns of its task: looked at in one case.
        kept = [row for row in mine if "m 0 await" in wanted or not row.startswith("m 0 await")]
        assert "; ".join(kept) == wanted, code


FORK = "fork = multiprocessing.get_context('fork')\n"
PROCESSES = [
    (
        # The child knows what its maker knew: its lane line says so, it was forked.
        FORK + "ask(); p = fork.Process(target=ask); p.start(); p.join()",
        "m 1 exit m/f0",
        {"m/f0": "m@1.0"},
    ),
    (
        FORK + "ask(); q = fork.Queue(); back = fork.Queue()\n"
        "def work(): q.get(); ask(); back.put(1)\n"
        "p = fork.Process(target=work); p.start(); ask(); q.put(1); back.get(); p.join()",
        "m 2 get m/f0@1.1; m 2 exit m/f0; m/f0 0 get m@2.0",
        {"m/f0": "m@1.0"},
    ),
    (
        FORK
        + "ask()\nwith concurrent.futures.ProcessPoolExecutor(1, mp_context=fork) as pool: pool.submit(ask).result()",
        "m 1 result m/w0",
        {"m/w0": "m@1.0"},
    ),
    (
        FORK + "with fork.Pool(1) as pool: pool.apply(ask); pool.map(ask, 'ab'); [*pool.imap(ask, 'a')]",
        "m 0 result m/w0; m 0 result m/w1; m 0 result m/w2/w0; m 0 result m/w2",
        {"m/w1/w0": "m@0.1", "m/w1/w1": "m@0.1", "m/w2/w0": "m@0.2"},
    ),
    (
        "ask(); pid = os.fork()\nif not pid: ask(); os._exit(0)\nos.waitpid(pid, 0)",
        "m 1 exit m/f0",
        {"m/f0": "m@1.0"},
    ),
    (
        "ask()\nasync def main():\n    p = await asyncio.create_subprocess_exec(sys.executable, '-c', '1')\n"
        "    await p.wait()\nasyncio.run(main())",
        "m 1 >start m/a0/p0; m/a0 0 exit m/a0/p0",
        {},
    ),
]


@everywhere
@pytest.mark.parametrize(("code", "wanted", "begun"), PROCESSES)
def test_processes(code: str, wanted: str, begun: dict[str, str], python: Path, sidecar: Path) -> None:
    found = edges(code, python, sidecar)
    assert "; ".join(row for row in told(found) if not row.startswith("m 1 await")) == wanted
    assert {lane: place for lane, place in origins(found).items() if lane in begun} == begun


def test_what_brings_nothing_new_costs_no_line(sidecar: Path) -> None:
    code = """
q, back = queue.Queue(), queue.Queue()
def work():
    for _ in range(1000): q.get(); back.put(1)
ask()
t = threading.Thread(target=work); t.start(); ask()
for _ in range(1000): q.put(1); back.get()
t.join()
"""
    assert told(edges(code, Path(sys.executable), sidecar)) == ["m 2 get m/t0@0.1", "m/t0 0 get m@2.0"]


def test_items_that_leave_a_queue_past_get_are_let_go(sidecar: Path) -> None:
    code = """
import gc, weakref
class Item: pass
q, seen = queue.Queue(), []
ask()
for _ in range(5000):
    item = Item(); seen.append(weakref.ref(item)); q.put(item); q.queue.clear()
gc.collect()
print(sum(one() is not None for one in seen))
"""
    assert edges(code, Path(sys.executable), sidecar).json < 2100


def test_a_lane_that_meets_too_many_says_so(sidecar: Path) -> None:
    code = """
from _tapeproxy import edges; edges.MOST = 3
for _ in range(5): t = threading.Thread(target=ask); t.start(); t.join()
"""
    found = run(HEAD + code, python=Path(sys.executable), sidecar=sidecar, extra=ON)
    assert len(found.of("edge")) == 3
    assert [line["what"] for line in found.of("note")] == ["edges-dropped"]


def test_tokens_go_from_lane_to_lane(sidecar: Path) -> None:
    code = """
from _tapeproxy.edges import emit_in, emit_out
ask(); emit_out("message", "m>t#0")
def work(): emit_in("message", "m>t#0")
t = threading.Thread(target=work); t.start(); t.join()
"""
    wanted = ["m 1 join m/t0@0.1", "m 1 >message m>t#0", "m/t0 0 message m>t#0"]
    assert told(edges(code, Path(sys.executable), sidecar)) == wanted


GROUPS = {
    "asyncio": "async with asyncio.TaskGroup() as group:\n        group.create_task(ask_later(), name='worker')",
    "anyio": "async with anyio.create_task_group() as group:\n        group.start_soon(ask_later)",
}


@pytest.mark.parametrize("kind", GROUPS)
def test_groups(kind: str, sidecar: Path) -> None:
    code = f"import anyio\nasync def main():\n    {GROUPS[kind]}\n    ask()\nasyncio.run(main())"
    found = edges(code, Path(sys.executable), sidecar)
    assert told(found) == ["m 0 await m/a0@1.1", "m/a0 0 await m/a0/a0@1.0"]
    names = {line["id"]: line["name"] for line in found.of("lane")}
    assert kind == "anyio" or names["m/a0/a0"] == "worker"


def test_threads_of_anyio(sidecar: Path) -> None:
    code = "import anyio.to_thread\nasync def main(): await anyio.to_thread.run_sync(ask)\nasyncio.run(main())"
    assert told(edges(code, Path(sys.executable), sidecar)) == ["m 0 await m/a0@0.1", "m/a0 0 context m/a0/c0@1.0"]


def test_nurseries_of_trio(sidecar: Path) -> None:
    pytest.importorskip("trio")
    code = """
import trio
async def work(): await trio.sleep(0); ask()
async def main():
    async with trio.open_nursery() as nursery: nursery.start_soon(work)
    ask()
trio.run(main)
"""
    found = [row for row in told(edges(code, Path(sys.executable), sidecar)) if "await" in row]
    assert found, "nobody learned"
    assert found[0].split()[1:3] == ["0", "await"]


SERVERS = {
    "http.server": """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self): ask(); self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = False  # so that it is waited for: what it tells of its answer comes after the client has that
""",
    "wsgiref": """
import wsgiref.simple_server
class Handler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args): pass
def app(environ, start): ask(); start("200 OK", [("content-length", "0")]); return []
server = wsgiref.simple_server.make_server("127.0.0.1", 0, app, handler_class=Handler)
""",
    "werkzeug": """
import logging, werkzeug.serving
logging.getLogger("werkzeug").disabled = True
def app(environ, start): ask(); start("200 OK", [("content-length", "0")]); return []
server = werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True)
server.daemon_threads = False
""",
}
CLIENT = """
import http.client
port = server.server_port
threading.Thread(target=server.serve_forever, daemon=True).start()
kept = http.client.HTTPConnection("127.0.0.1", port)
kept.connect(); mine = [kept.sock.getsockname()[1]]
for _ in range(2):
    kept.request("GET", "/")
    reply = kept.getresponse(); reply.read()
    if kept.sock is None: break
kept.close(); server.shutdown(); server.server_close()
print(json.dumps(mine))
"""


@pytest.mark.parametrize("kind", SERVERS)
def test_servers_tell_which_request_they_serve(kind: str, sidecar: Path) -> None:
    if kind == "werkzeug":
        pytest.importorskip("werkzeug")
    found = edges(SERVERS[kind] + CLIENT, Path(sys.executable), sidecar)
    (port,) = found.json
    rows = [(line["what"], line["on"], line["asked"]) for line in found.of("edge") if line["on"].startswith("@")]
    first = [("serve", f"@{port}#0", 0), ("answer", f"@{port}#0", 1)]
    assert rows[:2] == first
    if kind == "http.server":  # which keeps its connection
        assert rows[2:] == [("serve", f"@{port}#1", 1), ("answer", f"@{port}#1", 2)]


def test_a_server_of_aiohttp(sidecar: Path) -> None:
    pytest.importorskip("aiohttp")
    code = """
import http.client
from aiohttp import web
async def handle(request): ask(); return web.Response()
async def main():
    app = web.Application(); app.router.add_get("/", handle)
    runner = web.AppRunner(app); await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0); await site.start()
    port = site._server.sockets[0].getsockname()[1]
    def client():
        kept = http.client.HTTPConnection("127.0.0.1", port); kept.connect()
        mine = kept.sock.getsockname()[1]
        for _ in range(2): kept.request("GET", "/"); kept.getresponse().read()
        kept.close(); return mine
    print(json.dumps(await asyncio.to_thread(client)))
    await runner.cleanup()
asyncio.run(main())
"""
    found = edges(code, Path(sys.executable), sidecar)
    rows = [(line["what"], line["on"]) for line in found.of("edge") if line["on"].startswith("@")]
    assert rows == [(what, f"@{found.json}#{n}") for n in range(2) for what in ("serve", "answer")]


def test_a_tape_of_older_rules_has_no_edges_that_are_new(sidecar: Path) -> None:
    given = json.dumps([code for code, _ in MORE])
    rows = told(edges(DRIVER, Path(sys.executable), sidecar, given, rules=OLD))
    assert not {row.split()[2] for row in rows} & {"barrier", "done", "result"}
