"""What a recording is asked for, and how it ended. Values; knows neither wire nor tape file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tapeproxy.proxy.supervisor import Outcome
from tapeproxy.tapes.fronts import Front
from tapeproxy.tapes.redactionrules import DEFAULT, RedactionRules
from tapeproxy.tapes.rules import Rule

if TYPE_CHECKING:
    from tapeproxy.proxy.clientcerts import ClientCert
    from tapeproxy.proxy.outside import Outside
    from tapeproxy.proxy.unlocking import Secret


def can_record() -> bool:
    """Whether mitmproxy is installed. Does not import it."""
    return find_spec("mitmproxy") is not None


class Events(Protocol):
    """What shims tell, wherever it is kept."""

    @property
    def processes(self) -> list[dict[str, Any]]: ...

    @property
    def pids(self) -> set[int]: ...

    def drain(self) -> Iterator[dict[str, Any]]:
        """What has come since the last call."""
        ...

    def close(self) -> None:
        """All was heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Of a recording of this very interpreter, whose shim is here: its seed, where monotonic clocks begin (in ns since
    1970), and what the shim tells."""

    seed: str
    origin_ns: int
    events: Events


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """What to record, where to. `environment` is the user's; `hosts` are --map rules; `timeout` in seconds.

    `host_certs` are client certificates in place of `client_certs`. `upstream_proxy` is a URL, perhaps with
    credentials, or `none`; None: the environment's. `no_tape`: hosts that pass by. `fronts`: base URLs that get a port
    in front of them. `java`: Java is led here too. `rules` say by what a replay will tell requests apart.
    `strict` ends the run when the tape can't be written any more, or something could not be taped. `fsync` has the disk
    confirm all that is acknowledged. `within`: it is this interpreter that is recorded; then `shim` is of no account.
    `secret` encrypts the tape from its first byte on. `outside`: this process is in a network namespace, from which all
    connections are led to the wire; the way out is this.
    """

    tape: Path
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    force: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    upstream_ca: Path | None = None
    client_certs: Path | None = None
    host_certs: "tuple[ClientCert, ...]" = ()
    upstream_proxy: str | None = None
    no_tape: tuple[str, ...] = ()
    fronts: tuple[Front, ...] = ()
    timeout: float | None = None
    shim: bool = True
    java: bool = False
    within: Within | None = None
    io: bool = False
    threads: bool = False
    rules: tuple[Rule, ...] = ()
    redaction: RedactionRules = DEFAULT
    strict: bool = False
    fsync: bool = False
    secret: "Secret | None" = None
    outside: "Outside | None" = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a recording ended. `untaped`: what passed by, as (what, where) and how often; `failure`: why the tape is not
    whole; `failed`: exchanges that did not end `complete`, as (host, how, error) and how often; `values`: what the
    agent read past the wire, counted; `calls`: its calls of tools; `troubles`: where the agent was not wholly in the
    shim's hands, as sentences and how often.
    """

    path: Path
    size: int
    exchanges: int
    duration_ns: int
    untaped: Mapping[tuple[str, str], int]
    outcome: Outcome | None = None
    failure: str | None = None
    failed: Mapping[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])
    values: int = 0
    calls: int = 0
    troubles: Mapping[str, int] = field(default_factory=dict[str, int])
