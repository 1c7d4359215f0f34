"""`tapeproxy mcp` in a recording: the real server, with every line written to a sidecar file before it is passed on.

Knows pipes and processes. What the lines mean is `tapes/mcptaping.py`'s. Nothing here ends or delays the run: what
can't be taped is passed on all the same, and said once on stderr.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from tapeproxy.tapes.mcptaping import as_line

_READ: Final = 1 << 16
_LONGEST: Final = 64 << 20
"""Bytes of a message that is taped; of a longer one only this much is held, and the rest is a message of its own."""
_DRAIN: Final = 2.0
"""Seconds that what a server's children still write is waited for when it has ended."""
_FORWARDED: Final = ("SIGTERM", "SIGHUP", "SIGINT")


class Lines:
    """Writes what one server and its client say to a sidecar file of its own."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self.session = 0
        self._name = name
        self._lock = threading.Lock()
        self._fd: int | None = None
        if folder is None:
            return
        try:
            self._fd, self.session = _open(folder, name)
        except OSError as error:
            self._fail(error)

    def write(self, what: str, **fields: Any) -> None:
        """Write a line. It is with the operating system when this returns."""
        with self._lock:
            if self._fd is None:
                return
            line = {"k": "mcp", "what": what, "server": self._name, "session": self.session, "ns": time.time_ns()}
            data = orjson.dumps(line | fields) + b"\n"
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError as error:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._fd = None
        reason = (error.strerror or str(error)).lower()
        text = f"tapeproxy: what the MCP server {self._name} says cannot be taped from here on: {reason}\n"
        with contextlib.suppress(OSError):
            os.write(2, text.encode())


def run_tapped(argv: Sequence[str], environment: Mapping[str, str], lines: Lines) -> int:
    """Run the server between our own stdin and stdout until it ends. Returns its code; by a signal, minus its number.

    Raises OSError when it can't be started.
    """
    lines.write("start", argv=[word.encode(errors="replace").decode() for word in argv])
    try:
        server = subprocess.Popen(argv, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError:
        lines.write("exit", code=2)
        raise
    _forward_signals(server)
    assert server.stdin is not None
    assert server.stdout is not None
    threading.Thread(target=_send, args=(server.stdin.fileno(), server.stdin.close, lines), daemon=True).start()
    receiver = threading.Thread(target=_receive, args=(server.stdout.fileno(), lines), daemon=True)
    receiver.start()
    code = server.wait()
    receiver.join(_DRAIN)
    how = {"code": code} if code >= 0 else {"signal": signal.Signals(-code).name}
    lines.write("exit", **how)
    return code


def end_as(code: int) -> None:
    """End this process as another one ended: with its code, or by its signal."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    if code < 0:
        with contextlib.suppress(OSError, ValueError):  # nobody may change what SIGKILL does
            signal.signal(-code, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.kill(os.getpid(), -code)
        code = 128 - code
    os._exit(code & 0xFF)  # a thread may still read from a client that does not close


def pieces(descriptor: int) -> Iterator[bytes]:
    """The lines of a pipe, each with its newline, as they come; the last one may have none."""
    rest: list[bytes] = []
    held = 0
    while data := _read(descriptor):
        *whole, last = data.split(b"\n")
        for line in whole:
            yield b"".join((*rest, line, b"\n"))
            rest, held = [], 0
        rest.append(last)
        held += len(last)
        if held > _LONGEST:
            yield b"".join(rest)
            rest, held = [], 0
    if any(rest):
        yield b"".join(rest)


def write_all(descriptor: int, data: bytes) -> bool:
    """Write to a pipe; False where nobody reads it any more."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return False
    return True


def _send(descriptor: int, close: Callable[[], None], lines: Lines) -> None:
    """From the client to the server."""
    for line in pieces(0):
        lines.write("client", **as_line(line.removesuffix(b"\n")))
        if not write_all(descriptor, line):
            return
    lines.write("eof")
    with contextlib.suppress(OSError):
        close()


def _receive(descriptor: int, lines: Lines) -> None:
    """From the server to the client."""
    for line in pieces(descriptor):
        lines.write("server", **as_line(line.removesuffix(b"\n")))
        if not write_all(1, line):
            # Nobody listens: the server is to feel that as it would without us.
            with contextlib.suppress(OSError):
                os.close(descriptor)
            return


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ)
    except OSError:
        return b""


def _forward_signals(server: "subprocess.Popen[bytes]") -> None:
    def forward(number: int, _: object) -> None:
        server.send_signal(number)

    for name in _FORWARDED:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), forward)


def _open(folder: Path, name: str) -> tuple[int, int]:
    """A new sidecar file, and which process of this name in the run it belongs to, from 1."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
    session = 1
    while True:
        try:
            return os.open(folder / f"mcp-{name}-{session}.jsonl", flags, 0o600), session
        except FileExistsError:
            session += 1
