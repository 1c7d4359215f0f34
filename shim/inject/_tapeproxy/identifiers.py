"""UUIDs of the clock, the machine and of Rust: made from the lane's clock and bytes. Knows layouts, not sources.

uuid4 of the standard library needs nothing: it reads os.urandom. The versions that carry a time (1, 6, 7) keep the last
one in the process, so that what one thread makes depends on the others; here each lane keeps its own. uuid_utils and
fastuuid read the system's clock and entropy in Rust and are replaced. Layouts: RFC 9562, section 5.
"""

from __future__ import annotations

import sys
import time
from _thread import RLock

from . import hooks, settings
from .lanes import LANE, Lane, current
from .likeness import resemble, stand_for
from .randomness import derive, draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Between 1582-10-15, where versions 1 and 6 count from, and 1970-01-01; in 100 ns.
_GREGORIAN = 0x01B21DD213814000
_MULTICAST = 1 << 40  # marks a node that is no hardware address
_COUNTER = (1 << 42) - 1  # version 7's counter, as CPython and the uuid crate have it: rand_a and 30 bits of rand_b


def install() -> None:
    """Wait for the modules that make UUIDs."""
    hooks.on_import("uuid", _patch_uuid)
    hooks.on_import("uuid_utils", _patch_uuid_utils)
    hooks.on_import("fastuuid", _patch_fastuuid)


def node() -> int:
    """This run's stand-in for the hardware address."""
    return int.from_bytes(derive(settings.SEED, b"node")[:6], "big") | _MULTICAST


def _patch_uuid(module: Any) -> None:
    # With these, uuid1 would be made in C, from the real clock and address.
    for name in ("_generate_time_safe", "_UuidCreate", "_uuid"):
        if hasattr(module, name):
            setattr(module, name, None)
    module._has_uuid_generate_time_safe = False
    module._node = node()
    for name, state in (
        ("uuid1", ("_last_timestamp",)),
        ("uuid6", ("_last_timestamp_v6",)),
        ("uuid7", ("_last_timestamp_v7", "_last_counter_v7")),
    ):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, resemble(_with_own_state(module, original, state), original))


def _with_own_state(module: Any, original: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """`original`, with the module's globals `names` being the lane's own while it runs."""
    fresh = {name: None if "timestamp" in name else 0 for name in names}
    lock = RLock()

    def make(*args: Any, **kwargs: Any) -> Any:
        lane = LANE.get(None) or current()
        own = _stamps(lane)
        with lock:
            for name in names:
                # One that the agent has reset stays so: tests do.
                reset = getattr(module, name) is None
                setattr(module, name, fresh[name] if reset else own.get(name, fresh[name]))
            try:
                return original(*args, **kwargs)
            finally:
                for name in names:
                    own[name] = getattr(module, name)

    return make


def _stamps(lane: Lane) -> dict[str, Any]:
    """What the lane's last UUIDs were, by version."""
    if lane.stamps is None:
        lane.stamps = {}
    stamps: dict[str, Any] = lane.stamps
    return stamps


def four() -> bytes:
    """Version 4: 122 random bits."""
    return _marked(draw(16), 4)


def one(place: int | None, sequence: int | None) -> bytes:
    """Version 1: time, low bits first; clock sequence; node."""
    ticks = time.time_ns() // 100 + _GREGORIAN
    moment = (ticks & 0xFFFFFFFF) << 32 | (ticks >> 32 & 0xFFFF) << 16 | ticks >> 48 & 0x0FFF
    return _marked(moment.to_bytes(8, "big") + _origin(place, sequence), 1)


def six(place: int | None, sequence: int | None) -> bytes:
    """Version 6: the same, high bits first."""
    ticks = time.time_ns() // 100 + _GREGORIAN
    moment = (ticks >> 12) << 16 | ticks & 0x0FFF
    return _marked(moment.to_bytes(8, "big") + _origin(place, sequence), 6)


def seven(lane: Lane, nanoseconds: int | None) -> bytes:
    """Version 7: milliseconds, then a counter that grows within the lane's millisecond, then 32 random bits."""
    if nanoseconds is not None:
        return _marked((nanoseconds // 1_000_000).to_bytes(6, "big") + draw(10), 7)
    own = _stamps(lane)
    last, counter = own.get("seven", (-1, 0))
    now = time.time_ns() // 1_000_000
    if now > last:
        counter = int.from_bytes(draw(6), "big") & _COUNTER >> 1
    else:
        now, counter = (last, counter + 1) if counter < _COUNTER else (last + 1, 0)
    own["seven"] = now, counter
    value = now << 80 | (counter >> 30) << 64 | (counter & 0x3FFFFFFF) << 32 | int.from_bytes(draw(4), "big")
    return _marked(value.to_bytes(16, "big"), 7)


def _origin(place: int | None, sequence: int | None) -> bytes:
    if sequence is None:
        sequence = int.from_bytes(draw(2), "big")
    return (sequence & 0x3FFF).to_bytes(2, "big") + (node() if place is None else place).to_bytes(6, "big")


def _marked(value: bytes, version: int) -> bytes:
    marked = bytearray(value)
    marked[6] = marked[6] & 0x0F | version << 4
    marked[8] = marked[8] & 0x3F | 0x80
    return bytes(marked)


def _lane() -> Lane:
    return LANE.get(None) or current()


def _replace(modules: list[Any], name: str, replacement: Callable[..., Any]) -> None:
    """Put `replacement` wherever one of the modules has `name`."""
    having = [module for module in modules if hasattr(module, name)]
    if having:
        bound = stand_for(replacement, getattr(having[0], name))
        for module in having:
            setattr(module, name, bound)


def _patch_uuid_utils(module: Any) -> None:
    make = module.UUID
    # Until 1.0 the second argument of uuid6 was a timestamp in seconds, uuid7 took (timestamp, nanos), uuid8 bytes.
    modern = "clock_seq" in (getattr(module.uuid6, "__text_signature__", None) or "")
    given = {name: getattr(module, name) for name in ("uuid1", "uuid6", "uuid8")}

    def uuid1(_: object, node: int | None = None, clock_seq: int | None = None) -> Any:
        return make(bytes=one(node, clock_seq))

    def uuid4(_: object) -> Any:
        return make(bytes=four())

    def uuid6(_: object, node: int | None = None, clock_seq: int | None = None) -> Any:
        if not modern and clock_seq is not None:
            return given["uuid6"](node, clock_seq)
        return make(bytes=six(node, clock_seq))

    def uuid7(
        _: object, timestamp: int | None = None, nanos: int | None = None, *, nanoseconds: int | None = None
    ) -> Any:
        if timestamp is not None:
            nanoseconds = timestamp * 1_000_000_000 + (nanos or 0)
        return make(bytes=seven(_lane(), nanoseconds))

    def uuid8(_: object, /, *args: Any, **kwargs: Any) -> Any:
        if not modern:
            return given["uuid8"](*args, **kwargs)
        return _eight(given["uuid8"], *args, **kwargs)

    def uuid4_int(_: object) -> int:
        return int.from_bytes(four(), "big")

    def uuid7_int(_: object, *args: Any, **kwargs: Any) -> int:
        value: int = uuid7(None, *args, **kwargs).int
        return value

    modules = [module, sys.modules.get(f"{module.__name__}._uuid_utils")]
    for name, replacement in (
        ("uuid1", uuid1),
        ("uuid4", uuid4),
        ("uuid6", uuid6),
        ("uuid7", uuid7),
        ("uuid8", uuid8),
        ("_uuid4_int", uuid4_int),
        ("_uuid7_int", uuid7_int),
        ("getnode", lambda _: node()),
    ):
        _replace(modules, name, replacement)


def _eight(original: Callable[..., Any], a: Any = None, b: Any = None, c: Any = None) -> Any:
    """Version 8 of three fields, of which those left out are random."""
    drawn = int.from_bytes(draw(16), "big")
    return original(
        drawn >> 80 if a is None else a,
        drawn >> 64 & 0xFFF if b is None else b,
        drawn & (1 << 62) - 1 if c is None else c,
    )


def _patch_fastuuid(module: Any) -> None:
    make = module.UUID

    def uuid1(_: object, node: int | None = None, clock_seq: int | None = None) -> Any:
        return make(bytes=one(node, clock_seq))

    def uuid_v1mc(_: object) -> Any:
        return make(bytes=one(int.from_bytes(draw(6), "big") | _MULTICAST, None))

    def uuid4(_: object) -> Any:
        return make(bytes=four())

    def uuid4_bulk(_: object, n: int) -> list[Any]:
        return [make(bytes=four()) for _index in range(n)]

    def uuid4_as_strings_bulk(_: object, n: int) -> list[str]:
        return [str(made) for made in uuid4_bulk(_, n)]

    def uuid7(_: object) -> Any:
        return make(bytes=seven(_lane(), None))

    def uuid7_bulk(_: object, n: int) -> list[Any]:
        return [uuid7(None) for _index in range(n)]

    def uuid7_as_strings_bulk(_: object, n: int) -> list[str]:
        return [str(made) for made in uuid7_bulk(_, n)]

    modules = [module, sys.modules.get(f"{module.__name__}.fastuuid")]
    for replacement in (
        *(uuid1, uuid_v1mc, uuid4, uuid4_bulk, uuid4_as_strings_bulk),
        *(uuid7, uuid7_bulk, uuid7_as_strings_bulk),
    ):
        _replace(modules, replacement.__name__, replacement)
