import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tapesamples import read, written

from tapeproxy.tapes.bodies import MAX_DEPTH
from tapeproxy.tapes.likes import LEAST_SHARED, WINDOW, Likes
from tapeproxy.tapes.records import Chunks, Head, Like, Note, Record, Request

HEAD = Head(started_at="2026-01-02T03:04:05Z", must=("like",), window=WINDOW)
OLD = "The tide comes in at noon. " * 100


def ask(body: bytes | Like, lane: str | None = None, url: bytes = b"https://x.example/chat") -> Request:
    return Request(t=1, method=b"POST", url=url, body=body, lane=lane)


def chat(*messages: str) -> bytes:
    return json.dumps({"messages": messages, "tools": ["a", "b"]}, ensure_ascii=False).encode()


def planned(*requests: Request, window: int = WINDOW) -> list[bytes | Like]:
    """How the bodies of these requests, one after the other, would be written; their records count from 1."""
    likes, out = Likes(window), list[bytes | Like]()
    for index, request in enumerate(requests, 1):
        plan = likes.plan(request)
        likes.keep(index, request, plan)
        out.append(plan.body)
    return out


def test_the_next_turn_is_what_is_new_around_the_ends() -> None:
    first, second = chat(OLD), chat(OLD, "And out?")
    head = len(b'{"messages": ["' + OLD.encode() + b'"')
    tail = len(b'], "tools": ["a", "b"]}')
    assert planned(ask(first), ask(second)) == [first, Like(1, head, b', "And out?"', tail)]


def test_the_same_again_is_nothing_new() -> None:
    assert planned(ask(chat(OLD)), ask(chat(OLD))) == [chat(OLD), Like(1, len(chat(OLD)), b"", 0)]


@pytest.mark.parametrize(
    ("earlier", "why"),
    [
        (ask(chat(OLD[: LEAST_SHARED // 2])), "so little is shared that gzip does it"),
        (ask(chat(OLD), url=b"https://y.example/chat"), "it went elsewhere"),
        (ask(chat("no " + OLD[3:] + " more")), "nothing is shared but what is around"),
    ],
)
def test_a_body_is_whole_where(earlier: Request, why: str) -> None:
    later = chat(OLD, "And out?")
    assert planned(earlier, ask(later))[1] == later, why


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_cuts_part_no_character(size: int) -> None:
    one, two = {1: ("a", "b"), 2: ("é", "è"), 3: ("→", "↓"), 4: ("😀", "😁")}[size]
    (_, like) = planned(ask(chat(OLD + one + OLD)), ask(chat(OLD + two + OLD)))
    assert isinstance(like, Like)
    assert like.mid.decode() == two
    # The same last byte, another first one.
    other = {1: "c", 2: "Ĩ", 3: "⇒", 4: "😀"}[size]
    (_, like) = planned(ask(chat(OLD + one + OLD)), ask(chat(OLD + other + OLD)))
    assert isinstance(like, Like)
    assert like.mid.decode() in ("", other)


def test_of_several_conversations_each_goes_on_from_its_own() -> None:
    bodies = [
        chat(OLD, *(f"{agent} says {n}. " * 20 for n in range(turn + 1))) for turn in range(4) for agent in range(5)
    ]
    written_as = planned(*map(ask, bodies))
    assert [body.of for body in written_as[5:] if isinstance(body, Like)] == [*range(1, 16)]


def test_the_own_lane_comes_first() -> None:
    requests = [ask(chat(OLD, "x"), "m/t1"), ask(chat(OLD, "x"), "m/t2"), ask(chat(OLD, "x", "y"), "m/t1")]
    third = planned(*requests)[2]
    assert isinstance(third, Like)
    assert third.of == 1


def test_a_better_body_of_another_lane_is_found() -> None:
    told = "told " * 100
    requests = [ask(chat(OLD, told), "m/t2"), ask(chat(OLD, "x " * 50), "m"), ask(chat(OLD, told, "y"), "m")]
    third = planned(*requests)[2]
    assert isinstance(third, Like)
    assert third.of == 1


def conversation(turns: int) -> list[Record]:
    return [ask(chat(OLD, *(f"turn {n}: " + "word " * 40 for n in range(turn)))) for turn in range(turns)]


def test_chains_stay_within_what_readers_follow_and_the_text_is_linear() -> None:
    requests = conversation(600)
    data = written(requests, HEAD, commits=False)
    entries, ending = read(data)
    assert [entry.record for entry in entries[1:-1]] == requests
    assert ending.canonical
    sizes = [entry.size for entry in entries[1:-1]]
    assert max(sizes) < 60 * 210
    assert sum(sizes[300:]) < 1.2 * sum(sizes[:300])
    plans = planned(*(request for request in requests if isinstance(request, Request)))
    depths = {0: 0}
    for index, body in enumerate(plans, 1):
        depths[index] = depths[body.of] + 1 if isinstance(body, Like) else 0
    assert 40 < max(depths.values()) <= MAX_DEPTH
    assert sum(not isinstance(body, Like) for body in plans) == 1


def test_only_bodies_in_the_window_are_referred_to() -> None:
    size = len(chat(OLD))
    other = ask(b"x" * size, url=b"https://y.example/")
    small = ask(b"", url=b"https://y.example/")
    assert isinstance(planned(ask(chat(OLD)), other, ask(chat(OLD)), window=2 * size)[2], Like)
    assert not isinstance(planned(ask(chat(OLD)), other, small, ask(chat(OLD)), window=2 * size)[3], Like)
    assert not isinstance(planned(ask(chat(OLD)), ask(chat(OLD)), window=size - 1)[1], Like)


def test_writer_and_reader_forget_the_same() -> None:
    head = Head(started_at="x", must=("like",), window=30_000)
    requests: list[Record] = []
    for turn in range(60):
        requests.append(ask(chat(OLD, *(f"turn {n}" for n in range(turn)))))
        requests.append(ask(b"y" * (turn * 997 % 20_000), url=b"https://y.example/%d" % (turn % 7)))
        requests.append(Chunks(t=1, of=len(requests), parts=((0, b"z" * 5000),)))
    entries, _ = read(written(requests, head))
    assert [entry.record for entry in entries[1:-1]] == requests


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(LEAST_SHARED, 6000))
def test_whatever_the_bodies_they_come_back(ends: list[bytes], size: int) -> None:
    requests = [ask(end + OLD.encode()[:size] + end[::-1]) for end in ends]
    entries, _ = read(written(requests, Head(started_at="x", must=("like",), window=9000)))
    assert [entry.record for entry in entries[1:-1]] == requests


def test_references_on_such_a_tape_are_its_encoders_own() -> None:
    with pytest.raises(ValueError, match="its encoder's own"):
        written([ask(chat(OLD)), ask(Like(1, 5, b"", 5))], HEAD)


def test_a_refused_record_leaves_no_trace() -> None:
    from tapeproxy.tapes.encoder import TapeEncoder

    encoder = TapeEncoder(HEAD)
    data = encoder.flush()
    bad = Request(t=2**64, method=b"POST", url=b"https://x.example/chat", body=chat(OLD))
    with pytest.raises(ValueError, match="64-bit"):
        encoder.add(bad)
    encoder.add(ask(chat(OLD, "a")))
    encoder.add(Note(t=0, what="x"))
    encoder.add(ask(chat(OLD, "a", "b")))
    data += encoder.seal(t=2, trace="", outcome="exit")
    assert [entry.record for entry in read(data)[0][1:-1:2]] == [ask(chat(OLD, "a")), ask(chat(OLD, "a", "b"))]


def test_a_body_that_goes_to_many_places_is_written_once() -> None:
    image = bytes(range(256)) * 1000
    sent = [ask(image, url=b"https://x.example/up?n=%d" % n, lane=f"m/{n}") for n in range(4)]
    other = ask(image[:50_000] + b"-" * 1000 + image[51_000:], url=b"https://y.example/")
    assert planned(*sent, other) == [
        image,
        *(Like(n, len(image)) for n in (1, 2, 3)),
        Like(4, 50_000, b"-" * 1000, 205_000),
    ]
    # Out of the window nothing is referred to, and nothing is kept.
    assert planned(sent[0], ask(b"x" * 250_000), sent[1], window=300_000)[2] == image


def test_references_expand_no_further_than_a_reader_follows() -> None:
    likes, request = Likes(WINDOW), ask(OLD.encode() * 4000)  # 11 MB
    for index in range(1, 121):
        plan = likes.plan(request, 40_000)
        if index < 48:
            assert bool(plan.depth) == (index > 1)
        likes.keep(index, request, plan)
    assert not likes.plan(request, 40_000).depth, "1 GiB is enough for 40 KB"
    assert likes.plan(request, 1 << 20).depth


@pytest.mark.parametrize("head", [Head(started_at="x", must=("like",)), Head(started_at="x", window=WINDOW)])
def test_without_a_window_or_its_announcement_bodies_are_whole(head: Head) -> None:
    requests = [ask(chat(OLD)), ask(chat(OLD))]
    assert all(entry.size > len(OLD) for entry in read(written(requests, head))[0][1:3])
