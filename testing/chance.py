"""Where ids, times, wording and chunking come from. Knows randomness and nothing of what it is used for.

Two modes. Deterministic (the default): everything follows from the seed and the request, so the same run gets the same
bytes, however its requests interleave. Nondeterministic: everything is fresh for every request, as with a real model;
from a seed the whole sequence repeats in another process, without one nothing does.
"""

import hashlib
import random
import re
import string
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate

EPOCH = 1767225600
"""2026-01-01T00:00:00Z: what the clock shows where it must not matter (seconds)."""

_ALNUM = string.ascii_letters + string.digits
_WORDS = re.compile(r"\s*\S+|\s+$")


@dataclass(frozen=True, slots=True)
class Chance:
    """The choices for one exchange. `now` is Unix seconds; `varied` turns on fresh wording and odd framing."""

    rng: random.Random
    now: int
    varied: bool

    def alnum(self, length: int) -> str:
        """Random letters and digits, as in `chatcmpl-…`."""
        return "".join(self.rng.choices(_ALNUM, k=length))

    def hexadecimal(self, length: int) -> str:
        """Random hex digits, as in `resp_…`."""
        return f"{self.rng.getrandbits(length * 4):0{length}x}"

    @property
    def date(self) -> str:
        """`now` for a Date header."""
        return formatdate(self.now, usegmt=True)

    def pick(self, wordings: Sequence[str]) -> str:
        """The first wording, or any of them when varied."""
        return self.rng.choice(wordings) if self.varied else wordings[0]

    def split_text(self, text: str) -> Iterator[str]:
        """Cut prose into pieces of one to three words; joined they are the text again."""
        words = _WORDS.findall(text)
        return self._grouped(words, 3)

    def split_json(self, text: str) -> Iterator[str]:
        """Cut JSON into pieces of up to eight characters, anywhere."""
        return self._grouped(text, 8)

    def gap(self, low: float, high: float) -> float:
        """An uneven pause in seconds between two bounds in milliseconds: mostly short, now and then long."""
        return (low + (high - low) * self.rng.random() ** 3) / 1000

    def frames(self, events: Iterable[bytes]) -> Iterator[bytes]:
        """The writes that carry these events: one each, or when varied also two in one and one in two."""
        held = b""
        for event in events:
            held += event
            luck = self.rng.random() if self.varied else 1.0
            if luck < 0.2:
                continue
            if luck < 0.4:
                cut = self.rng.randrange(1, len(held))
                yield held[:cut]
                held = held[cut:]
            yield held
            held = b""
        if held:
            yield held

    def _grouped(self, parts: Sequence[str], most: int) -> Iterator[str]:
        start = 0
        while start < len(parts):
            size = self.rng.randint(1, most)
            yield "".join(parts[start : start + size])
            start += size


class Dice:
    """Makes the `Chance` of each request. `seed` None with `nondeterministic` means real randomness and real time."""

    def __init__(self, seed: int | None = 0, *, nondeterministic: bool = False) -> None:
        self._seed = seed
        self._varied = nondeterministic
        self._times_seen: Counter[bytes] = Counter()
        self._stream = random.SystemRandom() if seed is None else random.Random(seed)
        self._now = EPOCH

    def roll(self, request: bytes) -> Chance:
        """The chance of one request, told apart from others by these bytes and by how often they have come."""
        if not self._varied:
            return Chance(random.Random(self._digest(request)), EPOCH, varied=False)
        if self._seed is None:
            return Chance(self._stream, int(time.time()), varied=True)
        self._now += self._stream.randint(1, 30)
        return Chance(random.Random(self._stream.getrandbits(64)), self._now, varied=True)

    def _digest(self, request: bytes) -> int:
        key = hashlib.blake2b(request, digest_size=16, salt=str(self._seed).encode()[:16]).digest()
        occurrence = self._times_seen[key]
        self._times_seen[key] += 1
        return int.from_bytes(key) + occurrence
