"""What the shim's tests share: the interpreter that a test runs on, and a folder for sidecar files."""

from pathlib import Path

import pytest
from shimruns import interpreter


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
