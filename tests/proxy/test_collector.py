"""Spans go to a collector: real HTTP on loopback, and what it may answer."""

import json
import threading
from collections.abc import Iterator

import pytest
from collectors import Collector

from tapeproxy.proxy.collector import CollectorError, Sent, endpoint_of, headers_of, send
from tapeproxy.tapes.errors import UsageError


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


ENDPOINTS = [
    ("http://localhost:4318", "http://localhost:4318/v1/traces"),
    ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
    ("https://h.test/otel?a=b#c", "https://h.test/otel/v1/traces?a=b"),
    ("https://h.test/v1/traces", "https://h.test/v1/traces"),
    ("https://h.test/otel/v1/offline-traces", "https://h.test/otel/v1/offline-traces"),
]


@pytest.mark.parametrize(("url", "endpoint"), ENDPOINTS)
def test_where_traces_go(url: str, endpoint: str) -> None:
    assert endpoint_of(url) == endpoint


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://h.test", "http://", "http://h:x", "http://[", ""])
def test_what_is_no_collector(url: str) -> None:
    with pytest.raises(UsageError, match="no URL of a collector"):
        endpoint_of(url)


def test_headers_of_the_environment() -> None:
    given = {"OTEL_EXPORTER_OTLP_HEADERS": "a=1, x-key=b%20c=", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=2,"}
    assert headers_of(given) == {"a": "2", "x-key": "b c="}
    for wrong in ("novalue", "a=b%0d%0ac: d"):
        with pytest.raises(UsageError, match="holds no headers"):
            headers_of({"OTEL_EXPORTER_OTLP_HEADERS": wrong})


def test_each_request_is_sent(collector: Collector) -> None:
    sent = send(endpoint_of(collector.url), [(2, b'{"a":1}'), (1, b'{"b":2}')], {"X-Key": "k"})
    assert sent == Sent(3, 0, ())
    assert [(path, body) for path, _, body in collector.got] == [("/v1/traces", {"a": 1}), ("/v1/traces", {"b": 2})]
    headers = collector.got[0][1]
    assert (headers["content-type"], headers["x-key"]) == ("application/json", "k")


def test_what_a_collector_refuses_in_part(collector: Collector) -> None:
    said = {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old"}}
    collector.answers = [(200, {}, json.dumps(said).encode())]
    assert send(endpoint_of(collector.url), [(3, b"{}")], {}) == Sent(2, 1, ("too old",))


def test_a_busy_collector_is_asked_again(collector: Collector) -> None:
    collector.answers = [(503, {"Retry-After": "7"}, b""), (429, {}, b""), (503, {"Retry-After": "999"}, b"")]
    waits: list[float] = []
    assert send(endpoint_of(collector.url), [(1, b"{}")], {}, waits.append).spans == 1
    assert waits == [7.0, 2.0, 30.0]


REFUSALS = [
    (401, b'{"message":"no\\nkey"}', "status 401: no key: a key in OTEL_EXPORTER_OTLP_HEADERS"),
    (404, b"<html>", "status 404: <html>: is its path right"),
    (500, b"", "status 500$"),
]


@pytest.mark.parametrize(("status", "body", "says"), REFUSALS)
def test_what_a_collector_refuses(status: int, body: bytes, says: str, collector: Collector) -> None:
    collector.answers = [(200, {}, b"no json"), (status, {}, body)]
    with pytest.raises(CollectorError) as raised:
        send(endpoint_of(collector.url), [(2, b"{}"), (2, b"{}")], {})
    assert raised.value.sent == 2
    assert "2 spans were taken before" in raised.value.fix
    raised.match(says.removesuffix("$"))


def test_a_collector_that_stays_busy(collector: Collector) -> None:
    collector.answers = [(503, {}, b"")] * 9
    with pytest.raises(CollectorError, match="status 503"):
        send(endpoint_of(collector.url), [(2, b"{}")], {}, lambda _: None)
    assert len(collector.got) == 4


def test_no_redirect_is_followed(collector: Collector) -> None:
    collector.answers = [(302, {"Location": f"{collector.url}/elsewhere"}, b"")]
    with pytest.raises(CollectorError, match="status 302"):
        send(endpoint_of(collector.url), [(1, b"{}")], {"X-Key": "k"})
    assert len(collector.got) == 1


def test_nobody_listens(collector: Collector) -> None:
    url = endpoint_of(collector.url)
    collector.server_close()
    with pytest.raises(CollectorError, match="cannot be reached"):
        send(url, [(1, b"{}")], {})
