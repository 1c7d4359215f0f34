"""What an agent can see of the machine it runs on, asked of the system. What becomes of it is `tapes/machine.py`'s."""

import os
import socket
from collections.abc import Collection, Iterable, Mapping

from tapeproxy.tapes.machine import FACTS, Fact, Facts, usable


def machine_facts(
    environment: Mapping[str, str],
    cwd: str,
    tmpdir: str | None = None,
    *,
    wanted: Collection[str] = FACTS,
    pythons: Iterable[str] = (),
) -> Facts:
    """The facts of this machine for a run in `cwd`. `pythons`: versions of the agent's interpreters, where known."""
    found: dict[Fact, list[str]] = {
        "cwd": [cwd, *_logical(environment, cwd)],
        "home": [environment.get("HOME") or os.path.expanduser("~")],  # noqa: PTH111 - Path.home() can raise
        "tmpdir": [tmpdir or environment.get("TMPDIR") or environment.get("TEMP") or "/tmp"],
        "hostname": [socket.gethostname()],
    }
    if not {"platform", "release", "system", "python", "python-build"}.isdisjoint(wanted):
        found |= _versions(pythons)
    return usable({name: texts for name, texts in found.items() if name in wanted})


def _versions(pythons: Iterable[str]) -> dict[Fact, list[str]]:
    import platform  # 7 ms, and most tapes hold none of this
    import sys

    return {
        "platform": [platform.platform()],
        "release": [platform.release()],
        "system": [platform.version()],
        "python": list(dict.fromkeys((*pythons, platform.python_version()))),
        "python-build": [sys.version],
    }


def _logical(environment: Mapping[str, str], cwd: str) -> list[str]:
    """The working directory by the name that the shell knows it by, where links make that another one."""
    name = environment.get("PWD", "")
    return [name] if name.startswith("/") and os.path.realpath(name) == os.path.realpath(cwd) else []
