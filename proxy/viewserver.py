"""The page's port: uvicorn on loopback, until it is interrupted."""

import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import uvicorn

from tapeproxy.proxy.unlocking import Ask
from tapeproxy.proxy.viewforks import ForkingFolder
from tapeproxy.tapes.errors import UsageError
from tapeproxy.web.app import make_app

_HOST = "127.0.0.1"


def serve(
    place: Path,
    ask: Ask,
    *,
    port: int,
    token: str,
    page: str,
    extra: tuple[str, ...],
    ready: Callable[[str], None],
) -> None:
    """Give out the page for a tape or a folder of them; `ready` gets its address once it is open.

    Returns when interrupted. Raises UsageError where the port is taken.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError as error:
        listener.close()
        raise UsageError(f"port {port} cannot be used: {error.strerror}", fix="leave --port out") from None
    listener.listen(128)
    port = listener.getsockname()[1]
    library = ForkingFolder(place, ask, extra)
    hosts = frozenset(f"{name}:{port}" for name in (_HOST, "localhost"))
    app = make_app(library, token=token, hosts=hosts)
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
    ready(f"http://{_HOST}:{port}/{quote(page)}#token={token}")
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        library.close()
        listener.close()
