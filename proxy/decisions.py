"""What a replay is asked, and what it decides: values, and nothing that decides."""

from typing import TYPE_CHECKING, NamedTuple

from tapeproxy.tapes.answers import Answer
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.largebodies import LargeBody
from tapeproxy.tapes.matching import Ask
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.violations import Violation

if TYPE_CHECKING:
    from tapeproxy.tapes.duplex import Duplex


class Asked(NamedTuple):
    """A request as the client sent it. `url` is absolute; `port` is the client's own, 0 where it is not known.

    A `body` of more than `largebodies.LARGE` bytes need not be in memory.
    """

    method: bytes
    url: bytes
    headers: Headers
    body: bytes | LargeBody
    http10: bool = False
    port: int = 0


class Live(NamedTuple):
    """The request goes to a server of the run itself; what comes back is given to `compare`."""

    host: str
    port: int
    ask: Ask
    taped: Exchange | None
    tag: LaneTag | None = None


class Held(NamedTuple):
    """The answer waits as `Replayer.wait(exchange)` says: other flows asked or completed before it came."""

    answer: Answer
    exchange: Exchange


class Joined(NamedTuple):
    """The answer begins before the request is whole, which has to go on as `duplex` says (None: as it likes)."""

    decision: Answer | Held
    duplex: "Duplex | None"


class Upstream(NamedTuple):
    """Of a fork: the request goes out to the world."""


type Decision = Answer | Held | Violation | Live | Upstream
