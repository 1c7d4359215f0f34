"""A tape as a cassette: VCR.py plays it back to real clients, and it comes back as it was."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import agentruns
import httpx
import openai
import pytest
import requests
import vcr
import yaml
from agentruns import exchange
from difftapes import MODEL, read, say, streamed
from difftapes import run as run_of
from exporttapes import exported, facts, imported, in_order, tapes
from hypothesis import given
from vcr.errors import CannotOverwriteExistingCassetteException

from tapeproxy.proxy.yamltexts import parse_yaml
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.exports.vcr import export

URL = "https://h.test/a?x=1"
LENGTH = b"content-length"
CODED = ((b"content-type", b"application/json"), (b"content-encoding", b"gzip"))


def playable(tape: Tape) -> list[Exchange]:
    """The exchanges that a cassette holds."""
    return [one for one in in_order(tape) if one.response and one.end and one.end.how in ("complete", "client-gone")]


def corrected(one: Exchange) -> Exchange:
    """The exchange with its body's length, where its headers have another one."""
    assert one.response is not None
    headers = one.response.headers
    body, said = one.response_body, b", ".join(value for name, value in headers if name.lower() == LENGTH)
    if not (body and said.isdigit() and one.end and one.end.how == "complete"):
        return one
    right = tuple((name, b"%d" % len(body) if name.lower() == LENGTH else value) for name, value in headers)
    return replace(one, response=replace(one.response, headers=right))


@given(tapes())
def test_every_byte_comes_back(tape: Tape) -> None:
    was = playable(tape)
    if not was:
        with pytest.raises(ValueError, match="no exchange has an answer"):
            exported(export, tape)
        return
    now = imported(parse_yaml(exported(export, tape))).exchanges
    begin = was[0].request.t
    assert [facts(one) for one in now] == [facts(corrected(one), begin=begin) for one in was]


@pytest.fixture
def cassette(tmp_path: Path) -> Iterator[None]:
    """A tape's cassette, in play: whatever is not on it is an error, and nothing is recorded."""
    call = say("m", "Where?", answer="West é.")
    stream = streamed("m", "When?", "Then", ".\n", "☂")
    tape = run_of(call, stream, call)
    records = agentruns.exchange(1, URL, headers=CODED, chunks=[gzip.compress(b'{"a":1}')])
    records += agentruns.exchange(
        len(records) + 1, "https://h.test/b", method="PUT", asked=b"\xff", chunks=[b"\x00\xfe"]
    )
    other = read(records)
    path = tmp_path / "x.yaml"
    first, second = (exported(export, one) for one in (tape, other))
    # As one file, but with the bytes of the exporter.
    path.write_bytes(first[: first.index(b"recorded_with:")] + second.removeprefix(b"interactions:\n"))
    with vcr.use_cassette(str(path), record_mode="none", match_on=["method", "uri", "body"]):
        yield


@pytest.mark.usefixtures("cassette")
def test_the_sdk_of_openai() -> None:
    client = openai.OpenAI(api_key="none", base_url=MODEL.removesuffix("/chat/completions"), max_retries=0)
    answered = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Where?"}])
    assert answered.choices[0].message.content == "West é."
    stream = client.chat.completions.create(
        model="gpt-4o", stream=True, messages=[{"role": "user", "content": "When?"}]
    )
    assert "".join(piece.choices[0].delta.content or "" for piece in stream) == "Then.\n☂"
    again = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Where?"}])
    assert again.choices[0].message.content == "West é."
    with pytest.raises((openai.APIConnectionError, CannotOverwriteExistingCassetteException)):
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Where?"}])


@pytest.mark.usefixtures("cassette")
def test_httpx_and_requests() -> None:
    assert httpx.get(URL).json() == {"a": 1}
    answered = requests.put("https://h.test/b", data=b"\xff", timeout=5)
    assert (answered.status_code, answered.content) == (200, b"\x00\xfe")


def test_a_stream_can_be_read_in_the_file() -> None:
    text = exported(export, run_of(streamed("m", "When?", "Then"))).decode()
    assert '      string: |+\n        data: {"id": "c1"' in text
    assert "    method: POST\n" in text
    assert "      X-Test:\n      - '1'\n" in text


def test_what_a_cassette_cannot_hold_is_told() -> None:
    lost: list[str] = []
    records = exchange(1, URL, chunks=[b"a", b"b"])
    records += exchange(len(records) + 1, URL, status=None, how="connect-error", error="refused")
    records += exchange(len(records) + 1, URL, chunks=[b"a"], how="upstream-cut")
    records += exchange(len(records) + 1, URL, chunks=[b"a"], how=None)
    document = yaml.safe_load(exported(export, read(records), lost))
    assert len(document["interactions"]) == 1
    assert lost == [
        "left out: 3 exchanges without a whole answer (2, 3, 4)",
        "1 body that came in pieces: VCR.py plays each at once, the pieces are in the field _tapeproxy",
    ]
    with pytest.raises(ValueError, match="no exchange has an answer"):
        exported(export, read(exchange(1, URL, status=None, how="connect-error")))


def test_headers_of_one_name_come_back_in_their_places() -> None:
    headers = ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    document = exported(export, read(exchange(1, URL, headers=headers)))
    assert yaml.safe_load(document)["interactions"][0]["response"]["headers"] == {"a": ["1", "3"], "b": ["2"]}
    response = imported(parse_yaml(document)).exchanges[0].response
    assert response is not None
    assert response.headers == headers


def test_an_edit_of_the_file_counts() -> None:
    headers = ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    tape = read(exchange(1, "https://h.test/#x", method="get", headers=headers, chunks=[b'{"n":1}']))
    text = exported(export, tape).decode()
    for was, now in (("- '3'", "- '4'"), ("https://h.test/#x'", "https://h.test/b'"), ('{"n":1}\'', '{"n":22}\'')):
        assert was in text
        text = text.replace(was, now, 1)
    one = imported(parse_yaml(text.encode())).exchanges[0]
    assert one.request.url == b"https://h.test/b"
    assert one.response is not None
    assert (b"a", b"4") in one.response.headers
    assert one.response_body == b'{"n":22}'
    assert (b"content-length", b"8") in one.response.headers


def test_a_length_that_redaction_changed_is_right() -> None:
    headers = ((b"Content-Length", b"999"),)
    document = yaml.safe_load(exported(export, read(exchange(1, URL, headers=headers, chunks=[b"abc"]))))
    assert document["interactions"][0]["response"]["headers"] == {"Content-Length": ["3"]}


def test_our_own_field_is_out_of_the_way() -> None:
    document = yaml.safe_load(exported(export, read(exchange(1, URL, chunks=[b"abc"]))))
    (one,) = document["interactions"]
    assert set(one) == {"request", "response", "_tapeproxy"}
    assert json.loads(one["_tapeproxy"])["chunks"] == [[10_000_000, 3]]
    assert document["version"] == 1
