"""Secrets never reach a tape, equal secrets get equal tokens, and nothing else is touched."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.tokens import is_token, mask_tokens

KEY = bytes(range(32))
SECRET = "sk-proj-AbCdEf0123456789xyzXYZ"
TOKEN = Redactor(KEY, [SECRET]).content(SECRET.encode())


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        (b"Authorization", b"Bearer sk-live-12345678901234567890", b"Bearer "),
        (b"authorization", b"Basic dXNlcjpwYXNzd29yZA==", b"Basic "),
        (b"Authorization", b"AWS4-HMAC-SHA256 Credential=AKIA/2026, Signature=0123", b"AWS4-HMAC-SHA256 "),
        (b"x-api-key", b"sk-ant-api03-abcdefghijklmnop", b""),
        (b"OpenAI-Api-Key", b"sk-ant-api03-abcdefghijklmnop", b""),
        (b"Cookie", b"session=0123456789abcdef0123", b"session="),
        (b"Authorization", b"word1 word2-0123456789", b""),
        (b"X-RapidAPI-Key", b"0123456789abcdef0123", b""),
        (b"x_api_key", b"0123456789abcdef0123", b""),
        (b"X-Gitlab-Token", b"0123456789abcdef0123", b""),
        (b"X-Forwarded-Authorization", b"Bearer 0123456789abcdef0123", b"Bearer "),
        (b"Cf-Access-Jwt-Assertion", b"0123456789abcdef0123", b""),
        (b"Ocp-Apim-Subscription-Key", b"0123456789abcdef0123", b""),
        (b"Location", b"https://h/cb?access_token=0123456789abcdef", b"https://h/cb?access_token="),
        (b"Referer", b"/cb?api_key=0123456789abcdef", b"/cb?api_key="),
    ],
)
def test_a_credential_header_keeps_its_scheme_and_length(name: bytes, value: bytes, kept: bytes) -> None:
    ((_, out),) = Redactor(KEY).headers(((name, value),))
    assert out.startswith(kept)
    assert is_token(out[len(kept) :])
    assert len(out) == len(value)


def test_every_cookie_is_redacted_and_set_cookie_keeps_order_and_attributes() -> None:
    headers = (
        (b"Cookie", b"a=0123456789abcdef; b=fedcba9876543210"),
        (b"Set-Cookie", b"sid=0123456789abcdef; Path=/; HttpOnly"),
        (b"Set-Cookie", b"lang=0123456789abcdeg; Path=/"),
    )
    out = Redactor(KEY).headers(headers)
    assert [name for name, _ in out] == [name for name, _ in headers]
    assert mask_tokens(out[0][1]) == b"a=<secret>; b=<secret>"
    assert mask_tokens(out[1][1]) == b"sid=<secret>; Path=/; HttpOnly"
    assert out[1][1] != out[2][1]


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        (["agent", "--key", SECRET], ["agent", "--key", "<secret>"]),
        (["agent", "--api-key", "not-known-before"], ["agent", "--api-key", "<secret>"]),
        (["agent", "--token=not-known-before", "-v"], ["agent", "--token=<secret>", "-v"]),
        (["env", "DB_PASSWORD=not-known-before"], ["env", "DB_PASSWORD=<secret>"]),
        (["curl", "-H", "Authorization: Bearer abcdefghijklmnop"], ["curl", "-H", "Authorization: Bearer <secret>"]),
        (
            ["curl", "https://u:hunter2hunter2@h/?api_key=abcdefghijkl"],
            ["curl", "https://u:<secret>@h/?api_key=<secret>"],
        ),
        (["agent.py", "--prompt", "note: nothing", "k=v", "caf\udce9"], None),
        (["env", "SIGNING_KEY=not known\nbefore"], ["env", "SIGNING_KEY=<secret>"]),
        (["bash", "run.sh", "-e", "TOKEN=not known before"], ["bash", "run.sh", "-e", "TOKEN=<secret>"]),
        (["python", "-u", "-c", "token='not-known-before'"], ["python", "-u", "-c", "token='<secret>'"]),
        (["agent", "note: password=not-known-before"], ["agent", "note: password=<secret>"]),
        (["curl", "-H", "Cookie: a=0123456789abcdef; b=c"], ["curl", "-H", "Cookie: a=<secret>; b=<secret>"]),
        (["curl", "-H", "X-Api-Key: a=0123456789abcdef"], ["curl", "-H", "X-Api-Key: <secret>"]),
        (["docker", "run", "-e", "DB_PASSWORD=not known before"], ["docker", "run", "-e", "DB_PASSWORD=<secret>"]),
        (["sh", "-c", "API_KEY=not-known-before ./agent"], ["sh", "-c", "API_KEY=<secret> ./agent"]),
        (["bash", "-lc", "run --token='not known' -v"], ["bash", "-lc", "run --token='<secret>' -v"]),
        (["agent", "--prompt", "my password=not-known-before, ok"], ["agent", "--prompt", "my password=<secret> ok"]),
        (["python3.12", "-c", "token = find(); print(f(api_key=token, n=[1]))"], None),
        (
            ["python", "-c", "x = 1\ntoken: str = 'not known' if x else y"],
            ["python", "-c", "x = 1\ntoken: str = '<secret>' if x else y"],
        ),
        (["/usr/bin/node", "-e", "const token = await find(a => a == 1)"], None),
        (["node", "-e", f"ask('{SECRET}', {{key: 1}})"], ["node", "-e", "ask('<secret>', {key: 1})"]),
        (["sh", "-c", f"a=1 agent --key {SECRET}"], ["sh", "-c", "a=1 agent --key <secret>"]),
    ],
)
def test_a_command_line_gives_no_secret_away(words: list[str], masked: list[str] | None) -> None:
    out = Redactor(KEY, [SECRET]).argv(words)
    assert [mask_tokens(w.encode(errors="surrogateescape")).decode(errors="surrogateescape") for w in out] == (
        masked or words
    )


def test_binary_metadata_of_grpc_is_redacted_by_its_name_and_by_what_it_stands_for() -> None:
    redactor = Redactor(KEY, [SECRET])
    message = b"\x0a\x05bad key " + SECRET.encode() + b"\x12\x00\xff"
    coded = base64.b64encode(message)
    bare = coded.rstrip(b"=")
    rows = (
        (b"authorization-bin", base64.b64encode(b"Bearer 0123456789abcdef")),
        (b"X-Api-Key-Bin", bare),
        (b"grpc-status-details-bin", bare),
        (b"why-bin", coded + b", " + bare),
    )
    named, upper, details, several = [value for _, value in redactor.headers(rows)]
    assert is_token(named) and is_token(upper)
    plain = base64.b64decode(details + b"=" * (-len(details) % 4))
    assert (len(details), len(plain)) == (len(bare), len(message))
    assert mask_tokens(plain) == b"\x0a\x05bad key <secret>\x12\x00\xff"
    assert several.replace(b"=", b"") == details + b"," + details
    again = ((b"why-bin", several),)
    assert redactor.headers(again) == again


@pytest.mark.parametrize("value", [b"", b"AAH/", b"not base64!", b"a", bytes(range(128, 140)), b"AAH/,a b"])
def test_binary_metadata_without_a_secret_stays_as_it_is(value: bytes) -> None:
    headers = ((b"why-bin", value),)
    assert Redactor(KEY, [SECRET]).headers(headers) == headers


def test_an_ordinary_header_is_untouched() -> None:
    headers = ((b"Content-Type", b"application/json"), (b"x-request-id", b"req_0123456789abcdef"))
    assert Redactor(KEY, [SECRET]).headers(headers) == headers


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        (b"https://h/p?api_key=0123456789abcdef&q=1", b"https://h/p?api_key=<secret>&q=1"),
        (b"https://h/p?key=AIzaSyA0123456789abcdefghi", b"https://h/p?key=<secret>"),
        (b"https://h/p?key=PROJ-12&token=next", b"https://h/p?key=PROJ-12&token=next"),
        (
            b"https://h/p?X-Amz-Signature=0123456789abcdef&X-Amz-Date=20261129",
            b"https://h/p?X-Amz-Signature=<secret>&X-Amz-Date=20261129",
        ),
        (b"http://user:hunter2hunter2@h/p", b"http://user:<secret>@h/p"),
        (b"https://h/bot" + SECRET.encode() + b"/send", b"https://h/bot<secret>/send"),
        (b"https://h/p?flag&x=", b"https://h/p?flag&x="),
        (
            b"https://h/p?db_password=0123456789&api%5Fkey=012345678",
            b"https://h/p?db_password=<secret>&api%5Fkey=<secret>",
        ),
        (b"https://h/p?user%5Bpassword%5D=0123456789", b"https://h/p?user%5Bpassword%5D=<secret>"),
        (b"/cb?x=1#access_token=0123456789&n=1", b"/cb?x=1#access_token=<secret>&n=1"),
        # One of these must not get the answer of another.
        (b"https://h/p?pwd=/home/ada&secret=test&password=no", b"https://h/p?pwd=/home/ada&secret=test&password=no"),
    ],
)
def test_urls(url: bytes, masked: bytes) -> None:
    assert mask_tokens(Redactor(KEY, [SECRET]).url(url)) == masked


def test_redaction_is_idempotent_and_equal_secrets_get_equal_tokens() -> None:
    redactor = Redactor(KEY, [SECRET])
    headers = ((b"x-api-key", SECRET.encode()), (b"cookie", b"k=" + SECRET.encode()))
    once = redactor.headers(headers)
    assert redactor.headers(once) == once
    assert once[0][1] == TOKEN
    assert once[1][1] == b"k=" + TOKEN
    assert redactor.url(redactor.url(b"https://h/?api_key=abcdefghijklmnop")) == redactor.url(
        b"https://h/?api_key=abcdefghijklmnop"
    )


def test_an_escaped_secret_is_found_in_json_and_urls() -> None:
    secret = 'quo"te\\slash/and+plus&more'
    redactor = Redactor(KEY, [secret])
    assert b"te" not in mask_tokens(redactor.content(b'{"k":"quo\\"te\\\\slash/and+plus&more"}'))
    assert mask_tokens(redactor.url(b"https://h/?k=quo%22te%5Cslash%2Fand%2Bplus%26more")) == b"https://h/?k=<secret>"


def feed_all(pieces: list[bytes], secrets: list[str]) -> tuple[list[bytes], list[int]]:
    """What the stream redactor wrote, and after how many pieces each was written."""
    stream = Redactor(KEY, secrets).stream()
    out: list[tuple[int, bytes]] = []
    written: list[int] = []
    for number, piece in enumerate(pieces):
        out += stream.feed(number, piece)
        written += [number] * (len(out) - len(written))
    out += stream.finish()
    written += [len(pieces)] * (len(out) - len(written))
    assert [t for t, _ in out] == list(range(len(pieces)))
    return [data for _, data in out], written


@pytest.mark.parametrize("at", range(1, len(SECRET)))
def test_a_secret_split_anywhere_is_caught_and_no_boundary_moves(at: int) -> None:
    text = b"data: the key is " + SECRET.encode() + b", keep it\n\n"
    cut = text.index(SECRET.encode()) + at
    out, _ = feed_all([text[:cut], text[cut:]], [SECRET])
    assert [len(piece) for piece in out] == [cut, len(text) - cut]
    assert SECRET[2:].encode() not in b"".join(out)
    assert SECRET.encode()[-8:] not in b"".join(out)
    if at >= 3:
        assert mask_tokens(b"".join(out)) == b"data: the key is <secret>, keep it\n\n"


def test_a_secret_that_comes_byte_by_byte_is_caught() -> None:
    text = b"x" + SECRET.encode() + b"y"
    out, _ = feed_all([text[i : i + 1] for i in range(len(text))], [SECRET])
    assert SECRET[3:].encode() not in b"".join(out)


def test_a_piece_is_held_back_only_while_a_secret_may_go_on() -> None:
    _, written = feed_all([b"hello", b"it is sk-", b"ip this", b"bye"], [SECRET])
    assert written == [0, 2, 2, 3]


def test_a_short_secret_gets_a_longer_token_and_pieces_still_join() -> None:
    out, _ = feed_all([b"a short-on", b"e-1234 b"], ["short-one-1234"[:12] + "34"])
    assert mask_tokens(b"".join(out)) == b"a <secret> b"


@pytest.mark.parametrize("at", range(1, len(SECRET)))
def test_a_body_that_breaks_off_in_a_secret(at: int) -> None:
    text = b"the key is " + SECRET[:at].encode()
    redacted = b"the key is " + TOKEN[:at]
    for pieces in ([text], [text[:-1], text[-1:]], [text[:9], text[9:]]):
        out, _ = feed_all(pieces, [SECRET])
        assert [len(piece) for piece in out] == [len(piece) for piece in pieces]
        assert b"".join(out) == (redacted if at >= 8 else text)


def test_a_body_that_ends_in_a_whole_secret_which_begins_another_one() -> None:
    out, _ = feed_all([b"x " + SECRET.encode()], [SECRET, SECRET + "-and-more"])
    assert out == [b"x " + TOKEN]


@pytest.mark.parametrize("cut", range(8, 12))
def test_of_a_short_secret_cut_off_no_byte_is_left(cut: int) -> None:
    out, _ = feed_all([b"x ", b"short-one-12"[:cut]], ["short-one-12"])
    assert out[0] == b"x " and b"short" not in out[1] and len(out[1]) == cut


@given(st.lists(st.binary(max_size=20), max_size=12))
def test_a_stream_without_secrets_is_unchanged(pieces: list[bytes]) -> None:
    out, _ = feed_all(pieces, [SECRET])
    assert out == pieces


@given(st.lists(st.sampled_from([SECRET, "sk-", "abc", " ", SECRET[:9]]), max_size=8), st.data())
def test_a_stream_cut_anywhere_never_holds_a_whole_secret(words: list[str], data: st.DataObject) -> None:
    text = "".join(words).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    out, _ = feed_all(pieces, [SECRET])
    assert [len(piece) for piece in out] == [len(piece) for piece in pieces]
    assert SECRET[2:].encode() not in b"".join(out)
