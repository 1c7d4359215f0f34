"""Which notes of the shims are troubles, and how often each is told."""

import pytest

from tapeproxy.tapes.troubles import Troubles, pid_of, sentence


def note(what: str, text: str = "x", pid: object = None) -> dict[str, object]:
    return {"k": "note", "what": what, "text": text, "data": None if pid is None else {"pid": pid}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (note("hook-failed", "httpx: no"), "the shim could not take hold of a library: httpx: no"),
        (note("lost", ""), "a shim could not write all that it had to tell"),
        (note("clock-aside"), None),
        ({"k": "clock", "what": "lost"}, None),
        ({"k": "note", "what": ["lost"]}, None),
        ({"k": "note", "what": "lost", "text": 3}, "a shim could not write all that it had to tell: 3"),
    ],
)
def test_a_sentence(line: dict[str, object], said: str | None) -> None:
    assert sentence(line) == said


def test_each_is_told_once_and_counted() -> None:
    troubles = Troubles()
    told = [troubles.take(note("hook-failed", text)) is not None for text in "aab"]
    assert told == [True, False, True]
    assert list(troubles.seen.values()) == [2, 1]


def test_a_python_is_known_by_its_process() -> None:
    troubles = Troubles()
    lines = [note("python-without-shim", text, pid) for text, pid in (("a", 7), ("b", 7), ("a", 8), ("c", "7"))]
    assert [troubles.take(line) is not None for line in lines] == [True, False, False, True]
    assert troubles.seen["a Python ran without the shim, so its clock and its random numbers are its own: a"] == 2
    assert pid_of({"data": {"pid": "7"}}) is None
