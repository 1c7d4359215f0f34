"""What a fork decides about one request, as the wire is told it. Values; knows neither wire nor tape."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tapeproxy.tapes.lanes import LaneTag
from tapeproxy.tapes.records import End, Request
from tapeproxy.tapes.violations import Violation

TICKET_HEADER = b"x-tapeproxy-ticket"
"""On a request to the tape server: which answer was found for it."""


class Verdict(NamedTuple):
    """What becomes of a request. `source`: the word for its record. `ticket`: of its answer; None: it goes out.

    `ending`: how the exchange ended on the tape. `edit` changes a request that goes out. `instead`: the exchange of the
    tape in whose place, in its lane, it stands, where others may wait for that one.
    """

    source: str | None
    ticket: int | None = None
    ending: End | None = None
    edit: Callable[[Request], Request] | None = None
    instead: int | None = None


class Judge(Protocol):
    """Who decides."""

    def judge(self, request: Request, tag: LaneTag | None, port: int) -> Verdict:
        """Decide about a request as the client sent it, with its body in bytes; `port`: the client's own."""
        ...

    def judge_call(self, request: Request, tag: LaneTag | None, port: int) -> Verdict | None:
        """Decide about a call in which both sides may speak at once by its head; None: only when it is whole."""
        ...

    def refused(self, line: bytes, reason: str) -> None:
        """The wire has refused a request itself, which it could not read: `line` is its first."""
        ...

    def kept_off(self, host: str, port: int, line: bytes) -> Violation | None:
        """The violation, counted, of calling a host that is to stay off tapes; None where it is not one. `line`: the
        request line.
        """
        ...

    def speaks_http2(self, host: str, port: int) -> bool | None:
        """Whether the tape's agent spoke HTTP/2 with a server over TLS; None: it did not speak with it."""
        ...

    def ended(self, verdict: Verdict) -> None:
        """The exchange that this was decided about is over."""
        ...
