"""Each tool's way to write one exchange: what of it is read, and what is refused with its place."""

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from tapeproxy.tapes.imports.foreign import Foreign, mended, sound
from tapeproxy.tapes.imports.formats import check_size, format_of, formats
from tapeproxy.tapes.imports.nodes import ForeignFormatError, Node

URL = "https://api.example.com/v1/chat?x=1"
B64 = base64.b64encode(b"\x00\xffpng").decode()


def read(document: Any, *, base: str = "", files: Callable[[str], bytes] = lambda _: b"") -> list[Foreign]:
    root = Node(document)
    found = format_of(root, formats(base, files))
    return [sound(found.take(entry)) for entry in found.entries(root)]


def vcr(request: dict[str, Any], response: dict[str, Any], **more: Any) -> dict[str, Any]:
    entry = {"request": {"method": "POST", "uri": URL} | request, "response": {"status": 200} | response}
    return {"interactions": [entry | more], "version": 1}


VCR = [
    ({"body": "text"}, b"text"),
    ({"body": b"\x00\xff"}, b"\x00\xff"),
    ({"body": ""}, b""),
    ({"body": None}, b""),
    ({"body": {"string": "inner"}}, b"inner"),
    ({"body": {"string": b"\xff"}}, b"\xff"),
    ({"body": {"base64_string": B64}}, b"\x00\xffpng"),
    ({"body": {"encoding": "ISO-8859-1", "string": "caf\xe9"}}, b"caf\xe9"),
    ({"body": {"encoding": "UTF-8", "string": "caf\xe9"}}, "caf\xe9".encode()),
    ({"body": {"encoding": "ASCII-8BIT", "string": "plain"}}, b"plain"),
    ({"body": {"encoding": "rot13", "string": "plain"}}, b"plain"),
    ({"parsed_body": {"a": [1, None, "x"]}}, b'{"a":[1,null,"x"]}'),
    ({"parsed_body": "not json"}, b"not json"),
    ({"content": "legacy"}, b"legacy"),
    ({"body": "", "form": {"a": ["1", "2"]}}, b""),
    ({"form": {"a": ["1", "2"]}}, b"a=1&a=2"),
]


@pytest.mark.parametrize(("fields", "body"), VCR)
def test_bodies_of_cassettes(fields: dict[str, Any], body: bytes) -> None:
    (one,) = read(vcr(fields, fields))
    assert (one.request_body, one.body) == (body, body)


@pytest.mark.parametrize(
    ("response", "status", "reason"),
    [
        ({"status": {"code": 404, "message": "Not Found"}}, 404, b"Not Found"),
        ({"status": {"code": 404, "message": None}}, 404, None),
        ({"status": "201 Created", "code": 201}, 201, b"Created"),
        ({"status": 429}, 429, None),
        ({"status": None, "status_code": 500}, 500, None),
    ],
)
def test_states_of_cassettes(response: dict[str, Any], status: int, reason: bytes | None) -> None:
    (one,) = read(vcr({}, response))
    assert (one.status, one.reason) == (status, reason)


def test_methods_headers_and_times_of_cassettes() -> None:
    request = {"method": "post", "headers": {"A": ["1", "2"], "B": "3", "C": None, "N": 7}}
    (one,) = read(vcr(request, {"proto": "HTTP/2.0", "duration": "1.5ms"}, recorded_at="2026-01-02T03:04:05.5Z"))
    assert (one.method, one.h2) == (b"POST", True)
    assert one.request_headers == ((b"A", b"1"), (b"A", b"2"), (b"B", b"3"), (b"C", b""), (b"N", b"7"))
    assert (one.start, one.took) == (1767323045500000000, 1_500_000)
    ruby = {"http_interactions": read_ruby(), "recorded_with": "VCR 6.2.0"}
    (other,) = read(ruby)
    assert (other.method, other.status, other.body) == (b"GET", 200, b"hello")
    assert other.start == 1767323045000000000


def read_ruby() -> list[dict[str, Any]]:
    body = {"encoding": "UTF-8", "string": "hello"}
    asked = {
        "method": "get",
        "uri": URL,
        "body": {"encoding": "US-ASCII", "string": ""},
        "headers": {"Accept": ["*/*"]},
    }
    given = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": body}
    return [{"request": asked, "response": given, "recorded_at": "Fri, 02 Jan 2026 03:04:05 GMT"}]


def har(request: dict[str, Any], content: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = {"method": "POST", "url": URL, "headers": [{"name": ":authority", "value": "h"}]} | request
    given = {"status": 200, "statusText": "OK", "headers": [{"name": "X", "value": "1"}], "content": content}
    entry = {"startedDateTime": "2026-01-02T03:04:05.000Z", "time": 120.5, "timings": {"receive": 20.5}}
    return {"log": {"entries": [entry | {"request": asked, "response": given} | more]}}


@pytest.mark.parametrize(
    ("content", "body", "pieces"),
    [
        ({"text": "caf\xe9"}, "caf\xe9".encode(), 0),
        ({}, b"", 0),
        ({"text": B64, "encoding": "base64"}, b"\x00\xffpng", 0),
        ({"text": json.dumps([B64, B64]), "encoding": "base64"}, b"\x00\xffpng" * 2, 2),
        ({"text": '["00ff","706e67"]', "_isBinary": True}, b"\x00\xffpng", 2),
        ({"text": '["not","pieces"]'}, b'["not","pieces"]', 0),
    ],
)
def test_bodies_of_har(content: dict[str, Any], body: bytes, pieces: int) -> None:
    (one,) = read(har({"httpVersion": "h2"}, content))
    assert (one.body, len(one.pieces), one.h2) == (body, pieces, True)
    assert (one.start, one.waited, one.took) == (1767323045000000000, 100_000_000, 120_500_000)
    assert mended(one).request_headers == ()


@pytest.mark.parametrize(
    ("data", "body"),
    [
        ({"mimeType": "application/json", "text": "{}"}, b"{}"),
        ({"text": B64, "encoding": "base64"}, b"\x00\xffpng"),
        ({"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a", "value": "1 2"}]}, b"a=1+2"),
    ],
)
def test_what_was_posted_in_har(data: dict[str, Any], body: bytes) -> None:
    (one,) = read(har({"postData": data}, {}))
    assert one.request_body == body


def test_a_request_of_har_without_an_answer() -> None:
    entry = har({}, {})
    entry["log"]["entries"][0]["response"] = {"status": 0, "_error": "net::ERR_FAILED"}
    (one,) = read(entry)
    assert (one.status, one.how, one.error) == (0, "connect-error", "net::ERR_FAILED")


@pytest.mark.parametrize(
    ("value", "kind", "body"),
    [
        ({"a": 1}, "application/json", b'{"a":1}'),
        ([1, 2], "application/json", b"[1,2]"),
        (["line 1\n", "line 2"], "text/plain", b"line 1\nline 2"),
        ("<a/>", "application/xml", b"<a/>"),
        (B64, "application/octet-stream", b"\x00\xffpng"),
        (None, "application/json", b""),
    ],
)
def test_bodies_of_azure(value: Any, kind: str, body: bytes) -> None:
    entry = {"RequestUri": URL, "RequestMethod": "PUT", "RequestHeaders": {"Content-Type": kind}, "RequestBody": value}
    entry |= {"StatusCode": 201, "ResponseHeaders": {"Content-Type": [kind]}, "ResponseBody": value}
    (one,) = read({"Entries": [entry], "Variables": {}})
    assert (one.method, one.status, one.request_body, one.body) == (b"PUT", 201, body, body)


@pytest.mark.parametrize(
    ("body", "octets"),
    [
        ({"type": "json", "content": {"a": [1, None]}}, b'{"a":[1,null]}'),
        ({"type": "json", "content": None}, b"null"),
        ({"type": "json", "content": "text"}, b'"text"'),
        ({"type": "text", "content": "caf\xe9"}, "caf\xe9".encode()),
        ({"type": "binary", "content": "00ff"}, b"\x00\xff"),
        ({"type": "none"}, b""),
    ],
)
def test_bodies_of_cassetter(body: dict[str, Any], octets: bytes) -> None:
    (one,) = read(vcr({"body": body, "headers": {}}, {"body": body, "headers": {}}))
    assert (one.request_body, one.body) == (octets, octets)


STUB = {"request": {"method": "POST", "urlPath": "/v1"}, "response": {"status": 200, "body": "hi"}}


@pytest.mark.parametrize(
    ("request_", "response", "url", "asked", "given"),
    [
        ({"bodyPatterns": [{"equalToJson": '{"a":1}'}]}, {}, "/v1", b'{"a":1}', b"hi"),
        ({"bodyPatterns": [{"equalToJson": {"a": 1}}]}, {}, "/v1", b'{"a":1}', b"hi"),
        ({"bodyPatterns": [{"binaryEqualTo": B64}]}, {}, "/v1", b"\x00\xffpng", b"hi"),
        ({"queryParameters": {"q": {"equalTo": "a b"}}}, {"jsonBody": {"b": 2}}, "/v1?q=a+b", b"", b'{"b":2}'),
        ({}, {"base64Body": B64}, "/v1", b"", b"\x00\xffpng"),
        ({}, {"bodyFileName": "x.txt"}, "/v1", b"", b"of x.txt"),
    ],
)
def test_stubs_of_wiremock(
    request_: dict[str, Any], response: dict[str, Any], url: str, asked: bytes, given: bytes
) -> None:
    stub = {"request": STUB["request"] | request_, "response": STUB["response"] | response}
    (one,) = read({"mappings": [stub]}, base="https://h", files=lambda name: f"of {name}".encode())
    assert (one.url, one.request_body, one.body) == (f"https://h{url}".encode(), asked, given)


@pytest.mark.parametrize("states", [("Started", "s-2", "s-3"), ("Started", "paid", "an order that waits")])
def test_stubs_of_a_scenario_come_in_the_order_of_its_states(states: tuple[str, str, str]) -> None:
    def stub(status: int, state: str, **more: str) -> dict[str, Any]:
        return STUB | {"response": {"status": status}, "scenarioName": "s", "requiredScenarioState": state} | more

    one, two, three = states
    stubs = [stub(203, three, newScenarioState=one), stub(202, two, newScenarioState=three), stub(204, "never reached")]
    found = read({"mappings": [*stubs, stub(201, one, newScenarioState=two)]}, base="https://h")
    assert [one.status for one in found] == [201, 202, 203, 204]


REFUSED = [
    ({"anything": 1}, "no recording of a tool"),
    ([], "no recording of a tool"),
    (vcr({"uri": "/relative"}, {}), "interactions[0].request.uri: '/relative' is no absolute URL"),
    (vcr({"uri": None}, {}), "interactions[0].request: there is no 'uri' or 'url'"),
    (vcr({}, {"status": "fine"}), "interactions[0].response.status: a whole number"),
    (vcr({"body": [1]}, {}), "interactions[0].request.body: a text is expected here, not a list"),
    (vcr({"headers": ["A: 1"]}, {}), "interactions[0].request.headers: an object is expected"),
    (vcr({"body": {"base64_string": "?"}}, {}), "this is no base64"),
    (vcr({"parsed_body": {"a": b"\xff"}}, {}), "interactions[0].request.parsed_body: this is no JSON"),
    ({"interactions": {}}, "interactions: a list is expected"),
    ({"interactions": [7]}, "interactions[0]: an object is expected here, not a int"),
    (har({}, {}, _webSocketMessages=[]), "log.entries[0]: a WebSocket"),
    (har({"postData": {"mimeType": "multipart/form-data", "params": [{"name": "f"}]}}, {}), "postData: the text of a"),
    (har({}, {"text": '["zz"]', "_isBinary": True}), "these are no hex digits"),
    ({"ws_interactions": [{}]}, "ws_interactions[0]: a WebSocket"),
    ({"grpc_interactions": [{}]}, "grpc_interactions[0]: a gRPC call"),
    (vcr({"body": {"type": "new", "content": 1}}, {}), "bodies of the type 'new'"),
    ({"mappings": [STUB]}, "--base-url"),
    (har({"method": "GE T\r\n"}, {}), "log.entries[0]: 'GE T\\r\\n' is no method"),
    (vcr({}, {"status": 99999999999}), "interactions[0]: the answer can't be one of HTTP: its status is 99999999999"),
    (vcr({}, {"status": 10**30}), "interactions[0].response.status: the number is out of range"),
    (vcr({}, {"headers": {"a\r\nb": "1"}}), "interactions[0]: the answer can't be one of HTTP: its header"),
    (har({"url": URL + "\r\nx: y"}, {}), "is no URL"),
]


@pytest.mark.parametrize(("document", "says"), REFUSED)
def test_what_cannot_be_imported_is_refused_with_its_place(document: Any, says: str) -> None:
    with pytest.raises(ForeignFormatError) as error:
        read(document)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("request_", "response", "says"),
    [
        ({"urlPath": None, "urlPattern": "/v1/.*"}, {}, "request.urlPattern: a pattern"),
        ({"urlPath": None}, {}, "request: a pattern of URLs"),
        ({"method": "ANY"}, {}, "request.method: a stub for any method"),
        ({"method": None}, {}, "request: a stub for any method"),
        ({"queryParameters": {"q": {"matches": ".*"}}}, {}, "queryParameters.q: only `equalTo`"),
        ({"bodyPatterns": [{"matches": ".*"}]}, {}, "bodyPatterns[0]: only one of"),
        ({"bodyPatterns": [{"equalToJson": "{}"}, {"matchesJsonPath": "$.q"}]}, {}, "bodyPatterns[1]: only one of"),
        ({"bodyPatterns": [{"equalTo": "a"}, {"equalTo": "b"}]}, {}, "bodyPatterns: only one of"),
        ({"bodyPatterns": [{"equalToJson": {"a": "${json-unit.any-string}"}}]}, {}, "equalToJson: it has placeholders"),
        ({"multipartPatterns": [{"name": "f"}]}, {}, "multipartPatterns: a pattern"),
        ({}, {"body": "{{request.path}}", "transformers": ["response-template"]}, "transformers[0]: the answer is a t"),
        ({}, {"bodyFileName": "{{x}}", "transformers": ["response-template"]}, "transformers[0]: the answer is a t"),
        ({}, {"headers": {"A": "{{now}}"}, "transformers": ["response-template"]}, "transformers[0]: the answer is"),
        ({}, {"transformers": ["our-own"]}, "transformers[0]: the answer is changed by 'our-own'"),
        ({}, {"proxyBaseUrl": "https://x"}, "proxyBaseUrl: the answer is another server's"),
    ],
)
def test_a_pattern_of_wiremock_is_no_request(request_: dict[str, Any], response: dict[str, Any], says: str) -> None:
    stub = {"request": STUB["request"] | request_, "response": STUB["response"] | response}
    with pytest.raises(ForeignFormatError) as error:
        read({"mappings": [stub]}, base="https://h", files=str.encode)
    assert "mappings[0].re" in str(error.value)
    assert says in str(error.value)


OTHERS, HEADERS = "other requests that it answers", "headers that it asks for by a pattern"


@pytest.mark.parametrize(
    ("request_", "marks"),
    [
        ({"urlPath": None, "url": "/v1?a=1", "bodyPatterns": [{"equalTo": "a"}]}, []),
        ({"queryParameters": {"a": {"equalTo": "1"}, "b": {"absent": True}}, "bodyPatterns": [{"equalTo": "a"}]}, []),
        ({"bodyPatterns": [{"equalTo": "a"}]}, [OTHERS]),
        ({"urlPath": None, "url": "/v1"}, ["a body", OTHERS]),
        ({"urlPath": None, "url": "/v1", "method": "GET"}, []),
        (
            {"urlPath": None, "url": "/v1", "bodyPatterns": [{"equalToJson": "{}", "ignoreExtraElements": True}]},
            [OTHERS],
        ),
        ({"urlPath": None, "url": "/", "method": "GET", "headers": {"A": {"contains": "x"}}}, [HEADERS]),
        ({"urlPath": None, "url": "/", "method": "GET", "cookies": {"A": {"equalTo": "x"}}}, [HEADERS]),
        ({"urlPath": None, "url": "/", "method": "GET", "headers": {"A": {"equalTo": "x"}}}, []),
    ],
)
def test_what_a_stub_answers_besides_is_marked(request_: dict[str, Any], marks: list[str]) -> None:
    (one,) = read({"mappings": [STUB | {"request": STUB["request"] | request_}]}, base="https://h")
    assert list(one.absent[4:]) == marks


def test_what_a_stub_leaves_out_is_what_wiremock_makes_of_it() -> None:
    response = {"statusMessage": "Fine", "fixedDelayMilliseconds": 20, "transformers": ["response-template"]}
    (one,) = read({"mappings": [STUB | {"response": response}]}, base="https://h/")
    assert (one.status, one.reason, one.body, one.waited, one.url) == (200, b"Fine", b"", 20_000_000, b"https://h/v1")


def test_a_value_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    bomb: list[Any] = [0] * 10
    for _ in range(9):
        bomb = [bomb] * 10
    for value in (endless, {"a": bomb}):
        with pytest.raises(ForeignFormatError, match="without end"):
            check_size(value)
    check_size({"a": [{"b": list(range(1000))}] * 100})


GZIP = gzip.compress(b'{"a": 1}', mtime=0)
JSON = (b"content-type", b"application/json")


@pytest.mark.parametrize(
    ("headers", "body", "after", "notes"),
    [
        ([JSON, (b"Content-Encoding", b"gzip")], b'{"a": 1}', [JSON, (b"content-length", b"8")], 1),
        ([JSON], GZIP, [JSON, (b"content-encoding", b"gzip"), (b"content-length", b"%d" % len(GZIP))], 1),
        (
            [JSON, (b"Content-Encoding", b"gzip")],
            GZIP,
            [JSON, (b"Content-Encoding", b"gzip"), (b"content-length", b"%d" % len(GZIP))],
            0,
        ),
        ([JSON, (b"Content-Encoding", b"br")], b'{"a": 1}', [JSON, (b"content-length", b"8")], 1),
        ([JSON, (b"Content-Length", b"99")], b'{"a": 1}', [JSON, (b"Content-Length", b"8")], 1),
        (
            [JSON, (b"Transfer-Encoding", b"chunked"), (b"Content-Length", b"8")],
            b'{"a": 1}',
            [JSON, (b"Transfer-Encoding", b"chunked")],
            1,
        ),
        ([(b":status", b"200"), JSON], b"", [JSON, (b"content-length", b"0")], 0),
    ],
)
def test_headers_that_contradict_the_body_are_put_right(
    headers: list[tuple[bytes, bytes]], body: bytes, after: list[tuple[bytes, bytes]], notes: int
) -> None:
    done = mended(Foreign(place="x", method=b"GET", url=URL.encode(), status=200, headers=tuple(headers), body=body))
    assert (list(done.headers), len(done.notes), done.reason) == (after, notes, b"OK")


@pytest.mark.parametrize("method", [b"HEAD", b"GET"])
@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_keeps_its_length(method: bytes, status: int) -> None:
    headers = ((b"Content-Length", b"1488324"),)
    done = mended(Foreign(place="x", method=method, url=URL.encode(), status=status, headers=headers))
    assert (done.headers, done.framing) == (headers, "none")


@pytest.mark.parametrize(
    ("kind", "body", "pieces"),
    [
        (b"text/event-stream", b"data: 1\n\ndata: 2\r\n\r\n: c\n\nrest", 4),
        (b"application/x-ndjson", b'{"a":1}\n{"a":2}\n', 2),
        (b"application/vnd.amazon.eventstream", (b"\0\0\0\x10" + b"x" * 12) * 3 + b"cut", 4),
        (b"text/plain", b"a\n\nb", 1),
    ],
)
def test_a_stream_is_cut_where_its_events_end(kind: bytes, body: bytes, pieces: int) -> None:
    done = mended(
        Foreign(place="x", method=b"POST", url=URL.encode(), status=200, headers=((b"Content-Type", kind),), body=body)
    )
    assert len(done.pieces) == pieces
    assert b"".join(data for _, data in done.pieces) == body
    assert all(t is None for t, _ in done.pieces)


def test_a_request_of_json_without_a_type_gets_one() -> None:
    done = mended(Foreign(place="x", method=b"POST", url=URL.encode(), request_body=b' {"a": 1}', status=200))
    assert done.request_headers == ((b"content-type", b"application/json"),)
    assert "content-type of the request" in done.absent
