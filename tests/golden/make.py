"""What made the golden tapes. Run it only for a NEW format version: a tape that is committed stays as it is, forever.

    python tests/golden/make.py NAME        # writes tests/golden/NAME.tape.jsonl.gz unless it exists

`v1` has every kind of record and every form of body that format 1 knew at first, and a few that it did not;
`v1-websockets` what passes on WebSockets.
"""

import gzip
import sys
from dataclasses import replace
from pathlib import Path

from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.encoder import TapeEncoder
from tapeproxy.tapes.records import (
    Chunks,
    End,
    Exit,
    Frame,
    Head,
    Headers,
    How,
    Like,
    Note,
    Record,
    Request,
    Response,
    Unknown,
)
from tapeproxy.tapes.trace import TraceHasher

FOLDER = Path(__file__).parent
JSON: Headers = ((b"Content-Type", b"application/json"),)
STREAM: Headers = ((b"Content-Type", b"text/event-stream; charset=utf-8"), (b"Transfer-Encoding", b"chunked"))
CHAT = b"https://api.openai.com/v1/chat/completions"
TURN = b'{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Say \xc3\xa9 and \xe2\x80\xa8."}'

HEAD = Head(
    must=("like", "ref"),
    by="tapeproxy 0.1.0",
    started_at="2026-03-29T01:59:59.999999Z",
    argv=("python", "agent.py", "caf\udce9"),
    cwd="/home/someone/agents/\udcff",
    host="00112233445566778899aabbccddeeff",
    platform="linux-x86_64",
    python="3.12.1",
    tz="Europe/Berlin",
    lang="C.UTF-8",
    secrets=("OPENAI_API_KEY",),
    seed="00" * 32,
    rules={"matching": 1, "redaction": 1},
    parent={"tape": "older.tape.jsonl.gz", "head": "00" * 32},
    branch={"at": 3},
    edit={"$.model": "gpt-4o-mini"},
    extra={"of-a-later-version": [1, 2.5, None]},
)


def v1() -> list[Record]:
    """The records after the head, in order; their numbers begin with 1."""
    return [
        # 1: plain, framed by its length
        Request(
            t=1_000_000, method=b"GET", url=b"http://golden.example/hello?b=2&a=1&a=0", headers=((b"Accept", b"*/*"),)
        ),
        Response(
            t=2_000_000,
            of=1,
            status=200,
            reason=b"Fine",
            headers=(
                (b"Content-Type", b"text/plain"),
                (b"Content-Length", b"6"),
                (b"Set-Cookie", b"a=1"),
                (b"Set-Cookie", b"b=2"),
                (b"X-Latin", b"caf\xe9"),
            ),
        ),
        Chunks(t=2_000_000, of=1, parts=((0, b"hel"), (1_500_000, b"lo\n"))),
        End(t=4_000_000, of=1, how="complete"),
        # 5: a stream in chunks, with early hints and trailers, in a lane
        Request(
            t=5_000_000,
            method=b"POST",
            url=CHAT,
            alpn="http/1.1",
            headers=JSON,
            body=TURN + b"]}",
            lane="0.t1",
            n=0,
            reads=17,
        ),
        Response(
            t=6_000_000,
            of=5,
            status=200,
            reason=b"OK",
            framing="chunked",
            headers=STREAM,
            informational=((103, ((b"Link", b"</style.css>; rel=preload"),)),),
        ),
        Chunks(t=7_000_000, of=5, parts=((0, b'data: {"choices":[{"delta":{"content":"\xc3'),)),
        Chunks(t=8_000_000, of=5, parts=((0, b'\xa9"}}]}\n\n'), (250_000, b"data: [DONE]\n\n"))),
        End(t=9_000_000, of=5, how="complete", trailers=((b"X-Checksum", b"1"),)),
        # 10: the next turn, as new bytes around the last one
        Request(
            t=10_000_000,
            method=b"POST",
            url=CHAT,
            headers=JSON,
            body=Like(5, len(TURN), b',{"role":"assistant","content":"\xc3\xa9"}', 2),
            lane="0.t1",
            n=1,
            reads=20,
        ),
        Response(t=11_000_000, of=10, status=429, reason=b"Too Many Requests", headers=((b"Retry-After", b"20"),)),
        End(t=12_000_000, of=10, how="complete"),
        # 13: the same again, by reference, and an answer like an earlier one
        Request(t=13_000_000, method=b"POST", url=CHAT, headers=JSON, body=Like(10, whole=True)),
        Response(t=14_000_000, of=13, status=200, reason=b"OK", framing="chunked", headers=STREAM),
        Chunks(t=15_000_000, of=13, parts=((0, Like(7, whole=True)), (1, Like(8, 8, b"data: {}\n\n", 14)))),
        End(t=16_000_000, of=13, how="client-gone", error="the client left"),
        # 17: binary and compressed bodies, and times nobody knows
        Request(t=17_000_000, method=b"PUT", url=b"https://files.example/a%2Fb", headers=JSON, body=b"\x00\xff\xfe{}"),
        Response(
            t=18_000_000,
            of=17,
            status=201,
            reason=b"",
            framing="close",
            http="HTTP/1.0",
            headers=((b"Content-Encoding", b"gzip"),),
        ),
        Chunks(t=18_000_000, of=17, parts=((None, gzip.compress(b'{"ok":0.00}', mtime=0)),)),
        End(t=19_000_000, of=17, how="complete"),
        # 21: a streamed upload that was cut
        Request(t=20_000_000, method=b"POST", url=b"https://files.example/up"),
        Chunks(t=21_000_000, of=21, to="server", parts=((0, b"part one,"), (10, b"part two"))),
        End(t=22_000_000, of=21, how="reset", error="caf\udce9"),
        # 24: no answer at all, one without a body, and one to the run's own server
        Request(t=23_000_000, method=b"GET", url=b"https://down.example/"),
        End(t=24_000_000, of=24, how="connect-error", error="connection refused"),
        Request(t=25_000_000, method=b"HEAD", url=b"https://files.example/big"),
        Response(t=26_000_000, of=26, status=200, framing="none", headers=((b"Content-Length", b"1488324"),)),
        End(t=27_000_000, of=26, how="complete"),
        Request(t=28_000_000, method=b"GET", url=b"http://127.0.0.1:4321/tools", inside=True),
        Response(t=29_000_000, of=29, status=204, reason=b"No Content", framing="none"),
        End(t=30_000_000, of=29, how="complete", extra={"later": True}),
        # 32: nothing more than the head of an answer, when the recording ended
        Request(t=31_000_000, method=b"GET", url=b"https://slow.example/"),
        Response(t=32_000_000, of=32, status=200, framing="length", headers=((b"Content-Length", b"10"),)),
        Chunks(t=33_000_000, of=32, parts=((0, b"01234"),)),
        # 35: the rest
        Unknown(kind="lane", extra={"t": 34_000_000, "id": "0.t1", "name": "planner"}),
        Note(t=35_000_000, what="bypass", text="a connection went past the proxy", data={"host": "db", "port": 5432}),
        Exit(t=36_000_000, code=None, signal="SIGINT", duration=36_000_000),
    ]


def v1_websockets() -> list[Record]:
    """An echo, a long frame in pieces that breaks off, and one that could not be read."""
    upgrade: Headers = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))
    accepted: Headers = (*upgrade, (b"Sec-WebSocket-Accept", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    out: list[Record] = []
    talks: tuple[tuple[How, tuple[Frame, ...]], ...] = (
        (
            "complete",
            (
                Frame(t=10, of=0, n=0, to="server", type="text", data=b'{"say":"\xc3\xa9"}'),
                Frame(t=30, of=0, n=2, to="client", type="ping", data=b"now"),
                Frame(t=20, of=0, n=1, to="client", type="text", data=b"half ", open="message"),
                Frame(t=40, of=0, n=3, to="client", type="text", data=b"and half"),
                Frame(t=50, of=0, n=4, to="server", type="pong", data=b"now"),
                Frame(t=60, of=0, n=5, to="server", type="binary", data=b"\x00\xff", extra={"later": 1}),
                Frame(t=70, of=0, n=6, to="server", type="close", code=1000, data=b"bye"),
                Frame(t=80, of=0, n=7, to="client", type="close"),
            ),
        ),
        (
            "upstream-cut",
            (
                Frame(t=10, of=0, n=0, to="client", type="binary", data=b"\x01" * 4, open="frame"),
                Frame(t=20, of=0, n=1, to="client", type="binary", data=b"\x02", open="frame"),
            ),
        ),
        ("client-gone", (Frame(t=10, of=0, n=0, to="client", type="untaped", data=b"an extension"),)),
    )
    for number, (how, frames) in enumerate(talks):
        of, t = len(out) + 1, number * 1_000
        out.append(Request(t=t, method=b"GET", url=b"https://golden.example/talk", headers=upgrade))
        out.append(
            Response(t=t + 5, of=of, status=101, reason=b"Switching Protocols", framing="none", headers=accepted)
        )
        out += [replace(frame, of=of, t=t + frame.t) for frame in frames]
        out.append(End(t=t + 100, of=of, how=how))
    return out


def make(head: Head, records: list[Record]) -> bytes:
    """The bytes of a sealed tape, with the trace hash of its records as a reader sees them."""
    encoder = TapeEncoder(head)
    data = [encoder.flush()]
    for record in records:
        encoder.add(record)
        data.append(encoder.flush())
    decoder, hasher = TapeDecoder("golden"), TraceHasher()
    for piece in data:
        for entry in decoder.feed(piece):
            hasher.feed(entry.index, entry.record)
    trace, messages = hasher.hexdigest(), hasher.messages()
    data.append(encoder.seal(t=37_000_000, trace=trace, messages=messages, outcome="killed"))
    return b"".join(data)


if __name__ == "__main__":
    (name,) = sys.argv[1:]
    data = make(HEAD, {"v1": v1, "v1-websockets": v1_websockets}[name]())
    with (FOLDER / f"{name}.tape.jsonl.gz").open("xb") as file:
        file.write(data)
