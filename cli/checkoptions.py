"""What every command that searches has: how a run is judged (--check, --predicate), and how its agents are kept."""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.checks import Check

_OPTIONS = (
    click.option("--check", metavar="CMD", help="A command for the shell that exits with 0 when the run was good."),
    click.option("--predicate", metavar="PATH=VALUE", help="What is true of a good run's tape; != ~ !~ work too."),
)

_AGENT = (
    click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop each agent then."),
    click.option(
        "--guard",
        type=click.Choice(["auto", "namespace", "landlock", "audit", "none"]),
        default="auto",
        show_default=True,
        help="What keeps the agent itself from the network.",
    ),
    click.option("--allow", multiple=True, metavar="HOST:PORT", help="What may be reached all the same."),
)


def agent_options(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command that runs an agent many times what holds for each of its runs."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_AGENT), callback)


def check_options(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command these options; its function gets a Check as `judge`, or None."""

    @functools.wraps(callback)
    def chosen(*args: Any, check: str | None, predicate: str | None, **values: Any) -> int:
        return callback(*args, judge=_check(check, predicate), **values)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), chosen)


def _check(command: str | None, predicate: str | None) -> "Check | None":
    from tapeproxy.proxy.checks import ByCommand, ByPredicate
    from tapeproxy.tapes.predicates import parse_predicate

    if command is not None and predicate is not None:
        raise UsageError("--check and --predicate are two ways to judge a run", fix="leave one of them out")
    if command is not None:
        return ByCommand(command, dict(os.environ))
    return None if predicate is None else ByPredicate(parse_predicate(predicate))
