"""Commands that take the agent's own command line after `--`. Knows click, not processes."""

import os
import shlex

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.tapes.errors import UsageError


class AgentCommand(click.Command):
    """A command whose arguments end at the first `--`; what follows is `agent_argv(ctx)`, untouched."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["tapeproxy.agent_argv"] = tuple(args[at + 1 :])
            return super().parse_args(ctx, args[:at])
        try:
            rest = super().parse_args(ctx, [*args])
        except click.UsageError:
            # The usual slip: words or options of the agent's, with no -- in front.
            if (begins := self._agent_begins(ctx, args)) is None:
                raise
            raise _forgotten_dashes(ctx, args, begins) from None
        first = self._first_word(ctx, args, 0)
        if first is not None and not ctx.resilient_parsing and looks_like_a_command(args[first]):
            raise _forgotten_dashes(ctx, args, first)
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]

    def _agent_begins(self, ctx: click.Context, args: list[str]) -> int | None:
        """Where in `args` the agent's command seems to begin; None when it is nowhere or cannot be told."""
        at = self._first_word(ctx, args, 0)
        if at is not None and self._takes_tape and not looks_like_a_command(args[at]):
            at = self._first_word(ctx, args, at + 1)
        return at

    def _first_word(self, ctx: click.Context, args: list[str], start: int) -> int | None:
        """The first of `args` from `start` on that is neither an option of ours nor an option's value."""
        options: list[click.Parameter] = [one for one in self.params if isinstance(one, click.Option)]
        parser = click.Command(self.name, params=options).make_parser(ctx)
        parser.allow_interspersed_args = False
        try:
            rest = parser.parse_args(args[start:])[1]
        except click.UsageError:
            return None
        return len(args) - len(rest) if rest else None

    @property
    def _takes_tape(self) -> bool:
        return any(isinstance(parameter, click.Argument) for parameter in self.params)


def agent_argv(ctx: click.Context) -> tuple[str, ...]:
    """What stood after `--`; empty when there was none."""
    argv: tuple[str, ...] = ctx.meta.get("tapeproxy.agent_argv", ())
    return argv


def looks_like_a_command(word: str) -> bool:
    """Whether a word can be run, and is no tape: a program on the PATH, an executable file, a script."""
    path = choose_tape(word)
    if path.name.endswith(".gz"):
        return False
    if path.is_file():
        return os.access(path, os.X_OK) or path.suffix == ".py"
    import shutil  # takes 3 ms

    return not path.exists() and shutil.which(word) is not None


def _forgotten_dashes(ctx: click.Context, args: list[str], at: int) -> UsageError:
    whole = shlex.join([*ctx.command_path.split(), *args[:at], "--", *args[at:]])
    return UsageError("the agent's command needs -- in front of it", fix=f"run: {whole}")
