"""Command lines of Pythons that are kept from the shim."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("python -I x.py", "-I"),
        ("/usr/bin/python3.12 -sE -c pass", "-sE"),
        ("python3 -X dev -W ignore -S", "-S"),
        ("python3 -Xdev -Wignore -I", "-I"),
        ("python3 --check-hash-based-pycs always -E x", "-E"),
        ("pypy3 -E", "-E"),
        ("python x.py -I", ""),
        ("python -c pass -I", ""),
        ("python -m mod -I", ""),
        ("python -Bc pass -I", ""),
        ("python -X -I x.py", ""),
        ("python - -I", ""),
        ("python -bb x.py", ""),
        ("grep -I x", ""),
        ("", ""),
    ],
)
def test_options(words: str, option: str, inject: Callable[[str], Any]) -> None:
    assert inject("pythons").isolating_option(words.split()) == option


def test_the_program_counts_and_not_what_it_is_called(inject: Callable[[str], Any]) -> None:
    assert inject("pythons").isolating_option(["agent", "-I"], ["/usr/bin/python3"]) == "-I"
