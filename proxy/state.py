"""The long-running proxy of a folder: where `start` leaves its address, and `env` and `stop` find it.

It is kept in the user's own `home()`, not in the folder: `eval "$(tapeproxy env)"` runs what it says, and a folder may
be somebody's repository.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from blake3 import blake3

from tapeproxy.proxy.ca import home
from tapeproxy.tapes.errors import TapeproxyError


class NoProxyError(TapeproxyError):
    """No proxy of this folder is running, or one is already."""


@dataclass(frozen=True, slots=True)
class State:
    """A running proxy: its process, what it does, and the variables to set and to remove.

    One of many runs has no variables but a `control` port, and the `key` that is asked for there; `tape` is its folder.
    """

    pid: int
    mode: str
    tape: str
    port: int
    variables: dict[str, str]
    removed: tuple[str, ...] = ()
    control: int = 0
    key: str = ""


def state_path(folder: Path | None = None) -> Path:
    """Where the state of the proxy of `folder` (default: the current one) is."""
    name = str((folder or Path.cwd()).absolute())
    return home() / "proxies" / f"{blake3(name.encode(errors='surrogateescape')).hexdigest(8)}.json"


def already_running(state: State) -> NoProxyError:
    """The error for a second proxy in one folder."""
    what = f"a proxy is running here already (process {state.pid}, {state.mode} {state.tape})"
    return NoProxyError(what, fix="stop it with: tapeproxy stop")


def no_proxy() -> NoProxyError:
    """The error where a proxy is needed and this folder has none."""
    return NoProxyError(f"no proxy is running here (in {Path.cwd()})", fix="start one with: tapeproxy start")


def write_state(state: State) -> None:
    """Leave the state for others, readable by this user alone.

    Raises NoProxyError when another proxy is running here, or the state can't be written.
    """
    if (running := another()) is not None:
        raise already_running(running)
    path = state_path()
    draft = path.with_name(f"{path.name}.{state.pid}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.touch(mode=0o600)
        draft.write_bytes(orjson.dumps(state, option=orjson.OPT_INDENT_2))
        draft.replace(path)
    except OSError as error:
        what = f"the proxy's state cannot be written: {(error.strerror or str(error)).lower()}"
        raise NoProxyError(what, where=str(path), fix="set TAPEPROXY_HOME to a folder that you can write") from None


def another() -> State | None:
    """The state of a running proxy that is not this process.

    In a container each proxy has the same number, so what a killed one left behind looks like this process's own.
    """
    found = read_state()
    return None if found is None or found.pid == os.getpid() else found


def read_state() -> State | None:
    """The running proxy's state; None when there is none. What a dead one left behind is removed.

    Raises NoProxyError when the file is not what `write_state` writes.
    """
    path = state_path()
    try:
        state = _parse(orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NoProxyError(
            f"the proxy's state cannot be read: {error}", where=str(path), fix="remove the file"
        ) from None
    if not _alive(state.pid):
        clear_state(state.pid)
        return None
    return state


def clear_state(pid: int) -> None:
    """Remove the state if it is that of process `pid`."""
    path = state_path()
    with contextlib.suppress(OSError, ValueError):
        if orjson.loads(path.read_bytes()).get("pid") == pid:
            path.unlink()


def _parse(data: Any) -> State:
    variables, removed = data["variables"], data["removed"]
    pid, port = data["pid"], data["port"]
    control, key = data.get("control", 0), data.get("key", "")
    if not isinstance(variables, dict) or not isinstance(removed, list):
        raise TypeError("its variables are none")
    texts = [data["mode"], data["tape"], *variables, *variables.values(), *removed, key]
    if type(pid) is not int or not 0 < pid < 2**31 or type(port) is not int or type(control) is not int:
        raise ValueError("a number in it is none")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a text in it is none")
    return State(pid, data["mode"], data["tape"], port, dict(variables), tuple(removed), control, key)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
