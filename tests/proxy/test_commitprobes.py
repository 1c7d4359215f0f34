"""What a replay of a commit said, found in its words. The probes themselves are tested in cli/, with repositories."""

import pytest

from tapeproxy.proxy.commitprobes import finding

VIOLATION = """tapeproxy: guard: network namespace
noise of the agent
tapeproxy: violation: this request is not on the tape
  request: GET http://x/
    body: asked
tapeproxy: drift: something else
  request: GET http://y/
Traceback (most recent call last):
"""


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (VIOLATION, "violation: this request is not on the tape\n  request: GET http://x/\n    body: asked"),
        ("tapeproxy: drift: it came another way\nmore", "drift: it came another way"),
        ("tapeproxy: guard: x\n  File\nValueError: no\n\ntapeproxy: replayed x\n", "ValueError: no"),
        ("tapeproxy: guard: x\n", ""),
        ("", ""),
    ],
)
def test_the_first_finding_counts_else_the_last_words(stderr: str, said: str) -> None:
    assert finding(stderr) == said
