"""Faults on purpose: reading the rules, counting requests, and what they make of a taped answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import MS, exchange

from tapeproxy.tapes.answers import Answer
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.faults import Fault, Faults, apply, parse_fault
from tapeproxy.tapes.identity import parse_target

URL = b"https://api.example.com/v1/chat"
CHUNKED = ((b"content-type", b"text/event-stream"), (b"transfer-encoding", b"chunked"))


def whole(answer: Answer) -> bytes:
    return b"".join(part.data for part in answer.parts)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("status=429", {"status": 429}),
        ("  host=a.b   nth=3 status=500 ", {"host": "a.b", "first": 3, "last": 3, "status": 500}),
        ("nth=2-4 reset", {"first": 2, "last": 4, "finish": "reset"}),
        ("nth=2- hang", {"first": 2, "last": None, "finish": "hold"}),
        ("cut=0", {"cut": 0}),
        ("latency=1.5s", {"delay_ns": 1_500_000_000}),
        ("latency=20ms status=503", {"delay_ns": 20 * MS, "status": 503}),
        ("status=429 retry-after=2 header=x-a:b", {"headers": (("retry-after", "2"), ("x-a", "b"))}),
        ("status=500 'body=two words'", {"body": "two words"}),
        ("method=post path=/v1/* reset", {"method": "post", "path": "/v1/*"}),
    ],
)
def test_a_rule_says_which_requests_and_what(text: str, fields: dict[str, object]) -> None:
    fault = parse_fault(text)
    assert {name: getattr(fault, name) for name in fields} == fields
    assert fault.text == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not say what to do"),
        ("host=a", "does not say what to do"),
        ("status=429 reset", "more than one thing"),
        ("cut=3 hang", "more than one thing"),
        ("status=99", "'status=99': a status from 200 to 599"),
        ("status=²00", "a status from 200"),
        ("nth=0 reset", "a number from 1 on"),
        ("nth=4-2 reset", "ends before it begins"),
        ("nth=x reset", "a number from 1 on"),
        ("cut=-1", "a number of bytes"),
        ("latency=5", "a duration like"),
        ("latency=0ms", "a duration like"),
        ("latency=2000000s", "up to an hour"),
        ("reset=1", "the word 'reset=1' is not known"),
        ("status", "the word 'status' is not known"),
        ("hots=a reset", "the word 'hots=a' is not known"),
        ("reset retry-after=1", "go with status="),
        ("status=429 header=a", "a header like"),
        ("status=429 'header=a:b\nc: d'", "printable ASCII"),
        ("status=500 'body=x", "no closing quotation"),
    ],
)
def test_a_rule_that_cannot_be_read_says_why(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_fault(text)


@given(st.text())
def test_any_text_is_a_rule_or_a_clear_error(text: str) -> None:
    try:
        parse_fault(text)
    except UsageError as error:
        assert "docs/CLI.md" in str(error)


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        ("reset", True),
        ("host=api.example.com reset", True),
        ("host=api.example.com:443 reset", True),
        ("host=*.EXAMPLE.com reset", True),
        ("host=example.com reset", False),
        ("path=/v1/* method=POST reset", True),
        ("path=/v1 reset", False),
        ("method=GET reset", False),
    ],
)
def test_which_requests_a_fault_meets(rule: str, met: bool) -> None:
    assert parse_fault(rule).meets(b"post", parse_target(URL)) is met


def test_the_nth_request_gets_it_and_the_first_rule_that_covers_it_counts() -> None:
    faults = Faults([parse_fault("nth=2 status=429"), parse_fault("nth=2- reset"), parse_fault("host=other hang")])
    picked = [faults.pick(b"GET", parse_target(URL)) for _ in range(4)]
    assert [None if one is None else (one[0].text, one[1]) for one in picked] == [
        None,
        ("nth=2 status=429", 2),
        ("nth=2- reset", 3),
        ("nth=2- reset", 4),
    ]
    assert faults.never() == ["nth=2 status=429", "nth=2- reset", "host=other hang"]


def test_a_status_comes_with_its_headers_and_says_that_it_was_injected() -> None:
    answer = apply(parse_fault("status=429 retry-after=2"), exchange(URL.decode(), b"taped"))
    head, _, body = whole(answer).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"\r\nretry-after: 2" in head
    assert b"\r\nx-tapeproxy: injected" in head
    assert b"\r\ncontent-length: %d\r\n" % len(body) in head
    assert b"injected by tapeproxy" in body
    assert answer.finish == "keep"


def test_a_status_without_a_body_has_none() -> None:
    assert whole(apply(parse_fault("status=204"), exchange(URL.decode()))).endswith(b"\r\n\r\n")


@pytest.mark.parametrize("cut", range(12))
def test_a_cut_answer_ends_so_many_bytes_after_its_head(cut: int) -> None:
    taped = exchange(URL.decode(), b"HTTP/1.", b"1234")
    answer = apply(Fault("t", cut=cut), taped)
    assert whole(answer).partition(b"\r\n\r\n")[2] == b"HTTP/1.1234"[:cut]
    assert answer.finish == "cut"


def test_a_cut_stream_keeps_its_framing() -> None:
    taped = exchange(URL.decode(), b"abc", b"def", headers=CHUNKED, framing="chunked")
    assert whole(apply(Fault("t", cut=10), taped)).partition(b"\r\n\r\n")[2] == b"3\r\nabc\r\n3\r"


def test_a_late_answer_is_the_taped_one() -> None:
    answer = apply(parse_fault("latency=2s"), exchange(URL.decode(), b"taped"))
    assert whole(answer).endswith(b"taped")
    assert answer.delay == 2_000_000_000
