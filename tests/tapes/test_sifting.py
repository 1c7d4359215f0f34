"""What sifting leaves out is never the same; what may be the same is found, however it is written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.identity import identify
from tapeproxy.tapes.machine import Marks
from tapeproxy.tapes.matching import Ask, Hit, Index, Miss
from tapeproxy.tapes.reading import VERSION, Reading
from tapeproxy.tapes.records import End, Headers, Request, Response
from tapeproxy.tapes.rules import Rules, parse_rule
from tapeproxy.tapes.sifting import may_say, telling_runs
from tapeproxy.tapes.tokens import make_token

JSON = ((b"content-type", b"application/json"),)
READING = Reading(VERSION)
TOKEN = make_token(bytes(32), b"a secret that is long enough").decode()
TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["/home/ada/x", f"Bearer {TOKEN}, all the rest of it", "at 127.0.0.1:40123 now", "<home> is <home>"]
    ),
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


def body_of(text: bytes, headers: Headers = JSON, reading: Reading = READING) -> Any:
    return identify(b"POST", b"https://h/a", headers, text, reading=reading).body


@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.booleans())
def test_the_same_in_other_bytes_is_never_left_out(value: Any, plain: bool, indent: int | None, marked: bool) -> None:
    marks = Marks(((b"/home/ada", b"<home>"),)) if marked else Marks()
    reading = Reading(VERSION, marks=marks)
    one = json.dumps(value, ensure_ascii=plain).encode("utf-8", "replace")
    other = json.dumps(value, ensure_ascii=not plain, indent=indent, sort_keys=True).encode("utf-8", "replace")
    slashed = other.replace(b"/", b"\\/")
    asked = body_of(one, reading=reading)
    bodies = [text for text in (one, other, slashed) if body_of(text, reading=reading).canonical == asked.canonical]
    for also in ([], [b"{}"] * 9):
        runs = telling_runs(asked, [*bodies, *also])
        assert all(may_say(text, JSON, runs) for text in bodies)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"a":"the \\u0074ext that tells"}', ()),
        (b"\x1f\x8bwho knows", ()),
        (b"(\xb5/\xfd", ()),
        (b"{}", ((b"Content-Encoding", b"br"),)),
        (b' {"a":"the text that tells"}', ()),
    ],
)
def test_what_cannot_be_seen_into_may_say_anything(body: bytes, headers: Headers) -> None:
    assert may_say(body, headers, [b"the text that tells"])
    assert not may_say(b'{"a":"another"}', (), [b"the text that tells"])


def test_the_runs_that_tell_most_are_those_that_few_have() -> None:
    shared, own = "You are a helpful assistant, and a long prompt.", "Step 17."
    bodies = [json.dumps([shared, f"Step {n}."]).encode() for n in range(99)]
    assert telling_runs(body_of(bodies[17]), bodies)[0] == own.encode()
    assert telling_runs(body_of(b"--plain--", ((b"content-type", b"text/plain"),)), bodies) == ()
    assert telling_runs(body_of(f'["a {TOKEN} b"]'.encode()), bodies) == (), "what is beside a mark must be long"


def test_with_rules_or_of_old_nothing_is_left_out() -> None:
    assert READING.keeps_texts
    assert not Reading(VERSION, Rules((parse_rule("ignore-json", "$.a"),))).keeps_texts
    assert not Reading(1).keeps_texts


def test_a_long_tape_is_sifted_and_gives_everybody_their_own_answer() -> None:
    def text(n: int, **how: Any) -> bytes:
        return json.dumps({"who": f"number {n % 900}", "a": [n % 900, 0.5], "b": "é"}, **how).encode()

    def exchange(n: int) -> Exchange:
        request = Request(t=n, method=b"POST", url=b"https://h/a", headers=JSON, body=text(n))
        return Exchange(n, n, request, Response(t=n, of=n, status=200), end=End(t=n, of=n, how="complete"))

    def ask(n: int, **how: Any) -> Ask:
        return Ask(b"POST", b"https://h/a", JSON, text(n, **how), reading=READING)

    index = Index([exchange(n) for n in range(1, 1801)], reading=READING)
    other: dict[str, Any] = {"ensure_ascii": False, "indent": 1, "sort_keys": True}
    for n in (3, 899, 450, 3, 451, 1, 2, 5, 6, 7, 8, 9):
        found = index.take(ask(n, **other))
        assert isinstance(found, Hit) and found.exchange.request.body == text(n)
    used = index.take(ask(3, **other))
    assert isinstance(used, Miss) and used.used == 2
    never = index.take(Ask(b"POST", b"https://h/a", JSON, b'{"who":"nobody"}', reading=READING))
    assert isinstance(never, Miss) and never.used == 0
