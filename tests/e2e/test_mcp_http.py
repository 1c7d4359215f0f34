"""MCP over streamable HTTP: sessions, the open stream, resuming it, and a changed list of tools. Hard input 33."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from clirun import Cli
from origin import Call, Gate, Origin

from tapeproxy.proxy.tapefile import load

SESSION = "5e55a1d0-0001"
AGENT = """
import http.client, json, os, sys, urllib.parse

where = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
session = {}

def ask(method, body=None, keep=False, **headers):
    connection = http.client.HTTPConnection(where.hostname, where.port)
    headers |= {"Content-Type": "application/json", **session}
    text = None if body is None else json.dumps({"jsonrpc": "2.0", **body})
    connection.request(method, "http://mcp.example/mcp", text, headers)
    response = connection.getresponse()
    if response.getheader("Mcp-Session-Id"):
        session["Mcp-Session-Id"] = response.getheader("Mcp-Session-Id")
    return response if keep else print(method, response.status, response.read(), flush=True)

ask("POST", {"id": 0, "method": "initialize"})
print(session)
ask("POST", {"method": "notifications/initialized"})
stream = ask("GET", keep=True)
print(stream.status, stream.readline(), stream.readline(), stream.readline())
resumed = ask("GET", keep=True, **{"Last-Event-ID": "1"})
print(resumed.status, resumed.readline(), resumed.readline(), resumed.readline())
ask("POST", {"id": 1, "method": "tools/call", "params": {"name": "weather", "arguments": {"city": sys.argv[1]}}})
ask("POST", {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": json.loads(sys.argv[2])})
ask("DELETE")
ask("GET")
os._exit(0)  # with both streams open
"""
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("fetch", "weather")]
FORM = ("Content-Type: application/json", "Transfer-Encoding: chunked")


async def serve(call: Call, closed: Gate) -> None:
    """A server of MCP: one session, two streams that stay open."""
    asked = call.request
    body = json.loads(asked.body) if asked.body else {}
    if asked.method == "GET" and not closed._open.is_set():
        last = int(asked.header("Last-Event-ID") or 0)
        await call.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        await call.chunk(b'id: %d\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n' % (last + 1))
        await call.wait(Gate())  # until the client leaves
    elif asked.method == "GET":
        await call.head("405 Method Not Allowed", "Content-Length: 0")
    elif asked.method == "DELETE":
        closed.open()
        await call.head("200 OK", "Content-Length: 0")
    elif "id" not in body and "model" not in body:
        assert asked.header("Mcp-Session-Id") == SESSION
        await call.head("202 Accepted", "Content-Length: 0")
    else:
        extra = (f"Mcp-Session-Id: {SESSION}",) if body.get("method") == "initialize" else ()
        await call.head("200 OK", *FORM, *extra)
        answer = {"jsonrpc": "2.0", "id": body.get("id"), "result": {"content": [{"type": "text", "text": "sunny"}]}}
        await call.chunk(json.dumps(answer).encode())
        await call.last_chunk()


@pytest.fixture(scope="module")
def taped(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Cli, subprocess.CompletedProcess[str]]:
    cli = Cli(tmp_path_factory.mktemp("mcp"), home)
    (cli.cwd / "agent.py").write_text(AGENT)
    closed = Gate()
    command = ("--", sys.executable, "agent.py", "Paris", json.dumps(TOOLS))
    with Origin(lambda call: serve(call, closed)) as origin:
        return cli, cli.run("record", "-o", "t.gz", "--map", f"mcp.example={origin.url}", *command)


def test_33_open_streams_hang_neither_recording_nor_replay(
    taped: tuple[Cli, subprocess.CompletedProcess[str]],
) -> None:
    cli, recorded = taped
    assert recorded.returncode == 0, recorded.stderr
    said = recorded.stdout.splitlines()
    assert said[1:4] == [
        f"{{'Mcp-Session-Id': '{SESSION}'}}",
        "POST 202 b''",
        '200 b\'id: 1\\n\' b\'data: {"jsonrpc":"2.0","method":"notifications/message"}\\n\' b\'\\n\'',
    ]
    assert said[4].startswith("200 b'id: 2")
    assert said[-2:] == ["DELETE 200 b''", "GET 405 b''"]
    ends = [one.end.how for one in load(cli.cwd / "t.gz")[0].exchanges if one.end is not None]
    assert ends == ["complete"] * 2 + ["client-gone"] * 2 + ["complete"] * 4
    replayed = cli.run("replay", "t.gz")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr


def test_the_session_that_a_client_gives_back_is_on_the_tape(
    taped: tuple[Cli, subprocess.CompletedProcess[str]],
) -> None:
    cli, _ = taped
    sent = [dict(one.request.headers) for one in load(cli.cwd / "t.gz")[0].exchanges]
    assert [headers.get(b"Mcp-Session-Id") for headers in sent] == [None, *[SESSION.encode()] * 7]


def test_another_argument_and_another_list_of_tools_are_told(
    taped: tuple[Cli, subprocess.CompletedProcess[str]],
) -> None:
    cli, _ = taped
    tools = [{"type": "function", "function": {"name": "search"}}, TOOLS[1] | {"function": {"name": "weather"}}]
    replayed = cli.run("replay", "t.gz", "--", sys.executable, "agent.py", "Rome", json.dumps(tools))
    assert replayed.returncode == 3
    assert "body $.params.arguments.city\n      tape: Paris\n      now:  Rome" in replayed.stderr
    assert "    the tool list changed: + search, - fetch, changed schema of weather\n" in replayed.stderr


def test_show_names_the_call_and_its_result(taped: tuple[Cli, subprocess.CompletedProcess[str]]) -> None:
    cli, _ = taped
    shown = cli.run("show", "t.gz").stdout
    assert '/mcp: tools/call weather {"city":"Paris"} → sunny' in shown
    assert 'MCP: tools/call weather {"city":"Paris"} → sunny\n' in cli.run("show", "t.gz", "5").stdout
    document = json.loads(cli.run("show", "t.gz", "--json").stdout)
    assert document["exchanges"][4]["mcp"]["name"] == "weather"
    assert document["exchanges"][6]["mcp"] is None


SDK_SERVER = """
import os, sys
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("weather")

@server.tool()
async def weather(city: str, ctx: Context) -> str:
    await ctx.report_progress(1, 2, "looking")
    return f"{city}: {os.urandom(4).hex()}"

uvicorn.Server(uvicorn.Config(server.streamable_http_app(host="mcp.example"), log_level="error")).run([SOCKET])
"""
SDK_AGENT = """
import asyncio, sys
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def told(done, total, message):
    print("progress", done, total, message)

async def main():
    for mode in ("legacy", "auto"):  # with a session and its stream; without
        async with Client(streamable_http_client("http://mcp.example/mcp"), mode=mode) as client:
            print([tool.name for tool in (await client.list_tools()).tools])
            for city in ("Paris", "Oslo"):
                called = await client.call_tool("weather", {"city": city}, progress_callback=told)
                print(called.content[0].text)

asyncio.run(main())
"""


@pytest.mark.soak
def test_the_sdk_on_both_sides(cli: Cli) -> None:
    pytest.importorskip("mcp")
    import socket

    (cli.cwd / "agent.py").write_text(SDK_AGENT)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        text = SDK_SERVER.replace("SOCKET", f"__import__('socket').socket(fileno={listening.fileno()})")
        server = subprocess.Popen(
            [sys.executable, "-c", text], pass_fds=[listening.fileno()], stderr=subprocess.DEVNULL, cwd=cli.cwd
        )
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            command = ("--", sys.executable, "agent.py")
            recorded = cli.run("record", "-o", "t.gz", "--map", f"mcp.example={url}", *command)
        finally:
            server.kill()
            server.wait()
    assert recorded.returncode == 0, recorded.stderr
    methods = [one.request.method for one in load(cli.cwd / "t.gz")[0].exchanges]
    assert methods.count(b"GET") == methods.count(b"DELETE") == 1
    replayed = cli.run("replay", "t.gz")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
