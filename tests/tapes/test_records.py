from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tapeproxy.tapes.bodies import BodyStore
from tapeproxy.tapes.parsing import parse_body, parse_record
from tapeproxy.tapes.records import (
    Chunks,
    Clock,
    Done,
    Edge,
    End,
    Env,
    Exit,
    Head,
    Lane,
    LaneEnd,
    Like,
    Note,
    Record,
    Request,
    Response,
    Seal,
    Unknown,
    Value,
    dump_body,
    dump_text,
)

natural = st.integers(0, 2**63 - 1)
# Everything Unicode, and what surrogateescape makes of bytes that are not UTF-8 (PEP 383).
text = st.text(st.characters(exclude_categories=("Cs",)))
native = st.binary().map(lambda data: data.decode(errors="surrogateescape")) | text
octets = st.binary(max_size=40)
headers = st.lists(st.tuples(octets, octets), max_size=3).map(tuple)
plain = st.binary() | st.sampled_from([b"\0", b"\xff", b"\xed\xa0\x80", "\u2028\u0085\U0010ffff".encode(), b"{}"])
body = plain | st.builds(Like, natural, natural, plain, natural) | st.builds(Like, natural, whole=st.just(True))
json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(text, json, max_size=3)
# Names no version uses: a later version's fields.
extra = st.dictionaries(text.map("x-".__add__), json, max_size=2)


def optional(strategy: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.none() | strategy


RECORDS: dict[str, SearchStrategy[Record]] = {
    "head": st.builds(
        Head,
        version=st.just(1),
        must=st.lists(text, max_size=2).map(tuple),
        by=text,
        started_at=text,
        argv=st.lists(native, max_size=3).map(tuple),
        cwd=native,
        host=text,
        platform=text,
        python=text,
        tz=optional(native),
        lang=optional(native),
        secrets=st.lists(native, max_size=2).map(tuple),
        seed=optional(text),
        origin=optional(st.integers(-(2**63), 2**63)),
        hash_seed=optional(text),
        tmpdir=optional(native),
        threads=st.booleans(),
        rules=objects,
        parent=optional(objects),
        branch=optional(objects),
        edit=optional(objects),
        extra=extra,
    ),
    "request": st.builds(
        Request,
        t=natural,
        method=octets,
        url=octets,
        http=text,
        alpn=optional(text),
        headers=headers,
        body=body,
        lane=optional(text),
        n=optional(natural),
        reads=optional(natural),
        inside=st.booleans(),
        extra=extra,
    ),
    "response": st.builds(
        Response,
        t=natural,
        of=natural,
        status=natural,
        reason=octets,
        http=text,
        headers=headers,
        framing=st.sampled_from(["length", "chunked", "close", "none"]),
        informational=st.lists(st.tuples(natural, headers), max_size=2).map(tuple),
        extra=extra,
    ),
    "chunks": st.builds(
        Chunks,
        t=natural,
        of=natural,
        to=st.sampled_from(["client", "server"]),
        parts=st.lists(st.tuples(optional(natural), body), max_size=3).map(tuple),
        extra=extra,
    ),
    "end": st.builds(
        End,
        t=natural,
        of=natural,
        how=st.sampled_from(["complete", "client-gone", "upstream-cut", "reset", "connect-error"]),
        error=optional(native),
        trailers=headers,
        extra=extra,
    ),
    "note": st.builds(Note, t=natural, what=text, text=native, data=objects, extra=extra),
    "lane": st.builds(Lane, t=natural, id=text, what=text, name=optional(native), extra=extra),
    "clock": st.builds(Clock, t=natural, lane=text, n=natural, ns=st.integers(-(2**63), 2**63), extra=extra),
    "done": st.builds(Done, t=natural, lane=text, parent=text, sleeps=natural, extra=extra),
    "lane-end": st.builds(LaneEnd, t=natural, lane=text, reads=natural, extra=extra),
    "env": st.builds(Env, t=natural, name=native, digest=optional(text), extra=extra),
    "value": st.builds(
        Value,
        t=natural,
        lane=text,
        n=natural,
        what=text,
        name=native,
        where=native,
        error=optional(text),
        length=optional(natural),
        digest=optional(text),
        content=optional(st.binary()),
        data=objects,
        extra=extra,
    ),
    "edge": st.builds(
        Edge,
        t=natural,
        what=text,
        on=native,
        lane=text,
        n=natural,
        asked=st.none() | natural,
        at=st.none() | st.tuples(natural, natural),
        out=st.booleans(),
        extra=extra,
    ),
    "exit": st.builds(
        Exit,
        t=natural,
        code=optional(st.integers(-(2**31), 2**31)),
        signal=optional(text),
        duration=natural,
        extra=extra,
    ),
    "seal": st.builds(
        Seal, t=natural, records=natural, trace=text, outcome=text, lanes=objects, file=text, extra=extra
    ),
    "later": st.builds(Unknown, kind=text.map("x-".__add__), extra=extra),
}


@pytest.mark.parametrize("kind", RECORDS)
@given(data=st.data())
def test_a_record_survives_json(kind: str, data: st.DataObject) -> None:
    record = data.draw(RECORDS[kind])
    line = orjson.dumps({"k": record.kind, "i": 3} | record.to_json() | {"h": "0"})
    assert b"\n" not in line
    assert parse_record(orjson.loads(line)) == record


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", ""),
        (b"hi", "hi"),
        ("\u2028é".encode(), "\u2028é"),
        (b"\x01\x7f", "\x01\x7f"),
        (b"\xff", {"b64": "/w=="}),
        (b"\xed\xa0\x80", {"b64": "7aCA"}),  # a surrogate in UTF-8 is not UTF-8
        (b"a\0", {"b64": "YQA="}),
        (Like(3, whole=True), {"ref": 3}),
        (Like(3, 1, b"m", 2), {"like": 3, "head": 1, "mid": "m", "tail": 2}),
        (Like(3, 1, b"\xff"), {"like": 3, "head": 1, "mid": {"b64": "/w=="}, "tail": 0}),
    ],
)
def test_the_json_form_of_a_body(body: bytes | Like, expected: object) -> None:
    assert dump_body(body) == expected
    assert parse_body(expected) == body


def test_text_that_stands_for_no_bytes_is_refused() -> None:
    assert dump_text("\udcff") == {"b64": "/w=="}
    with pytest.raises(ValueError, match="surrogates"):
        dump_text("\ud800")


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        (Like(0, whole=True), b"abcdef"),
        (Like(0, 2, b"-", 3), b"ab-def"),
        (Like(0, 0, b"-", 0), b"-"),
        (Like(0, 6, b"", 0), b"abcdef"),
        (Like(0, 0, b"", 6), b"abcdef"),
        (Like(0, 3, b"", 3), b"abcdef"),
    ],
)
def test_like_takes_both_ends(like: Like, expected: bytes) -> None:
    assert like.size(6) == len(expected)
    for window in (None, 10_000):
        store = BodyStore(100, window=window)
        store.keep(0, (b"abcdef",))
        assert store.keep(1, (like,)) == (expected,)


@pytest.mark.parametrize("like", [Like(0, 7), Like(0, 0, b"", 7), Like(0, 4, b"", 3)])
def test_like_may_not_cut_outside_or_twice(like: Like) -> None:
    with pytest.raises(ValueError, match="from a body of 6"):
        like.size(6)
