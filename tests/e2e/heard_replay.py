"""Replays a tape as `tapeproxy replay` does, and writes down every request as it came: JSON lines to a file.

Usage: heard_replay.py TAPE OUT. Identity leaves headers out, so only the wire itself can tell that they are the same.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from tapeproxy.proxy.guard import establish
from tapeproxy.proxy.replayed import Replayed, ReplaySettings
from tapeproxy.proxy.replaying import Wire
from tapeproxy.proxy.supervisor import StopSignal
from tapeproxy.tapes.course import Step


def told(step: Step) -> str:
    """A request as JSON: lane, number in it, clock reads, method, URL, body and headers."""
    assert step.tag is not None
    who = [step.tag.lane, str(step.tag.n), str(step.tag.reads)]
    ask = [part.decode("latin-1") for part in (step.ask.method, step.ask.url, step.ask.body)]
    return json.dumps([*who, *ask, [[part.decode("latin-1") for part in pair] for pair in step.ask.headers]])


async def listen(settings: ReplaySettings, out: Path) -> Replayed:
    """One replay; what it was asked is in `out` when it is over."""
    found: list[str] = []
    steps: list[Step] = []
    session = await Wire.open(settings).begin(lambda one: found.append(one.to_text()), steps.append)
    try:
        outcome = await session.run(StopSignal())
    finally:
        await session.stop()
    out.write_text("".join(told(step) + "\n" for step in steps))
    result = session.verdict(settings, outcome, outcome.duration_ns)
    for line in (*found, *result.notes):
        print(line, file=sys.stderr)
    return result


if __name__ == "__main__":
    settings = ReplaySettings(tape=Path(sys.argv[1]), environment=dict(os.environ), guard=establish("auto"))
    result = asyncio.run(listen(settings, Path(sys.argv[2])))
    print(f"{result.served} of {result.exchanges} exchanges served", file=sys.stderr)
    sys.exit(result.exit_code or (1 if result.unused else 0))
