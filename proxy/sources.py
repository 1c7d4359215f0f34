"""Python files to scan: those that the user names, and those of the user's own that a command runs. Runs none."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tapeproxy.shim.scan import LARGEST, Finding, imports, scan, unreadable
from tapeproxy.tapes.errors import UsageError

_NOT_OURS = frozenset(("__pycache__", "node_modules", "site-packages", "dist-packages", "venv"))
_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?$")
_MOST = 2_000
"""Files that imports are followed through at most."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan of several files found, file by file, and how many there were."""

    files: int
    findings: tuple[Finding, ...]


def scan_files(paths: Iterable[Path]) -> Scanned:
    """Scan these files. One that can't be read is a finding, TP001."""
    count = 0
    findings: list[Finding] = []
    for path in paths:
        count += 1
        findings += _scan(path)
    return Scanned(count, tuple(findings))


def find_files(named: Sequence[Path]) -> Iterator[Path]:
    """The files among `named`, and those ending in .py below the folders, sorted, each once.

    Folders of installed packages, hidden ones and caches are left out, and links to folders not followed.
    Raises UsageError for a path that is not there.
    """
    seen: set[Path] = set()
    for path in named:
        if not path.exists():
            raise UsageError("there is no such file or folder", where=str(path))
        for file in _below(path) if path.is_dir() else (path,):
            if file not in seen:
                seen.add(file)
                yield file


def own_files(argv: Sequence[str], cwd: Path) -> list[Path]:
    """The user's own files that a command runs: its script, or its `-m` module, and what they import from beside it.

    Imports are followed in the text, so one that is computed is missed, and installed packages are not the user's own.
    """
    start = _started(argv, cwd)
    if start is None:
        return []
    found, root = start
    for file in found:
        for name in imports(_read(file)):
            found += [module for module in _modules(name, file, root) if module not in found]
        if len(found) > _MOST:
            break
    return found[:_MOST]


def _below(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_OURS and not name.startswith("."))
        yield from (Path(where, name) for name in sorted(files) if name.endswith((".py", ".pyw")))


def _scan(path: Path) -> list[Finding]:
    try:
        if not path.is_file():  # a pipe would make us wait
            return [unreadable(str(path), "no regular file")]
        with path.open("rb") as file:
            source = file.read(LARGEST + 1)
    except OSError as error:
        return [unreadable(str(path), (error.strerror or str(error)).lower())]
    return scan(source, str(path))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST)
    except OSError:
        return b""


def _started(argv: Sequence[str], cwd: Path) -> tuple[list[Path], Path] | None:
    """The files that a command starts with, and the folder that their imports are looked for in; None without any."""
    for at, word in enumerate(argv):
        if word.endswith(".py") and (cwd / word).is_file():
            script = cwd / word
            return [script], script.parent
        if word == "-m" and at and _is_python(argv[:at]) and at + 1 < len(argv):
            files = _modules(f"{argv[at + 1]}.__main__", cwd, cwd)
            return (files, cwd) if files else None
    return None


def _is_python(words: Sequence[str]) -> bool:
    return any(_PYTHON.match(Path(word).name) for word in words)


def _modules(name: str, importer: Path, root: Path) -> list[Path]:
    """The files of a module and of the packages around it, as far as they are there."""
    dots = len(name) - len(name.lstrip("."))
    folder = importer.parents[dots - 1] if 0 < dots <= len(importer.parents) else root
    found: list[Path] = []
    for part in filter(None, name[dots:].split(".")):
        if not part.isidentifier():
            break
        folder = folder / part
        found += [file for file in (folder.with_suffix(".py"), folder / "__init__.py") if file.is_file()]
    return found
