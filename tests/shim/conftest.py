"""What the shim's tests share: the interpreter that a test runs on, and a folder for sidecar files."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from shares import leave_to_soak, pick
from shimruns import VERSIONS, everywhere, interpreter

from tapeproxy.shim import INJECT


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the soak all but two of the interpreters, of each test that runs everywhere."""
    found = [version for version in VERSIONS if interpreter(version) is not None] or [*VERSIONS]
    others = [found[0], *found[:-1]]  # most of what goes wrong goes wrong on the oldest
    leave_to_soak(items, everywhere, lambda name: (found[-1], pick(name, others)))


@pytest.fixture
def python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of the version in the test's parameter (`shimruns.everywhere`); skips where there is none."""
    found = interpreter(request.param)
    if found is None:
        pytest.skip(f"no CPython {request.param} on this machine")
    return found


@pytest.fixture
def sidecar(tmp_path: Path) -> Path:
    """A folder for the sidecar files of one run."""
    folder = tmp_path / "sidecar"
    folder.mkdir()
    return folder


@pytest.fixture
def inject() -> Iterator[Callable[[str], Any]]:
    """Imports a part of the shim by name into this process, where nothing is installed."""
    sys.path.insert(0, str(INJECT))
    yield lambda name: import_module(f"_tapeproxy.{name}")
    sys.path.remove(str(INJECT))
