"""The options of every command that replays an agent, and the settings that follow from them."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tapeproxy.cli.ruleoptions import given_rules, rule_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.guard import GuardChoice
    from tapeproxy.proxy.hintvalues import ToolMode
    from tapeproxy.proxy.replayed import ReplaySettings
    from tapeproxy.proxy.shimming import IoMode
    from tapeproxy.proxy.unlocking import Ask

_OPTIONS = (
    click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the agent then."),
    click.option(
        "--max-violations", default=20, show_default=True, type=click.IntRange(1), help="Stop the run at so many."
    ),
    click.option(
        "--on-drift",
        type=click.Choice(["fail", "report"]),
        default="fail",
        show_default=True,
        help="What a difference does to the exit code that did not keep the run from going on.",
    ),
    click.option(
        "--match",
        type=click.Choice(["lane", "any"]),
        default="lane",
        show_default=True,
        help="Whose answers a thread or task may have: its own, or any.",
    ),
    click.option("--no-shim", is_flag=True, help="Leave clock, randomness and lanes of the agent alone."),
    click.option(
        "--io",
        type=click.Choice(["verify", "tape", "virtual", "live"]),
        help="Of a tape made with --io: compare what the agent reads, serve it from the tape, serve it and swallow its "
        "writes, or leave it alone.  [default: verify]",
    ),
    click.option(
        "--tools",
        type=click.Choice(["tape", "live"]),
        default="tape",
        show_default=True,
        help="What a call of a function that is marked as a tool gets: its result on the tape, or its body is run.",
    ),
    click.option(
        "--threads/--no-threads",
        default=None,
        help="Give locks to threads in the order of the tape, or as they come.  [default: the former if recorded so]",
    ),
    click.option("--no-edges", is_flag=True, help="Don't compare where threads, tasks and processes met."),
    click.option(
        "--guard",
        type=click.Choice(["auto", "namespace", "landlock", "audit", "none"]),
        default="auto",
        show_default=True,
        help="What keeps the agent from the network; auto takes the strongest that this machine grants.",
    ),
    click.option(
        "--allow", multiple=True, metavar="HOST[:PORT]", help="What may be reached although it is not on the tape."
    ),
    rule_options,
    click.option("--no-taped-rules", is_flag=True, help="Leave out the rules that are on the tape."),
)
NAMES = (
    "timeout",
    "max_violations",
    "on_drift",
    "match",
    "no_shim",
    "io",
    "tools",
    "threads",
    "no_edges",
    "guard",
    "allow",
    "no_taped_rules",
)
"""The options' parameters, in the order of the help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How an agent is to be replayed, as it was said on the command line."""

    timeout: float | None
    max_violations: int
    on_drift: Literal["fail", "report"]
    match: Literal["lane", "any"]
    no_shim: bool
    io: "IoMode | None"
    tools: "ToolMode"
    threads: bool | None
    no_edges: bool
    guard: "GuardChoice"
    allow: tuple[str, ...]
    no_taped_rules: bool

    def settings(
        self,
        tape: Path,
        argv: tuple[str, ...],
        *,
        pace: float | None = None,
        port: int = 0,
        ask: "Ask | None" = None,
    ) -> "ReplaySettings":
        """The settings of a replay, with the guard put in force; `ask` opens an encrypted tape. Raises UsageError.

        Call it before there is an event loop or a second thread: it may move the process into a network namespace,
        for good.
        """
        from tapeproxy.proxy.guard import establish
        from tapeproxy.proxy.replayed import ReplaySettings
        from tapeproxy.proxy.unlocking import ask_environment

        if self.threads and self.no_shim:
            raise UsageError("--threads is the shim's work", fix="leave out --no-shim")
        rules = given_rules(click.get_current_context())
        ask, places = ask or ask_environment, []
        if self.allow:
            from tapeproxy.proxy.allowed import allowed

            places = allowed(self.allow, tape, ask)
        plan = establish(self.guard, places, reachable=port != 0)
        return ReplaySettings(
            tape=tape,
            environment=dict(os.environ),
            argv=argv,
            speed=pace,
            port=port,
            timeout=self.timeout,
            max_violations=self.max_violations,
            on_drift=self.on_drift,
            guard=plan,
            match=self.match,
            shim=not self.no_shim,
            io=self.io,
            tools=self.tools,
            threads=self.threads,
            edges=not self.no_edges,
            rules=rules,
            taped_rules=not self.no_taped_rules,
            ask=ask,
        )


def run_options(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command these options; its function gets them as `run`, a RunOptions."""

    @functools.wraps(callback)
    def gathered(*args: Any, **values: Any) -> int:
        return callback(*args, run=RunOptions(**{name: values.pop(name) for name in NAMES}), **values)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), gathered)
