"""Which environment variables the agent reads, and a keyed hash of each value; never the value.

Knows single reads: copying or walking over the whole environment says nothing about what the agent depends on.
"""

from __future__ import annotations

import os
from _thread import get_ident

from . import channel
from .likeness import resemble
from .settings import FRONT_PORTS, PLUMBING, SEED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# Per thread, the names of a walk whose values have not been asked for yet, last first: dict(os.environ) asks for all
# names and then for each value, items() for each value after its name.
_walks: dict[int, list[Any]] = {}
_seen: dict[str, set[bytes | None]] = {}
_listeners: list[Callable[[str, bytes | None], object]] = []
_MOST_VALUES = 8  # of one variable that are told: pytest, for one, sets a variable anew for each test


def install() -> None:
    """Listen to reads of os.environ, and so os.getenv, os.environb and `in`."""
    cls: Any = type(os.environ)
    read, walk = cls.__getitem__, cls.__iter__

    def getitem(self: Any, key: Any) -> Any:
        try:
            value = read(self, key)
        except KeyError:
            _note(key, None)
            raise
        _note(key, value)
        return value

    def iterate(self: Any) -> Iterator[Any]:
        thread = get_ident()
        names = list(walk(self))
        for name in names:
            _walks[thread] = [name]
            yield name
        _walks[thread] = names[::-1]

    cls.__getitem__ = resemble(getitem, read)
    cls.__iter__ = resemble(iterate, walk)


def listen(fn: Callable[[str, bytes | None], object]) -> None:
    """Have `fn` called with the name and the value of each single read."""
    _listeners.append(fn)


def _note(key: Any, value: Any) -> None:
    if _of_a_walk(key):
        return
    name = os.fsdecode(key) if isinstance(key, bytes) else key
    raw = value if value is None or isinstance(value, bytes) else os.fsencode(value)
    for listener in _listeners:
        listener(name, raw)
    values = _seen.setdefault(name, set())
    if raw in values or len(values) >= _MOST_VALUES:
        return
    values.add(raw)
    if name not in PLUMBING and not name.startswith("TAPEPROXY_") and not _leads_to_us(raw):
        channel.emit("env", name=name, digest=None if raw is None else digest(raw))


def _leads_to_us(raw: bytes | None) -> bool:
    """Whether a value is the address of a front, which has another port each time."""
    host, _, rest = (raw or b"").partition(b":")[2].partition(b":")
    return host == b"//127.0.0.1" and rest.partition(b"/")[0] in FRONT_PORTS


def _of_a_walk(key: Any) -> bool:
    names = _walks.get(get_ident())
    if not names:
        return False
    if names[-1] == key:
        names.pop()
        return True
    names.clear()
    return False


def digest(value: bytes) -> str:
    """16 hex digits of BLAKE2b, keyed with the run's seed."""
    from _blake2 import blake2b

    text: str = blake2b(value, key=SEED, digest_size=8).hexdigest()
    return text
