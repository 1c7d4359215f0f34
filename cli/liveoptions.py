"""How a run that asks some of its requests anew reaches the world, and what keeps it: shared by `fork` and `update`."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.reverseoption import reverse_option
from tapeproxy.cli.worldoptions import WorldOptions, world_options

if TYPE_CHECKING:
    from tapeproxy.proxy.forked import WayOut
    from tapeproxy.proxy.guard import GuardChoice, GuardPlan
    from tapeproxy.tapes.fronts import Front


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """What was said of it. Each method imports what it needs: `--help` needs none of it."""

    maps: tuple[str, ...]
    world: WorldOptions
    fronts: "tuple[Front, ...] | None"
    timeout: float | None
    choice: "GuardChoice"

    @property
    def hosts(self) -> Mapping[str, str]:
        """Those of --map. Raises UsageError."""
        from tapeproxy.addons.hostmap import parse_map

        return parse_map(self.maps)

    @property
    def upstream_ca(self) -> Path | None:
        """More roots to trust."""
        return self.world.upstream_ca

    @property
    def way(self) -> "WayOut":
        """Proxies, certificates and base URLs."""
        from tapeproxy.proxy.forked import WayOut

        world = self.world
        return WayOut(world.upstream_proxy, world.client_certs, self.fronts, world.no_tape)

    def guard(self) -> "GuardPlan":
        """What keeps the agent from the network. Raises UsageError where it is not there."""
        from tapeproxy.proxy.guard import establish

        return establish(self.choice, live=True)


_OPTIONS = (
    click.option("--map", "maps", multiple=True, metavar="HOST=URL", help="Send what goes to HOST to URL instead."),
    world_options,
    reverse_option,
    click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the agent then."),
    click.option(
        "--guard",
        type=click.Choice(["auto", "landlock", "audit", "none"]),
        default="auto",
        show_default=True,
        help="What keeps the agent itself from the network; the proxy may go there.",
    ),
)


def live_options(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command these options; its function gets them as `live`, a LiveOptions."""

    @functools.wraps(callback)
    def gathered(*args: Any, **values: Any) -> int:
        live = LiveOptions(*(values.pop(name) for name in ("maps", "world", "fronts", "timeout", "guard")))
        return callback(*args, live=live, **values)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), gathered)
