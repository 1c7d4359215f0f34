"""What Python programs died of."""

import subprocess
import sys

import pytest

from tapeproxy.tapes.tracebacks import death

CHAINED = """
def inner():
    {}["x"]
def main():
    try:
        inner()
    except KeyError as error:
        raise ValueError("a\\nTraceback: b") from error
main()
"""


def stderr(program: str) -> bytes:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False).stderr


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import json\nprint(1)\njson.loads('x')", "json.decoder.JSONDecodeError at "),
        ("def f():\n    assert 0\nf()", "AssertionError at <string>:2 in f"),
        (CHAINED, "ValueError at <string>:8 in main"),
        ("import sys; sys.exit('no')", None),
        ("import sys; sys.exit(3)", None),
        ("", None),
    ],
)
def test_real_programs(program: str, said: str | None) -> None:
    found = death(stderr(program))
    assert found == said or (found or "").startswith(said or "?")


def test_the_last_one_counts_and_damage_is_nothing() -> None:
    one = b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nA.B: gone\n'
    assert death(b"log\n" + one + one.replace(b"A.B", b"C").replace(b"line 1", b"line 7")) == "C at a.py:7 in f"
    for end in range(len(one)):
        assert death(one[:end]) in (None, "A.B at a.py:1 in f")
    assert death(b"Traceback (most recent call last):\nTypeError: no frames\n") is None
