"""How the world is reached while recording: the options for proxies, roots, certificates, and what is left alone."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.tapes.passing import parse_passing

if TYPE_CHECKING:
    from tapeproxy.proxy.clientcerts import ClientCert

_OPTIONS = (
    click.option("--upstream-ca", type=click.Path(path_type=Path), help="More roots to trust upstream (PEM)."),
    click.option(
        "--upstream-proxy",
        metavar="URL|none",
        help="The proxy to the world, or none.  [default: that of HTTPS_PROXY]",
    ),
    click.option(
        "--client-cert",
        "client_certs",
        multiple=True,
        metavar="[HOST=]CERT[,KEY]",
        help="A client certificate (PEM), for HOST alone. Repeatable.",
    ),
    click.option("--no-tape", multiple=True, metavar="HOST", help="Let HOST pass by, its TLS unopened. Repeatable."),
)
_NAMES = ("upstream_ca", "upstream_proxy", "client_certs", "no_tape")


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """What was said of the way out."""

    upstream_ca: Path | None
    upstream_proxy: str | None
    client_certs: "tuple[ClientCert, ...]"
    no_tape: tuple[str, ...]

    @property
    def given(self) -> bool:
        """Whether anything was."""
        return bool(self.upstream_ca or self.upstream_proxy or self.client_certs or self.no_tape)

    def warn(self, environment: Mapping[str, str]) -> None:
        """Say at once if the proxy to the world cannot be reached. Raises UsageError where it is none."""
        from tapeproxy.cli.rendering import printable
        from tapeproxy.proxy.upstreamprobe import unreachable

        if (why := unreachable(self.upstream_proxy, environment)) is not None:
            click.echo(f"tapeproxy: warning: {printable(why)}", err=True)


def world_options(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command these options; its function gets them as `world`, a WorldOptions."""

    @functools.wraps(callback)
    def gathered(*args: Any, **values: Any) -> int:
        upstream_ca, proxy, certs, passing = [values.pop(name, ()) for name in _NAMES]
        found: tuple[ClientCert, ...] = ()
        if certs:
            from tapeproxy.proxy.clientcerts import parse_client_certs

            found = parse_client_certs(certs)
        world = WorldOptions(upstream_ca, proxy, found, parse_passing(passing))
        return callback(*args, world=world, **values)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), gathered)
