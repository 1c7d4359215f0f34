"""The shim inside the agent's process: the order of installation, and the hello line. Knows none of the parts' work.

Everything in this folder is standard library only, for CPython 3.9 to 3.14, and light: it runs in every process.
"""

from __future__ import annotations

import os
import sys

_PARTS = (
    "lanes",
    "randomness",
    "identifiers",
    "tempfiles",
    "environment",
    "clock",
    "datetimes",
    "sleeping",
    "noise",
    "othertools",
    "contexts",
    "threads",
    "tasks",
    "reuse",
    "inheritance",
    "processes",
    "workers",
    "attribution",
    "egress",
    "hooks",
)


_SKIPPING = ("lanes", "clock", "datetimes", "sleeping", "noise", "othertools", "hooks")
"""The parts where only sleeps are cut short."""


def install() -> None:
    """Install every part, in order, then write the hello line. Replay: raises what a part raises.

    Recording, a part that fails is noted and the others do their work.
    """
    from . import channel, settings

    options = {
        "callsites": settings.TRACE,
        "boundary": os.environ.get("TAPEPROXY_IO"),
        "lockorder": settings.THREADS,
        "edgepoints": settings.EDGES,
    }
    wanted = (part for part, is_wanted in options.items() if is_wanted)
    for name in _SKIPPING if settings.SKIP else (*_PARTS, *wanted):
        try:
            _install(name)
        except Exception as error:
            if settings.REPLAY:
                raise
            channel.emit("note", what="install-failed", text=f"{name}: {error!r}", data={"part": name})
    hello()


def _install(name: str) -> None:
    __import__(f"{__name__}.{name}")
    install = getattr(sys.modules[f"{__name__}.{name}"], "install", None)
    if install is not None:
        install()


def hello() -> None:
    """Tell the launcher that this process runs with the shim, and in which lane."""
    from . import channel, lanes

    lane = lanes.root()
    channel.emit(
        "hello",
        pid=os.getpid(),
        ppid=os.getppid(),
        lane=lane.id,
        python="{}.{}.{}".format(*sys.version_info[:3]),
        executable=sys.executable,
        argv=list(getattr(sys, "orig_argv", None) or getattr(sys, "argv", None) or ()),
    )
