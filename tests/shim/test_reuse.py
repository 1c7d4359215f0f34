"""Threads that share urllib3's connections: whoever gets one, or has to connect, the lanes are the same."""

from pathlib import Path

import pytest
from authority import Authority
from origin import Call, Origin
from shimruns import run, with_packages

CODE = """
import sys, threading, urllib3
from _tapeproxy.lanes import current
path, port, trust = sys.argv[1:]
pool = urllib3.HTTPSConnectionPool("127.0.0.1", int(port), ca_certs=trust, retries=False, maxsize=1)
done = []
def first():
    current().requests += 1  # as if it went by a wire, so that there is something to know
    pool.request("GET", path)
    done.append(1)
def second():
    while not done: pass  # nothing that a lane learns by
    pool.request("GET", "/")
    print(current().id, current().reads)
threads = [threading.Thread(target=one) for one in (first, second)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


async def answer(call: Call) -> None:
    await call.head("200 OK", "Content-Length: 2", *(["Connection: close"] if call.request.target == "/last" else []))
    await call.send(b"ok")


@pytest.mark.parametrize("apart", ["1", ""])
def test_reads_and_edges_do_not_depend_on_who_connects(apart: str, sidecar: Path, tmp_path: Path) -> None:
    python, found, learned = with_packages("urllib3"), list[str](), list[object]()
    authority = Authority(tmp_path / "authority")
    extra = {"TAPEPROXY_APART": apart, "TAPEPROXY_EDGES": "1"}
    with Origin(answer, tls=authority.serving("127.0.0.1")) as origin:
        where = (str(origin.port), str(authority.cert))
        for path in ("/again", "/last"):  # the server leaves the connection open, or not
            ran = run(CODE, path, *where, python=python, sidecar=sidecar, extra=extra)
            found.append(ran.stdout)
            learned += [line for line in ran.of("edge") if line.get("what") == "get"]
        assert origin.connections == 3
    assert (found[0] == found[1], not learned) == (bool(apart), bool(apart)), (found, learned)
