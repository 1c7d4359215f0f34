"""Only what must be this machine is this machine."""

import pytest

from tapeproxy.tapes.hosts import is_loopback, loopback_literals, split_authority


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


@pytest.mark.parametrize(
    ("authority", "expected"),
    [
        (b"h.test:443", ("h.test", 443)),
        (b"H_1-2.test.:1", ("H_1-2.test.", 1)),
        (b"127.0.0.1:65535", ("127.0.0.1", 65535)),
        (b"[::1]:443", ("::1", 443)),
        (b"x" * 63 + b":443", ("x" * 63, 443)),
        *[
            (bad, None)
            for bad in (
                *(b"", b":", b"..:443", b".:443", b":443", b"[]:443", b"a..b:443", b"h.test", b"h.test:", b"h.test:0"),
                *(b"h.test:65536", b"h.test:-1", b"h.test:4\xb243", b"h.test:443/x", b"a b:443", b"@h:443", b"*:443"),
                *(b"h\xc3\xa9.test:443", b"::1:443", b"[::1:443", b"[h.test]:443", b"[fe80::1%lo]:443", b"h\r\n:443"),
                *(b"x" * 64 + b":443", b".".join([b"x" * 60] * 5) + b":443"),
            )
        ],
    ],
)
def test_the_host_and_port_of_a_tunnel(authority: bytes, expected: tuple[str, int] | None) -> None:
    assert split_authority(authority) == expected
