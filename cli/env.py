"""`tapeproxy env`: the variables of the running proxy, for `eval`."""

from typing import Literal

import click

from tapeproxy.cli.helpflags import HELP
from tapeproxy.proxy.state import NoProxyError, read_state


@click.command(context_settings=HELP)
@click.option("--shell", type=click.Choice(["sh", "fish"]), default="sh", show_default=True, help="Whose syntax.")
@click.option("--unset", is_flag=True, help="Print what takes it back.")
def command(shell: Literal["sh", "fish"], unset: bool) -> int:
    """Print the variables that send a shell's programs through `start`'s proxy.

    \b
    eval "$(tapeproxy env)"              tapeproxy env --shell fish | source
    eval "$(tapeproxy env --unset)"
    """
    from tapeproxy.proxy.childenv import render_exports, render_unsets

    state = read_state()
    if state is None:
        raise NoProxyError("no proxy is running here", fix="start one with: tapeproxy start")
    if unset:
        click.echo(render_unsets(state.variables, shell), nl=False)
        return 0
    click.echo(render_exports(state.variables, shell) + render_unsets(state.removed, shell), nl=False)
    return 0
