"""`tapeproxy start` for many tapes at once, `status`, and `stop NAME`: what is said of each run, and to whom."""

import asyncio
import contextlib
import os
import secrets
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import Cell, Column, count, echo, printable, screen_of, table
from tapeproxy.cli.replay import Teller, not_whole, told, write_report
from tapeproxy.proxy.state import NoProxyError, State, clear_state, no_proxy, read_state, write_state
from tapeproxy.tapes.errors import TapeWriteError, UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.manyruns import Door, EndedRun, ManySettings, RunStatus
    from tapeproxy.proxy.recorded import Recorded
    from tapeproxy.tapes.credentials import RefusedError
    from tapeproxy.tapes.violations import Drift, Violation

_SHOWN = 5
"""Clients that are turned away and told of one by one."""
_LOOKS = 4
"""How often in the time that a run may be idle it is looked at."""
_LONGEST_LOOK = 30.0
_VIOLATION, _DRIFT = 3, 4
_COLUMNS = [
    Column("run"),
    Column("tape", least=12, cut="start"),
    Column("requests", right=True, rank=2),
    Column("clients", right=True, rank=3),
    Column("violations", right=True),
    Column("port", right=True, rank=4),
]


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over: what there is to say, what its command exits with, and of a replay the JSON report."""

    name: str
    lines: list[str]
    code: int
    report: dict[str, Any] | None = None


class Runs(Protocol):
    """Many recordings or replays. See proxy.manyrecordings and proxy.manyreplays for what they raise."""

    door: "Door"

    @property
    def port(self) -> int: ...
    async def start(self) -> None: ...
    async def variables(self, name: str) -> dict[str, str]: ...
    async def finish(self, name: str) -> "EndedRun | None": ...
    async def finish_idle(self) -> "list[EndedRun]": ...
    async def stop(self) -> "list[EndedRun]": ...
    def status(self) -> "list[RunStatus]": ...


class Daemon:
    """A proxy of many runs, from `start` to `stop`; speaks on standard error."""

    def __init__(self, settings: "ManySettings", mode: str) -> None:
        self._settings = settings
        self._mode = mode
        self._codes: set[int] = set()
        self._refused: Counter[str] = Counter()
        self._tellers: dict[str, Teller] = {}
        self._runs = self._open()

    def _open(self) -> Runs:
        if self._mode == "record":
            from tapeproxy.proxy.manyrecordings import ManyRecordings

            return ManyRecordings(self._settings, self._turn_away, self._lose)
        from tapeproxy.proxy.manyreplays import ManyReplays

        runs = ManyReplays(self._settings, self._turn_away, self._notice)
        if not runs.names():
            raise UsageError("there are no tapes here", where=str(self._settings.folder))
        return runs

    async def run(self, stopped: Callable[[], Awaitable[None]]) -> int:
        """Serve until `stopped`; returns the exit code. Raises what cannot be listened on or written."""
        from tapeproxy.proxy.control import ControlServer

        key = secrets.token_urlsafe(24)
        control = ControlServer(key, {"env": self._env, "stop": self._stop, "status": self._status})
        await self._runs.start()
        try:
            await control.start()
            folder, port = str(self._settings.folder), self._runs.port
            with self._announced(State(os.getpid(), self._mode, folder, port, {}, (), control.port, key)):
                looking = asyncio.create_task(self._look_for_idle())
                try:
                    await stopped()
                finally:
                    if not looking.cancel():
                        looking.result()
                    control.stop()
                    # Here, so that `stop` comes back when the tapes are sealed.
                    self._tell_all(await self._runs.stop())
        except BaseException:
            await self._runs.stop()
            raise
        return self._exit_code()

    @contextlib.contextmanager
    def _announced(self, state: State) -> Iterator[None]:
        write_state(state)
        door = self._runs.door
        _say(f'listening on {self._settings.host}:{state.port}; a shell here: eval "$(tapeproxy env --tape NAME)"')
        if door.token and not door.is_told:
            _say(f"elsewhere: HTTPS_PROXY=http://NAME:$TAPEPROXY_TOKEN@HOST:{state.port}")
            _say("and the certificate of: tapeproxy ca")
        elif door.token:
            host = socket.gethostname() if "127.0.0.1" in door.reached else door.reached
            _say(f"elsewhere: HTTPS_PROXY=http://NAME:{door.token}@{host}:{state.port} (the token is not shown again)")
            _say("and the certificate of: tapeproxy ca")
        else:
            _say(f"or for one program: HTTPS_PROXY=http://NAME:x@{door.reached}:{state.port}")
        try:
            yield
        finally:
            clear_state(state.pid)

    async def _look_for_idle(self) -> None:
        idle = self._settings.idle
        while idle:
            await asyncio.sleep(min(idle / _LOOKS, _LONGEST_LOOK))
            self._tell_all(await self._runs.finish_idle())

    # --- what is asked of us -----------------------------------------------------------------------------------

    async def _env(self, name: str) -> Mapping[str, Any]:
        from tapeproxy.proxy.childenv import difference

        change = difference(self._settings.environment, await self._runs.variables(name))
        return {"set": dict(change.set), "unset": change.unset}

    async def _stop(self, name: str) -> Mapping[str, Any]:
        result = await self._runs.finish(name)
        if result is None:
            names = ", ".join(status.name for status in self._runs.status()) or "none"
            raise NoProxyError(f"there is no run {name!a} under way", fix=f"those under way: {names}")
        ended = self._ended(result)
        return {"lines": ended.lines, "code": ended.code, "report": ended.report}

    async def _status(self, _: str) -> Mapping[str, Any]:
        return {"runs": [asdict(status) for status in self._runs.status()], "refused": self._refused.total()}

    # --- what is said ------------------------------------------------------------------------------------------

    def _notice(self, name: str, found: "Violation | Drift") -> None:
        self._tellers.setdefault(name, Teller(run=name)).notice(found)

    def _lose(self, name: str, why: str) -> None:
        _say(f"{name}: warning: {why.partition('\n')[0]}; the run goes on, and is not taped whole")

    def _turn_away(self, error: "RefusedError") -> None:
        self._refused[error.what] += 1
        if len(self._refused) <= _SHOWN and self._refused[error.what] == 1:
            _say(f"a client was refused: {error.what}")

    def _tell_all(self, results: "Iterable[EndedRun]") -> None:
        for result in results:
            ended = self._ended(result)
            for line in ended.lines:
                _say(f"{ended.name}: {line}")

    def _ended(self, run: "EndedRun") -> Ended:
        if run.recorded is not None:
            ended = Ended(run.name, *_of_recording(run.recorded))
        else:
            assert run.replayed is not None and run.replay is not None
            teller = self._tellers.pop(run.name, None) or Teller()
            teller.taped_in = run.taped_in
            lines = [*not_whole(sealed=run.sealed, outcome=run.outcome), *told(run.replayed, run.replay, teller)]
            ended = Ended(run.name, lines, run.replayed.exit_code, run.replayed.to_json())
        self._codes.add(ended.code)
        return ended

    def _exit_code(self) -> int:
        refused = self._refused.total()
        if refused:
            _say(f"{count(refused, 'request')} of clients refused: {self._refused.most_common(1)[0][0]}")
        if self._mode == "replay" and (refused or _VIOLATION in self._codes):
            return _VIOLATION
        return _DRIFT if _DRIFT in self._codes else max(self._codes, default=0)


async def serve_many(settings: "ManySettings", mode: str, stopped: Callable[[], Awaitable[None]]) -> int:
    """Run the proxy of many runs; `mode`: record or replay. See Daemon.run."""
    return await Daemon(settings, mode).run(stopped)


def stop_run(name: str, report: Path | None) -> int:
    """End one run of the proxy of this folder, and say how it went; returns its exit code.

    `report`: where to write what came of a replay. Raises NoProxyError, and UsageError for a report that can't be.
    """
    from tapeproxy.proxy.control import ask

    answer = ask(_running(), "stop", name)
    for line in answer["lines"]:
        click.echo(f"tapeproxy: {line}", err=True)
    if report is not None and answer["report"] is not None:
        write_report(report, answer["report"])
    elif report is not None:
        click.echo("tapeproxy: a recording has no report; see: tapeproxy show", err=True)
    code: int = answer["code"]
    return code


def variables_of(state: State, name: str | None) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """What a shell is to set and to remove for the run `name`, which may begin with that. Raises NoProxyError."""
    from tapeproxy.proxy.control import ask

    if not state.control:
        raise NoProxyError("the proxy here has one tape alone", where=state.tape, fix="leave out --tape")
    answer = ask(state, "env", name or "")
    return answer["set"], tuple(answer["unset"])


@click.command(context_settings=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> int:
    """Show the proxy that `start` runs here, and the runs that go through it."""
    import orjson

    from tapeproxy.proxy.control import ask

    state = read_state()
    if state is None:
        raise no_proxy()
    answer: Mapping[str, Any] = ask(state, "status") if state.control else {"runs": [], "refused": 0}
    if as_json:
        shown = {"pid": state.pid, "mode": state.mode, "tape": state.tape, "port": state.port, **answer}
        echo(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode())
        return 0
    echo(printable(f"process {state.pid}, {state.mode} {state.tape}, port {state.port}"))
    if answer["runs"]:
        rows = [_cells(one) for one in answer["runs"]]
        for line in table(_COLUMNS, rows, screen_of(sys.stdout)):
            echo(line)
    elif state.control:
        echo("no runs under way")
    if answer["refused"]:
        echo(f"{count(answer['refused'], 'request')} of clients refused")
    return 0


def many_settings(folder: Path, **given: Any) -> "ManySettings":
    """The settings of a proxy for the tapes in `folder`."""
    from tapeproxy.proxy.manyruns import TOKEN, ManySettings, given_token

    token = given_token(os.environ)
    environment = {name: value for name, value in os.environ.items() if name != TOKEN}
    return ManySettings(folder=folder, environment=environment, cwd=str(Path.cwd()), token=token, **given)


def _running() -> State:
    state = read_state()
    if state is None:
        raise no_proxy()
    if not state.control:
        raise NoProxyError("the proxy here has one tape alone", where=state.tape, fix="stop it with: tapeproxy stop")
    return state


def _of_recording(result: "Recorded") -> tuple[list[str], int]:
    from tapeproxy.cli.recorded import closing_lines, warnings

    whole = result.failure is None
    lines = [*warnings(result), *(closing_lines(result) if whole else ())]
    return lines, 0 if whole else TapeWriteError.exit_code


def _cells(run: Mapping[str, Any]) -> list[Cell]:
    wrong, port = run["violations"], run["port"]
    return [
        Cell(run["name"]),
        Cell(run["tape"]),
        Cell(str(run["asked"])),
        Cell(str(run["clients"])),
        Cell(str(wrong) if wrong else "", "red"),
        Cell(str(port) if port else ""),
    ]


def _say(text: str) -> None:
    click.echo(f"tapeproxy: {printable(text)}", err=True)
