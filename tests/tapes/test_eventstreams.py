"""A scrubbed AWS event stream is still one: its lengths stay, its checksums are right, its secrets are gone."""

import base64
import json
import zlib

import pytest
from awsframes import frame

from tapeproxy.tapes.calls import aws_payloads
from tapeproxy.tapes.eventstreams import messages, with_checksums
from tapeproxy.tapes.records import Chunks, End, Head, Record, Request, Response
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.scrubbing import scrub
from tapeproxy.tapes.suspicion import Sought

SECRET = "of-nobody-known-0123456789-xyz"


def event(text: str) -> bytes:
    return frame(json.dumps({"bytes": base64.b64encode(json.dumps({"text": text}).encode()).decode()}).encode())


@pytest.mark.parametrize("cut", [1, 40, 100])
def test_secrets_go_and_checksums_are_right(cut: int) -> None:
    body = event(f"say {SECRET}") + event("and no more") + frame(json.dumps({"message": SECRET}).encode())
    kind = ((b"Content-Type", b"application/vnd.amazon.eventstream"),)
    records: list[Record] = [
        Head(),
        Request(t=1, method=b"POST", url=b"https://bedrock.example/"),
        Response(t=2, of=1, status=200, headers=kind),
        Chunks(t=3, of=1, parts=((0, body[:cut]), (1, body[cut:]))),
        End(t=4, of=1, how="complete"),
    ]
    done = scrub(records, Redactor(bytes(range(32))), Sought(values=(("mine", SECRET.encode()),)))
    chunks = [*done.records][3]
    assert isinstance(chunks, Chunks)
    parts = [part for _, part in chunks.parts if isinstance(part, bytes)]
    assert [len(part) for part in parts] == [cut, len(body) - cut]
    clean = b"".join(parts)
    payloads = list(aws_payloads(clean))
    assert len(payloads) == 3
    assert not [payload for payload in payloads if SECRET.encode() in payload]
    assert b"tpx" in payloads[0]
    assert payloads[1] == b'{"text": "and no more"}'
    for start, end in messages(clean):
        assert zlib.crc32(clean[start : end - 4]) == int.from_bytes(clean[end - 4 : end])


def test_other_bytes_are_left_alone() -> None:
    assert with_checksums(b"abc", b"abd") == b"abd"
    assert with_checksums(b"abc", b"longer") == b"longer"
    whole = frame(b"{}")
    assert with_checksums(whole, whole) == whole
