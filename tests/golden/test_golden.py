"""Golden tapes: one of every format version, committed once, readable forever. The facts here are never updated."""

from pathlib import Path

import pytest

from tapeproxy.proxy.tapefile import load, read_entries
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.records import Lane, Note
from tapeproxy.tapes.trace import TraceHasher, trace_hash

FOLDER = Path(__file__).parent
V1 = FOLDER / "v1.tape.jsonl.gz"
V1_WEBSOCKETS = FOLDER / "v1-websockets.tape.jsonl.gz"


@pytest.fixture(scope="module")
def v1() -> Tape:
    return load(V1)[0]


def test_every_golden_tape_has_its_facts_here() -> None:
    assert [path.name for path in sorted(FOLDER.glob("*.gz"))] == [V1_WEBSOCKETS.name, V1.name]


def test_v1_is_whole() -> None:
    ending = load(V1)[1]
    assert (ending.sealed, ending.canonical, ending.records, ending.lost) == (True, True, 39, 0)
    assert ending.hash == "c6030229be1fc0afac1dfb114001a3275cdb4d518d109a103cda1a856603fb6d"


def test_v1_head(v1: Tape) -> None:
    head = v1.head
    assert (head.version, head.must, head.by) == (1, ("like", "ref"), "tapeproxy 0.1.0")
    assert head.started_at == "2026-03-29T01:59:59.999999Z"
    assert (head.argv, head.cwd) == (("python", "agent.py", "caf\udce9"), "/home/someone/agents/\udcff")
    assert (head.host, head.platform, head.python) == ("00112233445566778899aabbccddeeff", "linux-x86_64", "3.12.1")
    assert (head.tz, head.lang, head.secrets) == ("Europe/Berlin", "C.UTF-8", ("OPENAI_API_KEY",))
    assert (head.seed, head.rules) == ("0" * 64, {"matching": 1, "redaction": 1})
    assert head.parent == {"tape": "older.tape.jsonl.gz", "head": "0" * 64}
    assert (head.branch, head.edit) == ({"at": 3}, {"$.model": "gpt-4o-mini"})
    assert head.extra == {"of-a-later-version": [1, 2.5, None]}


ASK = b'{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Say \xc3\xa9 and \xe2\x80\xa8."}'
AGAIN = ASK + b',{"role":"assistant","content":"\xc3\xa9"}]}'
SAID = b'data: {"choices":[{"delta":{"content":"\xc3\xa9"}}]}\n\n'
ZIPPED = bytes.fromhex("1f8b0800000000000203ab56cacf56b232d03330a8050039f7e13a0b000000")
# method, URL, request body, status, response body, how it ended
EXCHANGES = [
    (b"GET", b"http://golden.example/hello?b=2&a=1&a=0", b"", 200, b"hello\n", "complete"),
    (b"POST", b"https://api.openai.com/v1/chat/completions", ASK + b"]}", 200, SAID + b"data: [DONE]\n\n", "complete"),
    (b"POST", b"https://api.openai.com/v1/chat/completions", AGAIN, 429, b"", "complete"),
    (
        b"POST",
        b"https://api.openai.com/v1/chat/completions",
        AGAIN,
        200,
        SAID + b"data: {}\n\ndata: [DONE]\n\n",
        "client-gone",
    ),
    (b"PUT", b"https://files.example/a%2Fb", b"\x00\xff\xfe{}", 201, ZIPPED, "complete"),
    (b"POST", b"https://files.example/up", b"part one,part two", None, b"", "reset"),
    (b"GET", b"https://down.example/", b"", None, b"", "connect-error"),
    (b"HEAD", b"https://files.example/big", b"", 200, b"", "complete"),
    (b"GET", b"http://127.0.0.1:4321/tools", b"", 204, b"", "complete"),
    (b"GET", b"https://slow.example/", b"", 200, b"01234", None),
]


def facts(exchange: Exchange) -> tuple[object, ...]:
    return (
        exchange.request.method,
        exchange.request.url,
        exchange.request_body,
        exchange.response and exchange.response.status,
        exchange.response_body,
        exchange.end and exchange.end.how,
    )


def test_v1_exchanges(v1: Tape) -> None:
    assert [facts(exchange) for exchange in v1.exchanges] == EXCHANGES


def test_v1_details(v1: Tape) -> None:
    plain, stream, _, _, binary, upload, down, _, inside, _ = v1.exchanges
    assert plain.request.headers == ((b"Accept", b"*/*"),)
    assert plain.response is not None
    assert plain.response.reason == b"Fine"
    assert plain.response.headers[2:] == ((b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2"), (b"X-Latin", b"caf\xe9"))
    assert [(chunk.t, chunk.data) for chunk in plain.chunks] == [(2_000_000, b"hel"), (3_500_000, b"lo\n")]
    assert (stream.request.lane, stream.request.n, stream.request.reads) == ("0.t1", 0, 17)
    assert stream.request.alpn == "http/1.1"
    assert stream.response is not None
    assert stream.response.framing == "chunked"
    assert stream.response.informational == ((103, ((b"Link", b"</style.css>; rel=preload"),)),)
    assert [len(chunk.data) for chunk in stream.chunks] == [40, 8, 14]
    assert stream.end is not None
    assert stream.end.trailers == ((b"X-Checksum", b"1"),)
    assert binary.response is not None
    assert (binary.response.http, binary.response.framing, binary.chunks[0].t) == ("HTTP/1.0", "close", None)
    assert [chunk.t for chunk in upload.uploads] == [21_000_000, 21_000_010]
    assert upload.end is not None
    assert upload.end.error == "caf\udce9"
    assert down.end is not None
    assert down.end.error == "connection refused"
    assert inside.request.inside
    assert inside.end is not None
    assert inside.end.extra == {"later": True}


def test_v1_trace() -> None:
    """Requests are told apart as the tape's version of matching did."""
    records = [(entry.index, entry.record) for entry in read_entries(V1)]
    assert trace_hash(records) == "8e41f903b6f2e5ca0b579510cedd9fe48c367b36fb410b863ddd22e23394cf03"


def test_v1_rest(v1: Tape) -> None:
    data = {"host": "db", "port": 5432}
    assert v1.notes == [Note(t=35_000_000, what="bypass", text="a connection went past the proxy", data=data)]
    assert v1.exit is not None
    assert (v1.exit.code, v1.exit.signal, v1.exit.duration) == (None, "SIGINT", 36_000_000)
    assert v1.seal is not None
    assert (v1.seal.records, v1.seal.outcome) == (38, "killed")
    assert [entry.record for entry in read_entries(V1) if isinstance(entry.record, Lane)] == [
        Lane(t=34_000_000, id="0.t1", name="planner")
    ]


# --- what passes on WebSockets ---

# of which exchange, number, to whom, type, data, what is open, code
FRAMES = [
    (1, 0, "server", "text", '{"say":"é"}'.encode(), None, None),
    (1, 2, "client", "ping", b"now", None, None),
    (1, 1, "client", "text", b"half ", "message", None),
    (1, 3, "client", "text", b"and half", None, None),
    (1, 4, "server", "pong", b"now", None, None),
    (1, 5, "server", "binary", b"\x00\xff", None, None),
    (1, 6, "server", "close", b"bye", None, 1000),
    (1, 7, "client", "close", b"", None, None),
    (2, 0, "client", "binary", b"\x01\x01\x01\x01", "frame", None),
    (2, 1, "client", "binary", b"\x02", "frame", None),
    (3, 0, "client", "untaped", b"an extension", None, None),
]


def test_v1_websockets() -> None:
    tape, ending = load(V1_WEBSOCKETS)
    assert (ending.sealed, ending.canonical, ending.records, ending.lost) == (True, True, 22, 0)
    assert ending.hash == "06814769458b21533bdaac391043a8019f3d6c0d467a2060bd53afdc6e12ec19"
    found = [(one.number, f.n, f.to, f.type, f.data, f.open, f.code) for one in tape.exchanges for f in one.frames]
    assert found == FRAMES
    assert tape.exchanges[0].frames[5].extra == {"later": 1}
    assert [one.end.how for one in tape.exchanges if one.end] == ["complete", "upstream-cut", "client-gone"]
    hasher = TraceHasher()
    for entry in read_entries(V1_WEBSOCKETS):
        hasher.feed(entry.index, entry.record)
    assert hasher.hexdigest() == "00e008c5a0958cf15b4c26581accc9068fc94f63cc92d5ae3709a5c556d7104a"
    assert hasher.messages() == "93f48d41fd0d75e6e54eaee7cb2ce9f95894ca1c1e08bbe3f71f4f9696e368be"
    assert tape.seal is not None
    assert (tape.seal.trace, tape.seal.messages) == (hasher.hexdigest(), hasher.messages())
