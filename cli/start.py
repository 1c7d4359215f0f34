"""`tapeproxy start` and `stop`: a proxy that runs until it is stopped, for agents that are started elsewhere."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.keepingoptions import STOPPED, KeepingOptions, keeping_options
from tapeproxy.cli.manyruns import many_settings, serve_many, stop_run
from tapeproxy.cli.newtape import new_tape
from tapeproxy.cli.redactoptions import NOT_REDACTED, given_redaction, redact_options
from tapeproxy.cli.replay import Pace, Teller, tell
from tapeproxy.cli.reverseoption import reverse_option
from tapeproxy.cli.ruleoptions import given_rules, rule_options
from tapeproxy.cli.worldoptions import WorldOptions, world_options
from tapeproxy.proxy.state import (
    NoProxyError,
    State,
    already_running,
    another,
    clear_state,
    no_proxy,
    read_state,
    write_state,
)
from tapeproxy.tapes.errors import TapeWriteError, UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.recorded import RecordSettings
    from tapeproxy.proxy.recording import Recording
    from tapeproxy.proxy.replayed import ReplaySettings
    from tapeproxy.proxy.replaying import Replaying
    from tapeproxy.tapes.fronts import Front, Fronts
    from tapeproxy.tapes.redactionrules import RedactionRules


_LONG, _LONGEST = 3.0, 600.0
"""Seconds after which `stop` says that it waits, and after which it gives up."""


@click.command(context_settings=HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The tape to write.  [default: in .tapes]")
@click.option("--force", is_flag=True, help="Replace the tape if it exists.")
@click.option("--record", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Record many runs into DIR.")
@click.option("--replay", "replayed", metavar="TAPE|DIR", help="Serve this tape, or those in DIR, and record none.")
@click.option("--pace", type=Pace(), default="none", metavar="none|recorded|FACTOR", help="As for replay.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The proxy's port.  [default: a free one]")
@click.option("--listen", metavar="HOST", help="With DIR: where to listen; see above.  [default: 127.0.0.1]")
@click.option("--port-per-tape", "ports", is_flag=True, help="With DIR: `env --tape` gives each run a port of its own.")
@click.option(
    "--idle",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="With DIR: end a run that had no client for so long; 0: never.  [default: 3600]",
)
@click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="Send what goes to HOST to URL instead.")
@keeping_options
@click.option("--java", is_flag=True, help="Lead Java here too, by JAVA_TOOL_OPTIONS, which each JVM tells on stderr.")
@reverse_option
@world_options
@rule_options
@redact_options
@click.pass_context
def command(
    ctx: click.Context,
    output: Path | None,
    force: bool,
    folder: Path | None,
    replayed: str | None,
    pace: float | None,
    port: int,
    listen: str | None,
    ports: bool,
    idle: float | None,
    maps: tuple[str, ...],
    fronts: "tuple[Front, ...] | None",
    world: WorldOptions,
    keeping: KeepingOptions,
    java: bool,
) -> int:
    """Run a proxy until it is stopped, for agents started elsewhere.

    \b
    tapeproxy start &                    or in another terminal, in the same folder
    eval "$(tapeproxy env)"              this shell's programs now go through it
    python agent.py
    tapeproxy stop                       seals the tape

    With --strict-tape the proxy ends, with exit code 6, as soon as its tape can't be written whole: programs get no
    answers any more. Of a tape that --encrypt writes, the chosen name ends in .enc; the secret is given as for
    `encrypt`, also to serve such a tape with --replay.

    Many runs go through one proxy with --record DIR or --replay DIR. Each client says whose it is by the user in the
    proxy's URL, and gets a tape, an index and a report of its own; `stop NAME` ends one run and exits as `replay` does.

    \b
    tapeproxy start --record tapes &
    eval "$(tapeproxy env --tape planner)" && python planner.py
    HTTPS_PROXY=http://critic:x@127.0.0.1:PORT curl ...
    tapeproxy status
    tapeproxy stop planner

    A name that is used again after its run has ended begins NAME-2; nothing is replaced. In a replay, a client without
    a name gets the only tape, if there is one alone. Elsewhere than on loopback (--listen) everybody needs the token
    that is printed at the start, as in http://NAME:TOKEN@HOST:PORT, or the one in TAPEPROXY_TOKEN.
    """
    from tapeproxy.addons.hostmap import parse_map

    environment, rules = dict(os.environ), given_rules(ctx)
    if running := another():
        raise already_running(running)
    many = folder or (Path(replayed) if replayed is not None and Path(replayed).is_dir() else None)
    if many is not None:
        _check_many(folder, replayed, output=output)
        if world.given:
            fix = "leave them out: HTTPS_PROXY and SSL_CERT_FILE of `start` say how the world is reached"
            raise UsageError("--upstream-ca, --upstream-proxy, --client-cert and --no-tape are for one tape", fix=fix)
        if keeping.given or keeping.unlocking.named:
            raise UsageError("--strict-tape, --fsync, --encrypt and its secret are for one tape")
        if java:
            raise UsageError("--java is for one tape: Java gives a proxy no name and no password")
        if fronts:
            raise UsageError("--reverse is for one tape: by a port alone nobody says whose run it is")
        given = {"host": listen or "127.0.0.1", "port": port, "ports": ports, "idle": 3600.0 if idle is None else idle}
        redaction = _redaction(ctx, recorded=folder is not None)
        tapes = many_settings(many, **given, hosts=parse_map(maps), speed=pace, rules=rules, redaction=redaction)
        return asyncio.run(serve_many(tapes, "record" if folder else "replay", until_stopped))
    if listen is not None or ports or idle is not None:
        raise UsageError(
            "--listen, --port-per-tape and --idle are for many tapes", fix="add --record DIR or --replay DIR"
        )
    if replayed is not None:
        from tapeproxy.proxy.replayed import ReplaySettings

        if keeping.given:
            raise UsageError("--strict-tape, --fsync and --encrypt are for recording", fix="leave them out")
        tape = choose_tape(replayed)
        serving = ReplaySettings(
            tape=tape,
            environment=environment,
            speed=pace,
            port=port,
            rules=rules,
            fronts=fronts,
            java=java,
            ask=keeping.unlocking.ask,
        )
        return asyncio.run(_serve(serving))
    from tapeproxy.proxy.recorded import RecordSettings

    settings = RecordSettings(
        tape=output or new_tape(("start",), encrypted=keeping.encrypt),
        argv=(),
        environment=environment,
        cwd=str(Path.cwd()),
        force=force,
        port=port,
        hosts=parse_map(maps),
        upstream_ca=world.upstream_ca,
        upstream_proxy=world.upstream_proxy,
        host_certs=world.client_certs,
        no_tape=world.no_tape,
        java=java,
        fronts=fronts or (),
        rules=rules,
        redaction=_redaction(ctx, recorded=True),
        strict=keeping.strict,
        fsync=keeping.fsync,
        secret=keeping.secret(),
    )
    world.warn(environment)
    return asyncio.run(_record(settings))


def _redaction(ctx: click.Context, *, recorded: bool) -> "RedactionRules":
    """How secrets are replaced on a tape; says so if they are not."""
    redaction = given_redaction(ctx)
    if recorded and redaction.version == 0:
        click.echo(f"tapeproxy: {NOT_REDACTED}", err=True)
    return redaction


def _check_many(folder: Path | None, replayed: str | None, *, output: Path | None) -> None:
    if folder is not None and replayed is not None:
        raise UsageError("--record and --replay are two things", fix="leave one of them out")
    if output is not None:
        raise UsageError("-o names one tape", fix="leave it out: with --record DIR clients name theirs")
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UsageError("--record wants a folder", where=str(folder), fix="name another")


@click.command(context_settings=HELP)
@click.argument("name", required=False)
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="With NAME: as of replay."
)
def stop(name: str | None, report: Path | None) -> int:
    """Stop the proxy that `start` runs here, or one of its runs, and seal the tape.

    With NAME only the run of that name, of many: what came of it is printed, and the exit code is that of a replay, or
    5 if the tape could not be written whole.
    """
    if name is not None:
        return stop_run(name, report)
    if report is not None:
        raise UsageError("--report is of one run", fix="name it: tapeproxy stop NAME --report FILE")
    state = read_state()
    if state is None:
        raise no_proxy()
    os.kill(state.pid, signal.SIGTERM)
    began, told = time.monotonic(), False
    while read_state() is not None:
        if time.monotonic() > began + _LONGEST:
            raise NoProxyError(f"the proxy (process {state.pid}) does not stop", fix=f"end it with: kill {state.pid}")
        if not told and time.monotonic() > began + _LONG:
            click.echo("tapeproxy: waiting: a long tape takes its time to be read back and sealed", err=True)
            told = True
        time.sleep(0.02)
    did = "the tape is" if state.mode == "record" else "it served"
    if state.control:
        did = "the tapes are in" if state.mode == "record" else "it served tapes of"
    click.echo(f"tapeproxy: stopped: {did} {state.tape}", err=True)
    click.echo('tapeproxy: a shell that took its variables still has them: eval "$(tapeproxy env --unset)"', err=True)
    return 0


async def _record(settings: "RecordSettings") -> int:
    from tapeproxy.cli.recorded import closing_lines, warner, warnings
    from tapeproxy.proxy.recording import recording

    ended, lost = asyncio.Event(), False
    warn, loop = warner(strict=settings.strict), asyncio.get_running_loop()

    def lose(why: str) -> None:
        nonlocal lost
        warn(why)
        if settings.strict:
            lost = True
            loop.call_soon_threadsafe(ended.set)

    async with recording(settings, lose) as session:
        with _announced(settings.environment, session, "record", settings.tape, session.fronts):
            await until_stopped(ended)
            result = await session.finish(None)
    for line in (*warnings(result), *(() if result.failure is not None else closing_lines(result))):
        click.echo(f"tapeproxy: {line}", err=True)
    return STOPPED if lost else 0 if result.failure is None else TapeWriteError.exit_code


async def _serve(settings: "ReplaySettings") -> int:
    from tapeproxy.proxy.replaying import open_replay

    teller = Teller()
    begun = time.monotonic_ns()
    session = await open_replay(settings, teller.notice)
    teller.begin(session)
    try:
        with _announced(settings.environment, session, "replay", settings.tape, session.wire.fronts):
            await until_stopped()
    finally:
        await session.stop()
    result = session.verdict(settings, None, time.monotonic_ns() - begun)
    tell(result, settings, teller, quiet=False)
    return result.exit_code


@contextlib.contextmanager
def _announced(
    parent: Mapping[str, str], session: "Recording | Replaying", mode: str, tape: Path, fronts: "Fronts"
) -> Iterator[None]:
    from tapeproxy.proxy.childenv import difference

    port, change = session.port, difference(parent, session.environment)
    state = State(os.getpid(), mode, str(tape), port, dict(change.set), change.unset)
    write_state(state)
    click.echo(f'tapeproxy: listening on 127.0.0.1:{port}; in another shell here: eval "$(tapeproxy env)"', err=True)
    for place, front in fronts.open.items():
        named = f"{front.variable}=" if front.variable else ""
        click.echo(f"tapeproxy: {named}{front.value(place)} stands in front of {front.base}", err=True)
    try:
        yield
    finally:
        clear_state(state.pid)


async def until_stopped(stopped: asyncio.Event | None = None) -> None:
    """Wait for Ctrl-C, SIGTERM or SIGHUP, or until somebody sets `stopped`."""
    loop = asyncio.get_running_loop()
    stopped = stopped or asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopped.set))
    await stopped.wait()
