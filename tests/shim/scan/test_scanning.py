"""The scan takes any bytes, tells where, and listens to what silences it."""

import ast
import sys
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.shim.scan import LARGEST, RULES, Finding, imports, scan

ROOT = Path(__file__).parents[3]
PID = "import os\nx = os.getpid()"


def only(source: bytes | str) -> Finding:
    (found,) = scan(source.encode() if isinstance(source, str) else source, "agent.py")
    return found


def test_a_finding_says_where_and_what() -> None:
    found = only("import os\nname = [\n    'é', os.getpid(),\n]")
    assert (found.line, found.column, found.place) == (3, 10, "agent.py:3:10")
    assert (found.what, found.text) == ("os.getpid()", "'é', os.getpid(),")
    place = {"code": "TP101", "level": "error", "file": "agent.py", "line": 3, "column": 10, "what": "os.getpid()"}
    words = {"text": "'é', os.getpid(),", "why": RULES["TP101"].why, "fix": RULES["TP101"].fix}
    assert found.to_json() == place | words


@pytest.mark.parametrize(
    ("comment", "silenced"),
    [
        ("# tapeproxy: ok", True),
        ("#tapeproxy:ok", True),
        ("# noqa: E501  # tapeproxy: ok TP101", True),
        ("# tapeproxy: ok TP201, TP101: it is a log", True),
        ("# tapeproxy: ok: it is a log", True),
        ("# tapeproxy: ok TP102", False),
        ("# tapeproxy: okay", False),
        ("# ok", False),
    ],
)
def test_a_comment_silences_its_line(comment: str, silenced: bool) -> None:
    assert (scan(f"{PID}  {comment}".encode(), "a") == []) is silenced


def test_a_comment_silences_from_the_last_line_too() -> None:
    assert scan(b"import os\nx = os.getpid(\n)  # tapeproxy: ok", "a") == []
    assert scan(b"import os\n# tapeproxy: ok\nx = os.getpid()", "a") != []


@pytest.mark.parametrize(
    ("source", "what", "line"),
    [
        (b"def f(:\n", "not Python: invalid syntax", 1),
        (b"x = 1\n\x00", "not Python: source code string cannot contain null bytes", 1),
        (b"# coding: klingon\n", "not Python: unknown encoding: klingon", 1),
        (b"x = '\xff'", "not Python: ", 1),
        (b"x = 1\nx = (\n", "not Python: '(' was never closed", 2),
        (b"  x = 1", "not Python: unexpected indent", 1),
        (b"(" * 5_000 + b")" * 5_000, "not Python: ", 1),
        (b"x = " + b"-" * 100_000 + b"1", "not Python: nested too deeply", 1),
        (b"x=1\n" * (LARGEST // 4 + 1), "larger than 4 MiB", 1),
    ],
    ids=["syntax", "null", "encoding", "latin", "open", "indent", "parentheses", "minus", "huge"],
)
def test_what_cannot_be_read_is_one_finding(source: bytes, what: str, line: int) -> None:
    found = only(source)
    assert found.rule.code == "TP001"
    assert found.what.startswith(what)
    assert found.line in (line, 1)


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"#\x80",
        b"\xef\xbb\xbfx = 1\n",
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        b"x = '\\d'\nassert (1, 'a')\n",
        b"x = x\ny = z\nz = y\n",
        b"x = f(x)\ng = g()\n",
        b"import a as a\nfrom a import a\na = a.a\n",
        b"x = " + b" + ".join([b"1"] * 700),
        b"a" + b".a" * 700,
        b"for i in range(1):\n" * 1 + b"  pass\n",
        b"x = dedent = __import__\ny = x(y)\nopen(y)",
        b"from textwrap import dedent\nq = dedent(q)\ndb.execute(q)\nopen(q)",
        b"import subprocess\nsubprocess.run([])\nsubprocess.run()\nsubprocess.run('')",
        b"open()\nid()\nhash()\nset()\nprint()\nlist(set())\nf'{x!r:>{w}}'",
        b"match x:\n    case {'a': 1, **rest}: pass\n    case [*_, y] | (y as z): pass\n",
        b"type A[T: int] = list[T]\ndef f[T](x: T, /, *a, y=1, **k) -> T: return x\n",
        b"async def f():\n    async with a as b, c as (d, e):\n        return [x async for x in b if (y := x)]\n",
        b"lambda: (yield)\n",
        b"del os.environ, x[0]\nglobal y\ny += 1\n",
    ],
)
def test_odd_programs_have_no_findings_and_do_no_harm(source: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scan(source, "a") == []


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_have_an_answer(source: bytes) -> None:
    for found in scan(source, "a"):
        assert found.line >= 1
        assert found.column >= 1
    assert isinstance(imports(source), list)


SNIPPETS = [
    *(
        "import os",
        "from os import *",
        "x = os.getpid()",
        "s = {x, y}",
        "for x in s:\n    print(x)",
        "x = x",
        "x = list(x)",
    ),
    *("def f(x):\n    x.append(f)\n    return x", "Thread(target=f, args=(x,))", "class x: pass", "x = [x for x in x]"),
    *(
        "x.sort(key=id)",
        "global x",
        "with x as y: f(y)",
        "x += 1",
        "del x",
        "x = lambda: x",
        "f(*x, **y)",
        "x: int = x",
    ),
    *("import threading as t, numpy as np", "t.Thread(target=x).start()", "print(f'{x}{id(x)}')", "x = set(x)"),
]


@given(st.lists(st.sampled_from(SNIPPETS), max_size=12))
def test_any_program_has_an_answer(lines: list[str]) -> None:
    source = "\n".join(lines)
    for found in scan(source.encode(), "a"):
        assert 1 <= found.line <= source.count("\n") + 1


def test_every_construct_of_python_is_walked() -> None:
    """Our own files and a part of the standard library: no crash, and far from one finding a line."""
    standard = sorted(Path(ast.__file__).parent.glob("[ac]*.py"))
    files = [*ROOT.glob("proxy/*.py"), *ROOT.glob("tests/shim/**/test_*.py"), *standard]
    found = [finding for path in files for finding in scan(path.read_bytes(), str(path))]
    assert not [finding for finding in found if finding.rule.code == "TP001"]
    assert len(found) < len(files)


def test_a_long_program_takes_no_longer_than_it_should() -> None:
    source = (PID + "\nfor n in range(3):\n    results = [str(n) for n in results]\n").encode() * 1_000
    began = time.process_time()
    scan(source, "a")
    assert time.process_time() - began < 10, "4,000 lines; it is quadratic"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c as d", ["a.b", "c"]),
        ("from a import b, c", ["a", "a.b", "a.c"]),
        ("from . import b", [".", ".b"]),
        ("from ..a import *", ["..a"]),
        ("def f():\n    import a\n    import a", ["a"]),
        ("def f(:", []),
        ("", []),
    ],
)
def test_imports_are_named(source: str, names: list[str]) -> None:
    assert imports(source.encode()) == names


def test_the_scan_needs_nothing_but_the_standard_library() -> None:
    """Like the shim beside it; and it must not load it."""
    for path in (ROOT / "shim" / "scan").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.startswith("tapeproxy.shim.scan") or name.split(".")[0] in sys.stdlib_module_names, path
