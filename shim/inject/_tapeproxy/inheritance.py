"""What a child process inherits: the agent's environment, and what makes the child one of the run.

Knows variables, not calls. Those that the run lives by are put back where the agent left them out: a server that is
started with nothing but a PATH is taped, too.
"""

from __future__ import annotations

import os
import sys

from .lanes import Lane
from .likeness import stand_for
from .settings import INJECT, NODE, PLUMBING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_put: dict[bytes, bytes | None] = {}  # what os.putenv and os.unsetenv have changed, os.environ's own calls included
_run: dict[str, str] = {}  # the run's own variables, as they were at start
_node_options = b""  # what has a Node load the shim; empty: none is to


def install() -> None:
    """Remember the run's variables, and follow changes that go past os.environ."""
    global _node_options
    options = dict(os.environ.items()).get("NODE_OPTIONS", "")  # by items(): single reads are taped
    if NODE in options:
        _node_options = os.fsencode(options)
    _run.update(
        (name, value) for name, value in os.environ.items() if name.startswith("TAPEPROXY_") or name in PLUMBING
    )
    if os.name == "posix":
        for original, make in ((os.putenv, _putenv), (os.unsetenv, _unsetenv)):
            replacement = stand_for(make(original), original)
            for module in (os, sys.modules[original.__module__]):
                setattr(module, original.__name__, replacement)


def child_environment(given: Mapping[Any, Any], lane: Lane) -> dict[bytes, bytes]:
    """The environment `given` to a child, with what makes it part of the run."""
    env = {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
    for name, value in _run.items():
        if name.startswith("TAPEPROXY_"):
            env[os.fsencode(name)] = os.fsencode(value)
        else:
            env.setdefault(os.fsencode(name), os.fsencode(value))
    env[b"TAPEPROXY_LANE"] = lane.id.encode()
    ours, path = os.fsencode(INJECT), env.get(b"PYTHONPATH", b"")
    separator = os.fsencode(os.pathsep)
    env[b"PYTHONPATH"] = separator.join([ours, *[entry for entry in path.split(separator) if entry and entry != ours]])
    options = env.get(b"NODE_OPTIONS", b"")
    if _node_options and os.fsencode(NODE) not in options:
        env[b"NODE_OPTIONS"] = _node_options + b" " + options if options else _node_options
    return env


def inherited() -> dict[bytes, bytes]:
    """The environment that C would hand on: os.environ, and what was put or unset past it."""
    data: dict[bytes, bytes] = dict(os.environ._data)  # type: ignore[attr-defined]  # past those who listen to reads
    for name, value in _put.items():
        if value is None:
            data.pop(name, None)
        else:
            data[name] = value
    return data


def _putenv(original: Callable[..., None]) -> Callable[..., None]:
    def putenv(_: object, name: Any, value: Any, /) -> None:
        original(name, value)
        _put[os.fsencode(name)] = os.fsencode(value)

    return putenv


def _unsetenv(original: Callable[..., None]) -> Callable[..., None]:
    def unsetenv(_: object, name: Any, /) -> None:
        original(name)
        _put[os.fsencode(name)] = None

    return unsetenv
