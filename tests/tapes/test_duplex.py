"""Calls in which both sides speak at once: which part of an answer is due, and where a call leaves the tape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.answers import Part
from tapeproxy.tapes.duplex import Duplex, overlaps, split_messages
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.records import End, Request, Response
from tapeproxy.tapes.redaction import Redactor

REDACTOR = Redactor(bytes(32), ["a-very-secret-value"])


def framed(*messages: bytes) -> bytes:
    return b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)


def chat(*uploads: tuple[int, bytes], began: int = 100, answered: int = 115) -> Exchange:
    """A call with pieces of its request at these times."""
    request = Request(t=began, method=b"POST", url=b"https://a/s/M", headers=((b"content-type", b"application/grpc"),))
    response = Response(t=answered, of=1, status=200)
    return Exchange(
        1, 1, request, response, [], [Chunk(t, data) for t, data in uploads], End(t=200, of=1, how="complete")
    )


def duplex(exchange: Exchange) -> Duplex:
    return Duplex(exchange, lambda message: REDACTOR.content(message))


@given(st.lists(st.binary(max_size=40), max_size=5), st.data())
def test_messages_come_out_however_they_are_cut(messages: list[bytes], data: st.DataObject) -> None:
    whole = framed(*messages)
    cut = data.draw(st.integers(0, len(whole)))
    first, rest = split_messages(whole[:cut])
    second, left = split_messages(rest + whole[cut:])
    assert (first + second, left) == ([framed(message) for message in messages], b"")


def test_a_call_that_is_the_taped_one_byte_by_byte() -> None:
    said = framed(b"one", b"", b"three")
    call = duplex(chat((110, said)))
    assert [call.take(said[at : at + 1]) for at in range(len(said))] == [None] * len(said)
    assert call.finish() is None


WRONG = {
    "another message": ((b"one", b"2"), ("message 2", "'two'", "'2'")),
    "one more": ((b"one", b"two", b"three"), ("message 3", None, "'three'")),
    "one less": ((b"one",), ("message 2", "'two'", None)),
    "another length": ((b"one", b"two!"), ("message 2", "'two'", "'two!'")),
}


@pytest.mark.parametrize("name", WRONG)
def test_where_a_call_leaves_the_tape(name: str) -> None:
    messages, expected = WRONG[name]
    call = duplex(chat((110, framed(b"one", b"two"))))
    found = call.take(framed(*messages)) or call.finish()
    assert found is not None
    assert (found.where, found.taped, found.asked) == expected


def test_half_a_message_at_the_end_is_a_difference() -> None:
    call = duplex(chat((110, framed(b"one"))))
    assert call.take(framed(b"one") + b"\0\0") is None
    assert call.finish() is not None


def test_a_secret_that_the_tape_does_not_hold_is_no_difference() -> None:
    on_tape = REDACTOR.content(framed(b"key a-very-secret-value."))
    assert b"secret" not in on_tape
    assert duplex(chat((110, on_tape))).take(framed(b"key a-very-secret-value.")) is None


def test_a_part_is_due_when_all_has_come_that_came_before_it() -> None:
    one, two = framed(b"one"), framed(b"two")
    call = duplex(chat((110, one), (130, two)))
    parts = [Part(due, b"") for due in (5, 15, 25, 35)]  # after the call began at 100
    assert [call.is_due(part) for part in parts] == [True, False, False, False]
    call.take(one[:-1])
    assert [call.is_due(part) for part in parts] == [True, False, False, False]
    call.take(one[-1:])
    assert [call.is_due(part) for part in parts] == [True, True, True, False]
    call.take(two)
    assert [call.is_due(part) for part in parts] == [True] * 4


def test_which_calls_overlap() -> None:
    assert overlaps(chat((110, b"x"), (120, b"y")))
    assert not overlaps(chat((110, b"x")))
    assert not overlaps(chat())
    assert not overlaps(Exchange(1, 1, chat().request, None, uploads=[Chunk(1, b"x")]))
