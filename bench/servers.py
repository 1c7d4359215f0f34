"""The servers that tapeproxy is measured against, each ready to be asked, and the origins that are recorded."""

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.conversation import HOST
from bench.processes import BIN, FailedError, MissingError, home, listening, python, running
from tapeproxy.proxy.leaves import Issuer

LISTENING = r"listening at \S*:(\d+)"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that listens on `port`, with certificates that `ca` vouches for."""

    port: int
    ca: Path


def require_mitmdump() -> str:
    """The path of mitmdump. Raises MissingError."""
    program = BIN / "mitmdump"
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
    """A mitmdump that listens. Raises MissingError, FailedError."""
    with listening(mitmdump_command(folder, *settings), LISTENING) as port:
        yield Endpoint(port, folder / "mitmproxy" / "mitmproxy-ca-cert.pem")


@contextlib.contextmanager
def bare_mitmproxy(folder: Path, upstream_ca: Path) -> Iterator[Endpoint]:
    """The mitmproxy that we record with, with none of our addons. Raises MissingError, FailedError."""
    require_mitmdump()
    authority = home(folder)
    with listening([*python("baremitm"), str(authority), str(upstream_ca)], LISTENING) as port:
        yield Endpoint(port, authority / "mitmproxy-ca-cert.pem")


def leaf(folder: Path, host: str) -> Path:
    """A PEM file with key and certificate for `host`, by our authority."""
    issuer = Issuer.parse((home(folder) / "mitmproxy-ca.pem").read_bytes())
    path = folder / f"{host}.pem"
    path.write_bytes(issuer.mint(host, [datetime.now(UTC)]))
    return path


@contextlib.contextmanager
def origin(folder: Path, delay: float = 0.0) -> Iterator[Endpoint]:
    """A model's API for 127.0.0.1 over TLS (`bench.origin`), which thinks for `delay` seconds. Raises FailedError."""
    command = [*python("origin"), str(leaf(folder, "127.0.0.1")), str(delay)]
    with listening(command, LISTENING) as port:
        yield Endpoint(port, home(folder) / "mitmproxy-ca-cert.pem")


def nginx_program() -> str | None:
    """The nginx of this machine. On many it is where only root's PATH looks."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def nginx(folder: Path, *, reads_body: bool) -> Iterator[Endpoint]:
    """An nginx with one worker that gives everything the same answer of 1 KB, over TLS and without a proxy.

    On its own it answers when it has the head, and drops the body as it comes. `reads_body`: it takes the whole body
    first, for which it has to pass the request on, to itself and without the body. Raises MissingError, FailedError.
    """
    program = nginx_program()
    if program is None:
        raise MissingError("nginx is not installed: python -m bench.peers says how")
    place = folder / "nginx"
    place.mkdir(exist_ok=True)
    port = _free_port()
    (place / "nginx.conf").write_text(_nginx_conf(place, leaf(folder, HOST), port, reads_body=reads_body))
    with running([program, "-p", str(place), "-c", str(place / "nginx.conf")]):
        _wait_for(port)
        yield Endpoint(port, home(folder) / "mitmproxy-ca-cert.pem")


def _nginx_conf(place: Path, certificate: Path, port: int, *, reads_body: bool) -> str:
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
                ssl_certificate {certificate}; ssl_certificate_key {certificate};
                location / {{ {passed if reads_body else answer} }}
            }}
        }}
    """


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
        except OSError as error:
            if time.monotonic() > until:
                raise FailedError(f"nginx did not start: {error}") from None
            time.sleep(0.02)
        else:
            return
