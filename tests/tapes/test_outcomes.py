import pytest

from tapeproxy.tapes.outcomes import outcome
from tapeproxy.tapes.records import Exit, Seal


@pytest.mark.parametrize(
    ("word", "exit", "said"),
    [
        ("exited", Exit(t=1, code=0), "exit 0"),
        ("exited", Exit(t=1, code=3), "exit 3"),
        ("killed", Exit(t=1, code=None, signal="SIGKILL"), "killed by SIGKILL"),
        ("timeout", Exit(t=1, code=None, signal="SIGTERM"), "timeout"),
        ("user", Exit(t=1, code=7), "Ctrl-C, exit 7"),
        ("user", Exit(t=1, code=0), "Ctrl-C, exit 0"),
        ("user", Exit(t=1, code=130), "Ctrl-C"),
        ("user", Exit(t=1, code=None, signal="SIGINT"), "Ctrl-C"),
        ("user", Exit(t=1, code=None, signal="SIGTERM"), "killed by SIGTERM"),
        ("user", Exit(t=1, code=143), "exit 143"),
        ("user", None, "user"),
        ("stopped", None, "stopped"),
        ("exited", None, "exited"),
        (None, Exit(t=1, code=0), "interrupted"),
    ],
)
def test_how_a_run_ended(word: str | None, exit: Exit | None, said: str) -> None:
    seal = None if word is None else Seal(t=2, records=1, trace="", outcome=word)
    assert outcome(seal, exit) == said
