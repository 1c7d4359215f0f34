"""Event streams with uneven gaps, made of a seed: the events, and when each is due."""

import json
import random
from dataclasses import dataclass

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event, `due` nanoseconds after its request."""

    due: int
    data: bytes


def events(seed: int, count: int) -> list[Event]:
    """`count` events as a model streams them: 2 to 40 ms apart, now and then two at once."""
    rng = random.Random(seed)
    due = rng.randrange(20, 60) * MS
    out: list[Event] = []
    for number in range(count):
        delta = {"choices": [{"index": 0, "delta": {"content": f" word{rng.randrange(10_000)}"}}], "n": number}
        out.append(Event(due, b"data: %b\n\n" % json.dumps(delta).encode()))
        due += 0 if rng.random() < 0.05 else rng.randrange(2 * MS, 40 * MS)
    return out
