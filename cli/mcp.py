"""`tapeproxy mcp`: an MCP server on stdio that is taped, and that a replay does not start."""

import os
import subprocess
import sys

import click

from tapeproxy.cli.agentcommand import AgentCommand, agent_argv
from tapeproxy.cli.helpflags import HELP
from tapeproxy.tapes.errors import UsageError


@click.command(cls=AgentCommand, context_settings=HELP)
@click.option("--name", metavar="NAME", help="What the server is called on the tape.  [default: after its command]")
@click.pass_context
def command(ctx: click.Context, name: str | None) -> int:
    """Run an MCP server on stdio, taped in a recording; in a replay the tape answers in its place.

    \b
    Write it in front of the server's command, where your client is told of the server:
    {"command": "tapeproxy", "args": ["mcp", "--", "npx", "-y", "@example/server"]}

    Within `record` every message is on the tape before it is passed on, unchanged. Within `replay` the server is not
    started: its messages come from the tape, and a message of the client's that is not there is a violation, which the
    client gets as a JSON-RPC error with code 470. Outside of a run this is the server itself. What a server does to
    find its answers is not taped: it runs as if there were no tapeproxy. See docs/MCP.md.

    Two servers in one run need two names. Exits as the server does, or did; 2 where it cannot be started.
    """
    from tapeproxy.proxy.mcprun import find_run, server_environment
    from tapeproxy.tapes.mcpmessages import clean_name, server_name

    argv = agent_argv(ctx)
    if not argv:
        raise UsageError("no server to run", fix="put its command after --: tapeproxy mcp -- SERVER")
    called = clean_name(name) if name is not None else server_name(argv)
    if not called:
        raise UsageError(f"{name!r} is no name for a server", fix="name it in letters, digits and hyphens")
    run = find_run(os.environ)
    if run.mode == "unknown":
        raise UsageError(
            f"the MCP server {called} is not started: a replay is under way, and it cannot be asked from here",
            fix="have the client hand on HTTP_PROXY and all TAPEPROXY_* variables to its servers; "
            "if no replay is under way, empty ~/.tapeproxy/replays",
        )
    if run.mode == "replay":
        from tapeproxy.proxy.mcpreplay import ReplayedServer, next_session
        from tapeproxy.proxy.mcptap import end_as

        session = next_session(run.folder, called)
        try:
            server = ReplayedServer(run.proxy, called, session)
        except ValueError as error:
            raise UsageError(f"the replay cannot be asked: {error}", fix="leave HTTP_PROXY to tapeproxy") from None
        end_as(server.run(argv))
    environment = server_environment(os.environ, run)
    if run.folder is None:
        if run.mode == "record":
            click.echo(f"tapeproxy: the MCP server {called} is not taped: that needs the shim", err=True)
        return _pass_through(argv, environment)
    from tapeproxy.proxy.mcptap import Lines, end_as, run_tapped

    try:
        end_as(run_tapped(argv, environment, Lines(run.folder, called)))
    except OSError as error:
        raise _unstartable(argv, error) from None
    raise AssertionError("the process has ended")


def _pass_through(argv: tuple[str, ...], environment: dict[str, str]) -> int:
    """Become the server, where the system can."""
    try:
        if os.name == "posix":
            sys.stdout.flush()
            os.execvpe(argv[0], argv, environment)
        return subprocess.run(argv, env=environment, check=False).returncode
    except OSError as error:
        raise _unstartable(argv, error) from None


def _unstartable(argv: tuple[str, ...], error: OSError) -> UsageError:
    reason = (error.strerror or str(error)).lower()
    return UsageError(f"the MCP server cannot be started: {reason}", where=argv[0])
