"""What the shim's tests share: the interpreter that a test runs on, and a folder for sidecar files."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from shimruns import BETWEEN, everywhere, interpreter

from tapeproxy.shim import INJECT


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the soak all but one of the interpreters in between, of each test that runs everywhere."""
    for item in items:
        if not isinstance(item, pytest.Function) or everywhere.mark not in item.iter_markers("parametrize"):
            continue
        version = item.callspec.params["python"]
        chosen = BETWEEN[crc32(item.originalname.encode()) % len(BETWEEN)]
        if version in BETWEEN and version != chosen:
            item.add_marker(pytest.mark.soak)


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
