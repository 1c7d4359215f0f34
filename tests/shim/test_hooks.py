"""Import hooks: after every execution of a module, before its first search, in its own lane where it matters."""

from pathlib import Path

import pytest
from shimruns import everywhere, run

WRITE = """
import os, sys, json
folder = os.environ["PLACE"]
sys.path.insert(0, folder)
open(os.path.join(folder, "sample.py"), "w").write("import random; value = random.random()")
from _tapeproxy import hooks
"""


@everywhere
@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("hooks.on_import('sample', lambda m: print(m.value > 0)); import sample, sample as again", ["True"]),
        ("import sample; hooks.on_import('sample', lambda m: print('late'))", ["late"]),
        (
            "hooks.on_import('sample', lambda m: print(1)); import importlib, sample; importlib.reload(sample)",
            ["1", "1"],
        ),
        ("hooks.before_import('sample', lambda: print('sample' in sys.modules)); import sample", ["False"]),
        ("hooks.before_import('none', lambda: print(1))\ntry: import none\nexcept ImportError: print(2)", ["1", "2"]),
        (
            "hooks.on_import('sample', print); import sample; loader = sample.__loader__\n"
            "print(type(loader).__name__, vars(loader))",
            ["<module", "SourceFileLoader"],
        ),
        (
            "hooks.on_import('sample', lambda m: 1 / 0); hooks.on_import('sample', lambda m: print(1)); import sample",
            ["1"],
        ),
        ("hooks.on_import('xml.dom', lambda m: print(m.__name__)); import xml.dom.minidom", ["xml.dom"]),
        ("hooks.on_import('_lsprof', lambda m: print(m.__name__)); import cProfile", ["_lsprof"]),
    ],
)
def test_hooks(code: str, printed: list[str], python: Path, sidecar: Path, tmp_path: Path) -> None:
    ran = run(WRITE + code, python=python, sidecar=sidecar, extra={"PLACE": str(tmp_path)})
    words = ran.stdout.split()
    assert [word for word in printed if word in words] == printed, ran.stderr
    assert "exec_module" not in ran.stdout
    assert len(ran.of("note")) == code.count("1 / 0")


@everywhere
def test_modules_from_one_archive_share_a_loader(python: Path, sidecar: Path, tmp_path: Path) -> None:
    code = """
import zipfile
with zipfile.ZipFile(os.path.join(folder, "a.zip"), "w") as archive:
    archive.writestr("one.py", "import two"); archive.writestr("two.py", ""); archive.writestr("three.py", "")
sys.path.insert(0, os.path.join(folder, "a.zip"))
seen = []
for name in ("one", "two", "three"): hooks.on_import(name, lambda m: seen.append(m.__name__))
import one, two, three
print(json.dumps(seen))
"""
    ran = run(WRITE + code, python=python, sidecar=sidecar, extra={"PLACE": str(tmp_path)})
    assert ran.json == ["two", "one", "three"]


@everywhere
def test_a_module_draws_the_same_whoever_imports_it_first(python: Path, sidecar: Path, tmp_path: Path) -> None:
    """Otherwise the thread that comes first to a lazy import would go on with other values than the one that didn't."""
    code = """
import random, threading
out = {}
def work(name, first):
    if first: import sample
    out[name] = random.random()
order = sys.argv[1]
threads = [threading.Thread(target=work, args=(name, name == order)) for name in "ab"]
for thread in threads: thread.start(); thread.join()
import sample
print(json.dumps([out, sample.value]))
"""
    extra = {"PLACE": str(tmp_path)}
    runs = [run(WRITE + code, order, python=python, sidecar=sidecar, extra=extra).json for order in "ab"]
    assert runs[0] == runs[1]


@everywhere
def test_the_main_lane_imports_as_ever(python: Path, sidecar: Path, tmp_path: Path) -> None:
    """A module may seed the program's generator when it is imported."""
    code = "open(os.path.join(folder, 'sample.py'), 'w').write('import random; random.seed(7)')\n"
    code += "import random, sample; print(random.random())"
    ran = run(WRITE + code, python=python, sidecar=sidecar, extra={"PLACE": str(tmp_path)})
    assert float(ran.stdout) == 0.32383276483316237
