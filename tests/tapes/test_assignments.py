"""Secrets known by the name they are assigned to in running text, or by the name beside them."""

import json

import pytest

from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import LOOKS, RedactionRules

KEY = bytes(range(32))
TEXT = ((b"Content-Type", b"text/plain"),)
JSON = ((b"Content-Type", b"application/json"),)
LONG = "q7Zp0aT4mX2vB9cD8eF1"
SHORT = "hunter2!x"

FOUND = [
    ("DB_PASSWORD=%s", SHORT),
    ("export VENDOR_API_KEY='%s'", SHORT),
    ('VENDOR_TOKEN="%s"\nOTHER=1', SHORT),
    ("A=1 SECRET=%s; run", SHORT),
    ("x-api-key: %s", LONG),
    ("curl -H 'X-Api-Key: %s' host", LONG),
    ('api_key = "%s"', LONG),
    ("client_secret => '%s'", LONG),
    ("password: %s", LONG),
    ("access_token := %s", LONG),
    ('{"name": "x-api-key", "value": "%s"}', LONG),
    ('{"key":"client_secret","value":"%s"}', LONG),
    ('{"name":"VENDOR_API_KEY","value":"%s"}', LONG),
    ('{"password": ["%s"]}', LONG),
    ('{"Authorization": [ "Token %s"]}', LONG),
]
KEPT = [
    'sort_key = "created_at_2024_descending"',
    "api_key = settings.vendor.api_key_for_tests",
    'API_KEY=os.environ["API_KEY"]',
    "API_KEY=$VENDOR_KEY_OF_MINE",
    "API_KEY=your_api_key_here",
    "SECRET=12345678",
    "PASSWORD=/run/secrets/password",
    "password: correct_horse_battery",
    "MAX_TOKENS=100000000",
    "MONKEY=banana12 DONKEY",
    '{"name": "colour", "value": "q7Zp0aT4mX2vB9cD8eF1"}',
    '{"name": "x-api-key", "count": "1", "value": "q7Zp0aT4mX2vB9cD8eF1"}',
    "the password: it has to have sixteen characters",
]


def redacted(text: str, rules: RedactionRules | None = None) -> str:
    return Redactor(KEY, (), rules or RedactionRules()).body(TEXT, text.encode()).decode()


@pytest.mark.parametrize(("text", "secret"), FOUND)
def test_what_is_assigned_to_a_secrets_name_is_none_of_the_tapes_business(text: str, secret: str) -> None:
    for body in (text % secret, json.dumps({"content": "first\n" + text % secret + "\nlast"})):
        clean = redacted(body)
        assert secret not in clean
        assert len(clean.encode()) in range(len(body), len(body) + 14)
        assert redacted(clean) == clean
        before, after = body.split(secret)
        assert clean.startswith(before)
        assert clean.endswith(after)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_an_assignment_of_a_secret_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(("text", "secret"), FOUND)
def test_in_a_stream_cut_anywhere_nothing_of_it_is_written(text: str, secret: str) -> None:
    whole = text % secret + " and more\n"
    for at in range(1, len(whole)):
        stream = Redactor(KEY).stream(TEXT)
        out = stream.feed(0, whole[:at].encode())
        out += stream.feed(1, whole[at:].encode())
        out += stream.finish()
        assert [t for t, _ in out] == [0, 1]
        joined = b"".join(data for _, data in out).decode()
        assert secret not in joined, (at, joined)
        assert joined.endswith(" and more\n")


@pytest.mark.parametrize(("text", "secret"), FOUND)
def test_a_tape_of_an_earlier_version_is_replayed_as_it_was_redacted(text: str, secret: str) -> None:
    assert redacted(text % secret, RedactionRules(version=LOOKS)) == text % secret


def test_the_protocols_of_a_websocket_may_be_credentials() -> None:
    value = b"realtime, openai-insecure-api-key.q7Zp0aT4mX2v, openai-beta.realtime-v1"
    ((_, clean),) = Redactor(KEY).headers(((b"Sec-WebSocket-Protocol", value),))
    assert b"q7Zp0aT4mX2v" not in clean
    assert clean.startswith(b"realtime, openai-insecure-api-key.")
    assert clean.endswith(b", openai-beta.realtime-v1")


@pytest.mark.parametrize("option", ["-u", "--user"])
def test_the_credentials_of_curl(option: str) -> None:
    words = Redactor(KEY).argv(["/usr/bin/curl", option, "ada:swordfish", "-s", "http://h/"])
    assert words[2].startswith("ada:")
    assert "swordfish" not in words[2]
    assert Redactor(KEY).argv(["python", "-u", "agent:main"]) == ("python", "-u", "agent:main")
