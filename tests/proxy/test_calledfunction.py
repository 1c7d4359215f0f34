"""A function is found again in another Python, and what it returns comes back; one without a name is refused."""

import functools
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tapeproxy.proxy.calledfunction import command_of, result_in
from tapeproxy.tapes.errors import UsageError


def run(fn: Any, path: Path) -> Any:
    subprocess.run(command_of(fn, path), check=True)
    return result_in(path)


@pytest.mark.parametrize(
    ("name", "result"),
    [("plain", [1, "é", None]), ("later", "later"), ("Holder.inner", 3), ("odd", "{1}"), ("keys", "{(1, 2): 3}")],
)
def test_what_a_function_returns(name: str, result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
def plain(): return [1, "é", None]
async def later(): return "later"
class Holder:
    @staticmethod
    def inner(): return 3
def odd(): return {1}
def keys(): return {(1, 2): 3}
"""
    (tmp_path / "called_by_test.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    import importlib

    found: Any = importlib.import_module("called_by_test")
    for part in name.split("."):
        found = getattr(found, part)
    assert run(found, tmp_path / "result") == result
    assert result_in(tmp_path / "none") is None
    gone = tmp_path / "gone" / "result"
    assert run(found, gone) is None and not gone.parent.exists()


def test_a_function_that_nobody_else_can_find() -> None:
    def inner() -> None: ...

    for fn in (inner, lambda: None, functools.partial(print, 1)):
        with pytest.raises(UsageError, match="cannot be run in another Python"):
            command_of(fn, Path("x"))
