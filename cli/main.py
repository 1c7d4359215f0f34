"""The `tapeproxy` command: finds the subcommand, runs it, turns errors into lines and exit codes.

Subcommands are imported when they are run, not before: `--help` and `replay` must not wait for mitmproxy.
"""

import atexit
import contextlib
import gc
import importlib
import io
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

import tapeproxy
from tapeproxy.tapes.errors import TapeproxyError, UsageError

_GARBAGE = 50_000
"""New objects before the first look for garbage: with Python's 700, a start looks fifty times and finds nothing."""


class _Lazy(NamedTuple):
    module: str
    attribute: str
    help: str


COMMANDS: dict[str, _Lazy] = {
    "record": _Lazy("record", "command", "Run an agent and tape every HTTP exchange it makes."),
    "replay": _Lazy("replay", "command", "Run an agent against a tape: offline, without a key."),
    "fork": _Lazy(
        "fork",
        "command",
        "Run an agent again from a tape with something changed: what comes after it is asked anew, live.",
    ),
    "update": _Lazy(
        "update",
        "command",
        "Run a changed agent from its tape, ask anew only what changed, and write that on yes.",
    ),
    "mcp": _Lazy(
        "mcp", "command", "Run an MCP server on stdio, taped in a recording; in a replay the tape answers in its place."
    ),
    "verify": _Lazy("verify", "command", "Check that a tape is whole and unchanged."),
    "scrub": _Lazy("scrub", "command", "Write a tape anew without secrets, or check it for them."),
    "doctor": _Lazy(
        "doctor", "command", "Find what would make replays of a program differ, with the line and what to do."
    ),
    "repair": _Lazy("repair", "command", "Close a tape whose recording was interrupted."),
    "show": _Lazy("show", "command", "Show what is on a tape, or one exchange whole."),
    "serve": _Lazy(
        "serve", "command", "Show tapes in a browser: lanes, exchanges, conversations, streams, as they are recorded."
    ),
    "view": _Lazy("view", "command", "Write a tape, or two to compare, as one page that opens from disk, offline."),
    "tui": _Lazy(
        "tui",
        "command",
        "Look at a tape in the terminal: lanes, exchanges, conversations, streams; or at two tapes side by side.",
    ),
    "why": _Lazy(
        "why", "command", "Show where the words of a request come from: answers, tools, files, or the agent itself."
    ),
    "cat": _Lazy("cat", "command", "Print a tape as plain JSON."),
    "export": _Lazy("export", "command", "Write what is on a tape in a format of others."),
    "diff": _Lazy("diff", "command", "Show where two runs part, and what is other in each lane."),
    "bisect": _Lazy("bisect", "command", "Find the event or the commit at which a run turns bad."),
    "minimize": _Lazy("minimize", "command", "Find the values of a tape that a failure needs."),
    "repro": _Lazy("repro", "command", "Make a test of a taped run, with its tape beside it."),
    "ci": _Lazy("ci", "command", "Make one summary of reports, for a CI's page."),
    "encrypt": _Lazy("encrypt", "command", "Encrypt a tape with a passphrase or a key file."),
    "decrypt": _Lazy("encrypt", "decrypt", "Make a plain tape of an encrypted one."),
    "sign": _Lazy("sign", "command", "Sign a tape, so that nobody can make another in its place."),
    "keygen": _Lazy("sign", "keygen", "Make a pair of keys that signs tapes, or a key that encrypts them."),
    "import": _Lazy(
        "importing", "command", "Make tapes of the recordings of other tools, so that their tests replay here."
    ),
    "ls": _Lazy("ls", "command", "List the tapes in .tapes."),
    "prune": _Lazy("ls", "prune", "Delete old tapes from .tapes."),
    "start": _Lazy("start", "command", "Run a proxy until it is stopped, for agents started elsewhere."),
    "stop": _Lazy("start", "stop", "Stop the proxy that `start` runs here, or one of its runs, and seal the tape."),
    "status": _Lazy("manyruns", "status", "Show the proxy that `start` runs here, and the runs that go through it."),
    "env": _Lazy("env", "command", "Print the variables that send a shell's programs through `start`'s proxy."),
    "ca": _Lazy("ca", "command", "Show, export or remove the certificate authority."),
    "provider": _Lazy("provider", "command", "Run the fake LLM provider, for tests without a key."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use; their one-line helps are known before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        module = importlib.import_module(f"tapeproxy.cli.{lazy.module}")
        command: click.Command = getattr(module, lazy.attribute)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _pipe_watched():  # --help is printed here
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipe_watched():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not ctx.resilient_parsing and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise _unknown(args)
        return super().resolve_command(ctx, args)


def _unknown(args: list[str]) -> UsageError:
    """There is no such command: say which one may be meant, or how to record it if it is a program."""
    import difflib
    import shlex

    from tapeproxy.cli.agentcommand import looks_like_a_command

    is_program = looks_like_a_command(args[0])
    # A program's own name is seldom a slip of one of ours.
    near = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.75 if is_program else 0.6)
    hints = [f"did you mean: tapeproxy {name}" for name in near]
    if is_program:
        hints.append(f"to record it: tapeproxy record -- {shlex.join(args)}")
    return UsageError(f"there is no command {args[0]!r}", fix="\n  ".join(hints) or "see: tapeproxy --help")


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(tapeproxy.__version__, "-V", "--version", prog_name="tapeproxy")
def cli() -> None:
    """Tape everything an agent hears over HTTP, and replay the run offline, byte for byte.

    \b
    tapeproxy record -- python agent.py     run it for real and make a tape
    tapeproxy replay                        run it again from the last tape: no network, no key
    tapeproxy show                          see what happened

    Exit codes: the agent's own; 2 wrong usage; 3 violation: the run asked for something that is not on the tape;
    4 drift; 5 a tape that is damaged, interrupted or could not be written. See docs/CLI.md.
    """


def main(args: list[str] | None = None) -> Any:
    """Run the command line and exit with its code; without `args` it is this process's, which then ends at once."""
    if args is None:
        gc.set_threshold(_GARBAGE, 10, 10)
    for stream in (sys.stdout, sys.stderr):
        # What a terminal's encoding cannot show is escaped, never a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr.isatty():
        from tapeproxy.cli.progress import watch_reading

        watch_reading()
    try:
        code = cli.main(args=args, prog_name="tapeproxy", standalone_mode=False)
    except TapeproxyError as error:
        from tapeproxy.cli.rendering import block

        # What a tape or a file name says must not act on the terminal.
        click.echo(f"tapeproxy: {block(str(error))}", err=True)
        code = error.exit_code
    except click.exceptions.Abort:
        click.echo("tapeproxy: stopped", err=True)
        code = 130
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        click.echo(f"tapeproxy: {_in_our_words(error)}", err=True)
        code = UsageError.exit_code
    except BrokenPipeError:
        code = _quit_quietly()
    code = code if isinstance(code, int) else 0
    if args is None:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
    """End the process without taking the interpreter apart, which takes a tenth of a replay that goes well.

    Does nothing where there is something that a regular exit waits for: a thread, an output that can't be written, a
    debugger or a profiler that looks on.
    """
    if threading.active_count() > 1 or sys.gettrace() or sys.getprofile():
        return
    # What others have registered: weakref.finalize, logging.
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # full, closed, or there is none
        return
    os._exit(code)


@contextlib.contextmanager
def _pipe_watched() -> Iterator[None]:
    """Exit with 141 when the reader of our output has left, as `head` does; click would exit with 1."""
    try:
        yield
    except BrokenPipeError:
        raise SystemExit(_quit_quietly()) from None


def _quit_quietly() -> int:
    """Leave nothing for Python to complain about while it exits; returns the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _in_our_words(error: click.ClickException) -> UsageError:
    """What click has to say, as one of our errors."""
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return UsageError(message, fix=f"see: {ctx.command_path} --help" if ctx is not None else "")


if __name__ == "__main__":
    main()
