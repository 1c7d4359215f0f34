"""What looks like a secret is told with its place and without itself; what real traffic is full of is not."""

import base64
import gzip
import json
import uuid
from typing import Any

import cassettes
import pytest
from cassettes import load_exchanges
from editsamples import gemini_list

from tapeproxy.tapes.leftovers import Leftover, LeftoverScanner, scan_leftovers
from tapeproxy.tapes.records import Chunks, End, Head, Headers, Record, Request, Response
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.suspicion import Sought

KEY = "sk-proj-AbCdEf0123456789xyzXYZ"
REDACTOR = Redactor(bytes(range(32)))
SOUGHT = Sought(values=(("the value of $MINE", b"env-s3cret-of-the-run"),), fields=frozenset({"session"}))
JSON: Headers = ((b"Content-Type", b"application/json"),)
STREAM: Headers = ((b"Content-Type", b"text/event-stream"),)


def scan(body: bytes, headers: Headers = JSON, *, answer: bytes = b"", answered: Headers = JSON) -> list[Leftover]:
    records: list[Record] = [
        Head(),
        Request(t=1, method=b"POST", url=b"https://x.example/", headers=headers, body=body),
        Response(t=2, of=1, status=200, headers=answered),
        Chunks(t=3, of=1, parts=((0, answer),)),
        End(t=4, of=1, how="complete"),
    ]
    return scan_leftovers(enumerate(records), REDACTOR, SOUGHT)


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


FOUND: list[tuple[bytes, Headers, str, str]] = [
    (dumped({"a": [{"b": f"my {KEY}"}]}), JSON, "request body $.a[0].b", "shape"),
    (dumped({"password": "hunter2x"}), JSON, "request body $.password", "name"),
    (dumped({"session": "abc"}), JSON, "request body $.session", "rule"),
    (dumped({"x": "DB_PASSWORD=Tr0ub4dor-and-3"}), JSON, "request body $.x", "name"),
    (dumped({"x": "the env-s3cret-of-the-run"}), JSON, "request body $.x", "known"),
    (dumped({"my_auth_thing": "aB3dE5fG7hI9jK1lM3"}), JSON, "request body $.my_auth_thing", "random"),
    (dumped({"arguments": json.dumps({"q": KEY})}), JSON, "request body $.arguments", "shape"),
    (dumped({"f": base64.b64encode(f"a\n{KEY}\n".encode()).decode()}), JSON, "request body $.f→base64", "shape"),
    (
        b"a=1&password=hunter2x",
        ((b"content-type", b"application/x-www-form-urlencoded"),),
        "request body field password",
        "name",
    ),
    (gzip.compress(dumped({"k": KEY}), mtime=0), (*JSON, (b"content-encoding", b"gzip")), "request body $.k", "shape"),
    (KEY.encode(), (), "request body", "shape"),
    (b"", ((b"X-Api-Key", b"abcdefgh"),), "request header x-api-key", "name"),
    (b"", ((b"Cookie", b"id=abcdefghijk"),), "request header cookie", "name"),
]


@pytest.mark.parametrize(("body", "headers", "place", "kind"), FOUND)
def test_a_secret_is_told_with_its_place(body: bytes, headers: Headers, place: str, kind: str) -> None:
    found = scan(body, headers)
    assert (place, kind) in [(one.place, one.kind) for one in found]
    assert all(one.exchange == 1 for one in found)
    for one in found:
        assert one.value.decode("latin-1") not in str(one.to_json()) + one.excerpt + repr(one)


def test_a_secret_split_over_deltas_is_told() -> None:
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in (KEY[:4], KEY[4:11], KEY[11:])]
    answer = b"".join(b"data: " + dumped(event) + b"\n\n" for event in events)
    (found,) = scan(b"", answer=answer, answered=STREAM)
    assert found.place == "response body events $.choices[0].delta.content, joined"
    assert found.value == KEY.encode()


def test_a_secret_split_over_the_items_of_a_list_is_told() -> None:
    answer = b"".join(gemini_list([KEY[:4], KEY[4:11], KEY[11:]]))
    (found,) = scan(b"", answer=answer, answered=((b"content-type", b"application/json"),))
    assert found.place == "response body events $.candidates[0].content.parts[0].text, joined"
    assert found.value == KEY.encode()
    assert scan(b"", answer=dumped([{"text": KEY[:4]}, {"text": KEY[4:]}])) == []


@pytest.mark.parametrize("value", ["Zk93hQ7vTr2LmX8wYb4N", "4f93hQ7vTr2LmX8wYb4N", "aB3dE5fG7hI9jK1lM3nO5"])
@pytest.mark.parametrize("text", ["export API_KEY={} && run", "x-api-key: {}", "api_key='{}'"])
def test_what_is_assigned_in_a_text_is_told_also_when_it_could_be_a_variable(text: str, value: str) -> None:
    (found,) = scan(dumped({"cmd": text.format(value)}))
    assert found.value == value.encode()


ORDINARY: list[Any] = [
    {"id": "chatcmpl-AbCdEf0123456789AbCdEf01", "system_fingerprint": "fp_0123456789"},
    {"tool_call_id": "call_AbCdEf0123456789AbCdEf01", "message_id": "msg_01AbCdEf0123456789AbCdEf"},
    {"request_id": str(uuid.UUID(int=5)), "key": "d41d8cd98f00b204e9800998ecf8427e", "etag": "a" * 64},
    {"usage": {"max_tokens": 100, "completion_tokens": 3}, "token": "Hello", "tokens": ["Hel", "lo"]},
    {"image": "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 50).decode()},
    {"api_key": "<your key>", "password": "string", "secret": "${SECRET}", "x": "API_KEY=os.environ['API_KEY']"},
    {"code": "connect(api_key=settings.openai.key2, token=my_second_token_22, secret=apiKeyOfTheUser)"},
    {"text": "Keep your password secret: a token of sk-learn is no key, and author: someone is nobody."},
    {
        "session_id": "0b1c2d3e-0000-4000-8000-000000000000",
        "page_token": "CAUQAA",
        "idempotency_key": "aB3dE5fG7hI9jK1lM3",
    },
]


@pytest.mark.parametrize("body", ORDINARY)
def test_what_requests_are_full_of_is_none(body: Any) -> None:
    assert scan(dumped(body), answer=dumped(body)) == []


@pytest.mark.parametrize("name", cassettes.names(".yaml") + cassettes.names(".har"))
def test_bodies_of_real_traffic_have_no_findings(name: str) -> None:
    found = [one for exchange in load_exchanges(name) for one in _in(exchange)]
    assert [one for one in found if "body" in one.place] == []
    # Cloudflare's cookies are all that is left in the headers of these recordings.
    assert {one.place.split()[-1] for one in found} <= {"cookie", "set-cookie"}


def _in(exchange: Any) -> list[Leftover]:
    scanner = LeftoverScanner(REDACTOR)
    found = scanner.feed(1, exchange.request)
    found += scanner.feed(2, Response(t=1, of=1, status=200, headers=exchange.response.headers))
    found += scanner.feed(3, Chunks(t=1, of=1, parts=((0, exchange.response_body),)))
    return found + scanner.finish()


def test_a_body_that_cannot_be_opened_is_told() -> None:
    scanner = LeftoverScanner(REDACTOR)
    headers = (*JSON, (b"content-encoding", b"gzip"))
    scanner.feed(
        1, Request(t=1, method=b"POST", url=b"https://x.example/", headers=headers, body=gzip.compress(b"x" * 99)[:20])
    )
    scanner.finish()
    assert scanner.unseen == ["exchange 1, request body: the compressed body was cut"]
