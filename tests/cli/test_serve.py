"""`tapeproxy serve` as a command: its address, its end, and what it says when it can't."""

import http.client
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import agentruns
import pytest
from click.testing import CliRunner
from clirun import Cli
from recording import read_until

from tapeproxy.cli.serve import command
from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.tapes.errors import UsageError

NAME = "one.tape.jsonl.gz"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    agentruns.write_tape(tmp_path / ".tapes" / NAME, agentruns.sample("m"))
    return Cli(tmp_path, tmp_path / "home")


@pytest.mark.parametrize(("words", "page"), [((), "/"), ((f".tapes/{NAME}",), f"/tape/{NAME}")])
@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_ended(cli: Cli, words: tuple[str, ...], page: str, ends: signal.Signals) -> None:
    process = cli.start("serve", *words)
    assert process.stdout is not None
    address = urlsplit(process.stdout.readline().strip())
    assert (address.hostname, address.path) == ("127.0.0.1", page)
    connection = http.client.HTTPConnection("127.0.0.1", address.port or 0)
    connection.request("GET", "/api/tapes", headers={"x-tapeproxy-token": address.fragment.removeprefix("token=")})
    answer = connection.getresponse()
    assert (answer.status, NAME in answer.read().decode()) == (200, True)
    process.send_signal(ends)  # with a connection open
    out, err = process.communicate(timeout=60)
    connection.close()
    assert (process.returncode, out, err) == (0, "", "")


XDG_OPEN = """#!/bin/sh
{ printf '%s\\n' "$*" "$(stat -c %a "$1")"; cat "$1"; } > "$TOLD"
"""


def test_the_token_is_on_no_command_line_of_a_browser(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "xdg-open").write_text(XDG_OPEN)
    (tmp_path / "bin" / "xdg-open").chmod(0o700)
    os.mkfifo(tmp_path / "told")
    place = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TOLD": str(tmp_path / "told")}
    process = cli.start("serve", "--open", env=cli.environment() | place)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    words, mode, page = (tmp_path / "told").read_text().split("\n", 2)
    assert Path(words).is_file()
    assert address.partition("#token=")[2] not in words
    assert (mode, f'url={address}"' in page) == ("600", True)
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(address).port or 0)
    connection.request("GET", "/")
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(signal.SIGINT)
    assert (*process.communicate(timeout=60), process.returncode) == ("", "", 0)
    assert not Path(words).parent.exists()


@contextmanager
def following(port: int, token: str) -> Iterator[socket.socket]:
    """A line over which a tape grows, as a browser opens it (RFC 6455); its first message has come."""
    hello = json.dumps({"token": token}).encode()
    with socket.create_connection(("127.0.0.1", port), 60) as line:
        line.sendall(
            f"GET /api/tapes/{NAME}/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n".encode()
            + b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert read_until(line, b"\r\n\r\n").startswith(b"HTTP/1.1 101")
        line.sendall(bytes([0x81, 0x80 | len(hello), 0, 0, 0, 0]) + hello)
        got = b""
        while b'{"labels"' not in got:
            piece = line.recv(65536)
            assert piece, got
            got += piece
        yield line


def test_it_ends_though_pages_follow_a_tape_and_one_takes_nothing(cli: Cli) -> None:
    tape = TapeWriter(cli.cwd / ".tapes" / NAME, agentruns.HEAD, force=True)
    for record in agentruns.sample("m"):
        tape.add(record)
    tape.commit()
    process = cli.start("serve")
    assert process.stdout is not None
    address = urlsplit(process.stdout.readline().strip())
    port, token = address.port or 0, address.fragment.removeprefix("token=")
    with following(port, token), following(port, token) as second:
        second.shutdown(socket.SHUT_WR)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
    tape.seal(trace="", outcome="exited")


def test_a_port_that_is_taken(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = cli.run("serve", "--port", str(port))
    assert done.returncode == 2
    assert f"port {port} cannot be used: Address already in use" in done.stderr
    assert "leave --port out" in done.stderr


def test_without_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tapeproxy.proxy.viewserver", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = CliRunner().invoke(command, [])
    assert isinstance(done.exception, UsageError)
    assert "the viewer needs uvicorn, which is not installed" in str(done.exception)
    assert "pip install '.[view]'" in str(done.exception)


def test_nothing_to_serve(cli: Cli, tmp_path: Path) -> None:
    done = Cli(tmp_path / "home", cli.home)
    (tmp_path / "home").mkdir()
    found = done.run("serve")
    assert found.returncode == 2
    assert "there is nothing there" in found.stderr
