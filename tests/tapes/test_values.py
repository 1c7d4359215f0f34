"""Values of a tape and of a replay: which is compared with which, and what counts as different."""

from typing import Any

import pytest

from tapeproxy.tapes.records import Request, Value
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.values import TapedValues, differences, joined, programs, stream_differences, with_contents


def value(what: str = "file", name: str = "a", n: int = 0, lane: str = "m", **fields: Any) -> Value:
    content = fields.get("content")
    known = {} if content is None else {"length": len(content), "digest": content.hex()[:32]}
    return Value(t=0, lane=lane, n=n, what=what, name=name, **(known | fields))


def stat(asked: str, mode: int = 0o100644, size: int = 1, mtime: int = 1) -> Value:
    return value("stat", data={"asked": asked, "mode": mode, "size": size, "mtime": mtime})


ONE, TWO = (Redactor(bytes([key]) * 32).secret(b"secret value of the file") for key in (1, 2))


@pytest.mark.parametrize(
    ("taped", "now", "where"),
    [
        (value(content=b"x\ny"), value(content=b"x\ny"), []),
        (value(content=b"x\ny\nz"), value(content=b"x\nY"), ["line 2", "line 3"]),
        (value(content=b"k " + ONE), value(content=b"k " + TWO), []),
        (value(content=b"k " + ONE), value(content=b"k plain"), ["line 1"]),
        (value(error="ENOENT"), value(content=b""), ["outcome"]),
        (value(error="ENOENT"), value(error="EACCES"), ["outcome"]),
        (value(error="ENOENT"), value(error="ENOENT"), []),
        (value(length=9, digest="a"), value(length=9, digest="b"), ["content"]),
        (value(length=9, digest="a"), value(length=9, digest="a"), []),
        (value("listing", content=b'["a","b"]'), value("listing", content=b'["b","a"]'), ["line 1", "line 2"]),
        (value("scan", content=b'[["a","f",1,2,3]]'), value("scan", content=b'[["a","f",1,9,9]]'), []),
        (value("scan", content=b'[["a","f",1,2,3]]'), value("scan", content=b'[["a","d",1,2,3]]'), ["line 1"]),
        (stat("type"), stat("type", size=7, mtime=7), []),
        (stat("type"), stat("type", mode=0o040755), ["type"]),
        (stat("size"), stat("size", size=7, mtime=7), ["size"]),
        (stat("all"), stat("all", size=7, mtime=7), ["size"]),
        (stat("all"), stat("all", mtime=7), []),
        (stat("mtime"), stat("mtime", size=7, mtime=7), ["mtime"]),
        (
            value("exit", data={"of": 1, "returncode": 0}),
            value("exit", data={"of": 2, "returncode": 1}),
            ["returncode"],
        ),
        (value("socket", data={"peer": 1}), value("socket", data={"peer": 2}), []),
        (value("socket", error="ECONNREFUSED"), value("socket"), ["outcome"]),
        (value("lookup", content=b'["192.0.2.1"]'), value("lookup", content=b'["192.0.2.2"]'), ["line 1"]),
        (value("pid", data={"pid": 1}), value("pid", data={"pid": 2}), []),
    ],
)
def test_what_differs(taped: Value, now: Value, where: list[str]) -> None:
    assert [difference.where for difference in differences(taped, now)] == where


def test_reads_of_a_name_are_compared_in_order_and_further_ones_with_the_last() -> None:
    first, second, other = value(content=b"1"), value(n=1, content=b"2"), value(n=2, name="b", content=b"3")
    taped = TapedValues([first, second, other])
    assert [taped.take(value()) for _ in range(3)] == [first, second, second]
    assert taped.take(value(name="b")) == other
    assert taped.take(value(lane="m/t0")) is None
    assert taped.numbered("m", 2) == other
    once = TapedValues([value("process")])
    assert [once.take(value("process")) is None for _ in range(2)] == [False, True]


def test_a_content_stands_for_all_of_its_digest() -> None:
    whole = value(content=b"abc")
    again = value(n=1, length=3, digest=whole.digest)
    long = value(n=2, length=300_000, digest=whole.digest)
    assert [v.content for _, v in with_contents(enumerate([whole, again, long]))] == [b"abc", b"abc", None]


def pipe(n: int, content: bytes | None, of: int = 0, name: str = "stdout") -> Value:
    return value("pipe", name, n, content=content, data={"of": of})


def test_pieces_are_joined_and_compared_whatever_their_boundaries() -> None:
    assert joined([pipe(1, b"ab"), pipe(2, b"c"), pipe(3, b"")]) == (b"abc", True)
    assert joined([pipe(1, b"ab"), pipe(2, None)]) is None
    whole = [pipe(1, b"abc\n"), pipe(2, b"d"), pipe(3, b"")]
    assert stream_differences(whole, [pipe(1, b"a"), pipe(2, b"bc\nd"), pipe(3, b"")]) == ()
    assert stream_differences(whole, [pipe(1, b"abc\n")]) == ()  # it stopped reading there
    assert [d.where for d in stream_differences(whole, [pipe(1, b"abc\n"), pipe(2, b"")])] == ["line 2"]
    assert [d.where for d in stream_differences(whole, [pipe(1, b"abX")])] == ["line 1"]


def request(lane: str | None, *, inside: bool = False) -> Request:
    return Request(t=0, method=b"GET", url=b"http://x/", lane=lane, inside=inside)


def started(n: int, lane: str) -> Value:
    return value("process", "p", n, data={"lane": lane})


@pytest.mark.parametrize(
    ("asked", "live"),
    [
        ((2, request("m")), False),
        ((2, request(None)), False),
        ((2, request("m/p0")), True),
        ((2, request("m/p0/t1")), True),
        ((2, request("m/p01")), False),
        ((3, request("m", inside=True)), True),
        ((9, request("m", inside=True)), False),
    ],
)
def test_a_program_is_run_where_it_asked_or_may_have_been_asked(asked: tuple[int, Request], live: bool) -> None:
    values = [
        (1, started(0, "m/p0")),
        (4, pipe(1, b"out")),
        (8, value("exit", "p", 2, data={"of": 0, "returncode": 3})),
    ]
    (program,) = programs(values, [asked])
    assert program.live == live
    assert program.output("stdout") == (b"out", False)
    assert program.exit is not None


def test_a_program_is_run_where_it_may_have_been_connected_to() -> None:
    own, other = value("socket", "127.0.0.1:1", 5, data={"within": True}), value("socket", "192.0.2.1:1", 6)
    for between, live in ((own, True), (other, False)):
        values = [(1, started(0, "m/p0")), (4, between), (8, value("exit", "p", 2, data={"of": 0, "returncode": 0}))]
        assert [program.live for program in programs(values, [])] == [live]


def test_a_program_whose_output_is_not_on_the_tape_is_run() -> None:
    (program,) = programs([(1, started(0, "m/p0")), (2, pipe(1, None))], [])
    assert program.live
