"""What the agent's own code reads past the wire: which reads count, their names and numbers, and the lines about them.

Knows paths, content and the sidecar; the modules that hook the reads are loaded by `boundary`, with `--io` only.
"""

from __future__ import annotations

import errno
import os
import sys

from . import channel, settings
from .callers import calling_line
from .lanes import LANE, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MODE = os.environ.get("TAPEPROXY_IO", "")
"""`record`, `verify`, `tape` or `virtual`."""
SERVES = settings.REPLAY and MODE in ("tape", "virtual")
BASE = os.environ.get("TAPEPROXY_IO_BASE", "")
"""The launcher's working folder: names are relative to it, so that a tape replays in another checkout."""
TAPED = os.environ.get("TAPEPROXY_IO_VALUES", "")
"""Replay: the folder with what the tape holds."""
LIMIT = 256 * 1024
"""Content longer than this is told by its digest alone."""
DIGESTED = 256 << 20
"""A digest is of so many bytes at most: opening a model of many GiB must not take minutes."""
_PIECE = 1 << 20
_MOST_TOLD = 100_000

_pread: Any = getattr(os, "pread", None)
_fstat, _getcwd, _readlink = os.fstat, os.getcwd, os.readlink
_OVERLAY = os.path.join(os.environ["TAPEPROXY_IO_OVERLAY"], "files") if os.environ.get("TAPEPROXY_IO_OVERLAY") else ""
_TMPDIR = os.path.join(os.path.abspath(os.environ["TMPDIR"]), "") if os.environ.get("TMPDIR") else ""
_numbers: dict[str, int] = {}
_told: set[str] = set()  # digests of contents that this process has written out
_ends = (".pyc", ".pyo", ".so", ".pyd", ".dll", ".dylib", ".pth")
_parts = tuple(
    os.sep + name + os.sep for name in ("site-packages", "dist-packages", "certifi", "__pycache__", "ensurepip")
)
# Those who read the program itself, for imports, tracebacks and warnings; and the system's own tables.
_READERS = frozenset(
    (
        *("linecache", "tokenize", "inspect", "traceback", "warnings", "importlib", "runpy", "pkgutil", "zipimport"),
        *("site", "sysconfig", "_sysconfig", "ctypes", "encodings", "zoneinfo", "ssl", "posixpath", "ntpath"),
        *("tempfile", "multiprocessing", "mimetypes", "gettext", "locale", "_strptime", "_tapeproxy", "sitecustomize"),
    )
)
_ASKING = ("exists", "lexists", "isfile", "isdir", "islink", "getsize", "getmtime", "getatime", "getctime", "ismount")


def _left_alone() -> tuple[str, ...]:
    """Beginnings of paths that are the interpreter's, the system's or ours."""
    folders = ["/proc/self", "/proc/thread-self", "/dev", "/etc/ssl"]
    folders += ["/usr/share/zoneinfo", "/usr/share/ca-certificates"]
    for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
        folders += [os.path.join(prefix, name) for name in ("lib", "lib64", "include", "share", "bin", "pyvenv.cfg")]
    folders += [settings.INJECT, settings.SIDECAR, TAPED, settings.READS, os.environ.get("TAPEPROXY_IO_OVERLAY", "")]
    folders += [os.environ.get(name, "") for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")]
    return tuple(os.path.abspath(folder) for folder in folders if folder)


_alone = _left_alone()
_alone_below = tuple(folder.rstrip(os.sep) + os.sep for folder in _alone)


def absolute(path: Any, dir_fd: Any = None) -> str | None:
    """The absolute form of a path; None for a descriptor, or what is no path."""
    if isinstance(path, int):
        return None
    try:
        folder = _getcwd() if dir_fd is None else _readlink(f"/proc/self/fd/{dir_fd}")
        if _OVERLAY and folder.startswith(_OVERLAY):
            folder = folder[len(_OVERLAY) :]
        return os.path.normpath(os.path.join(folder, os.fsdecode(path)))
    except (TypeError, ValueError, OSError):
        return None


def name_of(path: str) -> str:
    """The name of an absolute path on the tape."""
    if BASE and path.startswith(BASE):
        rest = path[len(BASE) :]
        if not rest or os.sep == BASE:
            return path if rest else "."
        if rest[0] == os.sep:
            return rest[1:]
    return path


def counts(path: str | None) -> bool:
    """Whether reading this absolute path is the agent's own affair, and not the interpreter's or ours."""
    if path is None or "\0" in path or path.endswith(_ends) or any(part in path for part in _parts):
        return False
    return path not in _alone and not path.startswith(_alone_below)


def is_agents(depth: int) -> bool:
    """Whether the code `depth` frames up reads for the agent, and not to show or load its program."""
    try:
        frame = sys._getframe(depth + 1)
    except ValueError:  # the interpreter itself, which shows the lines of an error
        return False
    module = frame.f_globals.get("__name__") or ""
    head = module.partition(".")[0]
    if head == "shutil" and frame.f_code.co_name.startswith(("_rmtree", "rmtree")):
        return False  # what it looks at depends on what the system can do
    if head == "genericpath" or (head == "posixpath" and frame.f_code.co_name in _ASKING):
        # os.path.exists and its like: whose are they?
        return frame.f_back is None or is_agents(depth + 2)
    return head not in _READERS


def agents_path(path: Any, dir_fd: Any = None, depth: int = 1) -> str | None:
    """The absolute path if this read is to be taped, else None. `depth`: frames up to the one that called the hook."""
    whole = absolute(path, dir_fd)
    if whole is None or not counts(whole) or not is_agents(depth + 1):
        return None
    return None if MODE == "verify" and in_tmpdir(whole) else whole


def in_tmpdir(whole: str) -> bool:
    """Whether a path is in the run's TMPDIR: what is there, the run itself has put there, in a replay too."""
    return bool(_TMPDIR) and os.path.join(whole, "").startswith(_TMPDIR)


def digest(data: Any) -> str:
    """32 hex digits of BLAKE2b, keyed with the run's seed."""
    from _blake2 import blake2b

    text: str = blake2b(data, key=settings.SEED, digest_size=16).hexdigest()
    return text


class Digest:
    """The digest and length of what comes in pieces."""

    def __init__(self) -> None:
        from _blake2 import blake2b

        self._hash = blake2b(key=settings.SEED, digest_size=16)
        self.length = 0

    def update(self, data: Any) -> None:
        """Take the next piece."""
        self._hash.update(data[: max(DIGESTED - self.length, 0)])
        self.length += len(data)

    def hexdigest(self) -> str:
        """Of all that came so far."""
        text: str = self._hash.hexdigest()
        return text


def read_file(fd: int, size: int) -> dict[str, Any]:
    """The fields for the content of an open file, without moving its position. Raises OSError."""
    whole, data, at = Digest(), b"", 0
    while at < DIGESTED:
        piece = _pread(fd, min(_PIECE, LIMIT + 1) if at <= LIMIT else _PIECE, at)
        if not piece:
            break
        whole.update(piece)
        at += len(piece)
        if at <= LIMIT:
            data += piece
    if at > LIMIT:
        return {"length": max(size, at), "digest": whole.hexdigest()}
    return {"content": data}


def number(lane: str) -> int:
    """The next value's number in a lane."""
    n = _numbers.get(lane, 0)
    _numbers[lane] = n + 1
    return n


def emit(what: str, name: str, lane: str = "", **fields: Any) -> int:
    """Write the line of one value; returns its number. Fields: content, length, digest, error, data, taped."""
    lane = lane or (LANE.get(None) or current()).id
    n = number(lane)
    content = fields.pop("content", None)
    if content is not None:
        fields["length"], fields["digest"] = len(content), digest(content)
        if len(content) <= LIMIT and fields["digest"] not in _told:
            if len(_told) < _MOST_TOLD:
                _told.add(fields["digest"])
            fields["content"] = _json_of(content)
    channel.emit("value", lane=lane, n=n, what=what, name=_text(name), where=_text(calling_line()[0]), **fields)
    return n


def telling(what: str, name: str, told: dict[str, Any], read: Callable[[], Any]) -> Any:
    """Call something; if it fails, tell that."""
    try:
        return read()
    except OSError as error:
        code = error_name(error)
        tell(what, name, told, lambda: {"error": code})
        raise


def tell(what: str, name: str, told: dict[str, Any], fields: Callable[[], dict[str, Any]], lane: str = "") -> None:
    """Tell of a value: the agent has what it asked for, whatever we could not tell of it. Never raises."""
    try:
        emit(what, name, lane, **fields(), **told)
    except Exception:  # noqa: S110  # as above
        pass


def error_name(error: OSError) -> str:
    """What stands on the tape for an error."""
    return errno.errorcode.get(error.errno or 0, "EIO")


def error_of(name: str, path: Any) -> OSError:
    """The error that stands on the tape, for this path."""
    number = getattr(errno, name, errno.EIO)
    return OSError(number, os.strerror(number), path)


def _json_of(data: bytes) -> Any:
    if b"\0" not in data:
        try:
            return bytes(data).decode()
        except UnicodeDecodeError:
            pass
    from binascii import b2a_base64

    return {"b64": b2a_base64(data, newline=False).decode("ascii")}


def _text(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _json_of(os.fsencode(text))
    return text
