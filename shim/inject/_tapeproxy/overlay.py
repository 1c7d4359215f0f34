"""What the hooks of reads ask about in a virtual replay: where a path is to be opened, what a folder holds by now.

What this run wrote comes first, then the tape, then the disk (`layers.py`).
"""

from __future__ import annotations

import os

from . import layers
from .layers import OPEN_TO_ALL
from .values import error_of, is_agents, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_listdir = os.listdir


def place(
    path: Any, writes: bool, reads: bool, *, fresh: bool = False, exclusive: bool = False, dir_fd: Any = None
) -> str | None:
    """The path to open in place of this one; None: as it would be. Raises what opening it raises."""
    whole = layers.swallowed(path, dir_fd)
    if whole is None:
        return None
    if not writes:
        return _to_read(whole, path)
    known = outcome(whole, path)
    taped = _next_read(whole, path) if reads and is_agents(2) else None
    if layers.is_here(whole):
        if exclusive:
            raise error_of("EEXIST", path)
        return layers.here(whole)
    if exclusive and not known and layers.was_below(whole, False):
        raise error_of("EEXIST", path)
    layers.need_folder(whole, path, known)
    layers.make(os.path.dirname(layers.here(whole)))
    if taped is not None:
        layers.store(layers.here(whole), taped)
        layers.mark("mixed", whole)
    elif not fresh and not exclusive and not layers.is_gone(whole):
        layers.raise_file(whole)
    return layers.here(whole)


def _to_read(whole: str, given: Any) -> str | None:
    if layers.is_here(whole):
        content = _next_read(whole, given) if is_agents(3) else None
        if content is not None and layers.marked("mixed", whole):
            # What was below it then is known better than what is below it now.
            layers.store(layers.here(whole), content)
        return layers.here(whole)
    if layers.is_gone(whole):
        raise error_of("ENOENT", given)
    return None


def _next_read(whole: str, given: Any) -> bytes | None:
    """What the tape has for this read; None where there is nothing, or a digest. Raises the taped error."""
    from . import tapedvalues

    taped = tapedvalues.take("file", name_of(whole))
    if taped is None:
        return None
    if taped.get("error"):
        raise error_of(taped["error"], given)
    return tapedvalues.content_of(taped)


def outcome(whole: str, given: Any) -> bool:
    """Whether the tape says that the change goes well; False where it says nothing. Raises the taped error."""
    from . import tapedvalues

    taped = tapedvalues.take("change", name_of(whole))
    if taped is not None and taped.get("error"):
        raise error_of(taped["error"], given)
    return taped is not None


def touches(whole: str) -> bool:
    """Whether this run has made or removed this path."""
    return not whole.startswith(OPEN_TO_ALL) and (layers.is_here(whole) or layers.is_gone(whole))


def seen(whole: str, given: Any) -> str:
    """The path of what this run has made there. Raises FileNotFoundError."""
    if not layers.is_here(whole):
        raise error_of("ENOENT", given)
    return layers.here(whole)


def listed(whole: str, given: Any, below: Callable[[], list[Any]]) -> list[str]:
    """The names in a folder: those that `below` gives, without what was removed, and what this run has made."""
    names: list[str] = []
    if not layers.is_gone(whole):
        try:
            names = [os.fsdecode(name) for name in below()]
        except FileNotFoundError:
            if not layers.is_here(whole):
                raise
    elif not layers.is_here(whole):
        raise error_of("ENOENT", given)
    own = _listdir(layers.here(whole)) if layers.is_here(whole) else []
    kept = [name for name in names if name in own or not layers.marked("gone", os.path.join(whole, name))]
    return kept + [name for name in own if name not in names]
