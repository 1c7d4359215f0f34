"""The shim imports the standard library and itself, on every interpreter: nothing else is there in an agent's own."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from shimruns import Mode, everywhere, run

from tapeproxy.shim import INJECT

MODES: tuple[Mode, ...] = ("bare", "record", "replay")
SOURCES = sorted(INJECT.rglob("*.py"))
ASK_310 = "import sys; print(*sys.stdlib_module_names)"
# 3.9 has no list of its own: what lies in its library, and what is built in.
ASK_39 = """
import os, pkgutil, sys, sysconfig
paths = [sysconfig.get_path("stdlib"), os.path.join(sysconfig.get_path("stdlib"), "lib-dynload")]
print(*sys.builtin_module_names, *(module.name for module in pkgutil.iter_modules(paths)))
"""


@cache
def standard(python: Path) -> frozenset[str]:
    """The names of the standard library's modules."""
    older = subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).returncode
    done = subprocess.run([python, "-I", "-c", ASK_39 if older else ASK_310], capture_output=True, text=True)
    return frozenset(done.stdout.split())


def imported(path: Path) -> Iterator[tuple[str, int, bool]]:
    """The top-level names that a file imports, with the line; True: inside `try`, so that it may be absent."""
    tree = ast.parse(path.read_text())
    tried = {id(node) for block in ast.walk(tree) if isinstance(block, ast.Try) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        yield from ((name.partition(".")[0], node.lineno, id(node) in tried) for name in names)


@everywhere
def test_only_the_standard_library_is_imported(python: Path) -> None:
    known = standard(python) | {"_tapeproxy"}
    assert {"os", "sys", "time", "asyncio"} <= known
    foreign = [
        f"{path.name}:{line}: {name}"
        for path in SOURCES
        for name, line, optional in imported(path)
        if name not in known and not optional
    ]
    assert foreign == []


LOADED = """
import sys
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@everywhere
def test_only_the_standard_library_is_loaded_at_the_start(python: Path, sidecar: Path) -> None:
    bare, recorded, replayed = (
        set(run(LOADED, mode=mode, python=python, sidecar=sidecar).stdout.split()) for mode in MODES
    )
    for loaded in (recorded, replayed):  # what an environment's .pth files load is not ours
        assert loaded - bare - standard(python) == {"_tapeproxy"}


def test_what_is_foreign_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "import os.path, numpy.linalg\nfrom . import b\nfrom httpx import get\ntry: import orjson\nfinally: 1"
    )
    assert list(imported(path)) == [("os", 1, False), ("numpy", 1, False), ("httpx", 3, False), ("orjson", 4, True)]
    assert not {"numpy", "httpx"} & standard(Path(sys.executable))
