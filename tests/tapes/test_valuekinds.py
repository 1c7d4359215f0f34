"""What class a value looks like."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.valuekinds import noise_pattern, pair_kind, value_kind


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("uuid", ["5b1f0c1e-8a0f-4c59-9d0f-2f4a1f0b7d11", "urn:uuid:5B1F0C1E-8A0F-4C59-9D0F-2F4A1F0B7D11"]),
        (
            "timestamp",
            [
                "2026-11-29T10:00:00Z",
                "2026-11-29 10:00:00.123456+00:00",
                "Sun, 29 Nov 2026 10:00:00 GMT",
                "November 29, 2026",
                "20261129T100000Z",
                "1764410400",
                "1764410400.123",
                "1764410400123",
                "1764410400123456789",
            ],
        ),
        ("date", ["2026-11-29", "29.11.2026"]),
        ("time of day", ["10:00", "10:00:01.5", "9:05 PM"]),
        ("JWT", ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"]),
        ("multipart boundary", ["------WebKitFormBoundary7MA4YWxkTrZu0gW", "boundary4f9a0c1d2e"]),
        ("memory address", ["0x7f3a2c1d9e80"]),
        ("path", ["/tmp/tmpab12/file.txt", "C:\\Users\\me\\x", "~/notes", "file:///etc/hosts"]),
        ("version", ["3.12.1", "v1.2.3-beta1", "6.1.0-18-amd64"]),
        ("hash", ["d41d8cd98f00b204e9800998ecf8427e"]),
        ("id", ["call_Ab12Cd34Ef56", "msg-0a1b2c3d4e", "req_011CSHoEeqs5C35K2UUqR7Fy"]),
        ("number", ["7", "-12"]),
        ("random text", ["aGVsbG8gd29ybGQx", "Zm9vYmFyYmF6cXV4MTIz"]),
        ("", ["hello", "user", "what is the tide at noon", "gpt-4o", "", "international", "get_weather"]),
    ],
)
def test_values_have_their_kind(kind: str, values: list[str]) -> None:
    assert [(value, value_kind(value)) for value in values] == [(value, kind) for value in values]


@pytest.mark.parametrize(
    ("taped", "asked", "kind"),
    [
        ("1", "2", "counter"),
        ("1", "100000", ""),
        ("7", "7", ""),
        ("1764410400", "1764410401", "timestamp"),
        ("hello", "hallo", ""),
        ("2026-11-29", "hello", ""),
    ],
)
def test_a_pair_has_a_kind_when_both_have_it(taped: str, asked: str, kind: str) -> None:
    assert pair_kind(taped, asked) == kind


@given(st.text(max_size=200))
def test_any_text_has_a_kind_or_none(text: str) -> None:
    assert isinstance(value_kind(text), str)


@pytest.mark.parametrize("value", ["1" * 100_000, "a-" * 50_000, "1:" * 50_000, "/" * 100_000, "eyJ." * 30_000])
def test_long_values_take_no_time(value: str) -> None:
    assert isinstance(value_kind(value + "\n!"), str)


@pytest.mark.parametrize(
    ("kind", "before", "value"),
    [
        ("uuid", "", "5b1f0c1e-8a0f-4c59-9d0f-2f4a1f0b7d11"),
        ("timestamp", "It is now ", "2026-11-29T10:00:00.123+00:00"),
        ("timestamp", "It is now ", "2026-11-29 10:00:00"),
        ("date", "Today is ", "2026-11-29"),
        ("time of day", "", "10:00:01"),
        ("path", "the file ", "/tmp/x/y.txt"),
        ("counter", "Attempt no. ", "3"),
        ("memory address", "object at ", "0x7f3a2c1d9e80"),
    ],
)
def test_noise_in_a_text_is_found_by_its_pattern(kind: str, before: str, value: str) -> None:
    noise = noise_pattern(kind, before)
    assert noise is not None
    pattern, replacement = noise
    assert re.sub(pattern, replacement, f"{before}{value}, and so on") == f"{before}<{kind}>, and so on"


@pytest.mark.parametrize(("kind", "before"), [("counter", ""), ("path", '"'), ("", "word "), ("nothing", "word ")])
def test_noise_that_could_be_anything_has_no_pattern(kind: str, before: str) -> None:
    assert noise_pattern(kind, before) is None
