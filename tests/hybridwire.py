"""A hybrid wire in a thread: what is on a tape comes from there, everything else from the world. No child processes."""

from pathlib import Path
from typing import Any

from authority import Authority
from recording import KEY, Recording

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.forkjudge import ForkJudge
from tapeproxy.proxy.forkwire import ForkWire
from tapeproxy.proxy.mitm import WireOptions
from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.proxy.tapeserver import TapeServer
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.forkplan import anew, kept
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.updateplan import update_of
from tapeproxy.tapes.violations import Drift, Violation


class Hybrid(Recording):
    """A recording whose answers come from `parent` as far as that has them: an update. `judge` counts, by source."""

    def __init__(self, folder: Path, authority: Authority, parent: Tape, **options: Any) -> None:
        super().__init__(folder, authority)
        redactor, plan = Redactor(KEY), update_of(parent)
        self.noticed: list[Violation | Drift] = []
        replayer = Replayer(
            kept(parent, plan), redactor, lambda _: False, self.noticed.append, fork=plan, anew=anew(parent, plan)
        )
        self.judge = ForkJudge(parent, plan, replayer, lambda: None)
        self.judge.left = plan.leave
        ca = CertificateAuthority.open(folder)
        self._server = TapeServer(replayer, lambda host, _: ca.server_context(host), lambda _host, _port: False)
        self._server.decide, self._server.before_request = self.judge.redeem, self.judge.look
        given = WireOptions(confdir=authority.folder, **options)
        self._fork = ForkWire(given, self._writer, redactor, RunProcesses("none"), lambda _port: None)
        self.wire = self._fork

    async def _serve(self) -> None:
        self._fork.obey(self.judge, await self._server.start())
        try:
            await super()._serve()
        finally:
            await self._server.stop()
