"""Secrets in files are found by name and by shape, and ordinary text is left as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.filetext import redact_text
from tapeproxy.tapes.redaction import Redactor

REDACTOR = Redactor(bytes(range(32)), ["env-s3cret-of-the-run"])
SECRETS = [
    ("OPENAI_API_KEY=sk-proj-AbCdEf0123456789xyz", "sk-proj-AbCdEf0123456789xyz"),
    ("export GITHUB_TOKEN='ghp_0123456789abcdefghijABCDEFGHIJ012345'", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
    ('{"api_key": "abcdef123456", "model": "gpt"}', "abcdef123456"),
    ("password: hunter2hunter2\n", "hunter2hunter2"),
    ("db-password = correcthorse", "correcthorse"),
    ("machine api.test login me password letmein123", "letmein123"),
    ("see AKIAIOSFODNN7EXAMPLE here", "AKIAIOSFODNN7EXAMPLE"),
    ("url = postgres://me:s3cretpass@db/x", "s3cretpass"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0x.c2lnbmF0dXJlMTIz", "eyJzdWIiOiIxIn0x"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0B\n-----END PRIVATE KEY-----", "MIIEvQIBADANBg"),
    ("the env-s3cret-of-the-run stands in prose", "env-s3cret-of-the-run"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_replaced_and_the_rest_stays(text: str, secret: str) -> None:
    hidden = redact_text(text.encode(), REDACTOR)
    assert secret.encode() not in hidden
    assert b"tpx" in hidden
    assert redact_text(hidden, REDACTOR) == hidden
    assert hidden[:3] == text.encode()[:3] or text.startswith(secret)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096",
        "token = true",
        "api_key = os.environ['KEY']",
        "api_key: ${OPENAI_API_KEY}",
        "monkey = bananas1234",
        "keys are kept elsewhere",
        "author: somebody else",
        "password = ",
        "sk-short",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact_text(text.encode(), REDACTOR) == text.encode()


@given(st.binary())
def test_any_bytes_give_bytes_and_twice_is_once(data: bytes) -> None:
    once = redact_text(data, REDACTOR)
    assert redact_text(once, REDACTOR) == once
