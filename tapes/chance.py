"""The bytes of chance that a lane drew, made again from the run's seed: what os.urandom gave, and so uuids and tokens.

The rule is the shim's (docs/SHIM.md): SHAKE-128 in counter mode, under a key from BLAKE2b. Pure; how much of a stream
the agent took is not on a tape.
"""

from collections.abc import Iterator
from hashlib import blake2b, shake_128
from typing import Any, Final

from tapeproxy.tapes.records import Head

_FIRST: Final = 168
_BLOCK: Final = 8 * 168


def chance_streams(head: Head, lane: str, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a lane's streams: that of the run's seed, then those of seeds that forks gave it.

    None where the tape has no seed, or one that is none.
    """
    try:
        seed = bytes.fromhex(head.seed or "")
    except ValueError:
        return
    if len(seed) != 32:
        return
    for key in (seed, *(_derived(seed, given) for given in _given(head, lane))):
        yield _stream(_derived(key, lane.encode("utf-8", "backslashreplace") + b"\0bytes"), size)


def _stream(key: bytes, size: int) -> bytes:
    out, number = [shake_128(key + bytes(8)).digest(_FIRST)], 1
    while number * _BLOCK - _BLOCK + _FIRST < size:
        out.append(shake_128(key + number.to_bytes(8, "little")).digest(_BLOCK))
        number += 1
    return b"".join(out)[:size]


def _derived(key: bytes, text: bytes) -> bytes:
    return blake2b(text, key=key, digest_size=32).digest()


def _given(head: Head, lane: str) -> Iterator[bytes]:
    seeds: Any = (head.branch or {}).get("seeds")
    for one in seeds if isinstance(seeds, list) else ():
        match one:
            case [str() as of, int(), str() as given] if of == lane:
                try:
                    yield bytes.fromhex(given)
                except ValueError:
                    continue
            case _:
                continue
