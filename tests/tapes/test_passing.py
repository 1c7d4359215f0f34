"""Which hosts pass by untaped."""

import pytest

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.passing import parse_passing, passes


@pytest.mark.parametrize(
    ("rule", "place", "covered"),
    [
        ("Bank.test", ("bank.test", 443), True),
        ("bank.test", ("BANK.TEST.", 1), True),
        ("bank.test", ("a.bank.test", 443), False),
        ("bank.test", ("evilbank.test", 443), False),
        ("bank.test:443", ("bank.test", 443), True),
        ("bank.test:443", ("bank.test", 8443), False),
        ("*.bank.test", ("a.b.bank.test", 443), True),
        ("*.bank.test", ("bank.test", 443), False),
        ("*.bank.test:1", ("a.bank.test", 1), True),
        ("*.bank.test:1", ("a.bank.test", 2), False),
        ("127.0.0.1:9", ("127.0.0.1", 9), True),
        ("[::1]:9", ("::1", 9), True),
        ("[::1]", ("::1", 9), True),
        ("[::1]:9", ("::2", 9), False),
        ("bank.test.", ("bank.test", 443), True),
        ("bank.test.:443", ("bank.test.", 443), True),
        ("*.Bücher.test", ("a.xn--bcher-kva.test", 443), True),
    ],
)
def test_a_rule_covers_a_place_or_not(rule: str, place: tuple[str, int], covered: bool) -> None:
    assert passes(parse_passing([rule]), *place) == covered


@pytest.mark.parametrize("text", ["", "https://h", "h/", "h:0", "h:99999", "h:x", "*", "*.", "a b", "*h", "u@h", "::1"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--no-tape wants a host"):
        parse_passing([text])


def test_a_rule_of_a_strange_tape_that_is_none_covers_nothing() -> None:
    assert not passes(["(", "*", ""], "h", 1)
