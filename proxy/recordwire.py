"""The record wire of one tape."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from tapeproxy.addons.tape import Tape
from tapeproxy.addons.untaped import Untaped
from tapeproxy.proxy.mitm import MitmWire
from tapeproxy.proxy.wireoptions import WireOptions
from tapeproxy.tapes.redaction import Redactor

if TYPE_CHECKING:
    from mitmproxy.connection import Client

    from tapeproxy.addons.recorder import Recorder
    from tapeproxy.addons.sockets import Resets


class RecordWire(MitmWire):
    """A wire with one tape. `untaped` counts what passed by as (what, host)."""

    def __init__(
        self,
        options: WireOptions,
        tape: Tape,
        redactor: Redactor,
        is_inside: Callable[[int], bool] = lambda _port: False,
        untagged: Callable[[int], None] = lambda _port: None,
    ) -> None:
        super().__init__(options)
        self._tape = tape
        self._redactor = redactor
        self._is_inside = is_inside
        self._untagged = untagged
        self._untaped = Untaped(tape, redactor, self.failures)
        self._recorder: Recorder

    @property
    def untaped(self) -> Counter[tuple[str, str]]:
        """What passed through without being taped: (what, host) and how often."""
        return self._untaped.seen

    def _taping(self, resets: "Resets") -> list[object]:
        from tapeproxy.addons.passby import PassBy
        from tapeproxy.addons.recorder import Recorder
        from tapeproxy.addons.upstream import bypasses

        self._recorder = Recorder(self._tape, self._redactor, self._is_inside, resets, self.failures, self._untagged)
        given = self._options
        direct = PassBy(
            given.no_tape, lambda host, port: bypasses(host, port, given.no_proxy), self._untaped, self.failures
        )
        return [self._untaped, *([direct] if given.no_tape else ()), self._recorder]

    def _gates(self) -> list[object]:
        from tapeproxy.addons.insidegate import InsideGate

        return [InsideGate(self._is_inside, self._untaped, self.failures)]

    def _refused(self, line: bytes, reason: str, server: tuple[str, int] | None, client: "Client") -> None:
        self._untaped.refused(line, reason, server)

    async def _idle(self) -> None:
        await self._recorder.idle()
