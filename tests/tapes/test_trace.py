"""The trace hash of exchanges is the one of their records."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import agentruns

from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.reading import Reading
from tapeproxy.tapes.records import Chunks, End, Frame, Record, Request, Response
from tapeproxy.tapes.trace import TraceHasher, join_parts, part_of

GOLDEN = Path(__file__).parents[1] / "golden" / "v1.tape.jsonl.gz"


def trace(exchanges: Sequence[Exchange]) -> str:
    return join_parts(part_of(one, Reading(1)) for one in exchanges if not one.request.inside)


def test_all_exchanges_of_a_tape_make_the_trace_in_its_seal(tmp_path: Path) -> None:
    records = agentruns.sample()
    # One of them is asked for twice.
    path = agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", [*records, *agentruns.chat(len(records) + 1)])
    for one in (path, GOLDEN):
        tape, _ = load(one)
        assert tape.seal is not None
        assert trace(tape.exchanges) == tape.seal.trace
        assert trace(tape.exchanges[::-1]) == tape.seal.trace, "the order in which they are given says nothing"


def lanes(*asked: tuple[str | None, str], inside: bool = False) -> dict[str, str]:
    """The digests of lanes that asked for these paths, in this order."""
    hasher, records = TraceHasher(), list[Record]()
    for lane, path in asked:
        request, *rest = agentruns.exchange(len(records), f"http://x.test{path}", chunks=[path.encode()], lane=lane)
        assert isinstance(request, Request)
        records += [replace(request, inside=inside), *rest]
    for index, record in enumerate(records):
        hasher.feed(index, record)
    return hasher.lanes()


def test_a_lane_s_digest_is_of_its_own_exchanges_in_their_order() -> None:
    first = lanes(("m", "/a"), ("m/t1", "/b"), (None, "/c"), ("m", "/d"))
    assert set(first) == {"m", "m/t1"}
    assert len(first["m"]) == 64
    assert lanes(("m/t1", "/b"), ("m", "/a"), ("m", "/d")) == first, "the lanes may interleave otherwise"
    assert lanes(("m", "/d"), ("m", "/a"))["m"] != first["m"], "but within a lane the order counts"
    assert lanes(("m", "/a"))["m"] != first["m"]
    assert lanes(("m/t1", "/a"), ("m/t1", "/d"))["m/t1"] == first["m"]
    assert lanes(("m", "/a"), inside=True) == {}


def test_every_exchange_matters(tmp_path: Path) -> None:
    tape, _ = load(agentruns.write_tape(tmp_path / "x.tape.jsonl.gz", agentruns.sample()))
    some = [trace([e for e in tape.exchanges if e is not left_out]) for left_out in tape.exchanges]
    assert len({trace(tape.exchanges), *some}) == 1 + len(tape.exchanges)


# --- what passes on WebSockets ---


def frames(*said: str) -> list[Record]:
    """Frames: `>` to the server, `<` to the client; `.` ends a message, `-` a frame, `~` neither."""
    ends = {".": None, "-": "message", "~": "frame"}
    return [
        Frame(
            t=10 + n,
            of=1,
            n=n,
            to="server" if word[0] == ">" else "client",
            type="ping" if word[1:-1] == "ping" else "close" if word[1:-1] == "bye" else "text",
            data=word[1:-1].encode(),
            open=ends[word[-1]],  # type: ignore[arg-type]
            code=1000 if word[1:-1] == "bye" else None,
        )
        for n, word in enumerate(said)
    ]


def messages(*said: str) -> tuple[str | None, str]:
    """The digest of messages, and the trace."""
    request = Request(t=1, method=b"GET", url=b"http://x.test/ws")
    opened = Response(t=2, of=1, status=101, framing="none")
    hasher = TraceHasher()
    for index, record in enumerate([request, opened, *frames(*said), End(t=99, of=1, how="complete")], 1):
        hasher.feed(index, record)
    return hasher.messages(), hasher.hexdigest()


def test_what_passed_on_a_websocket_has_a_digest_of_its_own() -> None:
    digest, trace = messages(">one.", "<two.", "<three.", ">bye.", "<bye.")
    assert digest is not None and len(digest) == 64
    same = [
        (">one.", "<two.", ">bye.", "<three.", "<bye."),  # the directions interleave otherwise
        (">o-", "<two.", "<thr~", "<ee-", "<.", ">ne.", ">bye.", "<bye."),  # other frames, and pieces
        ("<ping.", ">one.", ">ping.", "<two.", "<three.", ">bye.", "<bye."),
    ]
    other = [
        (">one.", "<three.", "<two.", ">bye.", "<bye."),
        ("<one.", ">two.", ">three.", "<bye.", ">bye."),
        (">one.", "<twothree.", ">bye.", "<bye."),
        (">one.", "<two.", "<three-", ">bye.", "<bye."),
        (">one.", "<two.", "<three.", ">bye."),
        (),
    ]
    assert [messages(*said) for said in same] == [(digest, trace)] * len(same)
    found = [messages(*said) for said in other]
    assert len({digest, *(one for one, _ in found)}) == 1 + len(other)
    assert {one for _, one in found} == {trace}, "a reader that knows no WebSockets finds the same trace"
    assert found[-1][0] is None


def uploads(*sent: tuple[str, ...]) -> tuple[str | None, str]:
    """The digests of uploads, and the trace, of exchanges that sent these pieces."""
    hasher, records = TraceHasher(), list[Record]()
    for pieces in sent:
        of = len(records)
        request, *rest = agentruns.exchange(of, "http://x.test/", chunks=[b"ok"])
        body = [Chunks(t=1, of=of, to="server", parts=((0, piece.encode()),)) for piece in pieces]
        records += [request, *body, *rest]
    for index, record in enumerate(records):
        hasher.feed(index, record)
    return hasher.uploads(), hasher.hexdigest()


def test_what_was_streamed_to_servers_has_a_digest_of_its_own() -> None:
    digest, trace = uploads(("one ", "two"), ("three",))
    assert digest is not None and len(digest) == 64
    same = [(("one two",), ("three",)), (("three",), ("one", " two"))]  # other pieces, another order
    other = [(("one ", "tw0"), ("three",)), (("one two",), ("one two",)), (("one two",), ()), (("one twothree",), ())]
    assert [uploads(*sent) for sent in same] == [(digest, trace)] * 2
    found = [uploads(*sent) for sent in other]
    assert digest not in {one for one, _ in found}
    assert {one for _, one in found} == {trace}
    assert uploads((), ())[0] is None
