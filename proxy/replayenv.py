"""What the agent of a replay gets as its environment, but for its shim."""

from dataclasses import dataclass
from pathlib import Path

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.childenv import ChildSettings, child_environment, upstream_of
from tapeproxy.proxy.guard import HostPort
from tapeproxy.proxy.led import LED_VARIABLE
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.proxy.tapedrun import edited_environment, placeholders
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.fronts import Fronts
from tapeproxy.tapes.passing import passes
from tapeproxy.tapes.tokens import placeholder


@dataclass(frozen=True, slots=True)
class ReplayEnvironment:
    """`address` is HOST:PORT of the proxy, `fronts` the ports that are open in front of base URLs.

    `led`: all connections of the run are led to the proxy.
    """

    tape: Tape
    settings: ReplaySettings
    ca: CertificateAuthority
    address: str
    fronts: Fronts
    led: bool = False

    def variables(self, run_id: str) -> dict[str, str]:
        """All of it, for the processes of one run."""
        parent = edited_environment(self.tape.head, self.settings.environment)
        trusted = self._trusted()
        child = ChildSettings(
            self.settings.proxy or f"http://{self.address}",
            trusted,
            self.ca.certificate,
            run_id,
            {name: placeholder(name) for name in placeholders(self.tape)},
            replay=True,
            truststore=self.ca.truststore(trusted) if self.tape.head.java or self.settings.java else None,
        )
        return (
            child_environment(parent, child)
            | self.settings.guard.variables(parent)
            | self.fronts.variables()
            | self._past_us()
            | ({LED_VARIABLE: "1"} if self.led else {})
        )

    def _past_us(self) -> dict[str, str]:
        """What has the agent call those hosts itself that passed the recording by and are allowed."""
        hosts = ",".join(sorted({place.host for place in self._passing()}))
        return {"NO_PROXY": hosts, "no_proxy": hosts} if hosts else {}

    def _passing(self) -> list[HostPort]:
        passing = self.tape.head.no_tape
        return [place for place in self.settings.guard.allow if passes(passing, place.host, place.port)]

    def _trusted(self) -> Path:
        """A file of the roots that the agent is to trust: ours alone where it can reach nobody else.

        A client takes 15 ms to read the public ones, and httpx reads them four times for each of its clients.
        """
        if self.settings.guard.is_closed:
            return self.ca.certificate
        if not self._passing():
            return self.ca.bundle()
        from tapeproxy.proxy.roots import agents_bundle

        return agents_bundle(self.ca, upstream_of(self.settings.environment), passing=True)
