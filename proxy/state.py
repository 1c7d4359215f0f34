"""The long-running proxy of a folder: where `start` leaves its address, and `env` and `stop` find it."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from tapeproxy.tapes.errors import TapeproxyError

STATE = Path(".tapes") / "proxy.json"


class NoProxyError(TapeproxyError):
    """No proxy of this folder is running, or one is already."""


@dataclass(frozen=True, slots=True)
class State:
    """A running proxy: its process, what it does, and the variables to set and to remove."""

    pid: int
    mode: str
    tape: str
    port: int
    variables: dict[str, str]
    removed: tuple[str, ...] = ()


def already_running(state: State) -> NoProxyError:
    """The error for a second proxy in one folder."""
    what = f"a proxy is running here already (process {state.pid}, {state.mode} {state.tape})"
    return NoProxyError(what, fix="stop it with: tapeproxy stop")


def no_proxy() -> NoProxyError:
    """The error where a proxy is needed and this folder has none."""
    return NoProxyError(f"no proxy is running here (in {Path.cwd()})", fix="start one with: tapeproxy start")


def write_state(state: State, path: Path = STATE) -> None:
    """Leave the state for others, readable by this user alone. Raises NoProxyError when another proxy is running."""
    running = read_state(path)
    if running is not None:
        raise already_running(running)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{state.pid}")
    draft.touch(mode=0o600)
    draft.write_bytes(orjson.dumps(state, option=orjson.OPT_INDENT_2))
    draft.replace(path)


def read_state(path: Path = STATE) -> State | None:
    """The running proxy's state; None when there is none. What a dead one left behind is removed."""
    try:
        data = orjson.loads(path.read_bytes())
        state = State(**(data | {"removed": tuple(data["removed"])}))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NoProxyError(
            f"the proxy's state cannot be read: {error}", where=str(path), fix="remove the file"
        ) from None
    if not _alive(state.pid):
        clear_state(state.pid, path)
        return None
    return state


def clear_state(pid: int, path: Path = STATE) -> None:
    """Remove the state if it is that of process `pid`."""
    with contextlib.suppress(OSError, ValueError):
        if orjson.loads(path.read_bytes()).get("pid") == pid:
            path.unlink()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
