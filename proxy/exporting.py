"""Tapes in the formats that need what is not always installed. The others are `tapes/exports`."""

from collections.abc import Iterator

from tapeproxy.tapes.errors import UsageError, install
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.exports import Lost


def export(tape: Tape, source: str, lost: Lost) -> Iterator[bytes]:  # noqa: ARG001  # flows name no source
    """A file of mitmproxy's flows. Raises UsageError where there is no mitmproxy."""
    try:
        from tapeproxy.addons.flowwriting import FlowWriting

        return FlowWriting(tape, lost).pieces()
    except ImportError:
        fix = f"install it with: {install('record')}"
        raise UsageError("writing mitmproxy's flows needs mitmproxy", fix=fix) from None
