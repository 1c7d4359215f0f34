"""Runs the agent as a child and tells how it ended. Knows processes and signals, not what the agent says.

The child gets what it would have without us: the same descriptors, terminal, process group and ignored signals.

Plain asyncio, which the tape server loads anyway: anyio's backend adds 25 ms to every replay's start, and its
`open_process` can't leave inherited descriptors open.
"""

import asyncio
import contextlib
import os
import signal
import threading
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from subprocess import SubprocessError
from types import FrameType
from typing import Literal

from tapeproxy.proxy.commands import command_line, start_error
from tapeproxy.proxy.processes import RUN_VARIABLE, RunProcesses
from tapeproxy.proxy.replaymarks import marked
from tapeproxy.tapes.errors import UsageError

type StopCause = Literal["timeout", "violations", "user", "tape"]

GRACE = 5.0
PATIENCE = 1.0
"""Seconds for processes that wind up after their parent, such as multiprocessing's resource tracker."""
_POLL = 0.02
_SWEEPS = 50

# What the terminal sends to its whole foreground process group by itself.
_FROM_TERMINAL = ("SIGINT", "SIGQUIT", "SIGWINCH", "SIGBREAK")
_ENDING = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGBREAK")
_FORWARDED = (*_ENDING, "SIGUSR1", "SIGUSR2", "SIGWINCH")
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows knows one way to end a process


class StopSignal:
    """Asks for the end of a run, from within the event loop's own thread. The first cause counts."""

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self._event = asyncio.Event()

    def request(self, cause: StopCause) -> None:
        """Have the run ended."""
        self.cause = self.cause or cause
        self._event.set()

    async def wait(self) -> None:
        """Return once somebody asked."""
        await self._event.wait()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended. `returncode` is as `subprocess` has it: -N for signal N.

    `signalled`: we were asked to end (Ctrl-C, SIGTERM ...) while it ran, whatever it made of it.
    """

    returncode: int
    duration_ns: int
    stopped_by: StopCause | None
    signalled: bool = False

    @property
    def code(self) -> int | None:
        """The code that the child exited with; None when a signal ended it."""
        return self.returncode if self.returncode >= 0 else None

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the child, like SIGTERM; None when it exited."""
        if self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:  # a real-time signal
            return f"SIG{-self.returncode}"

    @property
    def exit_code(self) -> int:
        """What a shell would report: the code, or 128 + N for signal N."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode


@dataclass(frozen=True, slots=True)
class Stdio:
    """Open descriptors for the child to have as its standard ones, in place of ours."""

    stdin: int
    stdout: int
    stderr: int


async def run_child(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    stop: StopSignal | None = None,
    timeout: float | None = None,
    grace: float = GRACE,
    confine: Callable[[], None] | None = None,
    stdio: Stdio | None = None,
) -> Outcome:
    """Run a command to its end, passing on the signals that come meanwhile.

    At `timeout` seconds or on `stop`, every process of the run (`TAPEPROXY_RUN` in `env`) gets SIGTERM, and SIGKILL
    `grace` seconds later; where processes can't be listed, the child alone. A child that ends by itself leaves its
    own children be. A cancelled call kills the run at once. `confine` is done by the child itself before it executes.
    Raises CommandNotFoundError, CommandNotRunnableError and UsageError.
    """
    stop = stop or StopSignal()
    begun = time.monotonic_ns()
    with _relayed_signals() as relay, marked(env):
        process = await _start(command_line(argv, env), env, confine, stdio)
        relay.aim(process)
        run = RunProcesses(env.get(RUN_VARIABLE, ""), root=process.pid)
        try:
            cause = await _watch(process, stop, timeout)
            if cause:
                await _end(process, run, grace)
        except BaseException:
            await _kill(process, run)
            raise
        returncode = await process.wait()
        ended = time.monotonic_ns()
    if cause is None and relay.explains(returncode, ended, grace):
        cause = "user"
    return Outcome(returncode, ended - begun, cause, relay.heard)


async def end_leftovers(run: RunProcesses, *, patience: float = PATIENCE, grace: float = GRACE) -> int:
    """Have no process of a run be left whose child has ended; returns how many had to be told.

    For `patience` seconds they may end by themselves; then they get SIGTERM, and SIGKILL `grace` seconds later. Where
    processes can't be listed, nothing is done.
    """
    if await _gone(run, patience):
        return 0
    told = run.pids()
    for number, seconds in ((signal.SIGTERM, grace), (_KILL, _POLL * _SWEEPS)):
        _signal(run.pids(), number)
        if await _gone(run, seconds):
            break
    return len(told)


async def _gone(run: RunProcesses, seconds: float) -> bool:
    """Whether no process of the run is left, now or within `seconds`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while run.pids():
                await asyncio.sleep(_POLL)
            return True
    return False


@contextlib.contextmanager
def held_signals() -> Iterator[list[str]]:
    """Note the signals that would end us (SIGINT, SIGTERM ...) instead of dying of them; yields their names.

    For the time when a tape is being opened or sealed. `run_child` may be called within.
    """
    noted: list[str] = []
    with _handled(_ENDING, lambda number: noted.append(signal.Signals(number).name)):
        yield noted


async def _start(
    argv: Sequence[str], env: Mapping[str, str], confine: Callable[[], None] | None, stdio: Stdio | None
) -> Process:
    stdin, stdout, stderr = (None, None, None) if stdio is None else (stdio.stdin, stdio.stdout, stdio.stderr)
    try:
        # Descriptors of our own are not inheritable (PEP 446), so what stays open is what we were given ourselves.
        return await asyncio.create_subprocess_exec(
            *argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, close_fds=False, preexec_fn=confine
        )
    except SubprocessError:
        what = "the guard could not be put on the agent, so it was not run"
        raise UsageError(what, where=argv[0], fix="--guard audit does without it") from None
    except OSError as error:
        raise start_error(argv[0], env, error) from None


async def _watch(process: Process, stop: StopSignal, timeout: float | None) -> StopCause | None:
    """Wait for the child to exit (None), or for a reason to end it."""
    tasks = exited, _ = asyncio.ensure_future(process.wait()), asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    return None if exited in done else stop.cause or "timeout"


async def _end(process: Process, run: RunProcesses, grace: float) -> None:
    """End every process of the run, those that outlive the child too."""
    _send(process, run, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace):
            await process.wait()
            while run.pids():
                await asyncio.sleep(_POLL)
    for _ in range(_SWEEPS):  # something that keeps forking may slip through one sweep
        if process.returncode is not None and not run.pids():
            break
        _send(process, run, _KILL)
        await asyncio.sleep(_POLL)


async def _kill(process: Process, run: RunProcesses) -> None:
    """End every process of the run at once, whatever else is cancelled meanwhile: anyio cancels again and again."""
    _send(process, run, _KILL)
    while process.returncode is None:
        with contextlib.suppress(asyncio.CancelledError):
            await process.wait()


def _send(process: Process, run: RunProcesses, number: int) -> None:
    child = [process.pid] if process.returncode is None else []
    _signal({*child, *run.pids()}, number)


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


# --- signals ---


class _Relay:
    """Passes signals on to the child, unless the terminal has sent it the same one itself."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._early: list[int] = []
        self._ending: tuple[int, int] | None = None

    def take(self, number: int) -> None:
        """A signal has come."""
        name = signal.Signals(number).name
        if name in _ENDING:
            self._ending = number, time.monotonic_ns()
        if self._process is None:
            self._early.append(number)
        elif self._process.returncode is None and not (name in _FROM_TERMINAL and _terminal_reaches(self._process.pid)):
            self._forward(self._process, number)

    def aim(self, process: Process) -> None:
        """From now on signals go to `process`, beginning with those that came before it was there."""
        self._process = process
        for number in self._early:
            self._forward(process, number)

    @property
    def heard(self) -> bool:
        """Whether a signal came that is to end us."""
        return self._ending is not None

    def explains(self, returncode: int, ended: int, grace: float) -> bool:
        """Whether a signal that came is why the child ended: by that very signal, or soon after it."""
        if self._ending is None:
            return False
        number, at = self._ending
        return returncode in (-number, 128 + number) or ended - at <= grace * 1e9

    @staticmethod
    def _forward(process: Process, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


@contextlib.contextmanager
def _relayed_signals() -> Iterator[_Relay]:
    relay = _Relay()
    with _handled(_FORWARDED, relay.take):
        yield relay


@contextlib.contextmanager
def _handled(names: Sequence[str], take: Callable[[int], object]) -> Iterator[None]:
    """Handle these signals for a while, then put back what was. Ignored ones (nohup) stay so, for the child too."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def handler(number: int, frame: FrameType | None) -> None:
        del frame
        take(number)

    known = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in known}
    ours = [number for number in known if before[number] not in (signal.SIG_IGN, None)]
    try:
        for number in ours:
            signal.signal(number, handler)
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


def _terminal_reaches(pid: int) -> bool:
    """Whether process `pid` gets what is typed at our terminal: it shares our group, and that is in the foreground.

    Then a Ctrl-C has reached it already, and a second one from us would cut its clean-up short. (That the signal came
    from a `kill` instead can't be told apart without siginfo, which Python hides.)
    """
    if os.name != "posix":
        return True  # Windows sends Ctrl-C to every process of the console
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp() == os.getpgid(pid)
    except OSError:
        return False
    finally:
        os.close(terminal)
