"""The informational responses (1xx) of one exchange, on their way to the head that follows them. Knows no sockets."""

from typing import TYPE_CHECKING

from tapeproxy.tapes.records import Headers

if TYPE_CHECKING:
    from mitmproxy.http import Response

MOST_EARLY = 100
"""Informational responses that are kept of one exchange: what a server sends without end must not fill the memory."""
_EARLY = "tapeproxy_early"


class Early:
    """The first `MOST_EARLY` of them, as (status, headers); `more` came after these."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Headers]] = []
        self.more = 0

    def add(self, status: int, headers: Headers) -> None:
        if len(self.seen) < MOST_EARLY:
            self.seen.append((status, headers))
        else:
            self.more += 1

    def belong_to(self, response: "Response") -> None:
        """Note them on the final response."""
        vars(response)[_EARLY] = self


def early_of(response: "Response") -> Early:
    """The informational responses that came before this one."""
    early: Early = vars(response).get(_EARLY) or Early()
    return early
