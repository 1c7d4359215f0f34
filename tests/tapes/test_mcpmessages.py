"""JSON-RPC by the line: what is a message, where it goes, and what of it is the client's own numbering."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.mcpmessages import (
    addressed,
    canonical,
    clean_name,
    id_key,
    read_message,
    reporting,
    server_name,
    url_of,
    violation_answer,
    with_values,
)


@pytest.mark.parametrize(
    ("raw", "kind", "path", "wants"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}', "request", "tools/call", True),
        (b'{"jsonrpc":"2.0","id":"a","method":"odd name?#%"}', "request", "odd%20name%3F%23%25", True),
        (
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}\r',
            "notification",
            "notifications/initialized",
            False,
        ),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', "notification", "ping", False),
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', "response", "-/response", False),
        (b'{"jsonrpc":"2.0","id":7,"error":{"code":1}}', "response", "-/response", False),
        (b'[{"id":1,"method":"a"},{"method":"b"}]', "batch", "-/batch", True),
        (b'[{"method":"b"}]', "batch", "-/batch", False),
        (b"Server ready.", "text", "-/text", False),
        (b"\xff\xfe{", "text", "-/text", False),
        (b"", "text", "-/text", False),
        (b"17", "text", "-/text", False),
        (b'{"id":1}', "text", "-/text", False),
        (b'{"id":true,"method":"ping"}', "notification", "ping", False),
        (b'{"id":1,"method":3}', "text", "-/text", False),
        (b"[" * 5000, "text", "-/text", False),
    ],
)
def test_kinds(raw: bytes, kind: str, path: str, wants: bool) -> None:
    message = read_message(raw)
    assert (message.raw, message.kind, message.path, message.wants_answer) == (raw, kind, path, wants)


@given(st.binary())
def test_any_line_is_a_message(raw: bytes) -> None:
    message = read_message(raw)
    assert canonical(message, {}) == raw or message.kind == "request"


@pytest.mark.parametrize(
    ("raw", "taped"),
    [
        (b'{"method": "m", "id": 12, "x": 1.50}', b'{"method": "m", "id": 0, "x": 1.50}'),
        (b'{"id":"req-1","method":"m"}', b'{"id":0,"method":"m"}'),
        (
            b'{"id":5,"method":"m","params":{"_meta":{"progressToken":"five","k":5},"id":5}}',
            b'{"id":0,"method":"m","params":{"_meta":{"progressToken":0,"k":5},"id":5}}',
        ),
        (
            b'{"method":"notifications/cancelled","params":{"requestId":9}}',
            b'{"method":"notifications/cancelled","params":{"requestId":3}}',
        ),
        (b'{"method":"notifications/cancelled","params":{"requestId":8}}', None),
        (b'{"id":9,"result":{"id":9}}', None),
        (b'{"id":0,"method":"m"}', None),
    ],
)
def test_a_client_numbers_as_it_likes(raw: bytes, taped: bytes | None) -> None:
    assert canonical(read_message(raw), {"9": 3}) == (raw if taped is None else taped)


def test_a_long_message_is_written_anew() -> None:
    raw = json.dumps({"id": 5, "method": "m", "params": {"text": "ä" * (1 << 20)}}, ensure_ascii=False).encode()
    message = read_message(raw)
    changed = canonical(message, {})
    assert json.loads(changed) == json.loads(raw) | {"id": 0}
    assert message.value["id"] == 5


@pytest.mark.parametrize(
    ("taped", "asked", "now"),
    [
        (b'{"id": 1, "result": {"id": 1}}', {"id": 2, "method": "m"}, b'{"id": 2, "result": {"id": 1}}'),
        (b'{"id":1,"result":1e2}', {"id": "x", "method": "m"}, b'{"id":"x","result":1e2}'),
        (b'{"id":1,"result":1e2}', {"id": 1, "method": "m"}, b'{"id":1,"result":1e2}'),
        (b'[{"id":1}]', [{"id": 1, "method": "m"}], b'[{"id":1}]'),
    ],
)
def test_an_answer_gets_the_id_of_today(taped: bytes, asked: Any, now: bytes) -> None:
    assert addressed(taped, read_message(json.dumps(asked).encode())) == now


def test_progress_is_reported_for_the_token_of_today() -> None:
    taped = b'{"method":"notifications/progress","params":{"progressToken":3,"progress":3}}'
    assert reporting(taped, {"3": "now"}) == taped.replace(b'"progressToken":3', b'"progressToken":"now"')
    assert reporting(taped, {"4": 1}) == taped
    assert reporting(b'{"method":"other","params":{"progressToken":3}}', {"3": 4}).endswith(b'"progressToken":3}}')
    assert reporting(b"text", {"3": 4}) == b"text"


def test_nothing_is_set_where_nothing_is() -> None:
    assert with_values(read_message(b'{"a":1}'), {("b", "c"): 1}) == b'{"a":1}'


def test_ids_that_look_alike_are_two() -> None:
    assert id_key(1) != id_key("1")
    assert id_key("\ud800") == '"\\ud800"'


def test_violations_have_a_code_of_ours() -> None:
    one = json.loads(violation_answer(read_message(b'{"id":"q","method":"m"}'), "no"))
    assert one == {"jsonrpc": "2.0", "id": "q", "error": {"code": 470, "message": "no"}}
    batch = json.loads(violation_answer(read_message(b'[{"id":1,"method":"m"},{"id":2,"method":"m"}]'), "no"))
    assert [answer["id"] for answer in batch] == [1, 2]


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["npx", "-y", "@modelcontextprotocol/server-filesystem@1.2", "/tmp"], "server-filesystem"),
        (["/usr/bin/python3.12", "-u", "servers/Weather_Server.py"], "weather-server"),
        (["python", "-m", "weather.server"], "weather"),
        (["uv", "run", "weather"], "weather"),
        (["uvx", "mcp-server-git"], "mcp-server-git"),
        (["docker", "run", "-i", "--rm", "mcp/time"], "time"),
        (["C:\\bin\\server.exe"], "server"),
        (["./weather"], "weather"),
        (["python"], "python"),
        (["ü"], "server"),
        ([], "server"),
    ],
)
def test_a_server_is_called_after_what_it_is(argv: list[str], name: str) -> None:
    assert server_name(argv) == name


def test_names_are_part_of_a_host() -> None:
    assert clean_name("My Server!") == "my-server"
    assert len(clean_name("a-" * 100)) <= 63
    assert url_of("a", "tools/list", 1) == b"http://a.mcp-stdio.invalid/tools/list"
    assert url_of("a", "", 2) == b"http://a.mcp-stdio.invalid/?session=2"
