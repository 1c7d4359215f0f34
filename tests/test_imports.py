"""Who may import whom (docs/ARCHITECTURE.md), held against every file of the product."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "tapes": set[str](),
    "addons": {"tapes"},
    "proxy": {"addons", "web", "tapes"},
    "web": {"tapes"},
    "cli": {"web", "proxy", "addons", "tapes", "testing"},
    "testing": {"proxy", "tapes"},
    "plugin": {"proxy", "tapes"},
}
FILES = sorted(path.relative_to(ROOT) for folder in ALLOWED for path in (ROOT / folder).rglob("*.py"))
# tapes/ is values in, values out: all of the standard library that it may use.
PURE = {
    *("ast", "base64", "binascii", "bisect", "codecs", "collections", "contextlib", "copy", "dataclasses", "datetime"),
    *(
        "difflib",
        "email",
        "enum",
        "fnmatch",
        "functools",
        "gzip",
        "hashlib",
        "heapq",
        "hmac",
        "html",
        "http",
        "importlib",
        "io",
    ),
    *("ipaddress", "itertools", "json", "math", "operator", "re", "shlex", "string", "struct", "textwrap", "typing"),
    *("unicodedata", "urllib", "zlib"),
}
WIRES = {Path("proxy/mitm.py"), Path("proxy/recordwire.py")}
LIBRARIES = {"blake3", "orjson", "tapeproxy", "wsproto"}
OPTIONAL = {"brotli", "zstandard", "compression"}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"}
IMPURE_METHODS = {"now", "utcnow", "today", "fromtimestamp"}


def named(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """What these nodes import, with the line; `a.b.c` for `from a.b import c`, `..c` for `from . import c`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{'.' * node.level}{node.module or ''}.{alias.name}") for alias in node.names)


SOURCE = """
import a.b, c
def f():
    from d.e import g, h as i
    class J:
        try:
            import k as l
        finally:
            from . import m
"""


def test_imports_are_found_wherever_they_hide() -> None:
    tree = ast.parse(SOURCE)
    assert sorted(name for _, name in named(ast.walk(tree))) == ["..m", "a.b", "c", "d.e.g", "d.e.h", "k"]
    assert [name for _, name in named(tree.body)] == ["a.b", "c"]


def test_there_are_files_to_look_at() -> None:
    assert {path.parts[0] for path in FILES} == set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_file_imports_what_it_may(path: Path) -> None:
    """At whatever depth; `at_once` is what the module runs, without functions and without what is for type checkers."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"), str(path))
    imports, at_once = [*named(ast.walk(tree))], [*named(tree.body)]
    check_one_way(path, imports)
    check_mitmproxy(path, imports, at_once)
    if path.parts[0] == "tapes":
        check_pure(path, imports, tree)
        for line, name in at_once:
            assert name.split(".")[0] not in OPTIONAL, f"{path}:{line}: {name} may not be installed"


type Named = list[tuple[int, str]]


def check_one_way(path: Path, imports: Named) -> None:
    folder = path.parts[0]
    for line, name in imports:
        top, *rest = name.split(".")
        assert top, f"{path}:{line}: imports here are absolute"
        assert top not in ALLOWED, f"{path}:{line}: import tapeproxy.{top}, a second copy of every class otherwise"
        if top == "tapeproxy" and rest and rest[0] in ALLOWED:
            assert rest[0] in {folder} | ALLOWED[folder], f"{path}:{line}: {folder}/ must not import {rest[0]}/"


def check_mitmproxy(path: Path, imports: Named, at_once: Named) -> None:
    if path.parts[0] != "addons" and path not in WIRES:
        for line, name in imports:
            assert name.split(".")[0] != "mitmproxy", f"{path}:{line}: only addons/ and the wires may"
    if path.parts[0] not in ("addons", "cli", "testing"):
        for line, name in at_once:
            loaded = name.startswith(("mitmproxy", "tapeproxy.addons")) and path not in WIRES
            assert not loaded, f"{path}:{line}: {name} would load mitmproxy with this module"


def check_pure(path: Path, imports: Named, tree: ast.Module) -> None:
    for line, name in imports:
        top = name.split(".")[0]
        assert top in PURE | LIBRARIES | OPTIONAL, f"{path}:{line}: tapes/ is pure, {top} may not be"
        assert name.split(".")[:2] not in (["urllib", "request"], ["http", "client"]), f"{path}:{line}: opens sockets"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            assert called not in IMPURE_CALLS, f"{path}:{node.lineno}: {called}() is no business of tapes/"
            assert method not in IMPURE_METHODS, f"{path}:{node.lineno}: {method}() reads the clock or the time zone"


@pytest.mark.parametrize(
    "module",
    [
        "tapeproxy.cli.main",
        "tapeproxy.cli.replay",
        "tapeproxy.cli.show",
        "tapeproxy.cli.verify",
        "tapeproxy.cli.record",
        "tapeproxy.cli.doctor",
        "tapeproxy.proxy.tapeserver",
        "tapeproxy.proxy.replaying",
        "tapeproxy.proxy.repeating",
        "tapeproxy.proxy.inprocess.replays",
        "tapeproxy.testing",
    ],
)
def test_a_fresh_interpreter_loads_no_mitmproxy(module: str) -> None:
    file = ROOT / "src" / Path(*module.split("."))
    if not file.is_dir() and not file.with_suffix(".py").is_file():
        pytest.skip(f"{module} does not exist yet")
    code = f"import {module}, sys; print(*sorted(m for m in sys.modules if m.split('.')[0] == 'mitmproxy'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


def test_the_command_itself_starts_light() -> None:
    if not (ROOT / "cli" / "main.py").is_file():
        pytest.skip("cli/main.py does not exist yet")
    heavy = {"mitmproxy", "cryptography", "anyio", "asyncio", "httptools", "orjson", "ssl"}
    code = "import tapeproxy.cli.main, sys; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) & heavy == set()


def test_a_replay_loads_little() -> None:
    """Each of these takes a millisecond or more, and so does every dozen of small modules: a replay starts in 160."""
    tape = ROOT / "tests" / "golden" / "v1.tape.jsonl.gz"
    words = ["-X", "importtime", "-m", "tapeproxy.cli.main", "replay", str(tape), "--", "true"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    heavy = {"anyio", "cryptography", "mitmproxy", "httpx", "hmac", "tempfile", "shutil", "random", "difflib"}
    assert loaded & heavy == set()
    ours = {name for name in loaded if name.startswith("tapeproxy.")}
    seldom = ("faults", "differences", "explain", "encoder", "likes", "encrypted", "spool", "provenance", "landlock")
    assert [name for name in ours if name.rpartition(".")[2] in seldom] == []
    assert "tapeproxy.proxy.tapeserver" in ours
    assert len(loaded) < 300
