"""`tapeproxy record`: parse, run, and say in a few lines what was taped."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.keepingoptions import STOPPED, KeepingOptions, keeping_options
from tapeproxy.cli.leftover import after_recording
from tapeproxy.cli.newtape import new_tape, record_to_new_tape
from tapeproxy.cli.recorded import astray, closing_lines, warner, warnings
from tapeproxy.cli.redactoptions import NOT_REDACTED, given_redaction, redact_options
from tapeproxy.cli.reverseoption import reverse_option
from tapeproxy.cli.ruleoptions import given_rules, rule_options
from tapeproxy.cli.worldoptions import WorldOptions, world_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.outside import Outside
    from tapeproxy.tapes.fronts import Front


@click.command(cls=AgentCommand, context_settings=HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The tape to write.  [default: in .tapes]")
@click.option("--force", is_flag=True, help="Replace the tape if it exists.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The proxy's port.  [default: a free one]")
@click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="Send what goes to HOST to URL instead.")
@world_options
@reverse_option
@click.option("--local", is_flag=True, help="Lead every connection here, also of clients that know no proxy (Linux).")
@click.option("--java", is_flag=True, help="Lead Java here too, by JAVA_TOOL_OPTIONS, which each JVM tells on stderr.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the agent then.")
@click.option(
    "--no-shim", is_flag=True, help="Tape the wire alone: leave the agent's clock and randomness as they are."
)
@click.option("--io", is_flag=True, help="Tape also what the agent reads from files, folders, programs and sockets.")
@click.option("--threads", is_flag=True, help="Tape also the order in which threads get locks; a replay keeps it.")
@keeping_options
@rule_options
@redact_options
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but warnings.")
@click.pass_context
def command(
    ctx: click.Context,
    output: Path | None,
    force: bool,
    port: int,
    maps: tuple[str, ...],
    world: WorldOptions,
    java: bool,
    local: bool,
    fronts: "tuple[Front, ...] | None",
    timeout: float | None,
    no_shim: bool,
    io: bool,
    threads: bool,
    keeping: KeepingOptions,
    quiet: bool,
) -> int:
    """Run an agent and tape every HTTP exchange it makes.

    \b
    tapeproxy record -- python agent.py
    tapeproxy record -o bug.tape.jsonl.gz -- node agent.mjs
    tapeproxy record --map api.openai.com=http://127.0.0.1:8000 -- ./agent.sh

    The agent runs as it would without us: same terminal, same signals, same exit code. Credentials are replaced by
    tokens on the tape, never in what is sent: known headers and fields, what looks like a key, and the values of secret
    environment variables, however they are encoded. Rules for telling requests apart and for what else to redact (here,
    in tapeproxy.toml or in [tool.tapeproxy]) go on the tape, and replays keep to them. The exit code is the agent's; 5
    if the tape could not be written whole. At the end the tape is looked through once more, for two seconds at most,
    and a line says so if something on it still looks like a secret (`scrub --check`).

    A disk that is full or a tape that somebody removed does not touch the agent: a warning says so at once and again
    at the end, and the tape ends there, without a seal. With --strict-tape the agent is stopped then (SIGTERM, SIGKILL
    5 s later), and the exit code is 6. What an agent has received is on the tape after a kill -9 of tapeproxy; after
    a power cut only with --fsync.

    --reverse is for clients that know a base URL and no proxy: a port of this machine stands in front of URL, and its
    address is in OPENAI_BASE_URL, ANTHROPIC_BASE_URL or the variable NAME. On the tape is the URL behind it: a tape
    does not know by which way its requests came, and a replay takes them by any. It opens such ports by itself.

    --local runs the agent in a network namespace of its own in which all TCP and all names lead here: also of programs
    that take no notice of HTTPS_PROXY. They have to trust our certificate all the same. See docs/CLIENTS.md.

    The world is reached by the proxy of HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or --upstream-proxy, whose password is on
    no tape. --client-cert is for servers that ask for one: CERT may hold the key, HOST is the server's name. --no-tape
    is for hosts that must not be opened, as by clients that pin certificates: HOST, HOST:PORT, or *.HOST for all below.
    The tape notes that they were called. A replay refuses them, or with --allow HOST:PORT has the agent call them.

    --encrypt writes no plain tape at any time, and the name it chooses ends in .enc; a recorder that is killed leaves
    an encrypted tape that was interrupted. The passphrase or key file is given as for `encrypt`, the passphrase asked
    for before the agent starts.
    """
    from tapeproxy.addons.hostmap import parse_map
    from tapeproxy.proxy.outside import loop_for
    from tapeproxy.proxy.recorded import RecordSettings
    from tapeproxy.proxy.recording import record

    argv = agent_argv(ctx)
    if not argv:
        raise UsageError("there is no command to record", fix="put it after --: tapeproxy record -- python agent.py")
    if io and no_shim:
        raise UsageError("--io is the shim's work", fix="leave out --no-shim")
    if threads and no_shim:
        raise UsageError("--threads is the shim's work", fix="leave out --no-shim")
    if keeping.encrypt and io:
        fix = "leave out one of them, or `tapeproxy encrypt` the tape afterwards"
        raise UsageError("--io hands over what the agent reads in plain files", fix=fix)
    secret = keeping.secret()
    world.warn(os.environ)
    outside = _outside() if local else None
    settings = RecordSettings(
        tape=output or new_tape(argv, encrypted=keeping.encrypt),
        argv=argv,
        environment=dict(os.environ),
        cwd=str(Path.cwd()),
        force=force,
        port=port,
        hosts=parse_map(maps),
        upstream_ca=world.upstream_ca,
        upstream_proxy=world.upstream_proxy,
        host_certs=world.client_certs,
        no_tape=world.no_tape,
        fronts=fronts or (),
        timeout=timeout,
        shim=not no_shim,
        java=java,
        io=io,
        threads=threads,
        rules=given_rules(ctx),
        redaction=given_redaction(ctx),
        strict=keeping.strict,
        fsync=keeping.fsync,
        secret=secret,
        outside=outside,
    )
    if settings.redaction.version == 0:
        click.echo(f"tapeproxy: {NOT_REDACTED}", err=True)
    if output is None:
        result = record_to_new_tape(settings)
    else:
        result = asyncio.run(record(settings, warner(strict=keeping.strict)), loop_factory=loop_for(outside))
    brief = quiet or result.failure is not None
    for line in (*warnings(result), *(astray(result) if brief else closing_lines(result, argv))):
        click.echo(f"tapeproxy: {line}", err=True)
    if result.failure is None and settings.redaction.version and secret is None:
        for line in after_recording(result, settings.environment, settings.redaction):
            click.echo(f"tapeproxy: {line}", err=True)
    assert result.outcome is not None
    if result.outcome.stopped_by == "tape":
        return STOPPED
    if result.outcome.stopped_by == "timeout":
        return 124
    return result.outcome.exit_code or (5 if result.failure is not None else 0)


def _outside() -> "Outside":
    """Move this process into a network namespace, and leave a way out of it. Raises UsageError."""
    from tapeproxy.proxy import netns
    from tapeproxy.proxy.outside import Outside

    if sys.platform != "linux":
        refusal = f"{sys.platform} has none"
    else:
        outside = Outside.fork()  # it ends with us, also where there is no namespace
        if not (refusal := netns.enter()):
            return outside
    fix = "leave it out; --reverse is for clients that know no proxy (docs/CLIENTS.md)"
    raise UsageError(f"--local needs a network namespace: {refusal}", fix=fix)
