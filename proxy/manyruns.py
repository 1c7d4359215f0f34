"""Many runs behind one proxy: how it is set up, who is let in, and how long a run may be idle. Opens nothing."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tapeproxy.tapes.credentials import RefusedError, check_token, split_credentials
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.hosts import is_loopback
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redactionrules import DEFAULT, RedactionRules
from tapeproxy.tapes.rules import Rule

if TYPE_CHECKING:
    from tapeproxy.proxy.recorded import Recorded
    from tapeproxy.proxy.replayed import Replayed, ReplaySettings

SUFFIX = ".tape.jsonl.gz"
TOKEN = "TAPEPROXY_TOKEN"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,}")
_ANYWHERE = ("", "0.0.0.0", "::")
_ANY_PASSWORD = "x"
"""Some clients send no user without a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySettings:
    """Where the tapes are, and how to listen. `idle`: seconds without a client after which a run ends; 0: never.

    `hosts` are --map rules; `rules` tell requests apart; `redaction` is a recording's. `speed` is a replay's: None at
    once, 1.0 as recorded. `token`: what clients have to know; empty: see `Door`. `ports`: each run gets a port.
    """

    folder: Path
    environment: Mapping[str, str]
    cwd: str
    host: str = "127.0.0.1"
    port: int = 0
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    rules: tuple[Rule, ...] = ()
    redaction: RedactionRules = DEFAULT
    speed: float | None = None
    token: str = ""
    idle: float = 0.0
    ports: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """A run that is over, and what came of it: `recorded`, or `replayed` with the settings of the `replay`.

    Of the recording that was replayed: `taped_in` is its folder, `sealed` says whether its tape has a seal, `outcome`
    is that of the seal.
    """

    name: str
    recorded: "Recorded | None" = None
    replayed: "Replayed | None" = None
    replay: "ReplaySettings | None" = None
    taped_in: str = ""
    sealed: bool = True
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a run that has not ended is doing."""

    name: str
    tape: str
    asked: int
    clients: int
    violations: int = 0
    port: int = 0


def given_token(environment: Mapping[str, str]) -> str:
    """The token that the user wants; empty for none. Raises UsageError for one that is easily guessed or mangled."""
    token = environment.get(TOKEN, "")
    if token and not _TOKEN.fullmatch(token):
        what = f"{TOKEN} must have 16 letters and digits or more"
        raise UsageError(what, fix="make one: python3 -c 'import secrets; print(secrets.token_hex())'")
    return token


class Door:
    """Lets clients in by their credentials, or by the port that they come by."""

    def __init__(self, host: str, token: str = "") -> None:
        """Everybody has to know the `token`; without one, and where `host` is not this machine alone, one is made."""
        self.host = host
        self.is_told = not token
        """Whether the token has to be told: it is not the user's own."""
        self.token = token or ("" if is_loopback(host) else secrets.token_urlsafe(24))
        self._names: dict[int, str] = {}
        self._ports: dict[str, int] = {}

    @property
    def reached(self) -> str:
        """The host by which a program on this machine gets here."""
        host = "127.0.0.1" if self.host in _ANYWHERE else self.host
        return f"[{host}]" if ":" in host else host

    def give(self, port: int, name: str) -> None:
        """Whoever comes by `port` belongs to the run `name` from here on."""
        self._names[port], self._ports[name] = name, port

    def port_of(self, name: str) -> int:
        """The port of a run; 0: it has none."""
        return self._ports.get(name, 0)

    def claim(self, port: int, headers: Headers) -> tuple[str, Headers]:
        """The name that a client of `port` gives, empty for none, and its headers without credentials.

        Raises RefusedError.
        """
        credentials, rest = split_credentials(headers)
        check_token(credentials, self.token)
        given = "" if credentials is None else credentials.name
        named = self._names.get(port, "")
        if named and given not in ("", named):
            raise RefusedError(f"this port is for the run {named}, and no other", fix="leave the name out")
        return named or given, rest

    def led_here(self, environment: Mapping[str, str], name: str, port: int) -> dict[str, str]:
        """An environment of the run `name` in which each proxy is the one where it is let in now: see `url`."""
        before = environment["HTTPS_PROXY"]
        return {key: self.url(name, port) if value == before else value for key, value in environment.items()}

    def url(self, name: str, port: int) -> str:
        """The proxy's URL for a run; `port` is the one for all."""
        own = self.port_of(name)
        password = self.token or _ANY_PASSWORD
        user = f"{name}:{password}@" if self.token or not own else ""
        return f"http://{user}{self.reached}:{own or port}"
