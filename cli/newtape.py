"""Records to a tape of its own name. Knows what tapes are called, not what is on them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tapeproxy.cli.choose import LOCKED_SUFFIX, default_path
from tapeproxy.cli.recorded import warner
from tapeproxy.tapes.errors import TapeExistsError

if TYPE_CHECKING:
    from pathlib import Path

    from tapeproxy.proxy.recorded import Recorded, RecordSettings


def new_tape(argv: tuple[str, ...], *, encrypted: bool = False) -> "Path":
    """Where a recording of the command `argv` goes that is begun now."""
    path = default_path(argv, datetime.now(UTC))
    return path.with_name(path.name + LOCKED_SUFFIX) if encrypted else path


def record_to_new_tape(settings: "RecordSettings") -> "Recorded":
    """Record to `new_tape`, whatever `settings.tape` is; warns at once when it fails. Raises what `record` raises."""
    from tapeproxy.proxy.outside import loop_for
    from tapeproxy.proxy.recording import record

    warn = warner(strict=settings.strict)
    while True:
        path = new_tape(settings.argv, encrypted=settings.secret is not None)
        try:
            return asyncio.run(record(replace(settings, tape=path), warn), loop_factory=loop_for(settings.outside))
        except TapeExistsError:
            pass  # two recordings in one second want the same name; the agent has not been started yet
