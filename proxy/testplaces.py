"""Where the tapes of a test are: its own, and those of programs that it starts. Paths and names in, paths out."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

SUFFIX = ".tape.jsonl.gz"
FOLDER = "tapes"
_ODD = re.compile(r"[^A-Za-z0-9_.,=@+\[\]-]+")
_LONGEST = 120

type Scope = Literal["function", "module", "session"]


def tape_path(module: Path, name: str, scope: Scope, root: Path) -> Path:
    """The tape of a test called `name` (with its class and parameters) in the file `module`."""
    if scope == "session":
        return root / FOLDER / f"session{SUFFIX}"
    beside = module.parent / FOLDER
    return beside / f"{module.stem}{SUFFIX}" if scope == "module" else beside / module.stem / f"{plain(name)}{SUFFIX}"


def root_lane(nodeid: str) -> str:
    """The lane of a test that has its tape with others: the same whichever of them run."""
    return f"m:{hashlib.sha256(nodeid.encode(errors='surrogateescape')).hexdigest()[:12]}"


def plain(name: str) -> str:
    """A file name for a test; what had to be changed is told apart by a digest."""
    made = _ODD.sub("-", name)[:_LONGEST].lstrip(".")
    if made == name:
        return name
    return f"{made}-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:8]}"


def program_path(tape: Path, number: int) -> Path:
    """The tape of the `number`-th program of the test that has this tape."""
    return tape.with_name(f"{tape.name.removesuffix(SUFFIX)}.run{number}{SUFFIX}")


def of_test(tape: Path) -> Path:
    """The test's own tape, if this is one of a program that it starts."""
    name, dot, run = tape.name.removesuffix(SUFFIX).rpartition(".run")
    return tape.with_name(f"{name}{SUFFIX}") if dot and run.isdigit() else tape


def tapes_beside(module: Path) -> list[Path]:
    """Every tape that is where those of this file's tests would be."""
    beside = module.parent / FOLDER
    own = beside / f"{module.stem}{SUFFIX}"
    return [*([own] if own.is_file() else []), *sorted((beside / module.stem).glob(f"*{SUFFIX}"))]


def tapes_left(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """Tapes that are where those of a test file in this folder would be, which is not there any more.

    `patterns`: what names of test files look like. Other names are the user's own.
    """
    patterns = [*patterns]
    beside = folder / FOLDER
    for place in (*beside.glob("*/"), *beside.glob(f"*{SUFFIX}")):
        tape = of_test(place)
        module = f"{tape.name.removesuffix(SUFFIX)}.py"
        if any(fnmatch(module, pattern) for pattern in patterns) and not (folder / module).exists():
            yield from place.glob(f"*{SUFFIX}") if place.is_dir() else [place]
