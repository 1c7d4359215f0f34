"""One authority for all tests of the record wire, and a record wire for each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from authority import Authority
from recording import Recording


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def record(tmp_path: Path, authority: Authority) -> Callable[..., Recording]:
    """Make a Recording that trusts the authority's servers, with further options."""

    def make(**given: Any) -> Recording:
        options: dict[str, Any] = {"upstream_ca": authority.cert, **given}
        return Recording(tmp_path, authority, **options)

    return make
