"""Child processes: each gets a lane, and the environment that makes it one of the run. Forks get both at once.

Knows the few calls that every way to start a program goes through (subprocess, multiprocessing, asyncio, os.popen:
_posixsubprocess.fork_exec; then os.posix_spawn, os.exec*, os.system; uvloop's own).
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident

from . import channel, hooks, lanes, pythons, settings
from .inheritance import child_environment, inherited
from .lanes import LANE, Lane, current
from .likeness import resemble, stand_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Modules that start processes when they need one more, not when the agent says so.
_POOLS = (
    *("concurrent.futures.process", "multiprocessing.pool", "loky.process_executor"),
    "joblib.externals.loky.process_executor",
)
# What stands between them and the call that makes a process.
_BETWEEN = ("_tapeproxy", "multiprocessing", "concurrent", "loky", "joblib", "os", "subprocess")
_AFTER_DESCRIPTORS = 14  # fork_exec's arguments after the pipes; preexec_fn is the one that can be called
_SERVICES = {"multiprocessing.forkserver": "server", "multiprocessing.resource_tracker": "tracker"}

RESULT = "_tapeproxy_result"  # attribute of a pool's result: the lane in which it is made

_EXEC = "exec"  # kind of the lane in which uvloop forks only to execute another program

_begun: dict[int, str] = {}  # by thread: the lane of the last process
forked: dict[int, str] = {}
"""By process: the lane of a fork, until somebody has seen its end. Filled where edges are told."""
_forks: dict[int, Lane] = {}  # by thread: the lane of the child that a fork is about to make
_execs: set[int] = set()  # threads within a call that forks only to execute another program


def install() -> None:
    """Watch the ways to make a process."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
    if os.name == "posix":  # elsewhere children go without a lane, and name themselves
        _replace_calls()
    hooks.on_import("subprocess", _patch_fork_exec)
    hooks.on_import("multiprocessing.util", _patch_fork_exec)
    hooks.on_import("uvloop", _patch_uvloop)
    _at_exit()


def _replace_calls() -> None:
    replacements = [
        (name, stand_for(make(getattr(os, name)), getattr(os, name)))
        for name, make in (
            ("execv", _execv),
            ("execve", _execve),
            ("posix_spawn", _posix_spawn),
            ("posix_spawnp", _posix_spawn),
            ("_exit", _exit),
            ("system", _system),
        )
        if hasattr(os, name)
    ]
    for name, replacement in replacements:
        setattr(os, name, replacement)
        setattr(sys.modules[replacement.__module__], name, replacement)  # posix, which os has them from


def _at_exit() -> None:
    import atexit

    # Registered before the agent's own, so called after them.
    atexit.register(lanes.close_all)


def _pooled() -> bool:
    """Whether a pool of processes wants one more: those who call from here up to the first stranger tell."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name in _POOLS:
            return True
        if name.partition(".")[0] not in _BETWEEN:
            return False
        frame = frame.f_back
    return False


def new_lane(kind: str, name: str = "") -> Lane:
    """A lane for a child of the current one; soft for a pool's worker."""
    return lanes.soft("e", name) if _pooled() else begin_lane(current(), kind, name)


def begin_lane(parent: Lane, kind: str, name: str = "") -> Lane:
    """The next child of a lane, that a process of its own will have: what that is to know is told here."""
    lane = parent.child(kind, name)
    _begun[get_ident()] = lane.id
    if settings.EDGES and kind != "f" and lane.origin is not None:
        on, asked, met = lane.origin[:3]
        channel.emit("edge", what="start", on=lane.id, lane=on, n=met, asked=asked, out=True)
    return lane


def last_begun() -> str | None:
    """The id of the last lane that this thread made for a process, once."""
    return _begun.pop(get_ident(), None)


def _lane_of(arguments: Iterable[Any]) -> Lane:
    """The lane of a program about to be executed. multiprocessing's services are started by whoever comes first."""
    text = b" ".join([os.fsencode(argument) for argument in arguments])
    for module, kind in _SERVICES.items():
        if b"from " + module.encode() + b" import" in text:
            return lanes.root().child(kind)
    spawned: Lane | None = spawning.pop(get_ident(), None)
    return spawned or new_lane("p")


spawning: dict[int, Lane] = {}
"""By thread: the lane of the process that multiprocessing is about to start; see workers.py."""


def _patch_fork_exec(module: Any) -> None:
    try:
        import _posixsubprocess
    except ImportError:
        return
    original: Any = _posixsubprocess.fork_exec
    if isinstance(original, type(len)):  # not ours yet
        _posixsubprocess.fork_exec = stand_for(_fork_exec(original), original)
    if hasattr(module, "_fork_exec"):
        module._fork_exec = _posixsubprocess.fork_exec


def _fork_exec(original: Callable[..., int]) -> Callable[..., int]:
    # process_args, executable_list, close_fds, fds_to_keep, cwd, env_list, ...: so from 3.9 to 3.14.
    def fork_exec(_: object, *args: Any) -> int:
        thread = get_ident()
        _execs.add(thread)
        try:
            pid = original(*_with_lane(args))
        finally:
            _execs.discard(thread)
        pythons.report(args[0], args[1], pid)
        return pid

    return fork_exec


def _with_lane(args: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        lane = _lane_of(args[0])
        first = next((place for place in range(_AFTER_DESCRIPTORS, len(args)) if callable(args[place])), 0)
        if args[5] is None and first:
            return (*args[:first], _then_put(args[first], child_environment(inherited(), lane)), *args[first + 1 :])
        given = inherited() if args[5] is None else dict(entry.split(b"=", 1) for entry in args[5])
        env = child_environment(given, lane)
        return (*args[:5], [name + b"=" + value for name, value in env.items()], *args[6:])
    except Exception as error:
        _unlaned("fork_exec", error)
        return args


def _then_put(before_exec: Callable[[], Any], env: dict[bytes, bytes]) -> Callable[[], None]:
    """The agent's preexec_fn, which may change what the child inherits; then what is different for it in `env`."""
    before = inherited()

    def run() -> None:
        before_exec()
        for name, value in env.items():
            if before.get(name) != value:
                os.putenv(os.fsdecode(name), os.fsdecode(value))

    return run


def _unlaned(where: str, error: Exception) -> None:
    """Tell of a child that goes as the agent sent it: its arguments are wrong, or we are."""
    channel.emit("note", what="child-without-lane", text=f"{where}: {error!r}", data=None)


def _execv(original: Callable[..., Any]) -> Callable[..., Any]:
    execute = os.execve

    def execv(_: object, path: Any, argv: Any, /) -> Any:
        try:
            return _execute(execute, path, argv, inherited())
        except Exception as error:
            failed = error
        original(path, argv)  # says the same in its own words
        raise failed

    return execv


def _execve(original: Callable[..., Any]) -> Callable[..., Any]:
    def execve(_: object, path: Any, argv: Any, env: Any) -> Any:
        return _execute(original, path, argv, env)

    return execve


def _execute(original: Callable[..., Any], path: Any, argv: Any, env: Any) -> Any:
    """Become another program, in a lane below this one. A failed attempt, as execvp makes them, counts for nothing."""
    parent = current()
    kids = dict(parent.kids)
    try:
        changed: Any = child_environment(env, begin_lane(parent, "p"))
        lanes.close_all()
        pythons.report(argv, (path,), os.getpid())
    except Exception as error:
        _unlaned("execve", error)
        changed = env
    try:
        return original(path, argv, changed)
    except BaseException:
        parent.kids = kids
        raise


def _posix_spawn(original: Callable[..., Any]) -> Callable[..., Any]:
    def posix_spawn(_: object, path: Any, argv: Any, env: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            env = child_environment(inherited() if env is None else env, _lane_of(argv))
        except Exception as error:
            _unlaned("posix_spawn", error)
        pid = original(path, argv, env, *args, **kwargs)
        pythons.report(argv, (path,), pid)
        return pid

    return posix_spawn


def _exit(original: Callable[..., Any]) -> Callable[..., Any]:
    def _exit(_: object, status: int) -> Any:
        lanes.close_all()
        return original(status)

    return _exit


def _system(original: Callable[..., int]) -> Callable[..., int]:
    """os.system hands over C's own environment, which all threads share: so the shell itself sets what differs."""

    def system(_: object, command: Any) -> int:
        try:
            given = dict(inherited())
            env = child_environment(given, new_lane("p"))
            words = [_assignment(name, value) for name, value in env.items() if given.get(name) != value]
            command = b"export " + b" ".join(words) + b"; " + os.fsencode(command)
        except Exception as error:
            _unlaned("system", error)
        return original(command)

    return system


def _assignment(name: bytes, value: bytes) -> bytes:
    return name + b"='" + value.replace(b"'", b"'\\''") + b"'"


def _before_fork() -> None:
    thread = get_ident()
    if thread not in _execs and current().kind != _EXEC:
        _forks[thread] = new_lane("f")


def _after_in_parent() -> None:
    _forks.pop(get_ident(), None)


def _after_in_child() -> None:
    lane = _forks.pop(get_ident(), None)
    _forks.clear()
    _execs.clear()
    channel.after_fork()
    if lane is not None:
        lanes.become_fork(lane)
        say_hello()


def say_hello() -> None:
    """Write this process's hello line, under its present lane."""
    from . import hello

    hello()


def _patch_uvloop(module: Any) -> None:
    """uvloop starts programs by libuv, with C's environment unless it is given another."""
    for name in ("subprocess_exec", "subprocess_shell"):
        original = getattr(module.Loop, name)
        setattr(module.Loop, name, resemble(_with_environment(original), original))


def _with_environment(original: Callable[..., Any]) -> Callable[..., Any]:
    async def start(self: Any, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
        env = kwargs.get("env")
        changed = child_environment(inherited() if env is None else env, new_lane("p"))
        kwargs["env"] = {os.fsdecode(name): os.fsdecode(value) for name, value in changed.items()}
        token = LANE.set(lanes.soft(_EXEC))  # it forks by itself, and then executes
        pythons.report(args, args[:1], None)
        try:
            return await original(self, protocol_factory, *args, **kwargs)
        finally:
            LANE.reset(token)

    return start
