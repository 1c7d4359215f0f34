"""A tape as HAR: complete enough to come back as it was, and what other readers expect."""

import base64
import copy
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import agentruns
import orjson
import pytest
from agentruns import exchange
from difftapes import read
from exporttapes import exported, facts, imported, in_order, sample, tapes
from hypothesis import given
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.exports.har import export
from tapeproxy.tapes.imports.nodes import ForeignFormatError
from tapeproxy.tapes.records import End, Request

URL = "https://h.test/a?x=1&x=2&y="


def har(tape: Tape, lost: list[str] | None = None) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(exported(export, tape, lost))
    return document


def entry(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = har(read(exchange(1, URL, **fields)))["log"]["entries"][0]
    return found


@given(tapes())
def test_every_byte_comes_back(tape: Tape) -> None:
    was = in_order(tape)
    now = imported(har(tape)).exchanges
    begin = was[0].request.t
    assert [facts(one) for one in now] == [facts(one, begin=begin) for one in was]


def test_what_a_reader_expects() -> None:
    one = entry(
        method="POST",
        asked={"q": "é"},
        headers=(
            (b"Content-Type", b"text/event-stream"),
            (b"Set-Cookie", b"a=1; Path=/; Secure"),
            (b"location", b"/b"),
        ),
        chunks=[b"data: 1\n\n", b"data: 2\n\n"],
    )
    assert one["startedDateTime"] == "2026-01-02T03:04:05.100000Z"
    assert (one["time"], one["timings"]) == (21.0, {"send": 0, "wait": 5.0, "receive": 16.0})
    asked, given = one["request"], one["response"]
    assert (asked["method"], asked["url"], asked["httpVersion"]) == ("POST", URL, "HTTP/1.1")
    assert asked["queryString"] == [{"name": n, "value": v} for n, v in (("x", "1"), ("x", "2"), ("y", ""))]
    assert asked["postData"] == {"mimeType": "application/json", "text": '{"q": "\\u00e9"}'}
    assert given["content"] == {"size": 18, "mimeType": "text/event-stream", "text": "data: 1\n\ndata: 2\n\n"}
    assert given["cookies"] == [{"name": "a", "value": "1", "path": "/", "httpOnly": False, "secure": True}]
    assert (given["redirectURL"], one["comment"]) == ("/b", "")
    assert one["_tapeproxy"]["chunks"] == [[10_000_000, 9], [20_000_000, 9]]


def test_mitmproxy_reads_it(tmp_path: Path) -> None:
    body = gzip.compress(b'{"a":1}', mtime=0)
    coded = ((b"Content-Type", b"application/json"), (b"Content-Encoding", b"gzip"))
    records = agentruns.sample()
    more = exchange(len(records) + 1, URL, method="PUT", asked={"q": 1}, headers=coded, chunks=[body])
    tape = read([*records, *more])
    (tmp_path / "x.har").write_bytes(exported(export, tape))
    with (tmp_path / "x.har").open("rb") as file:
        flows = [flow for flow in FlowReader(file).stream() if isinstance(flow, HTTPFlow)]
    assert [seen(flow) for flow in flows] == [
        (
            one.request.method.decode(),
            one.request.url.decode(),
            one.request_body,
            one.response.status if one.response else 0,
            decode(one.response_body, one.response.headers).data if one.response else b"",
        )
        for one in tape.exchanges
    ]


def seen(flow: HTTPFlow) -> tuple[str, str, bytes | None, int, bytes | None]:
    """What mitmproxy has of a flow; it keeps bodies of a HAR decoded."""
    assert flow.response is not None
    asked, given = flow.request, flow.response
    return asked.method, asked.url, asked.raw_content, given.status_code, given.raw_content


def test_bytes_and_codings() -> None:
    headers = ((b"content-type", b"application/json"), (b"content-encoding", b"gzip"))
    body = gzip.compress(b'{"a":1}', mtime=0)
    given = entry(headers=headers, chunks=[body[:5], body[5:]])
    assert given["response"]["content"]["text"] == '{"a":1}'
    assert base64.b64decode(given["_tapeproxy"]["body"]) == body
    assert entry(chunks=[b"\xff\x00"])["response"]["content"]["encoding"] == "base64"
    japanese = ((b"content-type", b"text/plain; charset=shift_jis"),)
    assert entry(headers=japanese, chunks=["é".encode()])["response"]["content"]["encoding"] == "base64"
    assert entry(headers=japanese, chunks=[b"plain"])["response"]["content"]["text"] == "plain"


def test_binary_request_bodies_are_told() -> None:
    lost: list[str] = []
    document = har(read(exchange(1, URL, method="PUT", asked=b"\xff\x00")), lost)
    assert document["log"]["entries"][0]["request"]["postData"]["_encoding"] == "base64"
    assert lost == ["1 request body in base64 under `_encoding`: HAR has no form for what is no text"]


def test_exchanges_that_failed() -> None:
    refused = entry(status=None, how="connect-error", error="refused")
    assert refused["response"]["status"] == 0
    assert refused["response"]["_error"] == "connect-error: refused"
    assert entry(chunks=[b"ab"], how="upstream-cut")["response"]["_error"] == "upstream-cut"
    unfinished = entry(chunks=[b"ab"], how=None)
    assert unfinished["comment"] == "unfinished: the tape ends before it"
    assert unfinished["time"] == 10.0
    again = imported(har(read(exchange(1, URL, chunks=[b"ab"], how=None)))).exchanges[0]
    assert again.end is not None
    assert again.end.how == "upstream-cut"


def test_traffic_within_the_run_stays_that() -> None:
    tape = read([Request(t=1, method=b"GET", url=b"http://127.0.0.1:1/", inside=True)])
    assert "server of the run" in har(tape)["log"]["entries"][0]["comment"]
    assert imported(har(tape)).exchanges[0].request.inside


def test_a_file_that_was_edited_is_mended() -> None:
    document = har(sample())
    answer = document["log"]["entries"][1]["response"]
    answer["content"]["text"] = '{"degrees":19}'
    answer["headers"].append({"name": "Content-Length", "value": "4"})
    now = imported(document).exchanges[1]
    assert now.response_body == b'{"degrees":19}'
    assert now.response is not None
    assert (b"Content-Length", b"14") in now.response.headers


def test_an_edit_of_a_decoded_body_counts() -> None:
    headers = ((b"content-type", b"application/json"), (b"content-encoding", b"gzip"))
    document = har(read(exchange(1, URL, headers=headers, chunks=[gzip.compress(b'{"a":1}')])))
    document["log"]["entries"][0]["response"]["content"]["text"] = '{"a":2}'
    now = imported(document).exchanges[0]
    assert now.response_body == b'{"a":2}'
    assert now.response is not None
    assert b"content-encoding" not in dict(now.response.headers)


def test_an_answer_that_was_added_by_hand() -> None:
    document = har(read(exchange(1, URL, status=None, how="connect-error", error="refused")))
    document["log"]["entries"][0]["response"] |= {"status": 200, "content": {"text": "yes"}}
    now = imported(document).exchanges[0]
    assert now.end is not None
    assert (now.response_body, now.end.how, now.end.error) == (b"yes", "complete", None)


def test_times_that_run_backwards() -> None:
    request, response, *_ = exchange(1, URL)
    records = [replace(request, t=9), replace(response, t=3), End(t=2, of=1, how="complete")]
    now = imported(har(read(records))).exchanges[0]
    assert now.response is not None
    assert (now.request.t, now.response.t) == (0, 0)


HOSTILE = [
    ("chunks", [[0, -1], [0, 19]]),
    ("chunks", [[-1, 18]]),
    ("chunks", [["x", 18]]),
    ("chunks", [1 << 80]),
    ("asked", 1 << 80),
    ("informational", [[103]]),
    ("trailers", [["a", "b", "c"]]),
]


@pytest.mark.parametrize(("name", "value"), HOSTILE)
def test_our_own_field_may_hold_anything(name: str, value: Any) -> None:
    document = copy.deepcopy(har(sample()))
    document["log"]["entries"][0]["_tapeproxy"][name] = value
    with pytest.raises(ForeignFormatError):
        imported(document)
