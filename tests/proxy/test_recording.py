"""By which proxy a recording goes out: the one that is named, none, or the environment's."""

from pathlib import Path

import pytest

from tapeproxy.proxy.ca import CertificateAuthority
from tapeproxy.proxy.recorded import RecordSettings
from tapeproxy.proxy.recording import wire_options


@pytest.mark.parametrize(
    ("environment", "named", "upstream"),
    [
        ({}, None, None),
        ({}, "http://u:p@proxy:3128", "http://u:p@proxy:3128"),
        ({"HTTPS_PROXY": "http://env:1"}, None, "http://env:1"),
        ({"HTTP_PROXY": "env:1"}, None, "http://env:1"),
        ({"HTTPS_PROXY": "http://env:1"}, "http://proxy:3128", "http://proxy:3128"),
        ({"HTTPS_PROXY": "http://env:1"}, "none", None),
    ],
)
def test_the_way_out(environment: dict[str, str], named: str | None, upstream: str | None, tmp_path: Path) -> None:
    settings = RecordSettings(
        tape=tmp_path / "t", argv=(), environment=environment, cwd=str(tmp_path), upstream_proxy=named
    )
    assert wire_options(settings, CertificateAuthority.open(tmp_path / "home")).upstream == upstream
