"""Tapes for tests of exports, and the way back: an exported file imported again, in memory."""

from collections.abc import Callable, Iterable
from typing import Any

import agentruns
import difftapes
from hypothesis import strategies as st

from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.imports.foreign import Foreign, mended
from tapeproxy.tapes.imports.formats import format_of, formats
from tapeproxy.tapes.imports.nodes import Node
from tapeproxy.tapes.imports.taping import records_of
from tapeproxy.tapes.records import Chunks, End, Headers, How, Record, Request, Response

MS = 1_000_000
_TOKEN = st.text("abcXYZ0-_", min_size=1, max_size=6)
_VALUE = st.binary(max_size=8).map(lambda data: data.translate(None, b"\r\n\0").strip())
_NAMES = st.one_of(
    _TOKEN, st.sampled_from(["Set-Cookie", "set-cookie", "Content-Type", "Content-Encoding", "Content-Length", "X-A"])
)
_VALUES = st.one_of(_VALUE, st.sampled_from([b"gzip", b"7", b"application/json", b"text/html; charset=shift_jis"]))
HEADERS = st.lists(st.tuples(_NAMES.map(str.encode), _VALUES), max_size=5).map(tuple)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
BODIES = st.one_of(
    st.just(b""),
    st.binary(max_size=30),
    TEXTS.map(str.encode),
    st.text(" \t\n\r\x0b\x85\u2028\ufeff:#-'\"\\|>&*!%@`{}[],?a\u00e9\x00\x7f\U0001f600", max_size=20).map(str.encode),
    st.sampled_from(
        [b'{"a": 1}', b'["QUJD"]', b"data: x\n\ndata: y\n\n", b"null", b"12e3", b"~", b"yes", b"2026-01-02"]
    ),
)
URLS = st.one_of(
    st.sampled_from(
        [
            b"https://h.test/",
            b"http://h.test:8080/a%20b?x=1&x=2&y",
            b"https://h.test/p?q=\xc3\xa9",
            b"https://h.test/\xff#x",
            b"https://[::1]/a;b=c?d==e&&",
        ]
    ),
    st.text("abc/%2F?&=+~:@!$'()*,;", max_size=12).map(lambda text: b"https://h.test/" + text.encode()),
)


class NoRedaction:
    """Leaves all as it is."""

    def url(self, url: bytes) -> bytes:
        return url

    def message(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        return headers, body


@st.composite
def tapes(draw: st.DrawFn) -> Tape:
    """A tape of a few exchanges: whole ones, some that failed, one at the end that is unfinished."""
    records: list[Record] = []
    for _ in range(draw(st.integers(1, 3))):
        index, start = len(records) + 1, draw(st.integers(0, 10**10))
        records.append(
            Request(
                t=start,
                method=draw(st.sampled_from([b"GET", b"POST", b"HEAD", b"patch"])),
                url=draw(URLS),
                headers=draw(HEADERS),
                body=draw(BODIES),
                inside=draw(st.booleans()),
            )
        )
        if draw(st.integers(0, 4)) == 0:
            records.append(End(t=start + 5, of=index, how="connect-error", error="refused"))
            continue
        at = start + draw(st.integers(0, 10**9))
        records.append(
            Response(
                t=at,
                of=index,
                status=draw(st.sampled_from([200, 204, 404, 500])),
                reason=draw(st.sampled_from([b"OK", b"", b"Caf\xe9"])),
                headers=draw(HEADERS),
                framing=draw(st.sampled_from(["length", "chunked", "close", "none"])),
            )
        )
        for piece in draw(st.lists(BODIES, max_size=3)):
            at += draw(st.integers(0, 10**8))
            records.append(Chunks(t=at, of=index, parts=((0, piece),)))
        how: How = draw(st.sampled_from(["complete", "complete", "upstream-cut", "client-gone"]))
        records.append(End(t=at + 1, of=index, how=how, trailers=draw(st.sampled_from([(), ((b"t", b"\xe9"),)]))))
    return difftapes.read(records)


def imported(document: Any) -> Tape:
    """The tape that `import` makes of a parsed file."""
    root = Node(document)
    found = format_of(root, formats("", lambda _: b""))
    return taped(found.take(entry) for entry in found.entries(root))


def taped(taken: Iterable[Foreign]) -> Tape:
    """The tape of exchanges that were read."""
    return difftapes.read(records_of([mended(one) for one in taken], NoRedaction()))


def exported(export: Callable[..., Iterable[bytes]], tape: Tape, lost: list[str] | None = None) -> bytes:
    """The file, and in `lost` what it cannot hold."""
    return b"".join(export(tape, "x.tape.jsonl.gz", (lost if lost is not None else []).append))


def in_order(tape: Tape) -> list[Exchange]:
    """Its exchanges as an importer puts them: by time."""
    return sorted(tape.exchanges, key=lambda one: one.request.t)


def facts(one: Exchange, *, begin: int = 0) -> dict[str, Any]:
    """All of an exchange but its numbers; times from `begin`."""
    request, response, end = one.request, one.response, one.end
    out: dict[str, Any] = {
        "asked": (request.method, request.url, request.headers, one.request_body, request.inside, request.http),
        "t": request.t - begin,
        "end": None if end is None else (end.how, end.error, end.trailers, end.t - begin),
    }
    if response is not None:
        out["answer"] = (response.status, response.reason, response.headers, response.framing, response.t - begin)
        out["chunks"] = [(None if chunk.t is None else chunk.t - begin, chunk.data) for chunk in one.chunks]
    return out


def sample() -> Tape:
    """A streamed LLM call, JSON, a 404 with bytes, a refused connection."""
    return difftapes.read(agentruns.sample())
