"""`--reverse`: base URLs that get a port of their own."""

import functools
from collections.abc import Callable
from typing import Any

import click

_HELP = "Give URL a port, whose address is in the variable NAME (or at PORT); see above. Repeatable."


def reverse_option(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command the option; its function gets `fronts`, a tuple of Front, or None where none was given."""

    @click.option("--reverse", "reverse", multiple=True, metavar="[NAME|PORT=]URL", help=_HELP)
    @functools.wraps(callback)
    def gathered(*args: Any, reverse: tuple[str, ...], **values: Any) -> int:
        from tapeproxy.tapes.fronts import parse_fronts

        return callback(*args, fronts=parse_fronts(reverse) if reverse else None, **values)

    return gathered
