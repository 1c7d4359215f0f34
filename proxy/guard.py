"""How a replay is kept from the network: which guard, and why no stronger one. Knows levels; others do the work.

| level | what it holds | what it lets through |
|---|---|---|
| namespace | every program, every protocol | what is path-named and local: UNIX sockets, files |
| landlock | every program: TCP to other ports, UDP, raw packets | any host on an allowed port; UNIX sockets |
| audit | Python's own sockets | other programs, C libraries (curl, gRPC) |
| none | nothing | everything; what is seen is listed |

At every level but `none` the shim's audit hook refuses too, first, because it knows the calling line. What it does not
see (curl, Node, Go, `python -I`), the namespace counts.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, Self

from tapeproxy.tapes.errors import UsageError

LEVEL_VARIABLE, ALLOW_VARIABLE, OUTSIDE_VARIABLE = "TAPEPROXY_GUARD", "TAPEPROXY_ALLOW", "TAPEPROXY_OUTSIDE"
_RESOLVER_VARIABLE = "RES_OPTIONS"
_DNS = 53


class Guard(StrEnum):
    """The levels, strongest first. A value is the name on the command line and in the child's environment."""

    NAMESPACE = "namespace"
    LANDLOCK = "landlock"
    AUDIT = "audit"
    NONE = "none"


type GuardChoice = Literal["auto", "namespace", "landlock", "audit", "none"]


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host, by name or address, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read HOST:PORT or [IPV6]:PORT. Raises UsageError."""
        host, colon, port = text.strip().rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        number = int(port) if port.isascii() and port.isdigit() else 0
        if not colon or not host.strip("[]") or (":" in host and not bracketed) or not 0 < number < 65536:
            raise UsageError(f"{text!r} is not HOST:PORT", fix="as in db.example:5432 or [::1]:5432")
        if set(host) & set(",/@ "):
            raise UsageError(f"{text!r} is not HOST:PORT: a host has no path, user or list", fix="one --allow for each")
        with contextlib.suppress(UnicodeError):  # as clients ask for it
            host = host if host.isascii() else host.encode("idna").decode()
        return cls(host.strip("[]").lower(), number)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def needs_lookup(self) -> bool:
        """Whether the host is a name that somebody has to be asked for."""
        digits = self.host.replace(".", "")
        is_address = ":" in self.host or (digits.isascii() and digits.isdigit())
        return not is_address and self.host != "localhost" and not self.host.endswith(".localhost")


@dataclass(frozen=True, slots=True)
class GuardPlan:
    """The guard in force. `reason`: why none stronger is, empty for the strongest. `allow`: what may be reached.

    `outside`: loopback ports at which somebody waited outside the namespace. Inside nobody does, and a connection that
    is refused there would look as if it had been so in the recording too.
    """

    level: Guard
    reason: str = ""
    allow: tuple[HostPort, ...] = ()
    outside: frozenset[int] = frozenset()

    def confinement(self, *ours: int) -> Callable[[], None] | None:
        """What each child has to do between fork and exec (`preexec_fn`), if anything; good for many children.

        `ours`: the ports that we listen on.

        Raises OSError, as does the step: then the child must not run.
        """
        if self.level is not Guard.LANDLOCK:
            return None
        from tapeproxy.proxy import landlock

        return landlock.confinement({*ours, *self._ports()})

    @property
    def is_closed(self) -> bool:
        """Whether the kernel lets children reach nothing but loopback."""
        return self.level in (Guard.NAMESPACE, Guard.LANDLOCK) and not self.allow

    def count_refused(self) -> int:
        """How many attempts of whatever program the kernel has refused, all told; only a namespace counts them."""
        if self.level is not Guard.NAMESPACE:
            return 0
        from tapeproxy.proxy import netns

        return netns.count_refused()

    def variables(self, parent: Mapping[str, str]) -> dict[str, str]:
        """What the children's environment has to have on top of `parent`."""
        variables = {LEVEL_VARIABLE: self.level.value, ALLOW_VARIABLE: ",".join(map(str, self.allow))}
        if self.outside:
            variables[OUTSIDE_VARIABLE] = ",".join(map(str, sorted(self.outside)))
        if self.level is Guard.LANDLOCK and self._looks_up:
            # Names are looked up over UDP, which is closed: have libc ask over TCP (resolv.conf(5)).
            variables[_RESOLVER_VARIABLE] = f"{parent.get(_RESOLVER_VARIABLE, '')} use-vc".strip()
        return variables

    @property
    def _looks_up(self) -> bool:
        return any(place.needs_lookup for place in self.allow)

    def _ports(self) -> list[int]:
        return sorted({place.port for place in self.allow} | ({_DNS} if self._looks_up else set()))


def establish(
    choice: GuardChoice = "auto", allow: Sequence[HostPort] = (), *, reachable: bool = False, live: bool = False
) -> GuardPlan:
    """Put the strongest guard in force that this machine grants, or the one that is chosen.

    `reachable`: programs outside the run are to reach the wire, so "auto" takes no namespace. `live`: this process
    itself goes out to the world, so there can be none.

    May move this process into a network namespace, for good: call it once, before there is a second thread, an event
    loop or a socket, and only in a process that needs no network itself. Raises UsageError when the chosen level
    can't be had.
    """
    places = tuple(allow)
    if live and choice == "namespace":
        raise UsageError("--guard namespace would keep the proxy itself from the network", fix="take --guard landlock")
    refusals: list[str] = []
    outside = _listening_ports() if choice in ("auto", "namespace") else frozenset[int]()
    for level in (Guard.NAMESPACE, Guard.LANDLOCK) if choice == "auto" else (Guard(choice),):
        shut = (reachable or live) and choice == "auto" and level is Guard.NAMESPACE
        why = "the proxy itself needs the network" if live else "--port is for programs outside the run"
        refusal = why if shut else _take(level, places)
        if not refusal:
            plan = GuardPlan(level, "; ".join(refusals), places)
            return replace(plan, outside=outside) if level is Guard.NAMESPACE else plan
        refusals.append(f"no {_NOUNS[level]}: {refusal}")
    if choice != "auto":
        raise UsageError(
            f"--guard {choice} cannot be had: {refusals[0]}", fix="--guard auto takes the strongest it can"
        )
    return GuardPlan(Guard.AUDIT, "; ".join(refusals), places)


def describe(plan: GuardPlan) -> str:
    """One line for the terminal: the level, what it does not hold, and why it isn't a stronger one."""
    parts = [f"guard: {_describe_level(plan)}"]
    if plan.reason:
        parts.append(f"({plan.reason})")
    return " ".join(parts)


_NOUNS = {Guard.NAMESPACE: "network namespace", Guard.LANDLOCK: "Landlock"}


def _describe_level(plan: GuardPlan) -> str:
    match plan.level:
        case Guard.NAMESPACE:
            return "network namespace"
        case Guard.LANDLOCK:
            return _describe_landlock(plan)
        case Guard.AUDIT:
            allowed = f", which may reach {_list([str(place) for place in plan.allow])}" if plan.allow else ""
            return f"audit hook only{allowed}: programs that are not Python are not contained"
        case Guard.NONE:
            return "none: nothing keeps this replay from the network"


def _describe_landlock(plan: GuardPlan) -> str:
    from tapeproxy.proxy import landlock

    ports = ["the proxy's port", *(str(port) for port in plan._ports())]
    rest = "no UDP" if landlock.filters_sockets() else "UDP is not contained on this machine"
    return f"Landlock: TCP to {_list(ports)} only, whatever the host, and {rest}"


def _list(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _listening_ports() -> frozenset[int]:
    from tapeproxy.proxy import netns

    return netns.listening_ports()


def _take(level: Guard, allow: Sequence[HostPort]) -> str:
    """Put a level in force as far as this process goes; return why it can't be, or nothing."""
    if level is Guard.NAMESPACE:
        if allow:
            return "--allow needs the network outside"
        from tapeproxy.proxy import netns

        return netns.enter()
    if level is Guard.LANDLOCK:
        from tapeproxy.proxy import landlock

        return landlock.refusal()
    return ""
