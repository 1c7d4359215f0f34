"""Programs that the agent starts by subprocess, asyncio, os.popen and os.system: what they were, said and returned.

In a replay that serves, a taped program is not run: a stub (served.py) takes its place in the same call, so that pipes,
numbers, waits and signals are real ones. The launcher has decided which are run all the same.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident

from . import hooks, pipes, processes, values
from .lanes import LANE, current
from .likeness import resemble, stand_for
from .values import SERVES, emit, error_name, error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PASSING = ("subprocess", "asyncio", "os", "_tapeproxy", "contextlib", "uvloop")
_STUB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "served.py")
_lanes: dict[int, str] = {}  # by thread: the lane of the last program started


class Program:
    """A program that was started: `n` of its value, what it was sent, and whether its end is told."""

    __slots__ = ("ended", "lane", "n", "name", "sent", "signalled", "taped")

    def __init__(self, name: str, lane: str, taped: dict[str, Any] | None) -> None:
        self.name = name
        self.lane = lane
        self.taped = taped
        self.n = -1
        self.sent: pipes.Sent | None = None
        self.signalled = False
        self.ended = False

    @property
    def served(self) -> bool:
        """Whether a stub stands for it."""
        return SERVES and self.taped is not None and not self.taped["served"]["live"]

    def begin(self, data: dict[str, Any], **fields: Any) -> None:
        """Tell that it was started."""
        if self.served and self.taped is not None:
            self.n = self.taped["n"]
        else:
            self.n = emit("process", self.name, self.lane, data=data, **self._partner(), **fields)

    def end(self, returncode: int) -> None:
        """Tell that it has ended, once."""
        if self.ended:
            return
        self.ended = True
        data: dict[str, Any] = {"of": self.n, "returncode": returncode}
        if self.sent is not None:
            data["stdin"] = {"length": self.sent.length, "digest": self.sent.hexdigest()}
        if self.signalled:
            data["signalled"] = True
        if not SERVES:
            emit("exit", self.name, self.lane, data=data)
        elif self.taped is not None and self.taped["served"]["exit"] is not None:
            emit("exit", self.name, self.lane, data=data, taped=self.taped["served"]["exit"])

    def _partner(self) -> dict[str, Any]:
        return {"taped": None if self.taped is None else self.taped["n"]} if SERVES else {}


def install() -> None:
    """Watch the ways to start a program."""
    pipes.install()
    find = processes._lane_of

    def lane_of(arguments: Any) -> Any:
        lane = find(arguments)
        _lanes[get_ident()] = lane.id
        return lane

    processes._lane_of = lane_of
    hooks.on_import("subprocess", _patch)
    hooks.on_import("asyncio.base_subprocess", _patch_asyncio)
    if hasattr(os, "system"):
        os.system = stand_for(_system(os.system), os.system)


def _patch(module: Any) -> None:
    cls = module.Popen
    cls._execute_child = resemble(_executing(cls._execute_child), cls._execute_child)
    if hasattr(cls, "_handle_exitstatus"):
        cls._handle_exitstatus = resemble(_ending(cls._handle_exitstatus), cls._handle_exitstatus)
    cls.send_signal = resemble(_signalling(cls.send_signal), cls.send_signal)


def _patch_asyncio(module: Any) -> None:
    cls = module.BaseSubprocessTransport
    original = cls._process_exited

    def process_exited(self: Any, returncode: int) -> None:
        program = getattr(getattr(self, "_proc", None), "_tapeproxy", None)
        if program is not None:
            _safely(program.end, returncode)
        original(self, returncode)

    cls._process_exited = resemble(process_exited, original)


def _executing(original: Callable[..., None]) -> Callable[..., None]:
    def execute_child(self: Any, args: Any, *rest: Any) -> None:
        # rest: executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell, then the
        # descriptors p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite; so from 3.9 to 3.14.
        program = _program(args) if _is_agents() and not _is_mcp(args) else None
        if program is None:
            original(self, args, *rest)
            return
        if program.taped is not None and program.taped.get("error"):
            raise error_of(program.taped["error"], _first(args))
        if program.served:
            args, rest = (
                _stub_for(program.taped),
                (None, None, rest[2], rest[3], None, None, *rest[6:8], False, *rest[9:]),
            )
        try:
            original(self, args, *rest)
        except OSError as error:
            _safely(program.begin, {"shell": bool(rest[8])}, error=error_name(error))
            raise
        data = {"pid": self.pid, "lane": _lanes.pop(get_ident(), None), "shell": bool(rest[8])}
        _safely(program.begin, data)
        self._tapeproxy = program
        _watch(program, *rest[10:14])

    return execute_child


def _watch(program: Program, p2cwrite: int, c2pread: int, _c2pwrite: int, errread: int) -> None:
    """Listen to the parent's ends of the pipes; -1 where there is none."""
    if p2cwrite != -1:
        program.sent = pipes.taps[p2cwrite] = pipes.Sent()
    if not SERVES:
        for fd, name in ((c2pread, "stdout"), (errread, "stderr")):
            if fd != -1:
                pipes.taps[fd] = pipes.Stream(name, program.lane, program.n)


def _program(args: Any) -> Program | None:
    """The program that is about to be started; None where its command line is not understood."""
    try:
        lane = (LANE.get(None) or current()).id
        name = _command(args)
    except Exception:
        return None
    taped = None
    if SERVES:
        from . import tapedvalues

        taped = tapedvalues.take_program(name, lane)
    return Program(name, lane, taped)


def _is_mcp(args: Any) -> bool:
    """Whether this is `tapeproxy mcp`, which tapes what its server says, and says it in a replay."""
    if isinstance(args, (str, bytes, os.PathLike)):
        return False
    words = [os.fsdecode(word) for word in args][:4]
    if words[1:3] == ["-m", "tapeproxy.cli.main"]:
        words = ["tapeproxy", *words[3:]]
    elif len(words) > 1 and os.path.basename(words[1]) == "tapeproxy":
        words = words[1:]  # behind its interpreter
    return len(words) > 1 and os.path.basename(words[0]) == "tapeproxy" and words[1] == "mcp"


def _command(args: Any) -> str:
    if isinstance(args, (str, bytes, os.PathLike)):
        return os.fsdecode(args)
    from shlex import quote

    return " ".join([quote(os.fsdecode(word)) for word in args])


def _first(args: Any) -> Any:
    return args if isinstance(args, (str, bytes, os.PathLike)) else next(iter(args), "")


def _stub_for(taped: dict[str, Any] | None) -> list[str]:
    assert taped is not None
    plan = taped["served"]
    contents = os.path.join(values.TAPED, "contents")
    end = "wait" if plan["returncode"] is None or plan["signalled"] else "exit"
    places = [str(number) for number in (*plan["out"], *plan["err"], plan["returncode"] or 0, plan["stdin"])]
    return [sys.executable, "-I", "-S", "-B", _STUB, contents, end, *places]


def _is_agents() -> bool:
    frame: Any = sys._getframe(2)
    while frame is not None:
        head = (frame.f_globals.get("__name__") or "").partition(".")[0]
        if head not in _PASSING:
            return head not in values._READERS
        frame = frame.f_back
    return True


def _ending(original: Callable[..., None]) -> Callable[..., None]:
    def handle_exitstatus(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        program = getattr(self, "_tapeproxy", None)
        if program is not None and self.returncode is not None:
            _safely(program.end, self.returncode)

    return handle_exitstatus


def _signalling(original: Callable[..., None]) -> Callable[..., None]:
    def send_signal(self: Any, sig: int) -> None:
        program = getattr(self, "_tapeproxy", None)
        if program is not None:
            program.signalled = True
        original(self, sig)

    return send_signal


def _safely(tell: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        tell(*args, **kwargs)
    except Exception:  # noqa: S110  # the agent's program runs, whatever we could not tell of it
        pass


def _system(original: Callable[..., int]) -> Callable[..., int]:
    def system(_: object, command: Any) -> int:
        program = _program(command)
        if program is None:
            return original(command)
        if program.served and program.taped is not None and program.taped["served"]["returncode"] is not None:
            return int(program.taped["served"]["returncode"])
        _safely(program.begin, {"shell": True})
        status = original(command)
        _safely(program.end, status)
        return status

    return system
