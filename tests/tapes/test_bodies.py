import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.bodies import MAX_DEPTH, BodyStore, forms_of
from tapeproxy.tapes.records import Chunks, End, Like, Record, Request


def test_a_body_can_be_whole_or_like_an_earlier_one() -> None:
    store = BodyStore(1000)
    assert store.keep(1, (b"hello world",)) == (b"hello world",)
    assert store.keep(2, (Like(1, whole=True),)) == (b"hello world",)
    assert store.keep(3, (Like(2, 6, b"there", 0),)) == (b"hello there",)
    assert store.keep(4, (b"> ", Like(3, 0, b"", 5))) == (b"> ", b"there")
    # The body of a chunks record is its parts joined.
    assert store.keep(5, (Like(4, 1, b"", 6),)) == (b"> there",)
    assert store.keep(6, (Like(4, whole=True),)) == (b"> there",)


@pytest.mark.parametrize("of", [0, 3, 4, 2**62])
def test_only_an_earlier_record_with_a_body_can_be_referred_to(of: int) -> None:
    store = BodyStore(1000)
    store.keep(1, (b"a",))
    with pytest.raises(ValueError, match=f"record {of}, which is not an earlier record with a body"):
        store.keep(3, (Like(of),))


def test_references_on_references_end_somewhere() -> None:
    store = BodyStore(1 << 20)
    store.keep(0, (b"a",))
    for index in range(MAX_DEPTH):
        store.keep(index + 1, (Like(index, 1, b"", 0),))
    with pytest.raises(ValueError, match="more than 64 records"):
        store.keep(MAX_DEPTH + 1, (Like(MAX_DEPTH, 1),))
    # A whole body starts over.
    store.keep(MAX_DEPTH + 1, (b"b",))
    assert store.keep(MAX_DEPTH + 2, (Like(MAX_DEPTH + 1, 1),)) == (b"b",)


def test_what_references_expand_to_is_limited_in_all() -> None:
    store = BodyStore(10_000)
    store.keep(0, (b"x" * 1000,))
    for index in range(1, 11):
        store.keep(index, (Like(index - 1, 1000),))
    with pytest.raises(ValueError, match="expand to more than 10000 bytes"):
        store.keep(11, (Like(0, 1),))


def test_whole_references_take_no_memory_and_count() -> None:
    store = BodyStore(10_000)
    store.keep(0, (b"x" * 1000,))
    (first,) = store.keep(1, (Like(0, whole=True),))
    for index in range(2, 11):
        assert store.keep(index, (Like(0, whole=True),))[0] is first
    with pytest.raises(ValueError, match="expand to more than 10000 bytes"):  # whoever looks at them joins them
        store.keep(11, (Like(0, whole=True),))


def test_joining_a_records_parts_counts_and_is_done_once() -> None:
    store = BodyStore(6500)
    store.keep(0, (b"x" * 1000, b"y" * 1000))
    (first,) = store.keep(1, (Like(0, whole=True),))
    assert store.keep(2, (Like(0, whole=True),))[0] is first
    store.keep(3, (b"x" * 1000, b"y" * 1000))
    with pytest.raises(ValueError, match="expand to more than 6500"):
        store.keep(4, (Like(3, whole=True),))


def test_without_a_window_no_more_is_kept_than_what_is_new() -> None:
    store, base, new = BodyStore(1 << 30), b"x" * 1_000_000, ()
    tracemalloc.start()
    try:
        store.keep(0, (base,))
        for index in range(1, MAX_DEPTH):
            new = store.keep(index, (Like(index - 1, 500_000, b"new", 500_000 + 3 * (index - 1)),))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert new == (b"x" * 500_000 + b"new" * (MAX_DEPTH - 1) + b"x" * 500_000,)
    assert held < 3_000_000, "the last one, and what is new in each"


def test_the_references_of_one_record_have_a_limit() -> None:
    store = BodyStore(1 << 30, record=200_000)
    store.keep(0, (b"x" * 1000,))
    parts = store.keep(1, (Like(0, whole=True),) * 150, request=False)
    with pytest.raises(ValueError, match="of one record expand to more than 200000 bytes"):
        store.keep(2, (Like(0, whole=True),) * 201, request=False)
    assert store.keep(2, (Like(1, whole=True),)) == (b"".join(parts),)
    store.keep(3, (Like(0, whole=True),) * 150, request=False)
    with pytest.raises(ValueError, match="more than 200000 bytes are joined from references"):
        store.keep(4, (Like(3, whole=True),))


@pytest.mark.parametrize(("like", "form"), [(Like(0), "like"), (Like(0, whole=True), "ref")])
def test_forms_that_were_not_announced_are_refused(like: Like, form: str) -> None:
    for forms in ({"like", "ref"} - {form}, set[str]()):
        store = BodyStore(1000, forms)
        assert store.keep(0, (b"a",)) == (b"a",)
        with pytest.raises(ValueError, match=f"its form is '{form}', which the head's must does not announce"):
            store.keep(1, (like,))
    store = BodyStore(1000, {form})
    store.keep(0, (b"a",))
    store.keep(1, (like,))


def test_in_a_window_only_the_last_request_bodies_can_be_referred_to() -> None:
    store = BodyStore(1 << 20, window=5000)
    store.keep(1, (b"a" * 2000,))
    store.keep(2, (b"b" * 9000,), request=False)
    store.keep(3, (Like(1, 2000, b"c" * 1000),))
    assert store.keep(4, (Like(1, whole=True),), request=False) == (b"a" * 2000,)
    for of in (2, 4):
        with pytest.raises(ValueError, match=f"record {of}, which is not a request in the head's window"):
            store.keep(5, (Like(of, 1),))
    store.keep(5, (b"",))  # counts 1024
    with pytest.raises(ValueError, match="record 1, which is not a request"):
        store.keep(6, (Like(1, 1),))
    assert store.keep(6, (Like(3, 1),)) == (b"a",)
    store.keep(7, (b"d" * 5001,))
    for of in (3, 5, 7):
        with pytest.raises(ValueError, match=f"record {of}, which is not a request"):
            store.keep(8, (Like(of),))


REQUEST = Request(t=0, method=b"GET", url=b"u")


@pytest.mark.parametrize(
    ("record", "forms"),
    [
        (REQUEST, set()),
        (Request(t=0, method=b"GET", url=b"u", body=Like(0)), {"like"}),
        (Request(t=0, method=b"GET", url=b"u", body=Like(0, whole=True)), {"ref"}),
        (Chunks(t=0, of=0, parts=((0, b""), (None, b""))), set()),
        (Chunks(t=0, of=0, parts=((0, Like(0)), (0, b""), (0, Like(0, whole=True)))), {"like", "ref"}),
        (End(t=0, of=0, how="reset"), set()),
    ],
)
def test_forms_of_a_record(record: Record, forms: set[str]) -> None:
    assert forms_of(record) == forms


@given(st.binary(), st.binary(), st.binary(), st.binary())
def test_a_body_around_new_bytes_comes_back(head: bytes, old: bytes, new: bytes, tail: bytes) -> None:
    store = BodyStore(1 << 20)
    store.keep(0, (head + old + tail,))
    assert store.keep(1, (Like(0, len(head), new, len(tail)),)) == (head + new + tail,)
