"""Commands that take the agent's own command line after `--`. Knows click, not processes."""

import click


class AgentCommand(click.Command):
    """A command whose arguments end at the first `--`; what follows is `agent_argv(ctx)`, untouched."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["tapeproxy.agent_argv"] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def agent_argv(ctx: click.Context) -> tuple[str, ...]:
    """What stood after `--`; empty when there was none."""
    argv: tuple[str, ...] = ctx.meta.get("tapeproxy.agent_argv", ())
    return argv
