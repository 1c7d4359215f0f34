"""What the tape holds of the agent's reads, for a replay that serves them. Knows the launcher's files; hooks nothing.

`index.jsonl` has a line a value, with the place of its content in `contents`; both are read at the first read only.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections import deque

from .lanes import LANE, current
from .values import TAPED, in_tmpdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_pread: Any = getattr(os, "pread", None)
_open, _write, _lseek, _lstat = os.open, os.write, os.lseek, os.lstat
_lock = allocate_lock()
_index: dict[tuple[str, str, str], deque[dict[str, Any]]] | None = None
_all: list[dict[str, Any]] = []
_contents = -1


def load() -> list[dict[str, Any]]:
    """Every value of the tape, in order, read once."""
    global _index, _contents
    with _lock:
        if _index is None:
            found: dict[tuple[str, str, str], deque[dict[str, Any]]] = {}
            with open(os.path.join(TAPED, "index.jsonl"), encoding="utf-8", errors="surrogateescape") as file:
                import json

                for line in file:
                    value = json.loads(line)
                    _all.append(value)
                    found.setdefault((value["lane"], value["what"], value["name"]), deque()).append(value)
            _contents = _open(os.path.join(TAPED, "contents"), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            _index = found
    return _all


def take(what: str, name: str, lane: str = "") -> dict[str, Any] | None:
    """The next value of this lane with this name; each is given out once, the last one again and again.

    A lane without a promised name has those of its like: which of two foreign threads reads is chance.
    """
    load()
    assert _index is not None
    lane = lane or (LANE.get(None) or current()).id
    waiting = _index.get((lane, what, name))
    if waiting is None and lane.startswith("?"):
        waiting = next((found for key, found in _index.items() if key[1:] == (what, name) and key[0][0] == "?"), None)
    if not waiting:
        return None
    value = waiting.popleft() if len(waiting) > 1 else waiting[0]
    value["given"] = True
    return value


def is_own(what: str, name: str, whole: str) -> bool:
    """Whether a path is read as it is now, in step with the tape: it is in TMPDIR, and the run has made it.

    What is not there may have been made by a program that is served, and then the tape has it.
    """
    if not in_tmpdir(whole):
        return False
    load()
    assert _index is not None
    waiting = _index.get(((LANE.get(None) or current()).id, what, name))
    if waiting and not waiting[0].get("given") and not waiting[0].get("error"):
        try:
            _lstat(whole)
        except OSError:
            return False
    take(what, name)
    return True


def any_content(what: str, name: str) -> bytes | None:
    """The content that the next read of this name would get, in whichever lane; None where the tape has none."""
    load()
    assert _index is not None
    for key, waiting in list(_index.items()):
        if key[1:] == (what, name) and waiting:
            content = content_of(waiting[0])
            if content is not None:
                return content
    return None


def content_of(value: dict[str, Any]) -> bytes | None:
    """The content that the tape holds; None where there is only a digest."""
    at = value.get("at")
    if at is None:
        return None
    size, data = value["size"], b""
    while len(data) < size:
        piece = _pread(_contents, size - len(data), at + len(data))
        if not piece:
            raise OSError("the tape's contents were cut off")
        data += piece
    return data


def file_of(data: bytes, name: str = "taped") -> int:
    """A descriptor, at its start, of an unnamed file with this content."""
    fd = _unnamed(name)
    view = memoryview(data)
    while view:
        view = view[_write(fd, view) :]
    _lseek(fd, 0, os.SEEK_SET)
    return fd


def _unnamed(name: str) -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name[-200:].replace("\0", ""))
    path = os.path.join(TAPED, f"{os.getpid()}-{os.urandom(8).hex()}")
    fd = _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    return fd


def take_program(name: str, lane: str) -> dict[str, Any] | None:
    """The next program of this lane with this command line; where a secret in that is redacted, the next like it."""
    left = [
        value for value in load() if value["what"] == "process" and value["lane"] == lane and not value.get("taken")
    ]
    first = name.partition(" ")[0]
    alike = [value for value in left if "tpx" in value["name"] and value["name"].partition(" ")[0] == first]
    for value in [value for value in left if value["name"] == name] + alike:
        value["taken"] = True
        return value
    return None
