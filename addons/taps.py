"""What a flow's WebSocket is listened to by; knows where on the flow it is, and nothing of frames or layers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tapeproxy.tapes.records import Side

if TYPE_CHECKING:
    from mitmproxy.http import HTTPFlow

TAP = "tapeproxy.socket"
"""In a flow's metadata: the `Tap` on its WebSocket."""


class Tap(NamedTuple):
    """`take` hears what is about to pass to a side, `ended` which side went first; `lost` says why not all is taped.

    None of them may raise.
    """

    take: Callable[[Side, bytes], None]
    ended: Callable[[Side], None]
    lost: Callable[[], str]


def tap_of(flow: "HTTPFlow") -> Tap | None:
    """The tap on a flow's WebSocket."""
    tap = flow.metadata.get(TAP)
    return tap if isinstance(tap, Tap) else None
