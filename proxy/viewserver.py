"""The page's port: uvicorn on loopback, until it is interrupted."""

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import quote

import uvicorn

from tapeproxy.proxy.tapefile import is_locked
from tapeproxy.proxy.unlocking import Ask, ask_environment
from tapeproxy.proxy.viewforks import ForkingFolder
from tapeproxy.tapes.errors import TapeproxyError, UsageError
from tapeproxy.web.app import make_app
from tapeproxy.web.library import NotThereError
from tapeproxy.web.tapeapi import outline_of, ranks_of

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What is shown, a tape or a folder, and to whom: who has the `token`. `port` 0: one that is free.

    `ask` gives the secrets of encrypted tapes. `extra` are words for `tapeproxy fork` that every fork gets.
    """

    place: Path
    token: str = field(repr=False)
    port: int = 0
    ask: Ask = ask_environment
    extra: tuple[str, ...] = ()


class ViewServer:
    """The server of the page; it listens once it is made. Raises UsageError where the port is taken."""

    def __init__(self, options: ViewOptions) -> None:
        self._listener = _listen(options.port)
        self._token = options.token
        self.port: int = self._listener.getsockname()[1]
        self._library = ForkingFolder(options.place, options.ask, options.extra)
        app = make_app(self._library, token=options.token, hosts=_names(self.port))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            ws="wsproto",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
            ws_max_size=1 << 16,
        )
        self._server = uvicorn.Server(config)
        # Uvicorn tells of what it breaks off at the end as of a failure.
        logging.getLogger("uvicorn.error").addFilter(_is_no_end)

    def address(self, page: str = "") -> str:
        """The URL of a page, with the token, which no browser sends anywhere: it stands behind the #."""
        return f"http://{_HOST}:{self.port}/{quote(page)}#token={self._token}"

    def run(self) -> None:
        """Serve until `stop`, Ctrl-C, SIGTERM or SIGHUP; then end the forks that run."""
        try:
            with _Ended():
                self._server.run(sockets=[self._listener])
        except KeyboardInterrupt:
            pass
        finally:
            self._listener.close()
            self._library.close()

    def read_ahead(self) -> None:
        """Read the newest tape before anybody asks for it; what is wrong with it is told to whoever asks.

        It is the one that most people want to see. None that is encrypted: its passphrase takes a second, and memory.
        """
        with contextlib.suppress(TapeproxyError, NotThereError, OSError):
            name = next((row.name for row in self._library.listed() if not row.recording), None)
            if name is not None and not is_locked(self._library.path(name)):
                shown = self._library.open(name)
                outline_of(shown, name)  # the page needs it first
                ranks_of(shown)

    def stop(self) -> None:
        """Have `run` return, from any thread."""
        self._server.should_exit = True


def serve(options: ViewOptions, page: str, ready: Callable[[str], None]) -> None:
    """Give out the page; `ready` gets its address once it is open. Returns when interrupted. Raises UsageError."""
    server = ViewServer(options)
    threading.Thread(target=server.read_ahead, daemon=True).start()
    ready(server.address(page))
    server.run()


def _is_no_end(record: logging.LogRecord) -> bool:
    broken_off = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not broken_off and "graceful shutdown" not in record.getMessage()


class _Ended:
    """Within it, signals that end us do so as Ctrl-C does: with the forks of the page."""

    _SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

    def __enter__(self) -> None:
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, _interrupt) for one in self._SIGNALS}

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    # As after Ctrl-C the last server's connections linger. On Windows it would take a port from others.
    if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UsageError(f"port {port} cannot be used: {error.strerror}", fix="leave --port out") from None
    return listener


def _names(port: int) -> frozenset[str]:
    """What a Host header may say. Browsers leave HTTP's own port out."""
    hosts = (_HOST, "localhost")
    return frozenset(f"{host}:{port}" for host in hosts) | (frozenset(hosts) if port == 80 else frozenset())
