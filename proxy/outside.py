"""A way out for a process that moves into a network namespace: a twin that stays outside and makes connections for it.

The twin is forked before the move. It connects where it is told and hands the connected socket over (SCM_RIGHTS), which
belongs to the network it was made in, whoever holds it. It sees no byte of what is said, and ends with its owner.
"""

import array
import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any, Self

from tapeproxy.proxy.netns import listening_ports
from tapeproxy.tapes.hosts import is_loopback

_MOST = 1 << 16
_CONNECT, _RESOLVE = "connect", "resolve"


class Outside:
    """The twin's owner's end. `ports`: at which somebody on the loopback outside waited when it was forked."""

    def __init__(self, channel: socket.socket, ports: frozenset[int]) -> None:
        self.ports = ports
        self._channel = channel
        self._waiting: dict[int, asyncio.Future[tuple[Any, list[int]]]] = {}
        self._number = 0
        self._listening = False

    @classmethod
    def fork(cls) -> Self:
        """Leave a twin here. To be called before there is a second thread or an event loop."""
        ports = listening_ports()
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            ours.close()
            _serve(its)
        its.close()
        ours.setblocking(False)
        return cls(ours, ports)

    def has(self, host: str, port: int) -> bool:
        """Whether this is a place outside: all but our loopback, and of that what waited on the one outside."""
        return not is_loopback(host) or port in self.ports

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connected socket. Raises OSError, as connecting would."""
        _, (descriptor,) = await self._ask(_CONNECT, host, port)
        found = socket.socket(fileno=descriptor)
        found.setblocking(False)
        return found

    async def resolve(self, host: str) -> str:
        """The first address of a name. Raises OSError, as looking it up would."""
        address, _ = await self._ask(_RESOLVE, host, 0)
        return str(address)

    async def _ask(self, what: str, host: str, port: int) -> tuple[Any, list[int]]:
        loop = asyncio.get_running_loop()
        if not self._listening:
            loop.add_reader(self._channel, self._hear)
            self._listening = True
        self._number += 1
        number = self._number
        answer: asyncio.Future[tuple[Any, list[int]]] = loop.create_future()
        self._waiting[number] = answer
        await loop.sock_sendall(self._channel, json.dumps([number, what, host, port]).encode())
        return await answer

    def _hear(self) -> None:
        try:
            data, descriptors = _receive(self._channel)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._lose()
            return
        number, code, said = json.loads(data)
        waiting = self._waiting.pop(number)
        if waiting.cancelled():
            for descriptor in descriptors:
                os.close(descriptor)
        elif descriptors or code is None:
            waiting.set_result((said, descriptors))
        else:
            waiting.set_exception(socket.gaierror(code, said) if code < 0 else OSError(code, said))

    def _lose(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(OSError("the process that goes outside has ended"))
        self._waiting.clear()


class OutsideLoop(asyncio.SelectorEventLoop):
    """An event loop whose connections to places outside are made there."""

    def __init__(self, outside: Outside) -> None:
        super().__init__()
        self._outside = outside

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        if options.get("sock") is None and host is not None and self._outside.has(str(host), int(port)):
            options["sock"] = await self._outside.connect(str(host), int(port))
            options.pop("local_addr", None)
            if options.get("ssl") and options.get("server_hostname") is None:
                options["server_hostname"] = host
            host = port = None
        return await super().create_connection(protocol_factory, host, port, **options)


def loop_for(outside: Outside | None) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop for a process with this way out; None: the usual one."""
    return None if outside is None else lambda: OutsideLoop(outside)


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    data, ancillary, _, _ = channel.recvmsg(_MOST, socket.CMSG_SPACE(array.array("i").itemsize))
    descriptors = array.array("i")
    for level, kind, held in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(held)
    return data, descriptors.tolist()


def _serve(channel: socket.socket) -> None:
    """The twin's life. Never returns."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)  # those of a terminal are for its owner, who may have more to ask
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)  # or who reads our output would wait for us
        while request := channel.recv(_MOST):
            threading.Thread(target=_answer, args=(channel, *json.loads(request)), daemon=True).start()
    finally:
        os._exit(0)


def _answer(channel: socket.socket, number: int, what: str, host: str, port: int) -> None:
    try:
        if what == _RESOLVE:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            _reply(channel, number, None, found[0][4][0])
            return
        with socket.create_connection((host, port)) as connected:
            _reply(channel, number, None, None, connected)
    except OSError as error:
        negative = isinstance(error, socket.gaierror)
        code = error.errno or 0
        _reply(channel, number, -abs(code) if negative else abs(code) or 5, error.strerror or str(error))


def _reply(
    channel: socket.socket, number: int, code: int | None, said: Any, given: socket.socket | None = None
) -> None:
    data = json.dumps([number, code, said]).encode()
    rights = [] if given is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [given.fileno()]))]
    channel.sendmsg([data], rights)
