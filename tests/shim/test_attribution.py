"""The lane header: on every request of every client that goes to the wire, once, unseen, and nowhere else."""

import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from authority import Authority
from shimruns import Run, everywhere, run, with_packages

HEADER = "x-tapeproxy-lane"


class Wire(socketserver.ThreadingTCPServer):
    """A proxy that goes nowhere: it answers each request itself, with the request's own head as JSON.

    `connects` are the heads of its CONNECT requests.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.context = context
        self.connects: list[list[str]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or one that is killed, is none of ours."""


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Wire)
        while head := _read_head(self.rfile):
            if head[0].startswith("CONNECT "):
                self.server.connects.append(head)
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                with (
                    self.server.context.wrap_socket(self.request, server_side=True) as tunnel,
                    tunnel.makefile("rwb", buffering=0) as inside,
                ):
                    while inner := _read_head(inside):
                        _answer(inside, inner)
                return
            _answer(self.wfile, head)


def _answer(sink: Any, head: list[str]) -> None:
    body = json.dumps(head).encode()
    sink.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def _read_head(source: Any) -> list[str]:
    lines = []
    while (line := source.readline().strip()) or not lines:
        if not line:
            return []
        lines.append(line.decode("latin-1"))
    length = next((line.split(":")[1] for line in lines if line.lower().startswith("content-length:")), "0")
    source.read(int(length))
    return lines


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def wire(authority: Authority) -> Iterator[Wire]:
    with Wire(authority.serving("api.test")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


HEAD = """
import asyncio, json, os, sys, threading
WIRE = os.environ["TAPEPROXY_PROXY"]
HOST, PORT = WIRE.split(":")[0], int(WIRE.split(":")[1])
heads = []
"""
TAIL = "\nprint(json.dumps(heads))"
STANDARD = {
    "urllib": """
import urllib.request
for url in ("http://api.test/1", "https://api.test/2", "http://api.test/3"):
    heads.append(json.load(urllib.request.urlopen(url)))
""",
    "http.client": """
import http.client
plain = http.client.HTTPConnection(HOST, PORT)
plain.request("GET", "http://api.test/1"); heads.append(json.load(plain.getresponse()))
tunnel = http.client.HTTPSConnection("localhost", PORT); tunnel.set_tunnel("api.test", 443)
tunnel.request("POST", "/2", body=b"x" * 10); heads.append(json.load(tunnel.getresponse()))
plain.putrequest("GET", "http://api.test/3"); plain.endheaders(); heads.append(json.load(plain.getresponse()))
""",
}
PACKAGES = {
    "requests": """
import requests
session = requests.Session()
for url in ("http://api.test/1", "https://api.test/2"):
    answer = session.post(url, data={"a": "b"}); heads.append(answer.json())
    assert not any("lane" in name for name in answer.request.headers)
heads.append(requests.get("https://api.test/3").json())
""",
    "urllib3": """
import urllib3
pool = urllib3.ProxyManager(os.environ["HTTPS_PROXY"], ca_certs=os.environ["SSL_CERT_FILE"])
for url in ("http://api.test/1", "https://api.test/2", "https://api.test/3"):
    heads.append(json.loads(pool.request("POST", url, body=iter([b"a", b"b"]) if url[-1] == "9" else b"ab").data))
""",
    "httpx": """
import httpx as library
with library.Client() as client:
    for url in ("http://api.test/1", "https://api.test/2"):
        answer = client.get(url); heads.append(answer.json())
        assert not any("lane" in name for name in answer.request.headers)
async def main():
    async with library.AsyncClient() as client: heads.append((await client.post("https://api.test/3", json=1)).json())
asyncio.run(main())
""",
    "aiohttp": """
import aiohttp, ssl
async def main():
    context = ssl.create_default_context()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        assert session.trust_env is False
        for url in ("http://api.test/1", "https://api.test/2"):
            async with session.post(url, data=b"x") as answer:
                heads.append(await answer.json())
                assert not any("lane" in name.lower() for name in answer.request_info.headers)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession("https://api.test", connector=connector, trust_env=True) as session:
        async with session.get("/3") as answer: heads.append(await answer.json())
asyncio.run(main())
""",
}
PACKAGES["websockets"] = """
import asyncio, json, websockets
from websockets.sync.client import connect
from websockets.asyncio.client import connect as connect_async
def refused(error):
    heads.append(json.loads(error.response.body))
try: connect("wss://api.test/1", additional_headers={"a": "b"})
except websockets.exceptions.InvalidStatus as error: refused(error)
async def main():
    try: await connect_async("wss://api.test/2")
    except websockets.exceptions.InvalidStatus as error: refused(error)
asyncio.run(main())
"""
PACKAGES["websocket"] = """
import json, ssl, websocket
for header in (None, ["a: b"], {"a": "b"}):
    trust = {"ca_certs": os.environ["SSL_CERT_FILE"]}
    try: websocket.create_connection("wss://api.test/1", header=header, sslopt=trust)
    except websocket.WebSocketBadStatusException as error: heads.append(json.loads(error.resp_body))
"""
PACKAGES["httpx2"] = PACKAGES["httpx"].replace("httpx", "httpx2")
LANES = {
    "httpx": ["m#0@*", "m#1@*", "m/a0#0@*"],
    "httpx2": ["m#0@*", "m#1@*", "m/a0#0@*"],
    "aiohttp": ["m/a0#0@*", "m/a0#1@*", "m/a0#2@*"],
    "websockets": ["m#0@*", "m/a0#0@*"],
}


def through(wire: Wire, authority: Authority, code: str, **kwargs: Any) -> Run:
    """Run a program of clients with the wire as its proxy; it prints the heads that the wire echoed."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), f"http://{wire.address}")
    trust = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), str(authority.cert))
    extra = {**proxies, **trust, "TAPEPROXY_PROXY": wire.address, **kwargs.pop("extra", {})}
    ran = run(HEAD + code + TAIL, extra=extra, **kwargs)
    assert ran.returncode == 0, ran.stderr
    assert not ran.of("note")
    return ran


def tags(ran: Run) -> list[str]:
    """The lane headers that arrived, reads left out; fails unless there is one a request."""
    found = []
    for head in ran.json:
        mine = [line.partition(": ")[2] for line in head if line.lower().startswith(HEADER)]
        assert len(mine) == 1, head
        lane, _, reads = mine[0].partition("@")
        assert reads.isdigit()
        found.append(f"{lane}@*")
    return found


@everywhere
@pytest.mark.parametrize("client", STANDARD)
def test_clients_of_the_standard_library(
    client: str, python: Path, sidecar: Path, wire: Wire, authority: Authority
) -> None:
    ran = through(wire, authority, STANDARD[client], python=python, sidecar=sidecar)
    assert tags(ran) == ["m#0@*", "m#1@*", "m#2@*"]
    assert len(wire.connects) == 1
    assert not any(HEADER in line.lower() for head in wire.connects for line in head)


@pytest.mark.parametrize("client", PACKAGES)
def test_packages(client: str, sidecar: Path, wire: Wire, authority: Authority) -> None:
    ran = through(wire, authority, PACKAGES[client], python=with_packages(client), sidecar=sidecar)
    assert tags(ran) == LANES.get(client, ["m#0@*", "m#1@*", "m#2@*"])
    assert wire.connects
    assert not any(HEADER in line.lower() for head in wire.connects for line in head)
    assert all(line["id"] in ("m", "m/a0") for line in ran.of("lane") if "/n" not in line["id"])


@everywhere
def test_the_number_of_reads_is_the_lanes(python: Path, sidecar: Path, wire: Wire, authority: Authority) -> None:
    code = """
import urllib.request
from _tapeproxy.lanes import current
for _ in range(2):
    current().reads += 5
    heads.append(json.load(urllib.request.urlopen("http://api.test/")) + [str(current().reads)])
"""
    for head in through(wire, authority, code, python=python, sidecar=sidecar).json:
        (mine,) = [line for line in head if line.lower().startswith(HEADER)]
        assert int(mine.split("@")[1]) <= int(head[-1])
        assert int(mine.split("@")[1]) >= 5


@everywhere
def test_nothing_is_added_elsewhere(python: Path, sidecar: Path, wire: Wire, authority: Authority) -> None:
    """The peer counts: a request to another server has no header, whatever its target says."""
    code = """
import http.client
other = http.client.HTTPConnection(HOST, PORT)
other.request("GET", "http://api.test/"); heads.append(json.load(other.getresponse()))
"""
    ran = through(wire, authority, code, python=python, sidecar=sidecar, extra={"TAPEPROXY_PROXY": wire.address})
    assert len(tags(ran)) == 1
    port = wire.server_address[1]
    elsewhere = code.replace("HOST, PORT)", f"HOST, {port})")
    extra = {"TAPEPROXY_PROXY": f"127.0.0.1:{port - 1}"}
    ran = through(wire, authority, elsewhere, python=python, sidecar=sidecar, extra=extra)
    assert not any(HEADER in line.lower() for head in ran.json for line in head)


@pytest.mark.parametrize("package", ["httpx", "aiohttp", "requests"])
def test_clients_that_go_directly_have_none(package: str, sidecar: Path, wire: Wire, authority: Authority) -> None:
    code = f"""
import {package}
url = f"http://{{WIRE}}/direct"
if {package!r} == "httpx":
    heads.append(httpx.Client(trust_env=False).get(url).json())
elif {package!r} == "requests":
    session = requests.Session(); session.trust_env = False; heads.append(session.get(url).json())
else:
    async def main():
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as answer: heads.append(await answer.json())
    asyncio.run(main())
"""
    python = with_packages(package)
    extra = {"TAPEPROXY_PROXY": wire.address, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    (head,) = through(wire, authority, code, python=python, sidecar=sidecar, extra=extra).json
    direct = [line for line in head if line.lower().startswith(HEADER)]
    # requests and urllib know a proxy by its address alone, and this is it.
    assert len(direct) == (1 if package == "requests" else 0)


@everywhere
def test_a_header_that_is_there_stays_alone(python: Path, sidecar: Path, wire: Wire, authority: Authority) -> None:
    code = """
import urllib.request
request = urllib.request.Request("http://api.test/", headers={"X-Tapeproxy-Lane": "mine#0@0"})
heads.append(json.load(urllib.request.urlopen(request)))
"""
    assert tags(through(wire, authority, code, python=python, sidecar=sidecar)) == ["mine#0@*"]


def test_aiohttp_reads_no_netrc_for_our_sake(sidecar: Path, wire: Wire, authority: Authority, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine api.test login me password secret\n")
    netrc.chmod(0o600)
    code = PACKAGES["aiohttp"].replace(", trust_env=True", "")
    ran = through(wire, authority, code, python=with_packages("aiohttp"), sidecar=sidecar, extra={"NETRC": str(netrc)})
    assert len(ran.json) == 3
    assert not any("authorization" in line.lower() for head in ran.json for line in head)


SHARED = {
    "httpx threads": """
import httpx, concurrent.futures
with httpx.Client() as client:
    def work(i): heads.append(client.get(f"https://api.test/{i}").json())
    threads = [threading.Thread(target=lambda i=i: [work(f"t{i}.{n}") for n in range(3)]) for i in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    with concurrent.futures.ThreadPoolExecutor(4) as pool: list(pool.map(work, [f"w{i}.0" for i in range(10)]))
""",
    "httpx tasks": """
import httpx
async def main():
    async with httpx.AsyncClient() as client:
        async def work(i):
            for n in range(3): heads.append((await client.get(f"https://api.test/a0.a{i}.{n}")).json())
            await asyncio.gather(*[asyncio.create_task(leaf(i, k)) for k in range(2)])
        async def leaf(i, k): heads.append((await client.get(f"https://api.test/a0.a{i}.a{k}.0")).json())
        await asyncio.gather(*map(work, range(8)))
asyncio.run(main())
""",
    "aiohttp tasks": """
import aiohttp, ssl
async def main():
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context())
    async with aiohttp.ClientSession(connector=connector) as client:
        async def get(path):
            async with client.get(f"https://api.test/{path}") as answer: heads.append(await answer.json())
        async def work(i):
            for n in range(3): await get(f"a0.a{i}.{n}")
            await asyncio.gather(*[asyncio.create_task(get(f"a0.a{i}.a{k}.0")) for k in range(2)])
        await asyncio.gather(*map(work, range(8)))
asyncio.run(main())
""",
}


@pytest.mark.parametrize("name", SHARED)
def test_one_client_shared_by_many(name: str, sidecar: Path, wire: Wire, authority: Authority) -> None:
    """Each request names who made it, however connections are shared; the path says who really did."""
    ran = through(wire, authority, SHARED[name], python=with_packages(name.split()[0]), sidecar=sidecar)
    for head, found in zip(ran.json, tags(ran), strict=True):
        *flow, number = head[0].split()[1].removeprefix("/").split(".")
        assert found == f"m/{'/'.join(flow)}#{number}@*"
    assert len(ran.json) >= 28
