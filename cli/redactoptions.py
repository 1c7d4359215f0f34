"""Options for what else to redact, and the same of the settings file. Knows click, not secrets."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tapeproxy.tapes.redactionrules import RedactionRules

_GIVEN = "tapeproxy.redaction"
_OPTIONS = (
    ("header", "NAME", "Redact this header, too."),
    ("field", "NAME", "Redact this field of JSON, forms and queries, too; $.a.b is a JSON path."),
    ("pattern", "REGEX", "Redact what matches, or its group 1."),
)
NOT_REDACTED = "warning: nothing is redacted (--no-redact): whoever has the tape has your keys"


def redact_options[F: Callable[..., Any]](command: F) -> F:
    """Add the options. `given_redaction` has what was given."""
    command = click.option(
        "--no-redact",
        is_flag=True,
        expose_value=False,
        callback=_keep,
        help="Tape secrets in clear. The tape says so.",
    )(command)
    return redact_rule_options(command)


def redact_rule_options[F: Callable[..., Any]](command: F) -> F:
    """Add those that name more secrets, but not --no-redact."""
    for kind, metavar, text in reversed(_OPTIONS):
        names = f"--redact-{kind}", f"redact_{kind}"
        add = click.option(*names, multiple=True, metavar=metavar, expose_value=False, callback=_keep, help=text)
        command = add(command)
    return command


def given_redaction(ctx: click.Context) -> "RedactionRules":
    """What to redact, by the settings file and the command line. Raises UsageError."""
    from tapeproxy.proxy.settingsfile import read_redaction_above
    from tapeproxy.tapes.errors import UsageError
    from tapeproxy.tapes.redactionrules import NONE, RedactionRules

    given: dict[str, Any] = ctx.meta.get(_GIVEN, {})
    if given.get("no_redact"):
        return RedactionRules(NONE)
    settled = read_redaction_above(Path.cwd())
    try:
        return RedactionRules(
            headers=(*settled.headers, *given.get("redact_header", ())),
            fields=(*settled.fields, *given.get("redact_field", ())),
            patterns=(*settled.patterns, *given.get("redact_pattern", ())),
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def _keep(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
    ctx.meta.setdefault(_GIVEN, {})[parameter.name] = value
