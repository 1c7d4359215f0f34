"""The wire of a fork: a record wire whose requests are decided first. Knows which addons that takes."""

from typing import TYPE_CHECKING, Any

from tapeproxy.proxy.processes import RunProcesses
from tapeproxy.proxy.recordwire import RecordWire
from tapeproxy.proxy.wireoptions import WireOptions
from tapeproxy.tapes.forkverdict import Judge
from tapeproxy.tapes.passing import passes
from tapeproxy.tapes.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tapeproxy.addons.sockets import Resets
    from tapeproxy.addons.tape import Tape
    from tapeproxy.tapes.violations import Violation


class ForkWire(RecordWire):
    """A wire with one tape, the child's. `judge` decides; answers that a tape has come from the server on `port`."""

    def __init__(
        self,
        options: WireOptions,
        tape: "Tape",
        redactor: Redactor,
        run: RunProcesses,
        untagged: "Callable[[int], None]",
    ) -> None:
        super().__init__(options, tape, redactor, run.owns_port, untagged)
        self._judge: Judge
        self._tape_port = 0

    def obey(self, judge: Judge, port: int) -> None:
        """Have `judge` decide; before `start`."""
        self._judge, self._tape_port = judge, port

    def _speaks_http2(self, host: str, port: int) -> bool | None:
        return self._judge.speaks_http2(host, port)

    def _plain_port(self) -> int:
        return self._tape_port

    def _settings(self) -> dict[str, Any]:
        # What is not HTTP can't be decided about, so it does not pass.
        return super()._settings() | {"rawtcp": False}

    def _refused(self, line: bytes, reason: str, server: tuple[str, int] | None, client: Any) -> None:
        super()._refused(line, reason, server, client)
        self._judge.refused(line, reason)

    def _taping(self, resets: "Resets") -> list[object]:
        from tapeproxy.addons.forkgate import ForkGate
        from tapeproxy.addons.keptoff import KeptOff

        gate = ForkGate(self._judge, self._tape_port, self.failures)
        *before, recorder = super()._taping(resets)
        self._recorder.ask(gate)
        return [*before, KeptOff(self._kept_off, self.failures), recorder, gate]

    def _kept_off(self, host: str, port: int, line: bytes) -> "Violation | None":
        if passes(self._options.no_tape, host, port):
            return None
        return self._judge.kept_off(host, port, line)
