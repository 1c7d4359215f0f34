"""Randomness of each lane, derived from the run's seed: os.urandom and all that stand on it, and `random`.

Knows the generators, not who asks. Two streams per lane, both functions of the seed and the lane's id alone: bytes from
SHAKE-128 in counter mode (os.urandom, and so uuid4, secrets, SystemRandom, numpy's default_rng), and a Mersenne Twister
behind the functions of `random`. An explicit seed keeps its meaning: `random.seed(x)` gives the calling lane the same
sequence as without the shim, and the lanes that it makes afterwards sequences derived from x.
"""

from __future__ import annotations

import os
import sys
from io import BytesIO
from itertools import count

from . import hooks, settings
from .lanes import LANE, Lane, current, root
from .likeness import resemble, stand_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from typing import Any

# SHAKE-128 makes 168 bytes a step. Most lanes draw an id or two; from the second block on, fewer and larger steps.
_FIRST_BLOCK = 168
_BLOCK = 8 * 168
_WORTH_LOADING = 1 << 18  # bytes whose making takes longer than loading OpenSSL

_lane = LANE.get
_random: Any = None


def lane_key(lane: Lane, purpose: bytes) -> bytes:
    """32 bytes that only the run's seed, the lane's id and the purpose decide."""
    seed = _new_seed(lane) if settings.SEEDS else settings.SEED
    return derive(seed, lane.id.encode("utf-8", "backslashreplace") + b"\0" + purpose)


def _new_seed(lane: Lane) -> bytes:
    """What the lane's streams are made of since its last new seed; the run's where it has none yet."""
    seeds = settings.SEEDS.get(lane.id, {})
    begun = [asked for asked in seeds if asked <= lane.requests]
    return derive(settings.SEED, seeds[max(begun)]) if begun else settings.SEED


def reseed(lane: Lane) -> None:
    """The lane has made a request: its streams begin anew if that is where it gets a new seed."""
    if lane.requests not in settings.SEEDS.get(lane.id, {}):
        return
    lane.key = lane.pool = None
    lane.counter = count()
    if lane.rng is not None and lane.seeded is None:
        lane.rng.seed(int.from_bytes(lane_key(lane, b"random"), "big"))


def derive(key: bytes, text: bytes) -> bytes:
    """32 bytes from keyed BLAKE2b."""
    try:
        from _blake2 import blake2b
    except ImportError:  # built without CPython's own hashes
        from hashlib import blake2b
    return blake2b(text, key=key, digest_size=32).digest()


def urandom(_: object, size: int, /) -> bytes:
    try:
        # BytesIO.read is one step under the GIL: no two readers of a lane, threads or signal handlers, get the same.
        data: bytes = _lane().pool(size)
    except (LookupError, TypeError):  # no lane, or no block yet
        data = b""
    return data if len(data) == size else _continue(size, data)


def draw(size: int) -> bytes:
    """`size` bytes of the current lane's stream, for the other parts."""
    return urandom(None, size)


def _continue(size: int, data: bytes) -> bytes:
    """`data`, and as many more bytes of the lane's stream as `size` asks for."""
    size = _as_index(size)
    if size < 0:
        raise ValueError("negative argument not allowed")
    lane = _lane(None) or current()
    if lane.key is None:
        lane.key = lane_key(lane, b"bytes")
    if size > _BLOCK:  # one call makes all of it: the next block's key is spent on nothing else
        return data + _shake(lane.key + next(lane.counter).to_bytes(8, "little"), size - len(data))
    while len(data) < size:
        number = next(lane.counter)
        block = _shake(lane.key + number.to_bytes(8, "little"), _BLOCK if number else _FIRST_BLOCK)
        missing = size - len(data)
        data += block[:missing]
        lane.pool = BytesIO(block[missing:]).read
    return data


def _as_index(value: Any) -> int:
    from operator import index

    return index(value)


def _shake(text: bytes, size: int) -> bytes:
    """SHAKE-128, from OpenSSL (twice as fast) where it is loaded or worth loading, else from CPython's own."""
    openssl: Any = sys.modules.get("_hashlib")
    try:
        if openssl is None and size >= _WORTH_LOADING:
            import _hashlib as openssl
        if openssl is not None:
            digest: bytes = openssl.openssl_shake_128(text).digest(size)
            return digest
    except (ImportError, AttributeError, ValueError):  # no OpenSSL, or one that has none, or may not
        pass
    try:
        shake = __import__("_sha3").shake_128  # by name: type checkers have no stub
    except ImportError:  # built without CPython's own hashes
        from hashlib import shake_128 as shake
    made: bytes = shake(text).digest(size)
    return made


def getrandom(_: object, size: int, flags: int = 0) -> bytes:  # noqa: ARG001  # its signature
    return urandom(None, size)


def generator(lane: Lane) -> random.Random:
    """The lane's generator behind the functions of `random`, made at its first use."""
    made: random.Random = lane.rng
    if lane.rng is None:
        # The main lane keeps the module's own instance, for those who reach for random._inst.
        made = _random._inst if lane is root() else _random.Random(0)
        key = lane_key(lane, b"random") if lane.seeded is None else derive(lane.seeded, lane.id.encode())
        made.seed(int.from_bytes(key, "big"))
        adopt(lane, made)
    return made


def adopt(lane: Lane, made: random.Random) -> None:
    """Make this the lane's generator."""
    lane.rng = made
    lane.draw = made.random


def share(parent: Lane, child: Lane) -> None:
    """Let the child go on with the parent's sequence, where the parent was seeded and waits for the child."""
    if parent.seeded is not None:
        adopt(child, generator(parent))


def install() -> None:
    """Replace os.urandom and os.getrandom now, before `random` can take copies, and the rest when it is imported."""
    posix = sys.modules.get("posix")
    for function in (urandom, getrandom):
        name = function.__name__
        if hasattr(os, name):
            replacement = stand_for(function, getattr(os, name))
            for module in (os, posix):
                if module is not None:
                    setattr(module, name, replacement)
    hooks.on_import("random", _patch_random)
    hooks.on_import("ssl", _patch_ssl)
    hooks.on_import("numpy.random.mtrand", _seed_numpy)


def _patch_random(module: Any) -> None:
    global _random
    _random = module
    module._urandom = os.urandom
    _patch_seed(module)
    for name, value in list(vars(module).items()):
        if getattr(value, "__self__", None) is module._inst and hasattr(module.Random, name):
            function = _function(module, name)
            function.__wrapped__ = getattr(module.Random, name)  # type: ignore[attr-defined]  # for the signature
            setattr(module, name, stand_for(function, value, module.__name__, name))


def _patch_seed(module: Any) -> None:
    """Random() and Random.seed() without a seed take theirs from the system's entropy in C: let it be ours."""
    original = module.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None:
            a = int.from_bytes(draw(32), "big")
        original(self, a, version)

    module.Random.seed = resemble(seed, original)


def _function(module: Any, name: str) -> Callable[..., Any]:
    """The replacement of a module-level function: the same method, of the lane's own generator."""
    method = getattr(module.Random, name)

    def delegate(_: object, /, *args: Any, **kwargs: Any) -> Any:
        lane = _lane(None) or current()
        return method(lane.rng or generator(lane), *args, **kwargs)

    special: dict[str, Callable[..., Any]] = {"random": _random_number, "seed": _seed, "setstate": _set_state}
    return special.get(name, delegate)


def _random_number(_: object) -> float:
    try:
        value: float = _lane().draw()
    except (LookupError, TypeError):  # no lane, or no generator yet
        value = generator(current()).random()
    return value


def _seed(_: object, a: Any = None, version: int = 2) -> None:
    lane = _lane(None) or current()
    generator(lane).seed(a, version)
    lane.seeded = None if a is None else _digest(a)


def _set_state(_: object, state: Any) -> None:
    lane = _lane(None) or current()
    generator(lane).setstate(state)
    lane.seeded = _digest(state)


def _digest(seed: Any) -> bytes:
    """What lanes made after an explicit seed derive theirs from. Objects whose repr has an address count as one."""
    plain = isinstance(seed, (int, float, str, bytes, bytearray, tuple))
    text = repr(seed) if plain else type(seed).__name__
    return derive(b"seed", text.encode("utf-8", "backslashreplace"))


def _patch_ssl(module: Any) -> None:
    if hasattr(module, "RAND_bytes"):
        module.RAND_bytes = stand_for(lambda _, n, /: urandom(_, n), module.RAND_bytes, "ssl")


def _seed_numpy(module: Any) -> None:
    """The global generator behind numpy.random.rand and others: one for each process, whoever imports numpy first."""
    key = lane_key(root(), b"numpy")
    module._rand.seed([int.from_bytes(key[i : i + 4], "little") for i in range(0, 32, 4)])
