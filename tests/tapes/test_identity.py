"""Requests that mean the same have one identity; requests that differ anywhere else do not."""

import gzip
import zlib

import pytest

from tapeproxy.tapes.identity import identify, parse_target
from tapeproxy.tapes.redaction import Redactor

KEY = bytes(range(32))
URL = b"https://api.example.com/v1/chat?a=1"
JSON = ((b"Content-Type", b"application/json"),)


def key(
    url: bytes = URL, *, method: bytes = b"POST", headers: tuple[tuple[bytes, bytes], ...] = JSON, body: bytes = b"{}"
) -> bytes:
    return identify(method, url, headers, body).key


def multipart(boundary: bytes, text: bytes = b"hello", quoted: bool = False) -> dict[str, object]:
    mark = b'"' + boundary + b'"' if quoted else boundary
    body = b'--%b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n%b\r\n--%b--\r\n'
    return {
        "headers": ((b"content-type", b"multipart/form-data; boundary=" + mark),),
        "body": body % (boundary, text, boundary),
    }


def typed(kind: bytes, body: bytes, *more: tuple[bytes, bytes]) -> dict[str, object]:
    return {"headers": ((b"Content-Type", kind), *more), "body": body}


FORM = b"application/x-www-form-urlencoded"
BIG = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
TOKEN = Redactor(KEY, ["sk-0123456789abcdefgh"]).content(b"sk-0123456789abcdefgh")
OTHER = Redactor(bytes(32), ["sk-another-key-12345"]).content(b"sk-another-key-12345")
SAME: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "swapped JSON keys": ({"body": b'{"a":1,"b":[1,2]}'}, {"body": b'{ "b":[1, 2],"a":1}'}),
    "escaped or not": ({"body": '{"a":"é"}'.encode()}, {"body": b'{"a":"\\u00e9"}'}),
    "credentials": ({"headers": (*JSON, (b"Authorization", b"Bearer a"))}, {"headers": JSON}),
    "client version": ({"headers": (*JSON, (b"x-stainless-lang", b"python"))}, {"headers": JSON}),
    "charset of JSON": (typed(b"application/json; charset=UTF-8", b"{}"), typed(b"application/json", b"{}")),
    "boundary": (multipart(b"abc"), multipart(b"0123", quoted=True)),
    "form order": (typed(FORM, b"b=2&a=1"), typed(FORM, b"a=1&b=2")),
    "form bytes": (typed(FORM, b"a=%FF%FE&b=\xff"), typed(FORM, b"b=%FF&a=\xff\xfe")),
    "form escapes": (typed(FORM, b"a=x+y"), typed(FORM, b"a=x%20y")),
    "query order": ({"url": b"https://h/p?b=2&a=1"}, {"url": b"https://h/p?a=1&b=2"}),
    "default port": ({"url": b"https://h:443/p"}, {"url": b"https://H/p"}),
    "empty path": ({"url": b"https://h"}, {"url": b"https://h/"}),
    "gzip": (typed(b"application/json", gzip.compress(BIG), (b"Content-Encoding", b"gzip")), {"body": BIG}),
    "deflate": (typed(b"application/json", zlib.compress(BIG), (b"Content-Encoding", b"deflate")), {"body": BIG}),
    "another secret in the query": (
        {"url": Redactor(KEY).url(b"https://h/?api_key=0123456789abcdef")},
        {"url": Redactor(bytes(32)).url(b"https://h/?api_key=another-one-of-another-length")},
    ),
    "another secret in the body": (
        {"body": b'{"k":"' + TOKEN + b'"}'},
        {"body": b'{"k":"' + OTHER + b'"}'},
    ),
}
DIFFERENT: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "method": ({"method": b"GET"}, {"method": b"POST"}),
    "scheme": ({"url": b"http://h/p"}, {"url": b"https://h/p"}),
    "host": ({"url": b"https://h1/p"}, {"url": b"https://h2/p"}),
    "port": ({"url": b"https://h:1/p"}, {"url": b"https://h:2/p"}),
    "path": ({"url": b"https://h/p"}, {"url": b"https://h/P"}),
    "model": ({"body": BIG}, {"body": BIG.replace(b'"m"', b'"n"')}),
    "history": ({"body": BIG}, {"body": BIG.replace(b"[", b'[{"role":"system","content":""},')}),
    "JSON list order": ({"body": b"[1,2]"}, {"body": b"[2,1]"}),
    "number type": ({"body": b'{"a":1}'}, {"body": b'{"a":1.0}'}),
    "long numbers": ({"body": b'{"a":123456789012345678901}'}, {"body": b'{"a":123456789012345678902}'}),
    "null or absent": ({"body": b'{"a":null}'}, {"body": b"{}"}),
    "duplicate query order": ({"url": b"https://h/?a=1&a=2"}, {"url": b"https://h/?a=2&a=1"}),
    "duplicate query count": ({"url": b"https://h/?a=1&a=1"}, {"url": b"https://h/?a=1"}),
    "query moved to path": ({"url": b"https://h/a=1"}, {"url": b"https://h/?a=1"}),
    "multipart text": (multipart(b"abc"), multipart(b"abc", b"bye")),
    "octets": (typed(b"application/octet-stream", b"\0\1"), typed(b"application/octet-stream", b"\0\2")),
    "charset": (typed(b"text/csv; charset=windows-31j", b"a"), typed(b"text/csv", b"a")),
    "text spacing": (typed(b"text/plain", b"a b"), typed(b"text/plain", b"a  b")),
    "broken JSON": ({"body": b'{"a":1'}, {"body": b'{"a": 1'}),
    "form value": (typed(FORM, b"a=1&a=2"), typed(FORM, b"a=2&a=1")),
    "empty or absent form value": (typed(FORM, b"a="), typed(FORM, b"b=")),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_request(case: str) -> None:
    one, other = SAME[case]
    assert key(**one) == key(**other)  # type: ignore[arg-type]  # rows of keyword arguments


@pytest.mark.parametrize("case", DIFFERENT)
def test_another_request(case: str) -> None:
    one, other = DIFFERENT[case]
    assert key(**one) != key(**other)  # type: ignore[arg-type]  # rows of keyword arguments


def test_inside_traffic_has_no_port() -> None:
    one = identify(b"GET", b"http://127.0.0.1:41234/x", (), b"", inside=True)
    other = identify(b"GET", b"http://localhost:5/x", (), b"", inside=True)
    assert one.key == other.key
    assert one.target.authority == "inside"


@pytest.mark.parametrize(
    ("url", "authority", "path", "query"),
    [
        (b"https://h/p?q", "h", b"/p", b"q"),
        (b"http://[::1]:8080/", "[::1]:8080", b"/", None),
        (b"http://user:pw@h:81?", "h:81", b"/", b""),
        (b"HTTP://H.:80/a?b?c#d", "h", b"/a", b"b?c"),
    ],
)
def test_targets(url: bytes, authority: str, path: bytes, query: bytes | None) -> None:
    target = parse_target(url)
    assert (target.authority, target.path, target.query) == (authority, path, query)


@pytest.mark.parametrize("url", [b"", b"/p", b"h:80", b"//h/p"])
def test_a_url_that_is_not_absolute_is_refused(url: bytes) -> None:
    with pytest.raises(ValueError, match="not an absolute URL"):
        parse_target(url)


@pytest.mark.parametrize("inner", [b"1", b"1" * 25])
def test_json_of_any_depth_has_an_identity(inner: bytes) -> None:
    """By value down to what orjson writes, byte for byte below; long numbers are read another way."""

    def canonical(depth: int) -> str:
        return identify(b"POST", URL, JSON, b"[" * depth + inner + b"]" * depth).body.form

    assert [canonical(depth) for depth in (254, 255, 1023, 1025, 100_000)] == ["json"] + ["bytes"] * 4
