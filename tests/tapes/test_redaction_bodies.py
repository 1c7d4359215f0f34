"""Secrets in whole messages: whatever they stand in, they are found, in all layers, and nothing else is touched."""

import base64
import gzip
import json
import zlib
from urllib.parse import quote, quote_plus, urlencode

import brotli
import pytest
import zstandard
from layers import holds

from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.identity import identify
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import NONE, RedactionRules
from tapeproxy.tapes.tokens import mask_tokens

KEY = bytes(range(32))
KNOWN = "my/known+secret=value&1 of 7"
JSON = ((b"Content-Type", b"application/json"),)
FORM = ((b"Content-Type", b"application/x-www-form-urlencoded"),)
PARTS = ((b"Content-Type", b"multipart/form-data; boundary=xyzzy"),)
TEXT = ((b"Content-Type", b"text/plain"),)
# By their look: no environment variable has them. Written in two halves, so that no scanner takes them for real ones.
LOOKS = {
    "openai": "sk-" + "proj-AbCdEfGhIj0123456789KlMnOpQrStUv",
    "openai-old": "sk-" + "abcdefghijklmnopqrstuvwxyz012345",
    "anthropic": "sk-ant-" + "api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-AA",
    "google": "AIza" + "SyA0123456789abcdefghijklmnopqrstuv",
    "google-oauth": "ya29." + "a0AfB_byC0123456789abcdefgh",
    "github": "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "github-fine": "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "gitlab": "glpat-" + "abcdef0123456789_xyz",
    "aws-id": "AKIA" + "ABCDEFGHIJ234567",
    "slack": "xoxb-" + "123456789012-1234567890123-abcdefghijklmnop",
    "stripe": "sk_live_" + "abcdefghijklmnop01234567",
    "hugging-face": "hf_" + "abcdefghijklmnopqrstuvwxyz01234567",
    "groq": "gsk_" + "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijkl",
    "xai": "xai-" + "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijkl",
    "npm": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "sendgrid": "SG." + "abcdefghijklmnop012345.abcdefghijklmnopqrstuvwxyz0123456789abcdef",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
ANY = LOOKS["openai"]


def redactor(*fields: str, patterns: tuple[str, ...] = ()) -> Redactor:
    return Redactor(KEY, [KNOWN], RedactionRules(fields=fields, patterns=patterns))


def part(name: str, content: str, kind: str = "text/plain") -> str:
    return f'--xyzzy\r\nContent-Disposition: form-data; name="{name}"\r\nContent-Type: {kind}\r\n\r\n{content}\r\n'


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "key={}",
        '{{"k": "{}"}}',
        "line\\n{}\\nline",
        "https://h/p/{}/x",
        "a {}, and b",
        "'{}'",
        "<b>{}</b>",
        "%20{}%0A",
    ],
)
def test_what_looks_like_a_key_is_redacted_wherever_it_stands(name: str, text: str) -> None:
    body = text.format(LOOKS[name]).encode()
    out = redactor().body(TEXT, body)
    assert mask_tokens(out).decode() == text.format("<secret>")
    assert len(out) == len(body)
    assert redactor().body(TEXT, out) == out


@pytest.mark.parametrize(
    "text",
    [
        "task-management-and-more-words-of-it 2024",
        "sk-learn-is-a-library-of-many-words",
        "the AKIA prefix, sk- and ghp_ and eyJ and hf_",
        "risk-0123456789abcdefghijklmnop",
        "PASSWORD=test",
        '{"password": "test", "secret": "none", "api_key": "<your key>", "token": "Hello", "max_tokens": 100}',
        '{"logprobs": {"content": [{"token": " international", "bytes": [32]}, {"token": "Antidisestablishment"}]}}',
        '{"key": "users/123/profile.json", "env": {"PWD": "/home/ada/project"}}',
        '{"type": "signature_delta", "signature": "EqQBCkYIBRgCKkAqV9k1licH3hEBmVC7DgAjTMd/TsnJBYxdpTi/oYDl7d0M"}',
        "postgres://user:pass@localhost/db",
        '{"properties": {"password": {"type": "string"}}, "required": ["password"]}',
        "Bearer of bad news, Basic understanding of things",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUabcdefghijklmnop0123456789\n-----END CERTIFICATE-----",
        "http://localhost:8080/a@b https://h:443/x",
        "chatcmpl-9a8b7c6d5e4f3a2b1c0d9e8f toolu_01A09q90qw90lq917835lq9 call_abcdefghijklmnop0123456789",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301 d41d8cd98f00b204e9800998ecf8427e",
        base64.b64encode(bytes(range(256)) * 40).decode(),
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redactor().body(TEXT, text.encode()) == text.encode()
    assert redactor().body(JSON, text.encode()) == text.encode()


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(3))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_secret_in_base64_at_any_alignment(before: int, after: int, encode: object) -> None:
    text = encode(b"x" * before + KNOWN.encode() + b"y" * after)  # type: ignore[operator]  # two of a kind
    out = redactor().content(b'{"blob":"' + text + b'"}')
    assert not holds(out, KNOWN.encode()[2:-2])
    assert len(out) == len(text) + 11
    assert redactor().content(out) == out


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"k": KNOWN}).encode(),
        json.dumps({"k": json.dumps({"k": KNOWN})}).encode(),
        json.dumps({"k": KNOWN}).replace("/", "\\/").encode(),
        quote(KNOWN).encode(),
        quote(KNOWN, safe="").encode(),
        quote_plus(KNOWN).encode(),
        quote(quote(KNOWN, safe=""), safe="").encode(),
        json.dumps({"url": "https://h/?k=" + quote(KNOWN, safe="")}).encode(),
    ],
)
def test_a_known_secret_in_all_ways_to_write_it(body: bytes) -> None:
    assert not holds(redactor().body(JSON, body), KNOWN.encode())


@pytest.mark.parametrize(
    ("headers", "body", "secret"),
    [
        (JSON, json.dumps({"a": {"password": "hunter2-x"}}), "hunter2-x"),
        (JSON, json.dumps({"apiKey": "zzz-top-1"}, separators=(",", ":")), "zzz-top-1"),
        (JSON, json.dumps({"clientSecret": 'quo"te\\back'}), 'quo"te\\back'),
        (JSON, json.dumps({"args": json.dumps({"db_password": 'q"x\\y-12'})}), 'q"x\\y-12'),
        (JSON, json.dumps({"a": json.dumps({"b": json.dumps({"access_token": "three-deep"})})}), "three-deep"),
        (JSON, json.dumps({"authorization": "Bearer abcdef"}), "abcdef"),
        (FORM, "new_password=hunter2-x&clientSecret=1", "hunter2-x"),
        (PARTS, part("password", "hunter2-x").replace('"password"', "password"), "hunter2-x"),
        (JSON, json.dumps({"token": "T0ken-0123456789-abcdef"}), "T0ken-0123456789-abcdef"),
        (FORM, urlencode({"user": "u", "password": "hunter2-x"}), "hunter2-x"),
        (FORM, urlencode({"client_secret": "a b/c+d", "x": "1"}), "a b/c+d"),
        (FORM, urlencode({"payload": json.dumps({"password": "hunter2-x"})}), "hunter2-x"),
        (FORM, urlencode({"text": "see " + ANY}), ANY),
        (FORM, urlencode({"text": "x " + KNOWN}), KNOWN),
        (PARTS, part("password", "hunter2-x") + part("a", "b") + "--xyzzy--\r\n", "hunter2-x"),
        (PARTS, part("a", "b") + part("file", "KEY=" + ANY) + "--xyzzy--\r\n", ANY),
        (PARTS, part("j", json.dumps({"api_key": "zzz-top-1"}), "application/json") + "--xyzzy--\r\n", "zzz-top-1"),
        (
            TEXT,
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----",
            "MIIEvQIBADANBgkqh",
        ),
        (
            JSON,
            json.dumps({"k": "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIAbcdefghijk0123\n-----END EC PRIVATE KEY-----"}),
            "MHcC",
        ),
        (TEXT, "Authorization: Bearer abcdefghijklmnop0123", "abcdefghijklmnop0123"),
        (TEXT, "Authorization: Basic " + base64.b64encode(b"user:pass-word-1").decode(), "pass-word-1"),
        (TEXT, "postgres://app:s3cr3t-pw@db:5432/x", "s3cr3t-pw"),
        (TEXT, "GET https://h/cb?access_token=abcdef-1&x=1 failed", "abcdef-1"),
        (TEXT, "aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
        (JSON, json.dumps({"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}), "wJalrXUtnFEMI"),
    ],
)
def test_fields_and_context(headers: tuple[tuple[bytes, bytes], ...], body: str, secret: str) -> None:
    assert holds(body.encode(), secret.encode())
    out = redactor().body(headers, body.encode())
    assert not holds(out, secret.encode())
    assert redactor().body(headers, out) == out
    if headers == JSON:
        assert json.loads(out).keys() == json.loads(body).keys()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_a_compressed_body_is_compressed_anew_when_a_secret_is_in_it(coding: str) -> None:
    pack = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "br": brotli.compress,
        "zstd": zstandard.ZstdCompressor().compress,
    }
    text = json.dumps({"messages": [{"content": "the key is " + ANY}] * 20}).encode()
    body, clean = text, b'{"clean": true}'
    for one in coding.split(", "):
        body, clean = pack[one](body), pack[one](clean)
    headers = (*JSON, (b"Content-Encoding", coding.encode()), (b"Content-Length", b"%d" % len(body)))
    taped, out = redactor().message(headers, body)
    assert dict(taped)[b"Content-Length"] == b"%d" % len(out)
    assert not holds(out, ANY.encode())
    decoded = decode(out, headers)
    assert decoded.whole and mask_tokens(decoded.data) == text.replace(ANY.encode(), b"<secret>")
    assert redactor().message(headers, clean) == (headers, clean)
    assert redactor().message(taped, out) == (taped, out)


def test_what_the_user_names_is_redacted() -> None:
    body = json.dumps(
        {"pin": "1234", "user": {"ssn": "078-05-1120", "notes": ["a", "b"]}, "x": "ssn 078-05-1120"}
    ).encode()
    out = json.loads(mask_tokens(redactor("pin", "$.user.ssn").body(JSON, body)))
    assert out == {"pin": "<secret>", "user": {"ssn": "<secret>", "notes": ["a", "b"]}, "x": "ssn 078-05-1120"}
    out = json.loads(mask_tokens(redactor("$..notes", patterns=(r"\d{3}-\d\d-\d{4}",)).body(JSON, body)))
    assert out["user"] == {"ssn": "<secret>", "notes": ["<secret>", "<secret>"]}
    assert out["x"] == "ssn <secret>"
    assert mask_tokens(redactor("pin").body(FORM, b"pin=1&x=2")) == b"pin=<secret>&x=2"
    assert mask_tokens(redactor("pin").url(b"https://h/?pin=1&x=2")) == b"https://h/?pin=<secret>&x=2"
    own = Redactor(KEY, (), RedactionRules(headers=("X-Mine",)))
    assert mask_tokens(own.headers(((b"x-mine", b"anything"),))[0][1]) == b"<secret>"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RedactionRules(patterns=("(a+)+",)), "repeats a group"),
        (lambda: RedactionRules(patterns=("a*",)), "matches nothing"),
        (lambda: RedactionRules(patterns=("[",)), "cannot be understood"),
        (lambda: RedactionRules(fields=("$.a[",)), "path"),
        (lambda: RedactionRules(headers=("a b",)), "no name of a header"),
        (lambda: RedactionRules.from_json({"redaction": 99}), "not known here"),
        (lambda: RedactionRules.from_json({"redaction": 2, "redact": {"fields": [1]}}), "no lists of strings"),
    ],
)
def test_bad_rules_are_refused(make: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()  # type: ignore[operator]  # a table of calls


def test_rules_go_through_the_head_and_back() -> None:
    rules = RedactionRules(headers=("x-a",), fields=("pin", "$.a"), patterns=("x{3}",))
    assert RedactionRules.from_json(rules.to_json()) == rules
    assert RedactionRules.from_json({}) == RedactionRules(1)
    assert RedactionRules().to_json() == {"redaction": 3}


def test_nothing_is_redacted_when_that_is_asked_for() -> None:
    off = Redactor(KEY, [KNOWN], RedactionRules(NONE))
    headers = ((b"Authorization", b"Bearer " + ANY.encode()),)
    assert off.message(headers, ANY.encode()) == (headers, ANY.encode())
    assert off.url(b"https://h/?api_key=" + ANY.encode()) == b"https://h/?api_key=" + ANY.encode()
    assert off.argv(["--api-key", ANY]) == ("--api-key", ANY)
    assert off.stream().feed(1, ANY.encode()) == [(1, ANY.encode())]


def test_the_first_version_knows_known_values_and_names_of_headers_alone() -> None:
    old = Redactor(KEY, [KNOWN], RedactionRules(1))
    assert (
        old.body(JSON, b'{"password":"hunter2-x","k":"%b"}' % ANY.encode())
        == b'{"password":"hunter2-x","k":"%b"}' % ANY.encode()
    )
    assert mask_tokens(old.content(KNOWN.encode())) == b"<secret>"


def test_what_is_found_in_a_conversation_is_found_again_when_it_has_grown() -> None:
    one = redactor()
    text = "words of some length, and more of them. " * 2000
    bodies = [
        json.dumps([text, ANY, text[:100] * n, KNOWN if n % 2 else "x", LOOKS["github"]]).encode() for n in range(6)
    ]
    for body in bodies:
        assert one.body(JSON, body) == redactor().body(JSON, body)
        assert ANY.encode() not in one.body(JSON, body)


@pytest.mark.parametrize(
    "url",
    [
        "https://h/bot/{}/send",
        "https://h/p/{}?x=1",
        "https://h/?q={}",
        "https://h/?api_key={}",
        "https://h/a%2F{}%2Fb",
        "https://u:{}@h/p",
    ],
)
@pytest.mark.parametrize("secret", [ANY, KNOWN])
def test_urls(url: str, secret: str) -> None:
    whole = url.format(quote(secret, safe="")).encode()
    out = redactor().url(whole)
    assert not holds(out, secret.encode())
    assert redactor().url(out) == out
    other = redactor().url(url.format(LOOKS["openai-old"]).encode())
    assert secret == KNOWN or identify(b"GET", out, (), b"").key == identify(b"GET", other, (), b"").key


def test_the_token_of_a_bot_stands_in_the_path() -> None:
    token = "123456789:" + "AAabcdefghijklmnopqrstuvwxyz012345678"[:35]
    url = f"https://api.telegram.org/bot{token}/sendMessage".encode()
    assert mask_tokens(redactor().url(url)) == b"https://api.telegram.org/bot123456789:<secret>/sendMessage"
