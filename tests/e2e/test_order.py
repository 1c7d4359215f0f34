"""Who was first on the tape is first in the replay, although no answer takes any time there."""

import json
import sys
from pathlib import Path

import pytest
from clirun import Cli, maps

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.tapefile import load
from tapeproxy.testing import FakeProvider

PROGRAM = Path(__file__).parent / "programs" / "first_come.py"
SLOW = [{"text": f"after {ms} ms", "delay_ms": ms, "times": 1} for ms in (400, 10, 250, 130)]
DELAYS = {"reply": [*SLOW, {"text": "at once"}]}


def record(cli: Cli, home: Path, *argv: str) -> str:
    """Record a program against a provider whose first answer is the slowest; returns what it printed."""
    tls = CertificateAuthority.open(home).server_context("127.0.0.1")
    with FakeProvider(script=DELAYS, tls=tls) as provider:
        done = cli.run("record", "-o", "t.jsonl.gz", *maps(provider.url), "--", *argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


SOAK = pytest.mark.soak


@pytest.mark.parametrize(
    "kind",
    [
        "as_completed",
        "first_completed",
        pytest.param("gather", marks=SOAK),
        pytest.param("as_completed_in_threads", marks=SOAK),
    ],
)
def test_tasks_complete_in_the_order_of_the_tape(kind: str, cli: Cli, home: Path) -> None:
    recorded = record(cli, home, sys.executable, str(PROGRAM), kind)
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    taped = [done.lane for done, _ in tape.dones if done.parent == "m/a0"]
    assert taped != sorted(taped), "a provider that answers in order shows nothing"
    for _ in range(2):
        done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
        assert (done.returncode, done.stdout) == (0, recorded), done.stderr
        report = json.loads((cli.cwd / "r.json").read_text())
        assert (report["drifts"], report["notes"]) == ([], [])


WORKERS = Path(__file__).parent / "programs" / "workers.py"


# In the soak: what two workers do within milliseconds is kept by short waits, which a busy machine may outlast.
@SOAK
@pytest.mark.parametrize("kind", ["get", "get_nowait", "semaphore", "threads", "pool", "futures"])
def test_workers_take_turns_as_on_the_tape(kind: str, cli: Cli, home: Path) -> None:
    recorded = record(cli, home, sys.executable, str(WORKERS), kind)
    taken = [int(job) for job in recorded.split()]
    assert taken != sorted(taken), "a provider that answers in order shows nothing"
    assert sorted(taken) == list(range(len(taken)))
    for _ in range(3):
        done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
        assert (done.returncode, done.stdout) == (0, recorded), done.stderr
        report = json.loads((cli.cwd / "r.json").read_text())
        assert (report["drifts"], report["notes"]) == ([], [])


STUCK = """
import asyncio, sys
from pathlib import Path
import httpx
chain = Path("chain").exists()
async def ask(client, text, after):
    if chain and after: await after
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    reply = await client.post("https://api.openai.com/v1/chat/completions", json=body)
    return reply.status_code
async def main():
    async with httpx.AsyncClient() as client:
        tasks = []
        for name in "ABCD": tasks.append(asyncio.create_task(ask(client, name, tasks[-1] if tasks else None)))
        print(await asyncio.gather(*tasks))
asyncio.run(main())
"""


def test_an_order_that_cannot_be_is_given_up_and_told(cli: Cli, home: Path) -> None:
    """In the replay each task waits for the one before it, which on the tape was the last to complete."""
    recorded = record(cli, home, sys.executable, "-c", STUCK)
    (cli.cwd / "chain").touch()
    assert cli.run("replay", "t.jsonl.gz").returncode == 4, "each knows what the one before it was answered"
    done = cli.run("replay", "--no-edges", "t.jsonl.gz")
    assert (done.returncode, done.stdout) == (0, recorded), done.stderr
    assert "note: soft divergence: the tasks of lane m/a0 completed in another order: m/a0/a" in done.stderr
    assert "on the tape: m/a0/a" in done.stderr
    assert "note: soft divergence: the tasks of lane m/a0 could not be kept in the tape's order" in done.stderr


# Who is done first is what a file says, as it is what the servers' speed says otherwise.
SERVED = """
import threading, urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    def log_message(self, *args): pass

first = 1 if Path("second").exists() else 0
done = []
changed = threading.Condition()
def work(n, url):
    urllib.request.urlopen(url).read()
    with changed: changed.wait_for(lambda: done or n == first)

def completed(n):
    with changed:
        done.append(n)
        changed.notify_all()

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
with ThreadPoolExecutor(2) as pool:
    tasks = [pool.submit(work, n, url) for n in range(2)]
    tasks[first].result(); completed(first)
    tasks[1 - first].result()
server.shutdown(); server.server_close()
print("both")
"""


def test_in_which_order_servers_of_the_run_are_done_is_theirs(cli: Cli, home: Path) -> None:
    (cli.cwd / "served.py").write_text(SERVED)
    recorded = record(cli, home, sys.executable, "served.py")
    tape, _ = load(cli.cwd / "t.jsonl.gz")
    assert [done.lane for done, _ in tape.dones if done.parent == "m"] == ["m/w0", "m/w1"]
    (cli.cwd / "second").touch()
    done = cli.run("replay", "t.jsonl.gz", "--report", "r.json")
    report = json.loads((cli.cwd / "r.json").read_text())
    assert (done.returncode, done.stdout, report["drifts"], report["notes"]) == (0, recorded, [], []), done.stderr
