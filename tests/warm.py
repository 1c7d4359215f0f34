"""Runs `tapeproxy` commands in forks of a process that has imported what they need, so a start takes no half second.

What runs is what always runs: a process of its own, with its own environment, folder and descriptors, which ends as
the command ends it. Only the interpreter's start and its imports were before; `Cli.start` starts from nothing.

Started as a program, with the number of a socket: takes orders there, forks for each, tells the process id and then
how it ended. One order at a time, each a JSON object (`argv`, `cwd`, `environment`) with three descriptors; `argv` is
of `python`: a script, or -m and a module, and its words.
"""

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_PATIENCE = 120
_LONGEST_INPUT = 4096
"""Fits into every pipe, so it is written before anyone reads."""
_SAME = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""What an interpreter looks at when it starts, besides PYTHON…: there a fork can't be other than its parent."""
_SOURCE = Path(__file__).parents[1]
_SIZE, _PID, _ENDED = struct.Struct("!I"), struct.Struct("!i"), struct.Struct("!id")


class Warm:
    """Such a process. `seconds`: what its commands and all that they waited for have taken of processors."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                # Pipes, as the commands will have, for the interpreter buffers by what it finds.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End it."""
        self._socket.close()
        with self._process:
            pass

    def run(
        self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str], input: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `python ARGV...` to its end, as `subprocess.run` does. Raises TimeoutExpired."""
        deadline = time.monotonic() + timeout
        order = json.dumps({"argv": argv, "cwd": str(cwd), "environment": dict(environment)}).encode()
        with self._lock:
            pipes = [os.pipe() for _ in range(3)]
            (stdin, feed), (out, stdout), (err, stderr) = pipes
            try:
                socket.send_fds(self._socket, [_SIZE.pack(len(order))], [stdin, stdout, stderr])
            finally:
                for descriptor in (stdin, stdout, stderr):
                    os.close(descriptor)
            os.write(feed, input.encode())
            os.close(feed)
            self._socket.sendall(order)
            (pid,) = _PID.unpack(_receive(self._socket, _PID.size))
            texts = _read([out, err], deadline)
            if texts is None and not select.select([self._socket], [], [], 0)[0]:  # else its children hold on
                os.kill(pid, signal.SIGKILL)
            code, seconds = _ENDED.unpack(_receive(self._socket, _ENDED.size))
        self.seconds += seconds
        if texts is None:
            raise subprocess.TimeoutExpired([*argv], timeout)
        return subprocess.CompletedProcess([*argv], code, *texts)


@cache
def warm() -> Warm:
    """The one of this process."""
    return Warm()


def run(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter to its end, forked where that is as good as a start. Raises TimeoutExpired."""
    assert argv[0] == sys.executable
    if _suits(environment, input):
        return warm().run(argv[1:], cwd, environment, input, _PATIENCE)
    return subprocess.run(
        argv,
        cwd=cwd,
        env=environment,
        input=input,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )


def _suits(environment: Mapping[str, str], input: str) -> bool:
    same = all(environment.get(name) == os.environ.get(name) for name in _SAME)
    plain = not any(name.startswith(("PYTHON", "COVERAGE")) for name in environment)
    return same and plain and len(input) < _LONGEST_INPUT and "COVERAGE_PROCESS_START" not in os.environ


def _read(descriptors: Sequence[int], deadline: float) -> list[str] | None:
    """All that comes from these, in their order, up to their ends; None when they have not ended in time."""
    found = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                data = os.read(key.fd, 1 << 16)
                found[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
        whole = not selector.get_map()
    for descriptor in descriptors:
        os.close(descriptor)
    return [data.decode().replace("\r\n", "\n") for data in found.values()] if whole else None


def _receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("the process that runs commands is gone; its error output says why")
        data += more
    return data


# --- in the process itself -----------------------------------------------------------------------------------------


def _serve(sock: socket.socket) -> bool:
    """Fork for each order. Returns True in a fork, False at the end of the orders."""
    while True:
        size, descriptors, _, _ = socket.recv_fds(sock, _SIZE.size, 3)
        if not size:
            return False
        order = json.loads(_receive(sock, *_SIZE.unpack(size)))
        pid = os.fork()
        if pid == 0:
            sock.close()
            _become(order, descriptors)
            return True
        for descriptor in descriptors:
            os.close(descriptor)
        sock.sendall(_PID.pack(pid))
        _, status, used = os.wait4(pid, 0)
        sock.sendall(_ENDED.pack(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime))


def _become(order: Mapping[str, object], descriptors: Sequence[int]) -> None:
    """Put on what a process of this order starts with."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    _reopen()
    argv, cwd, environment = order["argv"], order["cwd"], order["environment"]
    assert isinstance(argv, list) and isinstance(cwd, str) and isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    tempfile.tempdir = None
    sys.argv = argv
    sys.path[0] = cwd if argv[0] == "-m" else str(Path(argv[0]).parent)


def _reopen() -> None:
    """Make streams over the new descriptors: the old ones know whether theirs could seek."""
    old = [sys.stdin, sys.stdout, sys.stderr]
    buffers = [io.FileIO(number, mode, closefd=False) for number, mode in enumerate(("r", "w", "w"))]
    streams = [
        io.TextIOWrapper(
            io.BufferedWriter(raw) if raw.writable() else io.BufferedReader(raw),
            encoding=known.encoding,
            errors=known.errors,
            line_buffering=raw.fileno() == 2,
        )
        for known, raw in zip(old, buffers, strict=True)
    ]
    sys.stdin, sys.stdout, sys.stderr = streams


def _import_pytest() -> None:
    """And the client that tests of tests on tapes use: half of what such a run takes."""
    from _pytest.config import default_plugins

    for name in default_plugins:
        importlib.import_module(f"_pytest.{name}")
    importlib.import_module("httpx")


def _main() -> None:
    from tapeproxy.proxy.mitm import slim_imports

    slim_imports()
    importlib.import_module("mitmproxy.addons.proxyserver")
    for package in ("tapes", "addons", "proxy", "proxy/inprocess", "plugin", "cli"):
        for path in (_SOURCE / package).glob("[a-z]*.py"):
            importlib.import_module(f"tapeproxy.{package.replace('/', '.')}.{path.stem}")
    del sys.modules["tapeproxy.cli.main"]  # which is run as a program
    del sys.modules["tapeproxy.plugin.entry"]  # pytest says where a plugin was imported before it could look through it
    _import_pytest()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()
    if not _serve(socket.socket(fileno=int(sys.argv[1]))):
        return
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _main()
