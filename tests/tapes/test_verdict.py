import gzip
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tapeproxy.tapes.decoder import Ending, TapeDecoder
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.records import Chunks, End, Exit, Head, Record, Request, Response
from tapeproxy.tapes.trace import TraceHasher, trace_hash
from tapeproxy.tapes.verdict import Verdict, Witness

RECORDS: tuple[Record, ...] = (
    Request(t=1, method=b"GET", url=b"https://x.test/a"),
    Response(t=2, of=1, status=200),
    Chunks(t=3, of=1, parts=((0, b"hello"),)),
    End(t=4, of=1, how="complete"),
    Request(t=5, method=b"GET", url=b"https://x.test/b"),
    Exit(t=6, code=7, duration=9),
)
TRACE = trace_hash(enumerate((Head(), *RECORDS)))


def tape(*, trace: str = TRACE, sealed: bool = True, url: bytes = b"https://x.test/a") -> bytes:
    encoder = TapeEncoder(Head())
    encoder.add(Request(t=1, method=b"GET", url=url))
    for record in RECORDS[1:]:
        encoder.add(record)
    return encoder.flush() + (encoder.seal(t=9, trace=trace, outcome="exited") if sealed else b"")


def judge(data: bytes) -> Verdict:
    witness, decoder = Witness(), TapeDecoder("x.tape")
    try:
        for entry in decoder.feed(data):
            assert witness.see(entry) is entry
        ending: Ending = decoder.finish()
    except TapeFormatError as error:
        return witness.judge_damage(error)
    return witness.judge(ending)


def test_a_good_tape() -> None:
    verdict = judge(tape())
    assert (verdict.good, verdict.finding, verdict.line) == (True, "intact", 0)
    assert (verdict.records, verdict.exchanges, verdict.outcome) == (8, 2, "exit 7")
    assert verdict.trace == TRACE
    assert len(verdict.head_hash) == len(verdict.last_hash) == 64
    assert verdict.head_hash != verdict.last_hash


def laned(lanes: dict[str, Any] | None) -> bytes:
    """A tape whose two requests are of lane m, with these digests in its seal; None: the right ones."""
    encoder, hasher = TapeEncoder(Head()), TraceHasher()
    hasher.feed(0, Head())
    for record in RECORDS:
        one = replace(record, lane="m") if isinstance(record, Request) else record
        hasher.feed(encoder.add(one), one)
    sealed = hasher.lanes() if lanes is None else lanes
    return encoder.flush() + encoder.seal(t=9, trace=TRACE, outcome="exited", lanes=sealed)


@pytest.mark.parametrize(
    ("lanes", "wrong"),
    [
        (None, None),
        ({}, None),
        ({"m": "0" * 64}, "m"),
        ({"m/t1": "0" * 64}, "m"),
        ({"a": 7}, "a"),
        ({"m": {"x": []}}, "m"),
        ({"": "0" * 64}, ""),
    ],
)
def test_the_digests_of_lanes(lanes: dict[str, Any] | None, wrong: str | None) -> None:
    verdict = judge(laned(lanes))
    assert verdict.good == (wrong is None)
    if wrong is not None:
        assert verdict.finding == "trace-differs"
        assert verdict.what == f"the exchanges of lane {wrong!r} are not those that were sealed, or not in that order"


@pytest.mark.parametrize(("sealed", "good"), [(None, True), (b"sent", True), (b"other", False)])
def test_the_digest_of_uploads(sealed: bytes | None, good: bool) -> None:
    def records(sent: bytes) -> tuple[Record, ...]:
        return RECORDS[0], Chunks(t=1, of=1, to="server", parts=((0, sent),)), *RECORDS[1:4]

    encoder, hasher = TapeEncoder(Head()), TraceHasher()
    for record in records(b"sent"):
        encoder.add(record)
    for index, record in enumerate((Head(), *records(b"sent" if sealed is None else sealed))):
        hasher.feed(index, record)
    uploads = None if sealed is None else hasher.uploads()  # a tape from before there was such a digest
    verdict = judge(encoder.flush() + encoder.seal(t=9, trace=hasher.hexdigest(), outcome="exited", uploads=uploads))
    assert verdict.good is good, verdict.what
    assert ("what was streamed to servers" in verdict.what) is not good


def edit(data: bytes) -> bytes:
    return gzip.compress(gzip.decompress(data).replace(b"hello", b"jello"))


def drop_line(data: bytes) -> bytes:
    lines = gzip.decompress(data).splitlines(keepends=True)
    return gzip.compress(b"".join(lines[:2] + lines[3:]))


BAD: dict[str, tuple[Callable[[], bytes], str, int, str]] = {
    "no seal": (lambda: tape(sealed=False), "interrupted", 0, "1 of 2 exchanges did not end"),
    "cut in a line": (
        lambda: gzip.compress(gzip.decompress(tape())[:-50])[:-8],
        "interrupted",
        0,
        "bytes of an unfinished line were dropped",
    ),
    "compressed anew": (lambda: gzip.compress(gzip.decompress(tape())), "not-canonical", 0, "the content is intact"),
    "an edited line": (lambda: edit(tape()), "damaged", 4, "this line was changed"),
    "a line less": (lambda: drop_line(tape()), "damaged", 3, "removed, added or moved"),
    "chained anew": (lambda: tape(trace="00" * 32), "trace-differs", 8, TRACE),
    "a URL of no kind": (lambda: tape(url=b"nonsense"), "trace-differs", 8, "cannot be checked"),
    "no tape": (lambda: gzip.compress(b"hello\n"), "damaged", 1, "not JSON"),
    "no gzip": (lambda: b"hello", "damaged", 1, "it is not gzip"),
    "nothing": (lambda: b"", "damaged", 0, "this is not a tape"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_tape(case: str) -> None:
    make, finding, line, words = BAD[case]
    verdict = judge(make())
    assert (verdict.finding, verdict.line, verdict.good) == (finding, line, False)
    assert words in verdict.what


def test_what_came_before_the_damage_is_counted() -> None:
    verdict = judge(edit(tape()))
    assert (verdict.records, verdict.exchanges, verdict.outcome, verdict.trace) == (3, 1, None, None)
    assert verdict.last_hash
    assert judge(b"").last_hash == ""


def test_every_flipped_bit_is_found() -> None:
    data = tape()
    flips = (bytes([*data[:at], data[at] ^ 1 << bit, *data[at + 1 :]]) for at in range(len(data)) for bit in range(8))
    assert not [number for number, flipped in enumerate(flips) if judge(flipped).good]
    assert judge(data).good


def test_every_truncation_is_found() -> None:
    data = tape()
    findings = [judge(data[:cut]).finding for cut in range(len(data))]
    assert set(findings) == {"damaged", "interrupted", "not-canonical"}
    # Only the last checksum may be missing of a tape that is called intact in content.
    assert findings.index("not-canonical") >= len(data) - 8
