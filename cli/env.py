"""`tapeproxy env`: the variables of the running proxy, for `eval`."""

import os
import time
from collections.abc import Mapping
from typing import Literal

import click

from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.manyruns import variables_of
from tapeproxy.proxy.state import State, no_proxy, read_state
from tapeproxy.tapes.errors import TapeproxyError

_POLL = 0.05
_SAY_AFTER = 0.5
"""Seconds of waiting after which the user is told."""


@click.command(context_settings=HELP)
@click.option("--shell", type=click.Choice(["sh", "fish"]), default="sh", show_default=True, help="Whose syntax.")
@click.option("--tape", metavar="NAME", help="Of many tapes, the one of this name; its run begins, if it has not.")
@click.option("--unset", is_flag=True, help="Print what removes the variables again; no proxy has to run.")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="How long a proxy may take to start.",
)
def command(shell: Literal["sh", "fish"], tape: str | None, unset: bool, wait: float) -> int:
    """Print the variables that send a shell's programs through `start`'s proxy.

    \b
    eval "$(tapeproxy env)" && python agent.py
    eval "$(tapeproxy env --unset)"
    tapeproxy env --shell fish | source

    --unset removes the variables; it does not bring back what some of them were before, as a new shell does. Where no
    proxy is running the output is `false`, so that what follows && is not run.
    """
    from tapeproxy.proxy.childenv import render_exports, render_unsets

    if unset:
        kept = _own_path(os.environ)
        click.echo(
            render_unsets(sorted(_taken(os.environ) - kept.keys()), shell) + render_exports(kept, shell), nl=False
        )
        return 0
    try:
        state = _await_state(wait)
        variables: Mapping[str, str] = state.variables
        removed = state.removed
        if tape is not None or state.control:
            variables, removed = variables_of(state, tape)
    except TapeproxyError:
        click.echo("false")
        raise
    click.echo(render_exports(variables, shell) + render_unsets(removed, shell), nl=False)
    return 0


def _await_state(seconds: float) -> State:
    """The running proxy's state, as soon as there is one. Raises NoProxyError."""
    began = time.monotonic()
    told = False
    while (state := read_state()) is None:
        waited = time.monotonic() - began
        if waited >= seconds:
            raise no_proxy()
        if waited >= _SAY_AFTER and not told:
            told = True
            click.echo("tapeproxy: waiting for a proxy to start here", err=True)
        time.sleep(_POLL)
    return state


def _taken(environment: Mapping[str, str]) -> set[str]:
    """The names to unset: those that every child of ours gets, and what else this shell has from us."""
    from tapeproxy.proxy.ca import home
    from tapeproxy.proxy.childenv import JAVA_VARIABLE, OURS
    from tapeproxy.proxy.processes import RUN_VARIABLE

    names = set(OURS)
    if RUN_VARIABLE in environment:
        names |= {"PYTHONPATH", "NODE_OPTIONS", "PYTHONHASHSEED", "TMPDIR"}.intersection(environment)
        names |= {name for name in environment if name.startswith("TAPEPROXY_") and name != "TAPEPROXY_HOME"}
        names.add("TAPEPROXY_LANE")  # the shim takes it out of our own environment
        names |= {name for name, value in environment.items() if value.startswith(f"{home()}{os.sep}")}
        ours = [f"http://127.0.0.1:{port}" for port in environment.get("TAPEPROXY_FRONTS", "").split(",") if port]
        names |= {name for name, value in environment.items() if value.rpartition("/v1")[0] in ours or value in ours}
        names |= {name for name in (JAVA_VARIABLE,) if str(home()) in environment.get(name, "")}
    return names


def _own_path(environment: Mapping[str, str]) -> dict[str, str]:
    """PYTHONPATH and NODE_OPTIONS as they were before we put the shim in front, where there was one."""
    from tapeproxy.proxy.shimming import NODE_OPTION
    from tapeproxy.shim import INJECT

    ours, _, rest = environment.get("PYTHONPATH", "").partition(os.pathsep)
    own = {"PYTHONPATH": rest} if ours == str(INJECT) and rest else {}
    options = environment.get("NODE_OPTIONS", "")
    given = options.removeprefix(NODE_OPTION).strip()
    return own | ({"NODE_OPTIONS": given} if options.startswith(NODE_OPTION) and given else {})
