"""Whoever reads a tape knows what passed on its WebSockets: nobody shows, compares or cleans half of it."""

import json
from pathlib import Path

import agentruns
import pytest
from tapesamples import read, written
from wstapes import Said, frames, records_of, socket_exchange

from tapeproxy.proxy.spool import Budget, Spool
from tapeproxy.proxy.tapefile import load, read_entries
from tapeproxy.tapes.edits import apply, parse_edit
from tapeproxy.tapes.errors import TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape, assemble
from tapeproxy.tapes.exports import har, markdown, vcr
from tapeproxy.tapes.leftovers import scan_leftovers
from tapeproxy.tapes.messages import Message, read_frames, spoken
from tapeproxy.tapes.plain import exchange_documents
from tapeproxy.tapes.records import Frame, Head, Record, Request, Response
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.scrubbing import scrub
from tapeproxy.tapes.sizes import Survey
from tapeproxy.tapes.summary import summarise
from tapeproxy.tapes.tapediff import diff_tapes
from tapeproxy.tapes.verdict import Witness
from tapeproxy.tapes.wsscripts import script

KEY = "sk-proj-" + "AbCdEf0123456789xyzXYZ"
TALK: tuple[Said, ...] = (
    '<{"type":"hello"}',
    ("<", "ping", b"1"),
    '>{"type":"ask","n":1}',
    ("<", "text", b"half ", "message"),
    (">", "pong", b"1"),
    ("<", "text", b"and ", "frame"),
    ("<", "text", b"half"),
    b">\x00\xff",
    ">!1000 bye",
    "<!1000 bye",
)


def written_to(folder: Path, *said: Said, name: str = "a") -> Tape:
    path = agentruns.write_tape(folder / f"{name}.tape.jsonl.gz", records_of(socket_exchange(*said)))
    return load(path)[0]


def test_messages_are_put_together() -> None:
    found = read_frames(frames(*TALK)[::-1])  # in whatever order they stand on the tape
    assert [(one.sender, one.type, one.data, one.code) for one in found] == [
        ("server", "text", b'{"type":"hello"}', None),
        ("server", "ping", b"1", None),
        ("client", "text", b'{"type":"ask","n":1}', None),
        ("client", "pong", b"1", None),
        ("server", "text", b"half and half", None),
        ("client", "binary", b"\x00\xff", None),
        ("client", "close", b"bye", 1000),
        ("server", "close", b"bye", 1000),
    ]
    (half,) = read_frames(frames(("<", "text", b"half", "frame")))
    assert half == Message(2_000_000, "client", "text", b"half", whole=False)


def test_a_script_has_what_is_due_after_what() -> None:
    made = script(socket_exchange(*TALK))
    assert [(said.type, said.data) for said in made.client] == [
        ("text", b'{"type":"ask","n":1}'),
        ("binary", b"\x00\xff"),
        ("close", b"bye"),
    ]
    assert [(due.type, due.data, due.whole, due.after) for due in made.server] == [
        ("text", b'{"type":"hello"}', True, 0),
        ("ping", b"1", True, 0),
        ("text", b"half ", False, 1),
        ("text", b"and half", True, 1),
        ("close", b"bye", True, 3),
    ]
    assert [due.delay // 1_000_000 for due in made.server] == [1, 2, 1, 4, 1]
    assert made.finish == "close"


def test_frames_survive_a_spool() -> None:
    spool = Spool(Budget(0, 0))
    first = socket_exchange(*TALK)
    for number in (1, 2):
        one = socket_exchange(*TALK)
        one.number, one.index = number, number
        spool.begin(one, None)
        spool.end(one)
    assert [exchange.frames for exchange in spool.exchanges()] == [first.frames] * 2


@pytest.mark.parametrize(
    ("records", "what"),
    [
        ([Request(t=1, method=b"GET", url=b"http://x/"), *frames("<hi")], "a 'ws' record comes before the response"),
        ([*frames("<hi")], "a 'ws' record answers record 1, which is not an earlier request"),
        ([*records_of(socket_exchange("<hi")), *frames("<hi")], "a 'ws' record comes after the end"),
    ],
)
def test_frames_out_of_place_are_refused(records: list[Record], what: str) -> None:
    with pytest.raises(TapeFormatError, match=what):
        assemble(read(written(records))[0])


def test_an_edited_frame_is_found(tmp_path: Path) -> None:
    records = records_of(socket_exchange(*TALK))
    for changed in (records, [*records[:2], *frames("<other"), records[-1]]):
        data = agentruns.tape_bytes(changed, Head(started_at="x"))
        seen = Witness()
        entries, ending = read(data)
        for entry in entries:
            seen.see(entry)
        assert seen.judge(ending).good
    path = tmp_path / "a.tape.jsonl.gz"
    path.write_bytes(agentruns.tape_bytes(records, Head(started_at="x"), messages="0" * 64))
    seen, endings = Witness(), []
    for entry in read_entries(path, endings):
        seen.see(entry)
    assert seen.judge(endings[0]).what == "what passed on WebSockets is not what was sealed"


def test_a_summary_and_sizes_count_them(tmp_path: Path) -> None:
    tape = written_to(tmp_path, *TALK)
    row = summarise(tape.exchanges[0])
    assert (row.status, row.chunks, row.size, row.first_byte) == (101, 6, 16 + 1 + 13 + 3, 2_000_000)
    survey = Survey(1)
    for entry in read_entries(tmp_path / "a.tape.jsonl.gz"):
        survey.feed(entry, 1)
    assert survey.kinds["ws"].records == len(TALK)
    (largest,) = survey.largest()
    assert (largest.request, largest.response) == (20 + 1 + 2 + 3, 33)


def test_a_plain_tape_has_them_without_times_and_pings(tmp_path: Path) -> None:
    (document,) = exchange_documents(written_to(tmp_path, *TALK))
    assert document["messages"][:3] == [
        {"from": "server", "message": {"type": "hello"}},
        {"from": "client", "message": {"type": "ask", "n": 1}},
        {"from": "server", "message": "half and half"},
    ]
    assert document["messages"][3]["message"]["bytes"] == 2
    assert document["messages"][4] == {"from": "client", "close": 1000, "reason": "bye"}
    assert len(document["messages"]) == 6


def test_a_transcript_has_them(tmp_path: Path) -> None:
    text = b"".join(markdown.export(written_to(tmp_path, *TALK), "a", lambda _: None)).decode()
    at = [text.index(part) for part in ("server says", '"ask"', "half and half", "client closes 1000", "server closes")]
    assert at == sorted(at)


def test_a_diff_says_which_message_is_another(tmp_path: Path) -> None:
    ours = written_to(tmp_path, *TALK, name="a")
    # The directions interleave otherwise, a ping less, other frames: the same.
    same = written_to(tmp_path, TALK[2], TALK[0], "<half and half", TALK[7], TALK[8], TALK[9], name="b")
    assert list(diff_tapes(ours, same).diverged()) == []
    other = written_to(tmp_path, *TALK[:2], '>{"type":"ask","n":2}', *TALK[3:], name="c")
    diff = diff_tapes(ours, other)
    (event,) = diff.diverged()
    assert event.changes == ("response",)
    details = diff.details(event)
    assert details is not None
    assert [(one.where, one.taped, one.asked) for one in details.response] == [("body $.client[0].n", "1", "2")]


def talks(tape: Tape | Exchange) -> bytes:
    exchange = tape.exchanges[0] if isinstance(tape, Tape) else tape
    return b"\n".join(frame.data for frame in exchange.frames)


def test_a_secret_in_a_message_is_found_and_scrubbed() -> None:
    said: tuple[Said, ...] = (
        f'>{{"type":"session.update","api_key":"{KEY}"}}',
        f'<{{"type":"delta","delta":"the key is {KEY[:12]}"}}',
        f'<{{"type":"delta","delta":"{KEY[12:]}, keep it"}}',
        ("<", "text", KEY[:15].encode(), "message"),
        ("<", "text", KEY[15:].encode(), None),
        b">\x00\x01" + KEY.encode() + b"\xff",
        f"<!1000 {KEY}",
    )
    records: list[Record] = [Head(started_at="2026-01-01T00:00:00Z"), *records_of(socket_exchange(*said))]
    redactor = Redactor(bytes(32))
    places = [one.place for one in scan_leftovers(enumerate(records), redactor)]
    for where in ("messages to the server", "messages to the client", "binary frame to the server"):
        assert any(place.startswith(where) for place in places), (where, places)
    scrubbed = scrub(records, redactor)
    assert scrubbed.left == []
    clean = [record for record in scrubbed.records if isinstance(record, Frame)]
    data = b"\n".join(frame.data for frame in clean)
    for secret in (KEY, KEY[:15], KEY[15:], KEY[12:]):
        assert secret.encode() not in data
    old = [record for record in records if isinstance(record, Frame)]
    assert [(f.n, f.to, f.type, f.open, f.code) for f in clean] == [(f.n, f.to, f.type, f.open, f.code) for f in old]
    assert [len(f.data) for f in clean] == [len(f.data) for f in old]
    json.loads(clean[0].data)


def test_what_was_said_is_not_edited() -> None:
    exchange = socket_exchange(*TALK)
    with pytest.raises(UsageError, match="what was said on a WebSocket cannot be edited"):
        apply(exchange, [parse_edit("$.a=1")])
    assert apply(exchange, []).frames == exchange.frames


def test_spoken_says_what_is_missing() -> None:
    assert spoken(frames("<hi", ("<", "untaped", b"why"))) == {"client": [], "server": ["hi", {"untaped": "why"}]}
    assert isinstance(socket_exchange().response, Response)


def test_exports_have_them_or_say_that_they_have_not(tmp_path: Path) -> None:
    tape = written_to(tmp_path, *TALK)
    told: list[str] = []
    (entry,) = json.loads(b"".join(har.export(tape, "a", told.append)))["log"]["entries"]
    assert [(one["type"], one["opcode"], one["data"]) for one in entry["_webSocketMessages"]] == [
        ("receive", 1, '{"type":"hello"}'),
        ("send", 1, '{"type":"ask","n":1}'),
        ("receive", 1, "half and half"),
        ("send", 2, "AP8="),
    ]
    assert told == []
    talk = records_of(socket_exchange("<hi"))
    path = agentruns.write_tape(tmp_path / "b.tape.jsonl.gz", [*talk, *agentruns.chat(len(talk) + 1)])
    cassette = b"".join(vcr.export(load(path)[0], "b", told.append))
    assert told[-1] == "left out: what passed on 1 WebSocket"
    assert b"/ws" not in cassette
