"""Tapes as evidence, cut at every byte and with bits flipped; lines moved, with and without new hashes.

One has some 20 KB of HTTP, the other WebSockets, trailers, and streams of HTTP/2 that were reset.
"""

import gzip
import random
from collections.abc import Callable, Iterator

import orjson
import pytest
from tapesamples import chained, flipped, read, read_what_can_be, zipped
from wstapes import Said, records_of, socket_exchange

from tapeproxy.tapes import vouching
from tapeproxy.tapes.decoder import Entry, TapeDecoder
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.errors import TapeFormatError
from tapeproxy.tapes.gzipping import stored_member
from tapeproxy.tapes.records import Chunks, End, Exit, Head, Record, Request, Response, Seal
from tapeproxy.tapes.trace import TraceHasher
from tapeproxy.tapes.verdict import Verdict, Witness
from tapeproxy.tapes.vouching import Demand

HEAD = Head(by="tapeproxy 0.1.0", started_at="2026-01-02T03:04:05.000006Z", argv=("python", "agent.py"))


def conversation() -> Iterator[Record]:
    """Exchanges whose bodies hardly compress, with a commit after each record, as in life."""
    rng = random.Random(20)
    for number in range(8):
        of = 7 * number + 1
        asked = rng.randbytes(700)
        yield Request(t=of, method=b"POST", url=b"https://api.example/v1", body=asked)
        yield Response(t=of + 1, of=of, status=200, framing="chunked", headers=((b"a", b"b"),))
        for chunk in range(4):
            yield Chunks(t=of + 2, of=of, parts=((chunk, rng.randbytes(rng.choice((20, 600)))),))
        yield End(t=of + 6, of=of, how="complete")
    yield Exit(t=99, code=0, duration=99)


RECORDS = list(conversation())


def talks() -> Iterator[Record]:
    """Two WebSockets, one with a message in pieces, a ping and a close; a call of gRPC with its trailers; a reset."""
    said: tuple[Said, ...] = (
        *(">one", "<two", ("<", "ping", b"now")),
        *(("<", "text", b"in ", "message"), ("<", "text", b"pieces"), b"<\xff"),
    )
    for number in range(2):
        yield from records_of(socket_exchange(*said, ">!4001 bye", url=f"http://x.test/{number}"), 1 + 10 * number)
    yield Request(t=50, method=b"POST", url=b"https://x.test/S/M", http="HTTP/2", alpn="h2")
    yield Chunks(t=51, of=21, to="server", parts=((0, b"\0\0\0\0\2ab"),))
    yield Response(
        t=52, of=21, status=200, http="HTTP/2", framing="chunked", informational=((103, ((b"link", b"a"),)),)
    )
    yield Chunks(t=53, of=21, parts=((0, b"\0\0\0\0\2cd"),))
    yield End(t=54, of=21, how="complete", trailers=((b"grpc-status", b"0"), (b"grpc-message", b"fine")))
    yield Request(t=60, method=b"GET", url=b"https://x.test/r", http="HTTP/2", alpn="h2")
    yield End(t=61, of=26, how="reset", code=11)
    yield Exit(t=99, code=0, duration=99)


def sealed(records: list[Record]) -> bytes:
    encoder = TapeEncoder(HEAD)
    out = [encoder.flush()]
    trace = TraceHasher()
    for index, record in enumerate((HEAD, *records)):
        trace.feed(index, record)
        if index:
            encoder.add(record)
            out.append(encoder.flush())
    seal = encoder.seal(t=100, trace=trace.hexdigest(), outcome="exited", messages=trace.messages())
    return b"".join((*out, seal))


WHOLE = sealed(RECORDS)
ENTRIES, ENDING = read(WHOLE)
LINES = gzip.decompress(WHOLE).splitlines(keepends=True)
TALKS = sealed([*talks()])
EVERY = {"exchanges": WHOLE, "talks": TALKS}
each_tape = pytest.mark.parametrize("tape", EVERY.values(), ids=EVERY)


def lines_of(tape: bytes) -> list[bytes]:
    return gzip.decompress(tape).splitlines(keepends=True)


def test_the_tape_has_some_20_kilobytes() -> None:
    assert 18_000 < len(WHOLE) < 30_000


@each_tape
def test_cut_at_every_byte_it_reads_up_to_the_cut_and_says_so(tape: bytes) -> None:
    decoder, found = TapeDecoder(), list[Entry]()
    entries, _ = read(tape)
    for length in range(1, len(tape)):
        found += decoder.feed(tape[length - 1 : length])
        assert found == entries[: len(found)]
        if not found:
            with pytest.raises(TapeFormatError, match="cut before its first record"):
                decoder.finish()
            continue
        ending = decoder.finish()
        assert not ending.canonical
        assert ending.records == len(found)
        # Only the checksum of the seal's own member may be missing from what still counts as sealed.
        assert not ending.sealed or len(tape) - length <= 8
    assert [*decoder.feed(tape[-1:])] == []
    assert decoder.finish().canonical


def check_flips(tape: bytes, every: int) -> dict[str, int]:
    """See that every flip is noticed; how they were."""
    seen: dict[str, int] = {"damaged": 0, "interrupted": 0, "not canonical": 0}
    entries, _ = read(tape)
    for at, bit, found, ending in flipped(tape, every):
        assert found == entries[: len(found)], (at, bit)
        if isinstance(ending, TapeFormatError):
            seen["damaged"] += 1
        elif not ending.sealed:
            seen["interrupted"] += 1
        else:
            assert (found, ending.canonical) == (entries, False), (at, bit)
            seen["not canonical"] += 1
    return seen


@each_tape
def test_flipped_bits_are_noticed(tape: bytes) -> None:
    seen = check_flips(tape, 100)
    assert min(seen.values()) > 0
    assert sum(seen.values()) > 5000


@pytest.mark.soak
@each_tape
def test_every_flipped_bit_is_noticed(tape: bytes) -> None:
    assert sum(check_flips(tape, 1).values()) == 8 * len(tape)


def test_going_on_from_a_state_is_reading_from_the_beginning() -> None:
    for at, bit, found, ending in flipped(WHOLE, 4000):
        data = bytearray(WHOLE)
        data[at] ^= 1 << bit
        whole, same = read_what_can_be(bytes(data))
        assert found == whole
        assert type(ending) is type(same)
        if at > 1000:
            return


def swapped(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def doubled(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[: at + 1], *lines[at:]]


def dropped(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *lines[at + 1 :]]


MOVES = {"swapped": swapped, "doubled": doubled, "dropped": dropped}
type Move = Callable[[list[bytes], int], list[bytes]]


@each_tape
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_lines_that_are_moved_are_found_wherever_they_are(move: Move, tape: bytes) -> None:
    lines, (entries, _) = lines_of(tape), read(tape)
    for at in range(len(lines) - 1):
        found, ending = read_what_can_be(zipped(*move(lines, at)))
        assert isinstance(ending, TapeFormatError), at
        assert found == entries[: len(found)]
        assert ending.place.line == len(found) + 1


def judge(data: bytes) -> Verdict:
    witness, decoder = Witness(), TapeDecoder("t")
    try:
        for entry in decoder.feed(data):
            witness.see(entry)
        return witness.judge(decoder.finish())
    except TapeFormatError as error:
        return witness.judge_damage(error)


def forged(lines: list[bytes]) -> bytes:
    """A tape of these lines with numbers, hashes and a seal made anew: as good as any, but for its last hash."""
    objects = [orjson.loads(line[:-73] + b"}") for line in lines[:-1]]
    text = chained(*[obj | {"i": number} for number, obj in enumerate(objects)])
    hasher = TraceHasher()
    for entry in read(zipped(*text))[0]:
        hasher.feed(entry.index, entry.record)
    encoder = TapeEncoder(HEAD, behind=(len(text), bytes.fromhex(text[-1][-67:-3].decode())))
    encoder.copy(b"".join(text))
    seal = encoder.seal(t=100, trace=hasher.hexdigest(), outcome="exited", messages=hasher.messages())
    return encoder.flush() + seal


def edited(old: bytes, new: bytes) -> Move:
    """Another text in a line."""

    def edit(lines: list[bytes], at: int) -> list[bytes]:
        assert old in lines[at]
        return [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]

    return edit


FORGERIES: list[tuple[bytes, bytes, Move]] = [
    # Chunks of one exchange: nothing else would tell.
    (WHOLE, b'"k":"chunks"', swapped),
    (WHOLE, b'"k":"chunks"', dropped),
    (TALKS, b'"type":"text"', dropped),
    (TALKS, b'"type":"text"', doubled),
    (TALKS, b'"data":"in "', swapped),
    (TALKS, b'"type":"ping"', dropped),
    (TALKS, b'"data":"two"', edited(b"two", b"too")),
    (TALKS, b'"code":4001', edited(b"4001", b"1000")),
    (TALKS, b'"grpc-status"', edited(b'"0"', b'"7"')),
    (TALKS, b'"code":11', edited(b"11", b"2")),
    (TALKS, b'"link"', edited(b"103", b"102")),
]


@pytest.mark.parametrize(("tape", "mark", "move"), FORGERIES)
def test_a_tape_that_was_chained_anew_is_known_by_its_last_hash_alone(tape: bytes, mark: bytes, move: Move) -> None:
    lines = lines_of(tape)
    at = next(i for i, line in enumerate(lines) if mark in line)
    fake = judge(forged(move(lines, at)))
    real = judge(tape)
    assert fake.finding == real.finding == "intact"
    assert fake.last_hash != real.last_hash
    assert fake.head_hash == real.head_hash
    for verdict, good in ((fake, False), (real, True)):
        assert vouching.judge(verdict, Demand(pin=real.last_hash), None, lambda _: False).good is good


def test_a_tape_that_was_chained_anew_with_the_old_trace_is_known_by_that() -> None:
    at = next(i for i, line in enumerate(LINES) if b'"k":"chunks"' in line)
    objects = [orjson.loads(line[:-73] + b"}") for line in swapped(LINES, at)]
    text = chained(*[obj | {"i": number} for number, obj in enumerate(objects)])
    assert judge(zipped(*text)).finding == "trace-differs"


@pytest.mark.parametrize("cut", [0, 5, 40])
def test_tapes_that_are_joined_are_found(cut: int) -> None:
    first = zipped(*LINES[:cut]) if cut else WHOLE
    verdict = judge(first + WHOLE)
    assert verdict.finding == "damaged"
    assert verdict.records == (cut or len(LINES))


def test_the_seal_of_another_tape_does_not_fit() -> None:
    other = sealed(RECORDS[:-1])
    seal = gzip.decompress(other).splitlines(keepends=True)[-1]
    body = WHOLE.removesuffix(stored_member(LINES[-1]))
    assert judge(body + stored_member(seal)).finding == "damaged"
    assert isinstance(ENTRIES[-1].record, Seal)
    assert ENDING.canonical
