"""`tapeproxy start` and `stop`: a proxy that runs until it is stopped, for agents that are started elsewhere."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape, default_path
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.redactoptions import NOT_REDACTED, given_redaction, redact_options
from tapeproxy.cli.replay import Pace, Teller, tell
from tapeproxy.cli.ruleoptions import given_rules, rule_options
from tapeproxy.proxy.state import NoProxyError, State, already_running, clear_state, no_proxy, read_state, write_state
from tapeproxy.tapes.errors import TapeWriteError

if TYPE_CHECKING:
    from tapeproxy.proxy.recording import RecordSettings
    from tapeproxy.proxy.replaying import ReplaySettings


@click.command(context_settings=HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The tape to write.  [default: in .tapes]")
@click.option("--force", is_flag=True, help="Replace the tape if it exists.")
@click.option("--replay", "replayed", metavar="TAPE", help="Serve this tape instead of recording one.")
@click.option("--pace", type=Pace(), default="none", metavar="none|recorded|FACTOR", help="As for replay.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The proxy's port.  [default: a free one]")
@click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="Send what goes to HOST to URL instead.")
@rule_options
@redact_options
@click.pass_context
def command(
    ctx: click.Context,
    output: Path | None,
    force: bool,
    replayed: str | None,
    pace: float | None,
    port: int,
    maps: tuple[str, ...],
) -> int:
    """Run a proxy until it is stopped, for agents started elsewhere.

    \b
    tapeproxy start &                    or in another terminal, in the same folder
    eval "$(tapeproxy env)"              this shell's programs now go through it
    python agent.py
    tapeproxy stop                       seals the tape
    """
    from tapeproxy.addons.hostmap import parse_map

    environment, rules = dict(os.environ), given_rules(ctx)
    if running := read_state():
        raise already_running(running)
    if replayed is not None:
        from tapeproxy.proxy.replaying import ReplaySettings

        tape = choose_tape(replayed)
        serving = ReplaySettings(tape=tape, environment=environment, speed=pace, port=port, rules=rules)
        return asyncio.run(_serve(serving))
    from tapeproxy.proxy.recording import RecordSettings

    settings = RecordSettings(
        tape=output or default_path(("start",), datetime.now(UTC)),
        argv=(),
        environment=environment,
        cwd=str(Path.cwd()),
        force=force,
        port=port,
        hosts=parse_map(maps),
        rules=rules,
        redaction=given_redaction(ctx),
    )
    if settings.redaction.version == 0:
        click.echo(f"tapeproxy: {NOT_REDACTED}", err=True)
    return asyncio.run(_record(settings))


@click.command(context_settings=HELP)
def stop() -> int:
    """Stop the proxy that `start` runs here, and seal its tape."""
    state = read_state()
    if state is None:
        raise no_proxy()
    os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + 15
    while read_state() is not None:
        if time.monotonic() > deadline:
            raise NoProxyError(f"the proxy (process {state.pid}) does not stop", fix=f"end it with: kill {state.pid}")
        time.sleep(0.02)
    did = "the tape is" if state.mode == "record" else "it served"
    click.echo(f"tapeproxy: stopped: {did} {state.tape}", err=True)
    click.echo('tapeproxy: a shell that took its variables still has them: eval "$(tapeproxy env --unset)"', err=True)
    return 0


async def _record(settings: "RecordSettings") -> int:
    from tapeproxy.cli.recorded import closing_lines, warner, warnings
    from tapeproxy.proxy.recording import recording

    async with recording(settings, warner(strict=False)) as session:
        with _announced(settings.environment, session.environment, "record", settings.tape, session.port):
            await _until_stopped()
            result = await session.finish(None)
    for line in (*warnings(result), *(() if result.failure is not None else closing_lines(result))):
        click.echo(f"tapeproxy: {line}", err=True)
    return 0 if result.failure is None else TapeWriteError.exit_code


async def _serve(settings: "ReplaySettings") -> int:
    from tapeproxy.proxy.replaying import open_replay

    teller = Teller()
    begun = time.monotonic_ns()
    session = await open_replay(settings, teller.notice)
    teller.begin(session)
    try:
        with _announced(settings.environment, session.environment, "replay", settings.tape, session.port):
            await _until_stopped()
    finally:
        await session.stop()
    result = session.verdict(settings, None, time.monotonic_ns() - begun)
    tell(result, settings, teller, quiet=False)
    return result.exit_code


@contextlib.contextmanager
def _announced(parent: Mapping[str, str], child: Mapping[str, str], mode: str, tape: Path, port: int) -> Iterator[None]:
    from tapeproxy.proxy.childenv import difference

    change = difference(parent, child)
    state = State(os.getpid(), mode, str(tape), port, dict(change.set), change.unset)
    write_state(state)
    click.echo(f'tapeproxy: listening on 127.0.0.1:{port}; in another shell here: eval "$(tapeproxy env)"', err=True)
    try:
        yield
    finally:
        clear_state(state.pid)


async def _until_stopped() -> None:
    """Wait for Ctrl-C, SIGTERM or SIGHUP."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopped.set))
    await stopped.wait()
