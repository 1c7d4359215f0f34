"""Hard inputs 27 and 31, by number: clients that do not come by the proxy, and those that speak another HTTP."""

import socket
from urllib.parse import urlsplit

import pytest
from bothwires import HOST, URL, BothWires
from clirun import Cli
from h2client import Client2, Heard
from noderuns import node
from origin import Call, Origin
from wireclients import PATIENCE, Client, Sent, Way, each_client

from tapeproxy.proxy.tapefile import load

FETCH = "fetch(process.argv[1]).then((answer) => answer.text()).then(console.log, () => console.log('no answer'))"
# What newer ones are told so that they do come by the proxy.
OLDER = ["env", "-u", "NODE_USE_ENV_PROXY"]


def test_27_a_fetch_of_node_that_comes_by_no_proxy_is_noticed(cli: Cli) -> None:
    """With the shim it comes by the proxy; without, it is said while recording, and refused and told in a replay."""

    async def answer(call: Call) -> None:
        await call.reply(b"live")

    with Origin(answer) as origin:
        argv = ["--", *OLDER, node(), "-e", FETCH, origin.url]
        taped = cli.run("record", "-o", "t.tape.jsonl.gz", *argv)
        past = cli.run("record", "--no-shim", "-o", "past.tape.jsonl.gz", *argv)
    assert (taped.returncode, taped.stdout) == (past.returncode, past.stdout) == (0, "live\n")
    assert len(load(cli.cwd / "t.tape.jsonl.gz")[0].exchanges) == 1
    assert "nothing was taped: " in past.stderr
    assert not load(cli.cwd / "past.tape.jsonl.gz")[0].exchanges
    replayed = cli.run("replay", "t.tape.jsonl.gz")
    assert (replayed.returncode, replayed.stdout) == (0, "live\n"), replayed.stderr
    argv[-1] = "http://192.0.2.1:8080/"
    refused = cli.run("replay", "past.tape.jsonl.gz", "--guard", "namespace", *argv)
    if refused.returncode == 2 and "cannot be had" in refused.stderr:
        pytest.skip("no network namespace here")
    assert (refused.returncode, refused.stdout) == (3, "no answer\n")
    assert "tried to reach the network past the proxy, once, and was refused" in refused.stderr


def with_http2_alone(way: Way) -> Heard:
    """A client that speaks nothing but HTTP/2, and ends the connection over a field that has no place there."""
    where = urlsplit(way.proxy)
    context = way.trust()
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE) as sock:
        sock.sendall(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
        assert b" 200 " in sock.recv(1000)
        with context.wrap_socket(sock, server_hostname=HOST) as tls:
            client = Client2(tls)
            return client.hear(client.ask())


@each_client
def test_31_a_capitalised_header_of_the_tape_to_a_client_of_http2(wires: BothWires, client: Client) -> None:
    """HTTP/2 has no capitals, and no field that is about one connection."""

    async def answer(call: Call) -> None:
        await call.reply(b"hello", "200 OK", "X-CAPITAL: One", "x-Capital: Two", "Keep-Alive: timeout=5")

    wires.record(answer, lambda way: client(way, Sent("GET", f"{URL}/")))
    response = wires.exchange().response
    assert response is not None and b"X-CAPITAL" in [name for name, _ in response.headers]
    again = wires.replay(with_http2_alone)
    assert (again.status, again.body, again.ended) == (200, b"hello", True)
    assert again.headers == (("x-capital", "One"), ("x-capital", "Two"), ("content-length", "5"))
