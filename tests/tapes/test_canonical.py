"""Canonical bodies: hard bodies by form, and properties that hold for any JSON."""

import gzip
import json
import zlib
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.bodyforms import Body
from tapeproxy.tapes.canonical import canonical_body
from tapeproxy.tapes.identity import identify
from tapeproxy.tapes.reading import Reading
from tapeproxy.tapes.rules import Local, Rules, parse_rule

JSON = b"application/json"
FORM = b"application/x-www-form-urlencoded"
BIG = b'{"a":[1,2.0,"x"],"b":{"c":null}}'


def body(kind: bytes, data: bytes, coding: bytes = b"", *rules: tuple[str, str]) -> Body:
    headers = ((b"Content-Type", kind), *([(b"Content-Encoding", coding)] if coding else []))
    return canonical_body(headers, data, local(*rules))[1]


def local(*rules: tuple[str, str]) -> Local:
    return Rules(tuple(parse_rule(*rule) for rule in rules)).at("h", b"/")


def multipart(*parts: bytes, boundary: bytes = b"b") -> tuple[bytes, bytes]:
    text = b"".join(b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts)
    return b'multipart/form-data; boundary="' + boundary + b'"', text + b"--" + boundary + b"--\r\n"


FIELD = b'Content-Disposition: form-data; name="f"'
FILE = FIELD + b'; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello'
FIELD_JSON = FIELD + b"\r\nContent-Type: application/json\r\n\r\n"


def zstd(data: bytes) -> bytes:
    try:
        from compression.zstd import compress  # type: ignore[import-not-found,unused-ignore]  # from Python 3.14 on
    except ImportError:
        from backports.zstd import compress
    out: bytes = compress(data)
    return out


CODINGS: list[tuple[bytes, bytes]] = [
    (b"gzip", gzip.compress(BIG, mtime=0)),
    (b"x-gzip", gzip.compress(BIG, 1, mtime=0)),
    (b"deflate", zlib.compress(BIG)),
    (b"deflate", zlib.compress(BIG, wbits=-15)),
    (b"br", brotli.compress(BIG)),
    (b"zstd", zstd(BIG)),
    (b"gzip, zstd", zstd(gzip.compress(BIG, mtime=0))),
    (b"deflate, br", brotli.compress(zlib.compress(BIG))),
    (b"identity", BIG),
    (b"gzip", BIG),  # a header that is not true
    (b"", gzip.compress(BIG, mtime=0)),  # one that was lost
    (b"", zstd(BIG)),
]


@pytest.mark.parametrize(("coding", "data"), CODINGS)
def test_codings_are_undone_where_the_bytes_bear_them_out(coding: bytes, data: bytes) -> None:
    assert body(JSON, data, coding) == body(JSON, BIG)


@pytest.mark.parametrize(
    ("kind", "coding", "data"),
    [
        (JSON, b"gzip", gzip.compress(BIG, mtime=0)[:-9]),
        (JSON, b"br", brotli.compress(BIG * 99)[:-3]),
        (JSON, b"gzip", gzip.compress(BIG, mtime=0) + b"junk"),
        (JSON, b"", gzip.compress(BIG, mtime=0)[:12]),
        (b"application/octet-stream", b"", gzip.compress(BIG, mtime=0)),  # a file that is compressed
        (b"application/x-protobuf", b"", b"\x0a\x05hello"),
        (b"application/x-protobuf", b"", b'{"a": 1}'),
        (b"application/vnd.amazon.eventstream", b"", bytes(range(256))),
        (b"text/event-stream", b"", b"data: {}\n\n"),
        (b"text/event-stream", b"", b"data: {} \r\n\r\n"),
        (JSON, b"", b"\xef\xbb\xbf{}"),
        (JSON, b"", '{"a":1}'.encode("utf-16")),
        (JSON, b"", b'{"a":NaN}'),
        (JSON, b"", b'{"a":NaN,"n":1234567890123456789012}'),
        (JSON, b"", b'{"a":1e999,"n":1234567890123456789012}'),
        (b"multipart/form-data; boundary=b", b"", b"no parts"),
        (b"multipart/form-data", b"", b"--b\r\n\r\nx\r\n--b--"),
    ],
)
def test_what_cannot_be_understood_whole_is_compared_byte_for_byte(kind: bytes, coding: bytes, data: bytes) -> None:
    assert body(kind, data, coding) == Body("bytes", data, data)


SAME: list[tuple[str, tuple[bytes, bytes], tuple[bytes, bytes]]] = [
    ("boundary", multipart(FILE), multipart(FILE, boundary=b"0123")),
    ("part JSON", multipart(FIELD_JSON + b'{"a":1,"b":2}'), multipart(FIELD_JSON + b'{"b": 2, "a":1}')),
    ("part header case", multipart(FILE), multipart(FILE.replace(b"Content-", b"content-"))),
    ("part charset", multipart(FILE), multipart(FILE.replace(b"plain", b"plain; charset=utf-8"))),
    (
        "nested boundary",
        multipart(b"Content-Type: " + b"\r\n\r\n".join(multipart(FILE, boundary=b"x"))),
        multipart(b"Content-Type: " + b"\r\n\r\n".join(multipart(FILE, boundary=b"y"))),
    ),
    ("lines", (b"application/x-ndjson", b'{"a":1,"b":2}\n{}\n'), (b"application/x-ndjson", b'{"b":2, "a":1}\r\n{}')),
    ("lines as JSON", (JSON, b'{"index":{}}\n{"a":1}\n'), (JSON, b'{"index": {}}\n{"a": 1}\n')),
    (
        "sequence",
        (b"application/json-seq", b'\x1e{"a":1}\n\x1e{\n"b":2}\n'),
        (b"application/json-seq", b'\x1e{"a": 1}\n\x1e{"b":2}\n'),
    ),
    ("long numbers", (JSON, b'{"a":1, "n":123456789012345678901}'), (JSON, b'{"n":123456789012345678901,"a":1}')),
    ("long digits in text", (JSON, b'{"n":"1234567890123456789"}'), (JSON, b'{"n":"\\u0031234567890123456789"}')),
]
DIFFERENT: list[tuple[str, tuple[bytes, bytes], tuple[bytes, bytes]]] = [
    ("part text", multipart(FILE), multipart(FILE + b"!")),
    ("part name", multipart(FILE), multipart(FILE.replace(b'"f"', b'"g"'))),
    ("file name", multipart(FILE), multipart(FILE.replace(b"a.txt", b"b.txt"))),
    ("part type", multipart(FILE), multipart(FILE.replace(b"plain", b"html"))),
    ("part order", multipart(FILE, FIELD_JSON + b"1"), multipart(FIELD_JSON + b"1", FILE)),
    ("part count", multipart(FILE), multipart(FILE, FILE)),
    ("boundary in text", multipart(FILE + b" --b"), multipart(FILE + b" --c", boundary=b"c")),
    ("split of parts", multipart(FIELD + b"\r\n\r\na", b"\r\nb"), multipart(FIELD + b"\r\n\r\na\r\n--c\r\n\r\nb")),
    ("line order", (b"application/x-ndjson", b"{}\n[]"), (b"application/x-ndjson", b"[]\n{}")),
    ("a line or JSON", (b"application/x-ndjson", b"{}"), (JSON, b"{}")),
    ("a damaged end", (JSON, b'{"a":1}\n{"b"'), (JSON, b'{"a":1}\n{"c"')),
]


@pytest.mark.parametrize(("one", "other"), [row[1:] for row in SAME], ids=[row[0] for row in SAME])
def test_the_same_body(one: tuple[bytes, bytes], other: tuple[bytes, bytes]) -> None:
    assert body(*one).canonical == body(*other).canonical
    assert body(*one).form == body(*other).form != "bytes"


@pytest.mark.parametrize(("one", "other"), [row[1:] for row in DIFFERENT], ids=[row[0] for row in DIFFERENT])
def test_another_body(one: tuple[bytes, bytes], other: tuple[bytes, bytes]) -> None:
    a, b = body(*one), body(*other)
    assert (a.form, a.canonical) != (b.form, b.canonical)


@pytest.mark.parametrize(
    ("value", "media"),
    [
        (b"Application/JSON ; Charset=UTF-8", "application/json"),
        (b'a/b; Q=1; a="x y"', "a/b; a=x y; q=1"),
        (b"text/csv; charset=Windows-31J", "text/csv; charset=windows-31j"),
        (b"multipart/related; type=x; boundary=1", "multipart/related; type=x"),
        (b"text/plain; boundary=1", "text/plain; boundary=1"),
    ],
)
def test_the_media_type_has_its_parameters_in_one_order(value: bytes, media: str) -> None:
    assert canonical_body(((b"content-type", value),), b"x")[0] == media


# --- rules -----------------------------------------------------------------------------------------------------------

ID = ("ignore-json", "$..id")
RULED: list[tuple[tuple[str, str], tuple[bytes, bytes], tuple[bytes, bytes]]] = [
    (ID, (JSON, b'{"id":1,"a":{"id":"x"}}'), (JSON, b'{"a":{}}')),
    (ID, (JSON, b'{"id":12345678901234567890123,"a":1.5}'), (JSON, b'{"id":7,"a":1.5}')),
    (ID, (b"application/x-ndjson", b'{"id":1}\n{"b":2}'), (b"application/x-ndjson", b'{"id":2}\n{"b":2,"id":3}')),
    (ID, multipart(FIELD_JSON + b'{"id":1}'), multipart(FIELD_JSON + b'{"id":2}')),
    (("ignore-form", "f"), multipart(FILE, b"\r\nx"), multipart(b"\r\nx")),
    (
        ("ignore-form", "a*"),
        (FORM, b"ab=1&b=2"),
        (FORM, b"b=2&ac="),
    ),
    (("rewrite-body", r'"at":\d+="at":0'), (JSON, b'{"z":1, "at": 5}'), (JSON, b'{"at":77,"z":1}')),
    (("rewrite-body", r"\d+="), (b"text/plain", b"at 1 o"), (b"text/plain", b"at 22 o")),
    (
        ("rewrite-body", r"\d+="),
        (FORM, b"a=1"),
        (FORM, b"a=2"),
    ),
    (("rewrite-body", r"z+=a"), (JSON, b'{"zz":1,"b":2}'), (JSON, b'{"a":1,"b":2}')),
    (("rewrite-body", r"\{.*=broken"), (JSON, b'{"a":1}'), (JSON, b'{"b":1}')),
]


@pytest.mark.parametrize(("rule", "one", "other"), RULED)
def test_rules_make_bodies_the_same(
    rule: tuple[str, str], one: tuple[bytes, bytes], other: tuple[bytes, bytes]
) -> None:
    assert body(*one).canonical != body(*other).canonical
    a, b = body(*one, b"", rule), body(*other, b"", rule)
    assert (a.form, a.canonical) == (b.form, b.canonical)


# --- properties ------------------------------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4).filter(lambda name: name.isascii()), inner, max_size=4)
    ),
    max_leaves=12,
)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reversed_keys(value[name]) for name in reversed(list(value))}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def key(value: Any, reading: Reading | None = None, **style: Any) -> bytes:
    data = json.dumps(value, **style).encode()
    return identify(b"POST", b"https://h/", ((b"content-type", JSON),), data, reading=reading or Reading()).key


@given(values)
def test_canonical_json_is_canonical_of_itself(value: Any) -> None:
    once = body(JSON, json.dumps(value).encode())
    assert once.form == "json"
    assert body(JSON, once.canonical) == once


@given(values)
def test_key_order_spacing_and_escapes_never_matter(value: Any) -> None:
    assert key(value) == key(reversed_keys(value), indent=1) == key(value, ensure_ascii=False, separators=(",", ":"))


@given(values, values)
def test_any_change_of_value_changes_the_key(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (key(one) == key(other)) == same


@given(st.dictionaries(st.sampled_from(["a", "b", "id"]), values), values, values)
def test_only_what_a_rule_ignores_does_not_change_the_key(rest: dict[str, Any], one: Any, other: Any) -> None:
    reading = Reading(rules=Rules((parse_rule("ignore-json", "$.id"),)))
    assert key({**rest, "id": one}, reading) == key({**rest, "id": other}, reading)
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (key({**rest, "x": one}, reading) == key({**rest, "x": other}, reading)) == same


@given(st.binary(max_size=60), st.sampled_from([b"text/plain", b"application/x", b"multipart/x; boundary=a"]))
def test_any_bytes_have_a_canonical_form(data: bytes, kind: bytes) -> None:
    assert body(kind, data).form in ("bytes", "empty", "json", "multipart", "lines")
