"""Replays a tape as `tapeproxy replay` does, and writes down every request as it came: JSON lines to a file.

Usage: heard_replay.py TAPE OUT. Identity leaves headers out, so only the wire itself can tell that they are the same.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from tapeproxy.proxy.guard import establish
from tapeproxy.proxy.replayer import Asked, Decision, Replayer
from tapeproxy.proxy.replaying import Replaying, ReplaySettings, replay


class Listener(Replayer):
    """A replayer that notes what it is asked."""

    out: Path

    def decide(self, asked: Asked) -> Decision:
        texts = [part.decode("latin-1") for part in (asked.method, asked.url, asked.body)]
        headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in asked.headers]
        with self.out.open("a") as file:
            file.write(json.dumps([*texts, headers]) + "\n")
        return super().decide(asked)


def listen(session: Replaying) -> None:
    """Put a listener in the place of the replayer, before anything was asked."""
    was = session.server.replayer
    session.server.replayer = Listener(was.tape, was.redactor, was.owns_port, was.noticed, by_lane=was.by_lane)
    Listener.out = Path(sys.argv[2])


if __name__ == "__main__":
    settings = ReplaySettings(tape=Path(sys.argv[1]), environment=dict(os.environ), guard=establish("auto"))
    found: list[str] = []
    result = asyncio.run(replay(settings, lambda one: found.append(one.to_text()), listen))
    for line in (*found, *result.notes):
        print(line, file=sys.stderr)
    print(f"{result.served} of {result.exchanges} exchanges served", file=sys.stderr)
    sys.exit(result.exit_code or (1 if result.unused or found else 0))
