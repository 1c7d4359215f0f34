"""What a replay within this interpreter is made of: its clock's settings, its server, who is on its tape."""

import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NoReturn

from tapeproxy.proxy.inprocess.background import Background
from tapeproxy.proxy.inprocess.clamp import ClampSettings
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.shimming import epoch_ns, reads_of
from tapeproxy.proxy.tapeserver import Serving, TapeServer
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.hosts import split_authority
from tapeproxy.tapes.identity import parse_target
from tapeproxy.tapes.recordfields import Json

_INBOX = memoryview(bytearray(1 << 18))
"""What connections read into: all of them on the background's loop, one after the other."""
_NO_ROOM = memoryview(b"")
"""For what TLS would decrypt."""


def clamp_settings(tape: Tape, take: Callable[[dict[str, Any]], object]) -> ClampSettings:
    """How the tape's clock and chance are had here; `take` hears what the flows do, a line as the shim writes it."""
    head = tape.head
    assert head.seed is not None
    lines: dict[str, list[Json]] = {}
    first: list[Json] = []
    for line in reads_of(tape):
        first = first or [line]
        lines.setdefault(line["lane"], []).append(line)
    return ClampSettings(
        mode="replay",
        seed=head.seed,
        origin_ns=epoch_ns(head.started_at) + (head.origin or 0),
        take=take,
        reads=lambda lane: first + lines.get(lane, []),
    )


def skip_settings() -> ClampSettings:
    """For a tape that holds neither clock nor seed: only sleeps are cut short."""
    now = time.time_ns() - time.perf_counter_ns()
    return ClampSettings(mode="skip", seed=bytes(32).hex(), origin_ns=now, take=lambda _: None)


def authorities(tape: Tape) -> Iterable[str]:
    """HOST:PORT of everyone on the tape, in small letters."""
    for exchange in tape.exchanges:
        try:
            target = parse_target(exchange.request.url)
        except ValueError:
            continue
        yield f"{target.host.lower()}:{target.port}"


def place(text: str) -> tuple[str, int]:
    """The host and port of HOST:PORT, also within a URL. Raises UsageError."""
    scheme, _, rest = text.rpartition("://")
    authority = rest.partition("/")[0].rpartition("@")[2]
    if ":" not in authority.rpartition("]")[2]:
        authority += ":443" if scheme == "https" else ":80"
    found = split_authority(authority.encode("latin-1", "replace"))
    if found is None:
        raise UsageError(f"{text!r} is not HOST:PORT")
    return found[0].lower(), found[1]


def server_of(replayer: Replayer, speed: float | None) -> TapeServer:
    """A tape server that listens nowhere, on the background's loop."""
    server = TapeServer(
        replayer, _no_tls, lambda _host, _port: False, Serving(speed=speed), inbox=_INBOX, room=_NO_ROOM
    )
    server.loop = Background.get().loop
    return server


def _no_tls(host: str, _: bool) -> NoReturn:
    raise AssertionError(f"TLS within a process, with {host}")


def calling_line() -> str:
    """The innermost line that is neither ours nor of the standard library or an installed package."""
    frame: FrameType | None = sys._getframe(2)
    last = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if "tapeproxy" not in frame.f_globals.get("__name__", "") and not file.startswith("<"):
            last = last or f"{file}:{frame.f_lineno}"
            if "site-packages" not in file and not file.startswith((sys.base_prefix, sys.prefix)):
                return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return last
