"""How addresses are read: tables, with the module loaded on its own."""

import importlib.util
import sys
from types import ModuleType

import pytest

from tapeproxy.shim import INJECT


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("addresses_of_the_shim", INJECT / "_tapeproxy" / "addresses.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


addresses = load()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("", True),
        ("localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("0.0.0.0", True),
        ("::1", True),
        ("::", True),
        ("::ffff:127.0.0.1", True),
        ("::1%lo", True),
        ("0:0:0:0:0:0:0:1", True),
        ("notlocalhost", False),
        ("127.0.0.1.example", False),
        ("127.1", False),
        ("128.0.0.1", False),
        ("10.0.0.1", False),
        ("::2", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("localhost.example", False),
        ("<broadcast>", False),
        ("a\0b", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert addresses.is_loopback(host) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (None, ""),
        ("DB.Example", "db.example"),
        ("db.example.", "db.example"),
        (b"db.example", "db.example"),
        (bytearray(b"::1"), "::1"),
        (b"\xff", "\ufffd"),
    ],
)
def test_every_form_that_socket_takes(host: str | bytes | bytearray | None, expected: str) -> None:
    assert addresses.text_of(host) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("db.example:5432", ("db.example", 5432)),
        (" [::1]:80 ", ("::1", 80)),
        ("", ("", 0)),
        ("a:b", ("a", 0)),
    ],
)
def test_places(place: str, expected: tuple[str, int]) -> None:
    assert addresses.parse(place) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="no uname")
def test_our_own_names_are_compared_in_lower_case() -> None:
    assert all(name == name.lower() for name in addresses.own_names())
