"""The record wire of many runs: one mitmproxy, and for each run what `proxy.recording` needs of a wire of its own."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from tapeproxy.proxy.mitm import MitmWire
from tapeproxy.proxy.wireoptions import WireOptions
from tapeproxy.tapes.credentials import RefusedError
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.redaction import Redactor

if TYPE_CHECKING:
    from tapeproxy.addons.failures import Failures
    from tapeproxy.addons.sockets import Resets
    from tapeproxy.addons.switchboard import RunTaping, Switchboard
    from tapeproxy.addons.tape import Tape


class Reception(Protocol):
    """Who decides what client is let in, and to which run. The first two raise RefusedError."""

    def claim(self, port: int, headers: Headers) -> tuple[str, Headers]:
        """The name that a client of `port` gives, and its headers without credentials."""
        ...

    def taping_of(self, name: str) -> "RunTaping":
        """The run of a name, which may begin with that."""
        ...

    def turned_away(self, error: RefusedError) -> None:
        """A client was refused."""
        ...


class SharedWire(MitmWire):
    """A wire with many tapes; `run` gives each its own."""

    def __init__(self, options: WireOptions, reception: Reception) -> None:
        super().__init__(options)
        self._reception = reception
        self._resets: Resets
        self._switchboard: Switchboard
        self._runs: set[RunWire] = set()

    def run(
        self,
        name: str,
        tape: "Tape",
        redactor: Redactor,
        is_inside: Callable[[int], bool],
        untagged: Callable[[int], None],
    ) -> "RunWire":
        """The wire of a run that begins now."""
        from tapeproxy.addons.switchboard import new_taping

        run = RunWire(self, new_taping(name, tape, redactor, self._resets, is_inside, untagged))
        self._runs.add(run)
        return run

    def forget(self, run: "RunWire") -> None:
        """The run has ended."""
        self._runs.discard(run)

    async def disconnect(self, clients: set[str]) -> None:
        """Disconnect clients, and wait until the hooks have run that tape how their exchanges ended."""
        await self._disconnect(clients)

    async def drain(self, timeout: float = 0) -> None:
        """Take no new clients, and disconnect those that are there: the runs have to have ended."""
        await super().drain(timeout)

    def _taping(self, resets: "Resets") -> list[object]:
        from tapeproxy.addons.switchboard import Switchboard

        self._resets = resets
        reception = self._reception
        self._switchboard = Switchboard(reception.claim, reception.taping_of, reception.turned_away, self.failures)
        return [self._switchboard]

    def _gates(self) -> list[object]:
        return []

    def _refused(self, line: bytes, reason: str, server: tuple[str, int] | None, client: Any) -> None:
        self._switchboard.tell_refused(line, reason, server, client)

    async def _idle(self) -> None:
        for run in self._runs:
            await run.taping.recorder.idle()


class RunWire:
    """One run's part of a shared wire."""

    def __init__(self, shared: SharedWire, taping: "RunTaping") -> None:
        self.taping = taping
        self._shared = shared
        self._others = shared.failures.count

    @property
    def port(self) -> int:
        return self._shared.port

    @property
    def failures(self) -> "Failures":
        """What went wrong while taping, of this run and of the wire as a whole since the run began."""
        own, wire = self.taping.failures, self._shared.failures
        if wire.count == self._others:
            return own
        from tapeproxy.addons.failures import Failures

        both = Failures()
        both.count = own.count + wire.count - self._others
        both.first = own.first or wire.first
        return both

    @property
    def untaped(self) -> Counter[tuple[str, str]]:
        return self.taping.untaped.seen

    async def drain(self, timeout: float) -> None:
        """Give exchanges under way `timeout` seconds, then disconnect the run's clients."""
        with anyio.move_on_after(timeout):
            await self.taping.recorder.idle()
        await self._shared.disconnect(self.taping.clients)

    async def stop(self) -> None:
        """End what is still open; again does nothing."""
        self.taping.recorder.done()
        self._shared.forget(self)
