"""No planted secret survives a scrub in any layer; the tape keeps its shape, and a second scrub changes nothing."""

import base64
import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from editsamples import gemini_list
from hypothesis import given, settings
from hypothesis import strategies as st
from peeling import holds
from tapesamples import read

from tapeproxy.tapes.filetext import redact_text
from tapeproxy.tapes.leftovers import Leftover
from tapeproxy.tapes.records import (
    Chunks,
    End,
    Exit,
    Head,
    Headers,
    Lane,
    Note,
    Record,
    Request,
    Response,
    Seal,
    Unknown,
    Value,
)
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.scrubbing import scrub
from tapeproxy.tapes.suspicion import Sought

KNOWN = "env-s3cret/of+the run=7Q"
SHAPED = "sk-proj-AbCdEf0123456789xyzXYZ"
REDACTOR = Redactor(bytes(range(32)), [KNOWN])
SOUGHT = Sought(values=(("the value of $MINE", KNOWN.encode()),), fields=frozenset({"session"}))
JSON: Headers = ((b"Content-Type", b"application/json"),)
STREAM: Headers = ((b"Content-Type", b"text/event-stream"),)
GOLDEN = Path(__file__).parents[1] / "golden" / "v1.tape.jsonl.gz"


class Done(NamedTuple):
    """What `Scrubbed` says, with its records in a list."""

    records: list[Record]
    changed: frozenset[int]
    found: list[Leftover]
    left: list[Leftover]
    recompressed: tuple[int, ...]


def scrubbed(records: Sequence[Record], sought: Sought = SOUGHT) -> Done:
    done = scrub(records, REDACTOR, sought)
    clean = [*done.records]
    assert clean == [*done.records], "they are the same each time"
    return Done(clean, done.changed, done.found, done.left, done.recompressed)


def tape(
    body: bytes = b"",
    chunks: Sequence[bytes] = (),
    *,
    url: str = "https://x.example/y",
    sent: Headers = JSON,
    got: Headers = JSON,
    others: Sequence[Record] = (),
    head: Head | None = None,
) -> list[Record]:
    """One exchange."""
    return [
        head or Head(argv=("agent",)),
        Request(t=1, method=b"POST", url=url.encode(), headers=sent, body=body),
        Response(t=2, of=1, status=200, framing="chunked", headers=got),
        *(Chunks(t=3 + n, of=1, parts=((0, chunk),)) for n, chunk in enumerate(chunks)),
        End(t=9, of=1, how="complete"),
        *others,
    ]


def readable(records: Sequence[Record], secret: str) -> bool:
    """Whether a secret can be read on a tape."""
    return any(holds(text, secret.encode()) for text in texts_of(records))


def texts_of(records: Sequence[Record]) -> list[bytes]:
    """All that is on a tape, its bodies as they are."""
    out: list[bytes] = []
    bodies: dict[tuple[int, str], bytes] = {}
    for record in records:
        if isinstance(record, Chunks):
            data = b"".join(part for _, part in record.parts if isinstance(part, bytes))
            bodies[record.of, record.to] = bodies.get((record.of, record.to), b"") + data
        elif isinstance(record, Request):
            assert isinstance(record.body, bytes)
            bodies[0, "asked"] = record.body
            out.append(json.dumps(record.to_json() | {"body": ""}).encode())
        else:
            out.append(json.dumps(record.to_json()).encode())
    return [*out, *bodies.values()]


def bodies_of(records: Sequence[Record]) -> bytes:
    return b"".join(
        part for one in records if isinstance(one, Chunks) for _, part in one.parts if isinstance(part, bytes)
    )


def twice(secret: str) -> str:
    return json.dumps(json.dumps({"inner": f"say {secret}."}))


PLACES: dict[str, Callable[[str], list[Record]]] = {
    "header": lambda s: tape(sent=((b"X-Api-Key", s.encode()),)),
    "bearer": lambda s: tape(sent=((b"Authorization", b"Bearer " + s.encode()),)),
    "any header": lambda s: tape(sent=((b"X-Note", b"it is " + s.encode()),)),
    "cookies": lambda s: tape(got=((b"Set-Cookie", f"a={s}; Path=/".encode()),)),
    "query": lambda s: tape(url=f"https://x.example/y?q=1&api_key={quote(s)}"),
    "path": lambda s: tape(url=f"https://x.example/y/{quote(s, safe='')}/z"),
    "JSON": lambda s: tape(json.dumps({"a": [{"b": s}]}).encode()),
    "JSON key": lambda s: tape(json.dumps({s: 1}).encode()),
    "JSON in JSON": lambda s: tape(json.dumps({"arguments": twice(s)}).encode()),
    "prose": lambda s: tape(json.dumps({"content": f"my key\n\n{s}\nkeep it"}).encode()),
    "form": lambda s: tape(
        f"a=1&b={quote(s)}".encode(), sent=((b"Content-Type", b"application/x-www-form-urlencoded"),)
    ),
    "multipart": lambda s: tape(
        f'--B\r\nContent-Disposition: form-data; name="k"\r\n\r\n{s}\r\n--B--\r\n'.encode(),
        sent=((b"Content-Type", b"multipart/form-data; boundary=B"),),
    ),
    "base64": lambda s: tape(json.dumps({"file": base64.b64encode(b": " + s.encode()).decode()}).encode()),
    "URL-safe base64": lambda s: tape(
        json.dumps({"f": base64.urlsafe_b64encode(b"??>" + s.encode()).decode()}).encode()
    ),
    "gzip in base64": lambda s: tape(
        json.dumps({"f": base64.b64encode(gzip.compress(f"it is {s}, is it".encode())).decode()}).encode()
    ),
    "gzip": lambda s: tape(
        b"", [gzip.compress(json.dumps({"k": s}).encode())], got=(*JSON, (b"Content-Encoding", b"gzip"))
    ),
    "deflate": lambda s: tape(
        zlib.compress(json.dumps({"k": s}).encode()), sent=(*JSON, (b"Content-Encoding", b"deflate"))
    ),
    "chunks": lambda s: tape(b"", [f'{{"k": "{s[:5]}'.encode(), s[5:9].encode(), f'{s[9:]}"}}'.encode()]),
    "events": lambda s: tape(b"", [f'data: {{"x": "{s}"}}\n\n'.encode(), b"data: [DONE]\n\n"], got=STREAM),
    "deltas": lambda s: tape(
        b"",
        [
            f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n".encode()
            for piece in ("so ", s[:3], s[3:10], s[10:], " and")
        ],
        got=STREAM,
    ),
    "items of a list": lambda s: tape(b"", gemini_list(["so ", s[:3], s[3:10], s[10:], " and"]), got=JSON),
    "error": lambda s: [*tape()[:-1], End(t=9, of=1, how="reset", error=f"no {s}", trailers=((b"X-A", s.encode()),))],
    "command": lambda s: tape(head=Head(argv=("agent", "--token", s), cwd=f"/home/{s}")),
    "a later head field": lambda s: tape(head=Head(extra={"later": [{"x": s}]})),
    "note": lambda s: tape(others=[Note(t=9, what="bypass", text=s, data={"deep": [s]})]),
    "lane": lambda s: tape(others=[Lane(t=9, id="m", name=s)]),
    "value": lambda s: tape(
        others=[
            Value(t=9, lane="m", n=0, what="file", name=f"a/{s}", content=f"x {s} y".encode(), digest="d", length=9)
        ]
    ),
    "unknown kind": lambda s: tape(others=[Unknown(kind="later", extra={"a": {"b": [s]}, s: 1})]),
    "unknown field": lambda s: tape(others=[Exit(t=9, code=0, extra={"why": f"because {s}"})]),
    "upload": lambda s: [*tape()[:2], Chunks(t=2, of=1, to="server", parts=((0, s.encode()),)), *tape()[2:]],
    "early hints": lambda s: [
        *tape()[:2],
        Response(t=2, of=1, status=200, informational=((103, ((b"Link", s.encode()),)),)),
        *tape()[3:],
    ],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("secret", [KNOWN, SHAPED])
def test_a_secret_goes_wherever_it_stands(place: str, secret: str) -> None:
    planted = PLACES[place](secret)
    assert readable(planted, secret), "the test would prove nothing"
    done = scrubbed(planted)
    assert not readable(done.records, secret)
    assert done.found
    assert not done.left
    assert len(done.records) == len(planted)
    assert scrubbed(done.records).records == done.records


FIELDS = {
    "a short password": json.dumps({"user": "ann", "password": "hunter2x"}),
    "of the user's name": json.dumps({"session": "abc"}),
    "in JSON in JSON": json.dumps({"x": json.dumps({"client_secret": "hunter2x"})}),
}


@pytest.mark.parametrize("body", FIELDS.values(), ids=FIELDS.keys())
def test_what_is_short_goes_under_its_name_alone(body: str) -> None:
    secret = "abc" if "abc" in body else "hunter2x"
    records = tape(body.encode(), [f'{{"text": "{secret} is a word"}}'.encode()])
    done = scrubbed(records)
    asked = done.records[1]
    assert isinstance(asked, Request)
    assert isinstance(asked.body, bytes)
    assert secret.encode() not in asked.body
    json.loads(asked.body)
    assert done.records[3] == records[3]
    assert not done.left


@pytest.mark.parametrize(
    "body",
    [
        {"password": "test"},
        {"api_key": "<your key>", "max_tokens": 4096, "token": "Hello"},
        {
            "id": "chatcmpl-AbCdEf0123456789",
            "tool_call_id": "call_AbCdEf0123456789",
            "key": "d41d8cd98f00b204e9800998ecf8427e",
        },
        {"image": "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 20).decode()},
        {"text": "The key to a good password is its length, so author a sentence: correct horse battery staple."},
    ],
)
def test_ordinary_bodies_stay(body: dict[str, Any]) -> None:
    records = tape(json.dumps(body).encode())
    done = scrubbed(records)
    assert not done.left
    if "key" not in body:
        assert done.records == records


def test_chunks_keep_their_boundaries() -> None:
    whole = f'{{"a": "{SHAPED}", "b": "{SHAPED}"}}'.encode()
    for cut in range(1, len(whole)):
        records = tape(b"", [whole[:cut], whole[cut:]])
        done = scrubbed(records)
        assert [
            len(r.parts[0][1]) for r in done.records[3:5] if isinstance(r, Chunks) if isinstance(r.parts[0][1], bytes)
        ] == [
            cut,
            len(whole) - cut,
        ]


def test_a_length_that_was_right_is_right_again() -> None:
    body = f'{{"url": "https://x.example/?q={quote(KNOWN)}"}}'.encode()
    done = scrubbed(tape(body, sent=(*JSON, (b"Content-Length", b"%d" % len(body)))))
    asked = done.records[1]
    assert isinstance(asked, Request)
    assert isinstance(asked.body, bytes)
    assert dict(asked.headers)[b"Content-Length"] == b"%d" % len(asked.body)


def test_a_compressed_body_is_compressed_again_and_says_so() -> None:
    packed = gzip.compress(json.dumps({"k": SHAPED, "more": "x" * 500}).encode())
    done = scrubbed(tape(b"", [packed[:20], packed[20:]], got=(*JSON, (b"Content-Encoding", b"gzip"))))
    assert done.recompressed == (1,)
    assert [one.recoded for one in done.records if isinstance(one, Chunks)] == [True, True]
    assert json.loads(gzip.decompress(bodies_of(done.records)))["k"].startswith("tpx")


def test_a_digest_is_that_of_the_clean_content() -> None:
    first = Value(t=9, lane="m", n=0, what="file", name="a", content=SHAPED.encode(), digest="d1", length=30)
    again = Value(t=9, lane="m", n=1, what="file", name="a", digest="d1", length=30)
    done = scrubbed(tape(others=[first, again], head=Head(seed="ab" * 32)))
    clean, later = done.records[-2:]
    assert isinstance(clean, Value)
    assert isinstance(later, Value)
    assert clean.digest == later.digest != "d1"
    assert clean.digest is not None
    assert len(clean.digest) == 32


def test_what_was_read_is_redacted_as_a_replay_will() -> None:
    file = Value(t=9, lane="m", n=0, what="file", name="a", content=b"api_key: abcdef123456", digest="d", length=21)
    process = Value(t=9, lane="m", n=1, what="process", name="curl --token hunter2hunter2")
    clean, ran = scrubbed(tape(others=[file, process])).records[-2:]
    assert isinstance(clean, Value)
    assert isinstance(ran, Value)
    assert clean.content == redact_text(b"api_key: abcdef123456", REDACTOR) != file.content
    assert ran.name == " ".join(REDACTOR.argv(["curl", "--token", "hunter2hunter2"]))


def test_a_golden_tape_is_scrubbed_and_stays_what_it_is() -> None:
    records = [entry.record for entry in read(GOLDEN.read_bytes())[0] if not isinstance(entry.record, Seal)]
    done = scrubbed(records)
    assert len(done.records) == len(records)
    assert {type(records[n]) for n in done.changed} <= {Response, Head}
    assert scrubbed(done.records).records == done.records


WRAPS: dict[str, Callable[[str], str]] = {
    "plain": lambda s: f"so {s} it is",
    "json": lambda s: json.dumps({"a": s}),
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "percent": lambda s: quote(s, safe=""),
    "slashes": lambda s: s.replace("/", "\\/"),
    "gzip": lambda s: base64.b64encode(gzip.compress(s.encode(), mtime=0)).decode(),
}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(sorted(WRAPS)), max_size=3),
    st.lists(st.integers(0, 400), max_size=4),
    st.sampled_from([KNOWN, SHAPED]),
)
def test_no_layer_hides_a_secret(layers: list[str], cuts: list[int], secret: str) -> None:
    text = f"({secret})"
    for layer in layers:
        text = WRAPS[layer](text)
    body = json.dumps({"content": text}).encode()
    places = sorted({0, *(cut for cut in cuts if cut < len(body)), len(body)})
    chunks = [body[a:b] for a, b in itertools.pairwise(places)]
    records = tape(body, chunks)
    done = scrubbed(records)
    if readable(records, secret):
        assert not readable(done.records, secret)
        assert not done.left
    assert scrubbed(done.records).records == done.records
    json.loads(bodies_of(done.records))
