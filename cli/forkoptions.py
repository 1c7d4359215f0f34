"""What forks are told that a viewer orders: the options of `serve` and `tui`. Knows words alone."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_MAP = click.option(
    "--map", "maps", multiple=True, metavar="HOST=URL", help="For forks: send what goes to HOST to URL."
)
_CA = click.option(
    "--upstream-ca", type=click.Path(path_type=Path), help="For forks: more roots to trust upstream (PEM)."
)


def fork_options(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options; its function gets them as `extra`, words for `tapeproxy fork`."""

    @_MAP
    @_CA
    @functools.wraps(callback)
    def gathered(*args: Any, maps: tuple[str, ...], upstream_ca: Path | None, **values: Any) -> Any:
        extra = [f"--map={one}" for one in maps] + ([f"--upstream-ca={upstream_ca}"] if upstream_ca else [])
        return callback(*args, extra=tuple(extra), **values)

    return gathered
