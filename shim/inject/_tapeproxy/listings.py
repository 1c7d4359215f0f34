"""What folders hold: os.listdir and os.scandir, and all that use them."""

from __future__ import annotations

import json
import os

from . import overlay, settings, states, values
from .entries import Entry, Scan, facts_at, facts_of
from .layers import VIRTUAL
from .values import LIMIT, SERVES, absolute, agents_path, error_of, name_of, tell, telling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The folder of the sidecar files, which lies beside the tape while that is recorded, is nobody's business.
_OURS = os.path.split(os.path.abspath(settings.SIDECAR)) if settings.SIDECAR else (None, "")


def install() -> None:
    """Replace the calls that look into folders."""
    states.replace({"listdir": _listdir, "scandir": _scandir})


def _listdir(original: Callable[..., Any]) -> Callable[..., Any]:
    def listdir(_: object, /, path: Any = None) -> Any:
        whole = agents_path("." if path is None else path)
        if whole is None:
            return _listed(original, path)
        name, told = name_of(whole), {}  # type: str, dict[str, Any]
        if SERVES:
            if _is_own("listing", name, whole):
                return original(path)
            taped, told = _taped("listing", name, path)
            if taped is not None:
                return [os.fsencode(item) for item in taped] if isinstance(path, bytes) else taped
        names = telling("listing", name, told, lambda: _listed(original, path))
        tell("listing", name, told, lambda: _packed([os.fsdecode(item) for item in names]))
        return names

    return listdir


def _listed(original: Callable[..., Any], path: Any) -> Any:
    """What is in a folder now, the changes of a virtual replay included."""
    whole = absolute("." if path is None else path)
    if whole == _OURS[0]:
        return [name for name in original(path) if os.fsdecode(name) != _OURS[1]]
    if not VIRTUAL or whole is None:
        return original(path)
    names = overlay.listed(whole, path, lambda: original(path))
    return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


def _scandir(original: Callable[..., Any]) -> Callable[..., Any]:
    def scandir(_: object, /, path: Any = None) -> Any:
        whole = agents_path("." if path is None else path)
        if whole is None:
            return original(path) if not VIRTUAL else Scan(_entries(original, path))
        name, told = name_of(whole), {}  # type: str, dict[str, Any]
        if SERVES:
            if _is_own("scan", name, whole):
                return original(path)
            taped, told = _taped("scan", name, path)
            if taped is not None:
                for item in taped:
                    states.scanned[os.path.join(whole, item[0])] = item[1:]
                return Scan([Entry(path, *item) for item in taped])
        entries = telling("scan", name, told, lambda: _entries(original, path))
        tell("scan", name, told, lambda: _scan_content(entries))
        return Scan(entries)

    return scandir


def _entries(original: Callable[..., Any], path: Any) -> list[Any]:
    """The entries of a folder now, the changes of a virtual replay included."""
    whole = absolute("." if path is None else path)
    if whole == _OURS[0]:
        return [entry for entry in _all_of(original(path)) if os.fsdecode(entry.name) != _OURS[1]]
    if not VIRTUAL or whole is None:
        return _all_of(original(path))
    below: dict[str, Any] = {}

    def names() -> list[str]:
        below.update((os.fsdecode(entry.name), entry) for entry in _all_of(original(path)))
        return list(below)

    listed = overlay.listed(whole, path, names)
    touched = {name for name in listed if name not in below or overlay.touches(os.path.join(whole, name))}
    return [
        Entry(path, *facts_at(overlay.seen(os.path.join(whole, n), n), n)) if n in touched else below[n] for n in listed
    ]


def _all_of(scan: Any) -> list[Any]:
    with scan:
        return list(scan)


def _taped(what: str, name: str, path: Any) -> tuple[Any, dict[str, Any]]:
    """What the tape has: the list, or None and what the line about the real one has to say. Raises the taped error."""
    from . import tapedvalues

    taped = tapedvalues.take(what, name)
    if taped is None:
        return None, {"taped": None}
    if taped.get("error"):
        raise error_of(taped["error"], path)
    content = tapedvalues.content_of(taped)
    return (None if content is None else json.loads(content)), {"taped": taped["n"]}


def _is_own(what: str, name: str, whole: str) -> bool:
    from . import tapedvalues

    return tapedvalues.is_own(what, name, whole)


def _packed(items: list[Any]) -> dict[str, Any]:
    content = json.dumps(items, separators=(",", ":")).encode()
    if len(content) <= LIMIT:
        return {"content": content}
    return {"length": len(content), "digest": values.digest(content)}


def _scan_content(entries: list[Any]) -> dict[str, Any]:
    facts = _packed([facts_of(entry) for entry in entries])
    return facts if "content" in facts else _packed([facts_of(entry)[:2] for entry in entries])
