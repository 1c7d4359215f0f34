"""Commands that a search runs beside the agent's own: builds, checks, replays. Knows process groups, no agent."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

_GRACE: Final = 5.0
_LAST: Final = 2000
"""Bytes of an output that are looked at for its last words."""


def shell(command: str) -> tuple[str, ...]:
    """The command line that runs a command as a shell does."""
    return ("cmd", "/c", command) if os.name == "nt" else ("/bin/sh", "-c", command)


async def run_beside(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    output: int = subprocess.DEVNULL,
    errors: int | None = None,
) -> int:
    """Run a command without input; returns its code (-N: signal N). Its group is its own: Ctrl-C does not reach it.

    Cancelled, all of the group gets SIGTERM, and SIGKILL 5 s later. `output` and `errors` (None: the same) are
    descriptors. Raises OSError where it can't be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output if errors is None else errors,
        env=dict(environment),
        cwd=cwd,
        start_new_session=os.name == "posix",
    )
    try:
        return await process.wait()
    except BaseException:
        with contextlib.suppress(TimeoutError):
            _send(process, signal.SIGTERM)
            async with asyncio.timeout(_GRACE):
                await process.wait()
        _send(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        await process.wait()
        raise


def last_words(file: IO[bytes]) -> str:
    """The last line of an output that says something."""
    file.seek(max(file.seek(0, os.SEEK_END) - _LAST, 0))
    lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _send(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
