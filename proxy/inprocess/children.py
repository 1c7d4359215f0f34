"""Processes that code within a replay makes: forks and programs. They are no part of the replay, and are told so.

A fork has copies of everything, the tape too; answers that it took would not be missed by its parent. So its routes are
shut, and what it asks is written to a file that both have. A program gets a proxy that refuses whatever it is asked.
"""

import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from tapeproxy.proxy.inprocess import routes
from tapeproxy.proxy.inprocess.flows import OUTSIDE, outside
from tapeproxy.proxy.inprocess.journal import Journal
from tapeproxy.proxy.inprocess.refusing import Refuser
from tapeproxy.proxy.inprocess.routes import Origin, Pipe, Route
from tapeproxy.shim.inject._tapeproxy.lanes import LANE, Lane, become_fork, current
from tapeproxy.tapes.violations import Violation

FORKED = "a process that was forked within a replay asked for this, and was refused: it would not be missed on the tape"
_ENVIRONMENT = 6
"""The place of `env` among the arguments of Popen._execute_child."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_DIRECT = "localhost,127.0.0.1,::1"


class Reports:
    """What children have to tell, in a file without a name that they share with this process."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._read = 0

    def prepare(self) -> None:
        """Have the file, before a child is made."""
        if self._file is None:
            with tempfile.TemporaryFile() as file:
                self._file = os.dup(file.fileno())

    def tell(self, what: str) -> None:
        """Of a child: tell the parent."""
        if self._file is not None:
            os.write(self._file, json.dumps(what).encode() + b"\n")

    def heard(self) -> Iterator[str]:
        """Of the parent: what was told since the last time."""
        if self._file is None:
            return
        size = os.fstat(self._file).st_size
        if size > self._read:
            data = os.pread(self._file, size - self._read, self._read)
            self._read = size
            yield from (json.loads(line) for line in data.splitlines())

    def forget(self) -> None:
        """Nothing is told any more."""
        if self._file is not None:
            os.close(self._file)
            self._file, self._read = None, 0


class ShutRoute:
    """A replay's route in a forked child."""

    def __init__(self, route: Route) -> None:
        self._route = route

    def takes(self, host: str, port: int) -> bool:
        """What the parent's would."""
        return self._route.takes(host, port)

    def serve(self, far: socket.socket, origin: Origin, near: Pipe, direct: bool) -> "_Deaf":
        """Refuse, whatever is asked."""
        del near, direct
        asked = f"{origin.url}, in process {os.getpid()}"
        self._route.children.tell(asked)
        far.sendall(Violation("egress", asked, FORKED).to_answer())
        far.close()
        return _Deaf()

    def reaches_out(self, kind: str, host: str, port: int) -> str:
        """Refuse what the parent's would."""
        why = self._route.reaches_out(kind, host, port)
        if why:
            place = f"{host}:{port}" if port else host
            self._route.children.tell(f"{kind} {place}, in process {os.getpid()}")
        return why

    @property
    def lets_children(self) -> bool:
        """It does not."""
        return False

    def refuses(self, what: str) -> None:
        """A program that the child has started was refused something."""
        self._route.children.tell(what)

    @property
    def children(self) -> Reports:
        """Of its own children, too."""
        return self._route.children


class _Deaf:
    """Has answered already."""

    def feed(self, data: bytes) -> None:
        """It does not matter."""

    def hang_up(self) -> None:
        """Nor does this."""


_watching = False
_lane: Lane | None = None


def watch_forks() -> None:
    """Begin to watch, once for this process: hooks for forks cannot be taken back, and do nothing without a route."""
    global _watching
    if not _watching and hasattr(os, "register_at_fork"):
        _watching = True
        os.register_at_fork(before=_before, after_in_child=_in_child)


def _before() -> None:
    global _lane
    _lane = None
    if routes.top() is None:
        return
    lane = LANE.get(None)
    if lane:
        _lane = current().child("f")
    with outside():
        for route in routes.all_open():
            if not route.lets_children:
                route.children.prepare()


def _in_child() -> None:
    if routes.top() is not None:
        routes.replace(lambda route: route if route.lets_children else ShutRoute(route))
        if _lane is not None:  # else parent and child would draw the same numbers
            become_fork(_lane)


def patch_popen(module: Any, journal: Journal) -> None:
    """`subprocess`: programs are told of a proxy that refuses, unless they are ours."""
    execute = module.Popen._execute_child

    def execute_child(self: Any, *args: Any) -> Any:
        route = routes.top()
        if route is not None and not route.lets_children and LANE.get(None) is not OUTSIDE:
            given = list(args)
            given[_ENVIRONMENT] = _environment(given[_ENVIRONMENT])
            args = tuple(given)
        return execute(self, *args)

    journal.replace(module.Popen, "_execute_child", execute_child)


def _environment(given: Mapping[Any, Any] | None) -> dict[Any, Any]:
    address = f"http://127.0.0.1:{Refuser.get().port}"
    kind = bytes if given and isinstance(next(iter(given)), bytes) else str
    out: dict[Any, Any] = dict(os.environ if given is None else given)
    wanted = dict.fromkeys(_PROXIES, address) | {"NO_PROXY": _DIRECT}
    for name, value in {**wanted, **{name.lower(): value for name, value in wanted.items()}}.items():
        out[name.encode() if kind is bytes else name] = value.encode() if kind is bytes else value
    out[b"NODE_USE_ENV_PROXY" if kind is bytes else "NODE_USE_ENV_PROXY"] = b"1" if kind is bytes else "1"
    return out
