"""Secrets in bodies that come in pieces: split over pieces, over the deltas of events, over frames, or compressed."""

import base64
import gzip
import json
import random
import struct
import time
import zlib
from collections.abc import Callable, Iterator

import pytest
from awsframes import frame
from hypothesis import given
from hypothesis import strategies as st
from layers import holds

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import RedactionRules
from tapeproxy.tapes.sse import parse_events
from tapeproxy.tapes.tokens import make_token, mask_tokens

KEY = bytes(range(32))
KNOWN = "correct-horse-battery/staple+7"
LOOK = "sk-" + "proj-AbCdEfGhIj0123456789KlMnOpQrSt"
PEM = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3 + "-----END PRIVATE KEY-----\n"
SSE = ((b"Content-Type", b"text/event-stream"),)
LINES = ((b"Content-Type", b"application/x-ndjson"),)
FRAMES = ((b"Content-Type", b"application/vnd.amazon.eventstream"),)


def redact(
    pieces: list[bytes], headers: tuple[tuple[bytes, bytes], ...] = (), rules: RedactionRules | None = None
) -> list[bytes]:
    """The pieces as they are written."""
    stream = Redactor(KEY, [KNOWN], rules or RedactionRules()).stream(headers)
    out: list[tuple[int, bytes]] = []
    for number, piece in enumerate(pieces):
        out += stream.feed(number, piece)
    out += stream.finish()
    assert [t for t, _ in out] == list(range(len(pieces)))
    return [data for _, data in out]


def cut(data: bytes, *places: int) -> list[bytes]:
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def chat(text: str, **more: object) -> bytes:
    choice = {"index": 0, "delta": {"content": text} | more, "finish_reason": None}
    return b"data: " + json.dumps({"id": "chatcmpl-1", "choices": [choice]}).encode() + b"\n\n"


def tool(text: str) -> bytes:
    call = {"index": 1, "function": {"arguments": text}}
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).encode() + b"\n\n"


def anthropic(text: str) -> bytes:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
    return b"event: content_block_delta\ndata: " + json.dumps(delta).encode() + b"\n\n"


def response(text: str) -> bytes:
    delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": text}
    return b"data: " + json.dumps(delta).encode() + b"\n\n"


def ollama(text: str) -> bytes:
    return json.dumps({"model": "m", "message": {"role": "assistant", "content": text}, "done": False}).encode() + b"\n"


EVENTS: dict[str, tuple[Callable[[str], bytes], tuple[tuple[bytes, bytes], ...]]] = {
    "chat": (chat, SSE),
    "tool": (tool, SSE),
    "anthropic": (anthropic, SSE),
    "response": (response, SSE),
    "ollama": (ollama, LINES),
}


@pytest.mark.parametrize("secret", [KNOWN, LOOK])
@pytest.mark.parametrize("at", range(3, 33, 2))
def test_an_event_cut_anywhere_in_a_secret(secret: str, at: int) -> None:
    body = chat("the key is " + secret + ", keep it")
    place = body.index(secret.encode()) + at
    out = redact(cut(body, place), SSE)
    assert [len(piece) for piece in out] == [place, len(body) - place]
    assert mask_tokens(b"".join(out)) == body.replace(secret.encode(), b"<secret>")


@pytest.mark.parametrize("secret", [KNOWN, LOOK])
def test_a_stream_that_comes_byte_by_byte(secret: str) -> None:
    body = chat("hi") + chat("key " + secret) + chat("bye")
    assert not holds(b"".join(redact(cut(body, *range(1, len(body))), SSE)), secret.encode()[2:])


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("secret", [KNOWN, LOOK, PEM])
@pytest.mark.parametrize("size", [1, 3, 7, 16])
def test_a_secret_over_the_deltas_of_many_events(kind: str, secret: str, size: int) -> None:
    make, headers = EVENTS[kind]
    words = ["the ", "key ", "is ", *(secret[n : n + size] for n in range(0, len(secret), size)), " and", " more"]
    pieces = [make(word) for word in words]
    out = redact(pieces, headers)
    assert list(map(len, out)) == list(map(len, pieces))
    hidden = secret[2:] if secret != PEM else "MIIEvQIBADANBgkqhkiG9w0BAQEF"
    assert not holds(b"".join(out), hidden.encode())
    if size >= 3 and secret != PEM:
        told = b"".join(out)
        token = make_token(KEY, secret.encode())
        assert holds(told, b"the key is " + token + b" and more")
    assert redact(out, headers) == out


def test_two_texts_side_by_side_are_told_apart() -> None:
    pieces = [chat(LOOK[:9]), tool(KNOWN[:9]), chat(LOOK[9:]), tool(KNOWN[9:]), chat(" a"), tool(" b")]
    out = b"".join(redact(pieces, SSE))
    assert not holds(out, LOOK.encode()) and not holds(out, KNOWN.encode())
    assert len(parse_events(out)) == 6


def test_the_field_of_a_tool_call_comes_in_deltas() -> None:
    words = ['{"pass', 'word"', ": ", '"hun', "ter", '2-x"', ', "n": 1}']
    out = b"".join(redact([*map(anthropic, words)], SSE))
    assert not holds(out, b"hunter2-x") and not holds(out, b"ter2-x")


def test_events_are_written_as_they_come_while_nothing_is_suspicious() -> None:
    stream = Redactor(KEY, [KNOWN]).stream(SSE)
    for n in range(50):
        assert stream.feed(n, chat(f"word {n} sk "))
    assert not stream.feed(50, chat("it is sk-"))
    assert len(stream.feed(51, chat(" not one"))) == 2


def test_what_is_held_back_is_bounded() -> None:
    stream = Redactor(KEY).stream()
    out = stream.feed(0, b'{"password":"')
    held: list[int] = []
    for n in range(1, 100):
        out += stream.feed(n, b"a1" * 512)
        held.append(n + 1 - len(out))
    assert held[0] == 1 and max(held) <= 18
    assert len(out) + len(stream.finish()) == 100
    assert b"a1a1" not in b"".join(data for _, data in out[:16])


def test_the_name_of_a_field_comes_before_its_value() -> None:
    out = redact([b'{"access_', b'token"', b": ", b'"abc', b"def-1", b'23", "x": 1}'])
    assert b"abc" not in b"".join(out) and b"123" not in b"".join(out)


def test_a_pattern_of_the_user_is_found_over_pieces() -> None:
    rules = RedactionRules(patterns=(r"\d{3}-\d\d-\d{4}",))
    out = redact([b"it is 078-0", b"5-112", b"0, no more"], (), rules)
    assert mask_tokens(b"".join(out)) == b"it is <secret>, no more"
    out = redact([chat("078-"), chat("05-"), chat("1120"), chat(".")], SSE, rules)
    assert not holds(b"".join(out), b"078-05-1120")


def test_a_compressed_stream_is_one_piece_when_a_secret_is_in_it() -> None:
    headers = ((b"Content-Encoding", b"gzip"), *SSE)
    body = gzip.compress(chat(LOOK[:9]) + chat(LOOK[9:]) + chat(" end"), mtime=0)
    stream = Redactor(KEY).stream(headers)
    out = [*stream.feed(1, body[:20]), *stream.feed(2, body[20:]), *stream.finish()]
    assert stream.recoded
    assert [t for t, _ in out] == [2]
    assert not holds(out[0][1], LOOK.encode())
    assert decode(out[0][1], headers).whole
    clean = gzip.compress(chat("nothing") * 9, mtime=0)
    stream = Redactor(KEY).stream(headers)
    assert [*stream.feed(1, clean[:20]), *stream.feed(2, clean[20:]), *stream.finish()] == [
        (1, clean[:20]),
        (2, clean[20:]),
    ]
    assert not stream.recoded


def converse(text: str) -> bytes:
    return frame(json.dumps({"delta": {"text": text}, "contentBlockIndex": 0}).encode())


def invoke(text: str) -> bytes:
    inner = json.dumps({"type": "content_block_delta", "index": 0, "delta": {"text": text}}).encode()
    return frame(json.dumps({"bytes": base64.b64encode(inner).decode(), "p": "abc"}).encode())


def payloads(data: bytes) -> Iterator[bytes]:
    """The payloads of frames whose checksums are right."""
    while data:
        size, headers, check = struct.unpack_from(">III", data)
        assert check == zlib.crc32(data[:8])
        assert struct.unpack(">I", data[size - 4 : size])[0] == zlib.crc32(data[: size - 4])
        payload = data[12 + headers : size - 4]
        inner = json.loads(payload).get("bytes")
        yield payload if inner is None else base64.b64decode(inner)
        data = data[size:]


@pytest.mark.parametrize("make", [converse, invoke])
@pytest.mark.parametrize("secret", [KNOWN, LOOK])
@pytest.mark.parametrize("size", [3, 8, 100])
@pytest.mark.parametrize("step", [13, 64, 10_000])
def test_frames_keep_lengths_and_get_new_checksums(
    make: Callable[[str], bytes], secret: str, size: int, step: int
) -> None:
    words = ["it is ", *(secret[n : n + size] for n in range(0, len(secret), size)), ", no more"]
    body = b"".join(map(make, words))
    out = redact(cut(body, *range(step, len(body), step)), FRAMES)
    assert list(map(len, out)) == list(map(len, cut(body, *range(step, len(body), step))))
    told = b"\n".join(payloads(b"".join(out)))
    assert not holds(told, secret.encode())
    assert holds(told, b"it is " + make_token(KEY, secret.encode()) + b", no more")


def test_what_is_no_frame_is_let_go_without_known_secrets() -> None:
    out = redact([converse("x"), b"\0\0\0\x10garbage " + KNOWN.encode(), b" and more"], FRAMES)
    assert b"".join(out).endswith(b" and more") and KNOWN.encode() not in b"".join(out)


def test_messages_of_a_websocket() -> None:
    messages = Redactor(KEY, [KNOWN]).messages()
    told: list[tuple[int, bytes]] = []
    for n, word in enumerate([LOOK[:8], LOOK[8:20], LOOK[20:], " done", KNOWN]):
        event = {"type": "response.text.delta", "item_id": "i", "delta": word}
        told += messages.feed(n, json.dumps(event).encode())
    told += messages.finish()
    assert [t for t, _ in told] == list(range(5))
    assert all(json.loads(data)["type"] == "response.text.delta" for _, data in told)
    assert not holds(b"\n".join(data for _, data in told), LOOK.encode())
    assert not holds(b"\n".join(data for _, data in told), KNOWN.encode())


@pytest.mark.parametrize("begun", [1, 2, 3])
def test_an_event_before_had_the_first_letters_and_a_piece_ends_in_a_line(begun: int) -> None:
    body = chat(KNOWN[:begun]) + chat(KNOWN[begun:] + " and more")
    for place in range(len(body) - 60, len(body)):
        assert not holds(b"".join(redact(cut(body, place), SSE)), KNOWN.encode())


@given(st.lists(st.sampled_from([KNOWN, LOOK, "sk-", "hello ", KNOWN[:9], '\\"', "é"]), max_size=6), st.data())
def test_events_cut_anywhere_in_words_and_bytes(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    body = b"".join(chat(text[a:b]) for a, b in zip([0, *places], [*places, len(text)], strict=True))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    pieces = cut(body, *cuts)
    out = redact(pieces, SSE)
    assert list(map(len, out)) == list(map(len, pieces))
    assert len(parse_events(b"".join(out))) == len(parse_events(body))
    for secret in (KNOWN, LOOK):
        assert not holds(b"".join(out), secret.encode())


@pytest.mark.parametrize(
    "body",
    [
        b"xoxb-" * 60_000,
        b"-----BEGIN PRIVATE KEY-----" * 10_000,
        (b"-----BEGIN PRIVATE KEY-----" + b" \n" * 8000 + b"a" * 20) * 8,
        b'{\\"password\\":\\"' + b'"' * 100_000,
        b'\\"password\\":\\" x ' * 15_000,
        b'"password":"' + b"\\" * 200_000,
        b"eyJaaaaaaaaa." * 20_000,
        b"https://x?" + b"&a=b" * 80_000,
    ],
    ids=["mark", "pem", "gaps", "quotes", "fields", "backslashes", "jwt", "query"],
)
def test_hostile_bodies_take_no_more_time_than_others(body: bytes) -> None:
    begun = time.process_time()
    Redactor(KEY, [KNOWN]).body(((b"Content-Type", b"application/json"),), body)
    redact(cut(body, *range(4096, len(body), 4096)), SSE)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("begun", ["-----BEGIN PRIVATE KEY-----", "sk-"])
def test_a_long_key_in_small_deltas_is_looked_through_once(begun: str) -> None:
    pieces = [chat(begun), *[chat("abc1")] * 1200]
    begin = time.process_time()
    out = redact(pieces, SSE)
    assert time.process_time() - begin < 3
    assert list(map(len, out)) == list(map(len, pieces))
    assert b"abc1" not in b"".join(out)


_CHANCE = random.Random(77)
HOSTS = {
    "bytes": _CHANCE.randbytes(20_000),
    "numbers": json.dumps([_CHANCE.random() for _ in range(1000)]).encode(),
    "base64": base64.b64encode(_CHANCE.randbytes(15_000)),
    "a document": json.dumps([{"role": "user", "content": f"The tide {n}"} for n in range(500)]).encode(),
    "words": b"The tide comes in at noon = 3, and: the boats > go. " * 400,
}
PLANTED = {
    "a look": (LOOK, b" %b "),
    "a known value": (KNOWN, b"%b"),
    "a variable": ("hunter2-hunter2x", b" DB_PASSWORD=%b "),
    "a field": ("Ab3dEf6hIj9lMnOp", b'{"api_key": "%b"}'),
    "a URL": ("pass1234word", b" https://u:%b@host.example/ "),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_secret_is_found_wherever_it_stands_in_a_large_body(host: str, planted: str) -> None:
    secret, around = PLANTED[planted]
    data, what = HOSTS[host], around % secret.encode()
    redactor = Redactor(KEY, [KNOWN])
    places = [*range(0, len(data), 4999), *(4096 - n for n in range(0, len(what), 9)), len(data)]
    for place in places:
        whole = data[:place] + what + data[place:]
        stream, messages = redactor.stream(), redactor.messages()
        pieces = [whole[at : at + 4096] for at in range(0, len(whole), 4096)]
        ways = {
            "whole": redactor.content(whole),
            "in pieces": b"".join(d for piece in pieces for _, d in stream.feed(0, piece))
            + b"".join(d for _, d in stream.finish()),
            "in a message": b"".join(d for _, d in (*messages.feed(0, whole), *messages.finish())),
        }
        assert [way for way, out in ways.items() if secret.encode() in out] == [], place
