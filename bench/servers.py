"""The commands that are measured and the servers they are measured against, as processes that end with their `with`."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.conversation import HOST
from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.leaves import Issuer

ROOT = Path(__file__).resolve().parent.parent
_BIN = Path(sys.executable).parent
_PATIENCE = 120.0
_LISTENING = re.compile(r"listening at .*:(\d+)")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that listens on `port`, with certificates that `ca` vouches for."""

    port: int
    ca: Path


class MissingError(Exception):
    """A peer is not installed here."""


def tapeproxy() -> list[str]:
    """Our command."""
    return [str(_BIN / "tapeproxy")]


def python(module: str) -> list[str]:
    """A module of this folder as a command."""
    return [sys.executable, "-m", f"bench.{module}"]


def home(folder: Path) -> Path:
    """The home of our certificate authority, made if need be."""
    return CertificateAuthority.open(folder / "home").directory


def environment(folder: Path) -> dict[str, str]:
    """The environment of our command: a user's, with a home of its own and no proxy."""
    ours = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return ours | {"TAPEPROXY_HOME": str(home(folder)), "OPENAI_API_KEY": "sk-bench-0123456789abcdef"}


def ask(command: Sequence[str], job: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Any:
    """Run a command that reads a job and prints its outcome, both JSON. Raises CalledProcessError."""
    done = subprocess.run(
        command, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=env, timeout=600
    )
    return json.loads(done.stdout)


def require_mitmdump() -> str:
    """The path of mitmdump. Raises MissingError."""
    program = _BIN / "mitmdump"
    if not program.exists():
        raise MissingError("mitmdump is not installed: pip install 'tapeproxy[record]'")
    return str(program)


def mitmdump_command(folder: Path, *settings: str) -> list[str]:
    """mitmdump on a free port, saying as little as it can. Raises MissingError."""
    program = require_mitmdump()
    options = ("flow_detail=0", "connection_strategy=lazy", "upstream_cert=false", *settings)
    flags = [word for option in (f"confdir={folder / 'mitmproxy'}", *options) for word in ("--set", option)]
    return [program, "--listen-host", "127.0.0.1", "--listen-port", "0", *flags]


@contextlib.contextmanager
def mitmdump(folder: Path, *settings: str) -> Iterator[Endpoint]:
    """A mitmdump that listens. Raises MissingError."""
    with listening_mitmdump(mitmdump_command(folder, *settings)) as port:
        yield Endpoint(port, folder / "mitmproxy" / "mitmproxy-ca-cert.pem")


@contextlib.contextmanager
def listening_mitmdump(command: list[str]) -> Iterator[int]:
    """Start mitmdump and wait until it says that it listens; gives the port."""
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    with _running(command, env) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if match := _LISTENING.search(line):
                yield int(match[1])
                return
        raise RuntimeError(f"mitmdump did not start: {said}")


@contextlib.contextmanager
def nginx(folder: Path, *, reads_body: bool) -> Iterator[Endpoint]:
    """An nginx with one worker that gives everything the same answer of 1 KB, over TLS and without a proxy.

    On its own it answers when it has the head, and drops the body as it comes. `reads_body`: it takes the whole body
    first, for which it has to pass the request on, to itself and without the body. Raises MissingError.
    """
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise MissingError("nginx is not installed")
    place = folder / "nginx"
    place.mkdir(exist_ok=True)
    authority = home(folder)
    issuer = Issuer.parse((authority / "mitmproxy-ca.pem").read_bytes())
    (place / "leaf.pem").write_bytes(issuer.mint(HOST, [datetime.now(UTC)]))
    port = _free_port()
    (place / "nginx.conf").write_text(_nginx_conf(place, port, reads_body=reads_body))
    with _running([program, "-p", str(place), "-c", str(place / "nginx.conf")], os.environ):
        _wait_for(port)
        yield Endpoint(port, authority / "mitmproxy-ca-cert.pem")


def _nginx_conf(place: Path, port: int, *, reads_body: bool) -> str:
    answer = f"default_type application/json; return 200 '{'x' * 1000}';"
    passed = (
        'proxy_pass http://self; proxy_http_version 1.1; proxy_set_header Connection "";'
        'proxy_pass_request_body off; proxy_set_header Content-Length "";'
    )
    temporary = "".join(f"{kind}_temp_path {place / kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
    return f"""
        {"user root root;" if os.geteuid() == 0 else ""}
        worker_processes 1; daemon off; pid {place / "pid"}; error_log stderr crit;
        events {{ worker_connections 64; }}
        http {{
            access_log off; client_max_body_size 1m; client_body_buffer_size 512k; keepalive_requests 1000000;
            client_body_temp_path {place / "body"}; {temporary}
            upstream self {{ server unix:{place / "socket"}; keepalive 16; }}
            server {{ listen unix:{place / "socket"}; location / {{ {answer} }} }}
            server {{
                listen 127.0.0.1:{port} ssl; ssl_session_tickets off;
                ssl_certificate {place / "leaf.pem"}; ssl_certificate_key {place / "leaf.pem"};
                location / {{ {passed if reads_body else answer} }}
            }}
        }}
    """


@contextlib.contextmanager
def stream_origin(folder: Path) -> Iterator[Endpoint]:
    """A TLS server of event streams for 127.0.0.1: `bench.origin`."""
    authority = home(folder)
    issuer = Issuer.parse((authority / "mitmproxy-ca.pem").read_bytes())
    leaf = folder / "origin.pem"
    leaf.write_bytes(issuer.mint("127.0.0.1", [datetime.now(UTC)]))
    with _running([*python("origin"), str(leaf)], os.environ) as process:
        assert process.stdout is not None
        yield Endpoint(int(process.stdout.readline()), authority / "mitmproxy-ca-cert.pem")


@contextlib.contextmanager
def _running(command: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    """nginx does not say when it listens."""
    until = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return
