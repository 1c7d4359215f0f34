"""Options for the rules by which requests are told apart, and those of the settings file. Knows click, not matching."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tapeproxy.tapes.rules import Kind, Rule

_GIVEN = "tapeproxy.rules"
_OPTIONS: "tuple[tuple[Kind, str, str], ...]" = (
    ("match-header", "NAME", "Tell requests apart by this header too."),
    ("ignore-header", "NAME", "Do not tell them apart by this header (content-type, and matched ones)."),
    ("ignore-query", "NAME", "Nor by this query parameter."),
    ("ignore-form", "NAME", "Nor by this form field."),
    ("ignore-json", "PATH", "Nor by what a JSON path names: $.metadata.id, $.messages[*].id, $..timestamp."),
    ("rewrite-url", "REGEX=TEXT", "Compare URLs after replacing what matches."),
    ("rewrite-body", "REGEX=TEXT", "Compare bodies after replacing what matches in their canonical text."),
)


def rule_options[F: Callable[..., Any]](command: F) -> F:
    """Add the options, each of which may come several times. `given_rules` has what was given."""
    for kind, metavar, text in reversed(_OPTIONS):
        names = f"--{kind}", kind.replace("-", "_")
        add = click.option(*names, multiple=True, metavar=metavar, expose_value=False, callback=_collect, help=text)
        command = add(command)
    return command


def given_rules(ctx: click.Context) -> "tuple[Rule, ...]":
    """The rules of the settings file, then those of the command line. Raises UsageError for a bad file."""
    from tapeproxy.proxy.settingsfile import read_rules_above

    given: list[Rule] = ctx.meta.get(_GIVEN, [])
    return (*read_rules_above(Path.cwd()), *given)


def _collect(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
    if not values:
        return
    from tapeproxy.tapes.rules import parse_rule

    for text in values:
        try:
            ctx.meta.setdefault(_GIVEN, []).append(parse_rule(str(parameter.opts[0]).lstrip("-"), text))
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, parameter) from None
