"""mitmproxy's messages as records name them: URLs, hosts and framing."""

import pytest
from mitmproxy.http import Headers, Request, Response

from tapeproxy.addons.flows import declared_length, framing_of, host_bytes, url_of


def request(scheme: str = "http", host: str = "a", port: int = 80, path: bytes = b"/", method: str = "GET") -> Request:
    made = Request.make(method, "http://placeholder/")
    made.data.scheme, made.data.host, made.data.port, made.data.path = scheme.encode(), host, port, path
    return made


@pytest.mark.parametrize(
    ("made", "url"),
    [
        (request(), b"http://a/"),
        (request("https", "Api.Example.com", 443, b"/v1?b=2&a=1&a=%20"), b"https://Api.Example.com/v1?b=2&a=1&a=%20"),
        (request("https", "a", 80), b"https://a:80/"),
        (request("http", "a", 443), b"http://a:443/"),
        (request("http", "::1", 8080), b"http://[::1]:8080/"),
        (request("http", "bücher.example", 80), b"http://xn--bcher-kva.example/"),
        (request(path=b"/\xff\xfe?\x80"), b"http://a/\xff\xfe?\x80"),
        (request(path=b"//x/../y;p?"), b"http://a//x/../y;p?"),
    ],
)
def test_a_url_is_byte_for_byte_what_was_asked(made: Request, url: bytes) -> None:
    made.headers["Host"] = "something-else.example"
    assert url_of(made) == url


def test_host_bytes() -> None:
    assert [host_bytes(host) for host in ("a_b.example", "fd00::1")] == [b"a_b.example", b"[fd00::1]"]


@pytest.mark.parametrize(
    ("value", "length"),
    [(b"0", 0), (b"123", 123), (b"-1", None), (b"1,1", 1), (b"5, 5", 5), (b"1, 2", None), (b"", None), (b"\xb2", None)],
)
def test_a_declared_length(value: bytes, length: int | None) -> None:
    assert declared_length(((b"x", b"y"), (b"Content-LENGTH", value))) == length
    assert declared_length(((b"x", value),)) is None


@pytest.mark.parametrize(
    ("method", "status", "headers", "framing"),
    [
        ("GET", 200, {"content-length": "5"}, "length"),
        ("GET", 200, {"transfer-encoding": "chunked"}, "chunked"),
        ("GET", 200, {"transfer-encoding": "gzip, Chunked", "content-length": "5"}, "chunked"),
        ("GET", 200, {"transfer-encoding": "gzip"}, "close"),
        ("GET", 200, {}, "close"),
        ("HEAD", 200, {"content-length": "5"}, "none"),
        ("head", 200, {}, "none"),
        ("GET", 204, {}, "none"),
        ("GET", 304, {"content-length": "5"}, "none"),
        ("GET", 101, {}, "none"),
        ("POST", 500, {"content-length": "0"}, "length"),
    ],
)
def test_framing(method: str, status: int, headers: dict[str, str], framing: str) -> None:
    response = Response.make(status, b"")
    response.headers = Headers([(name.encode(), value.encode()) for name, value in headers.items()])
    assert framing_of(request(method=method), response) == framing
