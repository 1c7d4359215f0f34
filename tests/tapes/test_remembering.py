"""Finding in texts that grow: the same is found as without a memory, and hardly anything is looked through twice."""

import pytest

from tapeproxy.tapes.remembering import Memory
from tapeproxy.tapes.spans import Span

_SECRET = b"SECRET"


def find(text: bytes) -> list[Span]:
    """Every secret in `text`."""
    spans, at = list[Span](), text.find(_SECRET)
    while at >= 0:
        spans.append(Span(at, at + len(_SECRET), _SECRET))
        at = text.find(_SECRET, at + 1)
    return spans


class Finding:
    """Finds, and counts the bytes that it was asked about."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, text: bytes) -> list[Span]:
        self.asked += len(text)
        return find(text)


def conversation(number: int, turns: int) -> list[bytes]:
    """A text as it grows: the beginning is its own, and a secret stands in every turn."""
    begun = b"%06d " % number + b"system prompt " * 2000
    return [begun + b"".join(b"turn %d SECRET " % turn + b"x" * 3000 for turn in range(n + 1)) for n in range(turns)]


@pytest.mark.parametrize("side_by_side", [1, 3, 40])
def test_of_conversations_side_by_side_only_what_is_new_is_looked_through(side_by_side: int) -> None:
    memory, finding, plain = Memory(), Finding(), 0
    for texts in zip(*(conversation(number, 12) for number in range(side_by_side)), strict=True):
        for text in texts:
            assert memory.spans(text, finding) == find(text)
            plain += len(text)
    assert finding.asked < plain * 0.6


def test_the_memory_is_bounded_and_what_fell_out_of_it_is_looked_through_anew() -> None:
    memory, finding = Memory(), Finding()
    texts = [b"%06d" % number + bytes(1 << 20) + _SECRET for number in range(12)]
    for text in texts * 2:
        assert memory.spans(text, finding) == find(text)
    assert finding.asked == 2 * sum(map(len, texts))
    asked = finding.asked
    assert memory.spans(texts[-1], finding) == find(texts[-1])
    assert finding.asked - asked < len(texts[-1]) / 10


def test_a_conversation_that_takes_another_turn_is_another() -> None:
    memory = Memory()
    one = conversation(1, 6)
    for text in (*one, one[3] + b"SECRET", one[2] + b"SECRE", one[5], b"", one[0]):
        assert memory.spans(text, find) == find(text)
