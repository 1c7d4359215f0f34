"""A recorder that dies at a named point of its code. Tests start this as a program; it forks one for each line it gets.

The product has no hooks for this. `sys.monitoring` (PEP 669) tells when a function begins or has returned, and costs
nothing for the functions that are not named. mitmproxy is imported once, before the forks.

Each line of the input is a JSON object: `tape`, `argv`, `cwd`, `environment`, `shim`, `hold` (a FIFO that the recorder
and its agent keep open for writing, as descriptor `HOLD`; at its end both are gone), `point` (its name, or null) and
`at` (which time it is to be fatal). Printed are the recorder's process id, and when it is over its exit status.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio import StreamWriter
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from tapeproxy.addons.exchange import TapedExchange
from tapeproxy.addons.tapedsocket import TapedSocket
from tapeproxy.proxy import recording, tapefile
from tapeproxy.proxy.mitm import slim_imports
from tapeproxy.tapes.encoder import TapeEncoder

HOLD = 100
"""The descriptor that is kept open."""
_TOOL = sys.monitoring.DEBUGGER_ID

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "create": tapefile._create,
    "add": TapeEncoder.add,
    "flush": TapeEncoder.flush,
    "write": tapefile._write,
    "commit": tapefile.TapeWriter.commit,
    "take": TapedExchange.take,
    "hear": TapedSocket.take,
    "respond": TapedExchange.respond,
    "forward": StreamWriter.write,
    "end": TapedExchange.end,
    "drain": recording.FollowedTape.drain,
    "finish": recording.Recording.finish,
    "encode-seal": TapeEncoder.seal,
    "close": tapefile.TapeWriter._close,
}
"""A point is a name here and `before` or `after`: as `write-before`."""


def arm(point: str, at: int) -> None:
    """Have this process die at the `at`-th time that `point` is passed."""
    name, _, side = point.rpartition("-")
    code = FUNCTIONS[name].__code__
    events = sys.monitoring.events
    event = events.PY_START if side == "before" else events.PY_RETURN
    passed = 0

    def die(_code: CodeType, _offset: int, *_: object) -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.monitoring.use_tool_id(_TOOL, "killing")
    sys.monitoring.register_callback(_TOOL, event, die)
    sys.monitoring.set_local_events(_TOOL, code, event)


def _record(order: dict[str, Any]) -> None:
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    if order["point"] is not None:
        arm(order["point"], order["at"])
    settings = recording.RecordSettings(
        tape=Path(order["tape"]),
        argv=tuple(order["argv"]),
        environment=order["environment"],
        cwd=order["cwd"],
        shim=order["shim"],
    )
    asyncio.run(recording.record(settings))


def _fork(order: dict[str, Any]) -> int:
    held = os.open(order["hold"], os.O_WRONLY)
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(held, HOLD, inheritable=True)
            os.close(held)
            _record(order)
        finally:
            sys.stderr.flush()
            os._exit(0 if sys.exception() is None else 70)
    os.close(held)
    return pid


def main() -> None:
    """Fork a recorder for each order."""
    slim_imports()
    import mitmproxy.addons.proxyserver  # noqa: F401 - what takes long to load

    for line in sys.stdin:
        pid = _fork(json.loads(line))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
