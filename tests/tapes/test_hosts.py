"""Only what must be this machine is this machine."""

import pytest

from tapeproxy.tapes.hosts import is_loopback, loopback_literals


@pytest.mark.parametrize(
    ("host", "literals"),
    [
        ("localhost", ("127.0.0.1", "::1")),
        ("LOCALHOST.", ("127.0.0.1", "::1")),
        ("app.localhost", ("127.0.0.1", "::1")),
        ("127.0.0.1", ("127.0.0.1",)),
        ("127.9.8.7", ("127.9.8.7",)),
        ("::1", ("::1",)),
        ("0:0:0:0:0:0:0:1", ("::1",)),
        ("::ffff:127.0.0.2", ("127.0.0.2",)),
        ("::ffff:7f00:1", ("127.0.0.1",)),
        ("localhost.evil.test", ()),
        ("127.evil.test", ()),
        ("localhostevil.test", ()),
        ("evil-localhost", ()),
        ("127.0.0.1.evil.test", ()),
        ("127.1", ()),
        ("2130706433", ()),
        ("0127.0.0.1", ()),
        ("0.0.0.0", ()),
        ("::", ()),
        ("::10", ()),
        ("::ffff:10.0.0.1", ()),
        ("::127.0.0.1", ()),
        ("10.0.0.1", ()),
        ("", ()),
        (".", ()),
    ],
)
def test_the_addresses_of_a_loopback_host(host: str, literals: tuple[str, ...]) -> None:
    assert loopback_literals(host) == literals
    assert is_loopback(host) is bool(literals)
