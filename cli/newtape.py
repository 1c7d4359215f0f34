"""Records to a tape of its own name. Knows what tapes are called, not what is on them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tapeproxy.cli.choose import default_path
from tapeproxy.cli.recorded import warner
from tapeproxy.tapes.errors import TapeExistsError

if TYPE_CHECKING:
    from pathlib import Path

    from tapeproxy.proxy.recorded import Recorded, RecordSettings


def new_tape(argv: tuple[str, ...]) -> "Path":
    """Where a recording of the command `argv` goes that is begun now."""
    return default_path(argv, datetime.now(UTC))


def record_to_new_tape(settings: "RecordSettings") -> "Recorded":
    """Record to `new_tape`, whatever `settings.tape` is; warns at once when it fails. Raises what `record` raises."""
    from tapeproxy.proxy.recording import record

    warn = warner(strict=settings.strict)
    while True:
        try:
            return asyncio.run(record(replace(settings, tape=new_tape(settings.argv)), warn))
        except TapeExistsError:
            pass  # two recordings in one second want the same name; the agent has not been started yet
