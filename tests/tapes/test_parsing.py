from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes import parsing
from tapeproxy.tapes.parsing import MAX_NESTING, RecordError, parse_body, parse_record
from tapeproxy.tapes.records import Json, Request, Unknown

# One good record of each kind, with every field it knows.
GOOD: dict[str, Json] = {
    "head": {
        "tape": 1,
        "must": [],
        "window": 5,
        "by": "x",
        "started_at": "2026-01-01T00:00:00Z",
        "argv": ["a"],
        "cwd": "/",
        "host": "h",
        "platform": "p",
        "python": "3",
        "tz": "UTC",
        "lang": None,
        "secrets": [],
        "seed": None,
        "origin": None,
        "hash_seed": None,
        "tmpdir": None,
        "io": False,
        "threads": False,
        "rules": {},
        "parent": None,
        "branch": {},
        "edit": None,
        "scrubbed": None,
        "imported": None,
        "sealed_seed": None,
        "java": False,
        "reverse": [],
        "no_tape": [],
        "led": False,
    },
    "request": {
        "t": 0,
        "lane": "main",
        "n": 1,
        "reads": 0,
        "sleeps": 2,
        "awake": 0,
        "method": "GET",
        "url": "http://x/",
        "http": "HTTP/1.1",
        "alpn": None,
        "inside": False,
        "source": None,
        "headers": [["a", "b"]],
        "body": "",
    },
    "response": {
        "t": 0,
        "of": 1,
        "status": 200,
        "reason": "OK",
        "http": "HTTP/1.1",
        "framing": "length",
        "informational": [[103, [["a", "b"]]]],
        "headers": [],
    },
    "chunks": {"t": 0, "of": 1, "to": "client", "parts": [[0, "a"], [None, {"b64": ""}]], "recoded": True},
    "ws": {"t": 0, "of": 1, "n": 0, "to": "client", "type": "close", "open": None, "code": 1000, "data": "bye"},
    "end": {"t": 0, "of": 1, "how": "complete", "error": None, "trailers": [], "code": 7},
    "note": {"t": 0, "what": "x", "text": "", "data": {}},
    "lane": {"t": 0, "id": "m/t0", "what": "thread", "name": None, "from": ["m", 1, 0], "asked": 2},
    "clock": {"t": 0, "lane": "m", "n": 0, "ns": -1, "slept": True},
    "lane-end": {"t": 0, "lane": "m", "reads": 0},
    "done": {"t": 0, "lane": "m/a0", "parent": "m", "sleeps": 1},
    "env": {"t": 0, "name": "HOME", "digest": None},
    "value": {
        "t": 0,
        "lane": "m",
        "n": 0,
        "what": "file",
        "name": "notes.txt",
        "where": "agent.py:1",
        "error": None,
        "length": None,
        "digest": None,
        "content": None,
        "data": {},
    },
    "edge": {
        "t": 0,
        "what": "acquired",
        "on": "m#agent:0",
        "lane": "m/t0",
        "n": 0,
        "asked": 1,
        "at": [1, 0],
        "out": True,
    },
    "exit": {"t": 0, "code": -1, "signal": None, "duration": 0},
    "seal": {"t": 0, "records": 1, "lanes": {}, "trace": "", "outcome": "exit", "file": ""}
    | {"messages": None, "uploads": None},
}
REQUIRED = {
    "head": {"tape", "started_at"},
    "request": {"t", "method", "url", "headers", "body"},
    "response": {"t", "of", "status", "framing", "headers"},
    "chunks": {"t", "of", "to", "parts"},
    "ws": {"t", "of", "n", "to", "type", "data"},
    "end": {"t", "of", "how"},
    "note": {"t", "what"},
    "lane": {"t", "id"},
    "clock": {"t", "lane", "n", "ns"},
    "lane-end": {"t", "lane", "reads"},
    "done": {"t", "lane", "parent"},
    "env": {"t", "name", "digest"},
    "value": {"t", "lane", "n", "what", "name"},
    "edge": {"t", "what", "on", "lane", "n"},
    "exit": {"t", "code"},
    "seal": {"t", "records", "trace", "outcome", "file"},
}
FIELDS = [(kind, name) for kind, record in GOOD.items() for name in record]
# For each parser of the schema, values that it has to refuse.
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1.0, 2**63, "", "x", "\u0100", [], [1], ["x"], [[]], [["a"]], [["a", "b", "c"]]),
    *([1, 0], ["m", 1, 0], ["m", 1, -1], [1, -1]),
    *([["a", 1]], [["a", "\u0100"]], ["ab"], [[-1, []]], {}, {"b64": 1}, {"b64": "!"}, {"b64": "", "x": 1}),
]
ACCEPTED: dict[str, list[Any]] = {
    "point": [[1, 0]],
    "origin": [["m", 1, 0]],
    "text": ["", "x", "\u0100"],
    "native": ["", "x", "\u0100"],
    "octets": ["", "x"],
    "natural": [0],
    "integer": [0, -1, 2**63],
    "flag": [True, False],
    "object": [{}, {"b64": 1}, {"b64": "!"}, {"b64": "", "x": 1}],
    "texts": [[], ["x"], ["ab"]],
    "pairs": [[]],
    "informational": [[]],
    "body": ["", "x", "\u0100"],
    "bytes": ["", "x", "\u0100"],
    "word": [],
}
TYPES = {
    ("head", "tape"): "natural",
    ("head", "must"): "texts",
    ("head", "window"): "natural?",
    ("head", "argv"): "texts",
    ("head", "cwd"): "native",
    ("head", "tz"): "native?",
    ("head", "lang"): "native?",
    ("head", "secrets"): "texts",
    ("head", "seed"): "text?",
    ("head", "origin"): "integer?",
    ("head", "hash_seed"): "text?",
    ("head", "tmpdir"): "native?",
    ("head", "threads"): "flag",
    ("head", "rules"): "object",
    ("head", "parent"): "object?",
    ("head", "branch"): "object?",
    ("head", "edit"): "object?",
    ("head", "scrubbed"): "object?",
    ("head", "imported"): "object?",
    ("head", "sealed_seed"): "text?",
    ("request", "lane"): "text?",
    ("request", "n"): "natural?",
    ("request", "reads"): "natural?",
    ("request", "sleeps"): "natural",
    ("done", "sleeps"): "natural",
    ("request", "awake"): "natural?",
    ("request", "method"): "octets",
    ("request", "url"): "octets",
    ("request", "alpn"): "text?",
    ("request", "inside"): "flag",
    ("request", "source"): "text?",
    ("request", "headers"): "pairs",
    ("request", "body"): "body",
    ("response", "status"): "natural",
    ("response", "reason"): "octets",
    ("response", "framing"): "word",
    ("response", "informational"): "informational",
    ("response", "headers"): "pairs",
    ("chunks", "to"): "word",
    ("chunks", "parts"): "pairs",
    ("chunks", "recoded"): "flag",
    ("ws", "n"): "natural",
    ("ws", "to"): "word",
    ("ws", "type"): "word",
    ("ws", "open"): "word?",
    ("ws", "code"): "natural?",
    ("ws", "data"): "bytes",
    ("end", "how"): "word",
    ("end", "error"): "native?",
    ("end", "trailers"): "pairs",
    ("end", "code"): "natural?",
    ("note", "text"): "native",
    ("note", "data"): "object",
    ("lane", "name"): "native?",
    ("clock", "n"): "natural",
    ("clock", "ns"): "integer",
    ("clock", "slept"): "flag",
    ("lane-end", "reads"): "natural",
    ("env", "name"): "native",
    ("env", "digest"): "text?",
    ("head", "io"): "flag",
    ("head", "java"): "flag",
    ("head", "led"): "flag",
    ("head", "reverse"): "texts",
    ("head", "no_tape"): "texts",
    ("value", "n"): "natural",
    ("value", "name"): "native",
    ("value", "where"): "native",
    ("value", "error"): "text?",
    ("value", "length"): "natural?",
    ("value", "digest"): "text?",
    ("value", "content"): "bytes?",
    ("value", "data"): "object",
    ("edge", "on"): "native",
    ("edge", "n"): "natural",
    ("edge", "asked"): "natural?",
    ("edge", "at"): "point?",
    ("edge", "out"): "flag",
    ("lane", "from"): "origin?",
    ("lane", "asked"): "natural?",
    ("exit", "code"): "integer?",
    ("exit", "signal"): "text?",
    ("exit", "duration"): "natural",
    ("seal", "records"): "natural",
    ("seal", "lanes"): "object",
    ("seal", "messages"): "text?",
    ("seal", "uploads"): "text?",
} | {(kind, name): "natural" for kind, record in GOOD.items() for name in record if name in ("t", "of")}


def test_the_table_here_is_the_schema() -> None:
    tables = {kind: table for kind, (_, table) in parsing._KINDS.items()}
    assert {kind: {name for name, *_, required in table if required} for kind, table in tables.items()} == REQUIRED
    assert {kind: {name for name, *_ in table} for kind, table in tables.items()} == {
        kind: set(record) for kind, record in GOOD.items()
    }


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_a_field_of_another_type_is_refused_by_name(kind: str, name: str) -> None:
    wanted = TYPES.get((kind, name), "text")
    for value in ODD:
        record = {"k": kind} | GOOD[kind] | {name: value}
        accepted = ACCEPTED[wanted.rstrip("?")] + ([None] if wanted.endswith("?") else [])
        if any(type(value) is type(good) and value == good for good in accepted):
            parse_record(record)
            continue
        with pytest.raises(RecordError, match=f"field '{name}' of a '{kind}' record must be ") as caught:
            parse_record(record)
        assert (caught.value.kind, caught.value.name) == (kind, name)


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_an_absent_field_is_refused_only_where_it_is_required(kind: str, name: str) -> None:
    record = {"k": kind} | GOOD[kind]
    del record[name]
    if name in REQUIRED[kind]:
        with pytest.raises(RecordError, match=f"field '{name}' of a '{kind}' record must be present"):
            parse_record(record)
    else:
        parse_record(record)


@pytest.mark.parametrize("kind", [None, 1, [], {}])
def test_a_record_without_a_kind_is_refused(kind: Any) -> None:
    with pytest.raises(RecordError, match="field 'k' of a '\\?' record must be a string"):
        parse_record({"k": kind})


def test_the_envelope_is_not_kept_and_the_object_stays_as_it_was() -> None:
    obj = {"k": "request", "i": 5, "h": "00", "later": [1]} | GOOD["request"]
    before = dict(obj)
    record = parse_record(obj)
    assert isinstance(record, Request)
    assert record.extra == {"later": [1]}
    assert obj == before


def test_an_unknown_kind_is_kept_whole() -> None:
    assert parse_record({"k": "crash", "i": 1, "t": -1, "frames": [[1]], "h": ""}) == Unknown(
        kind="crash", extra={"t": -1, "frames": [[1]]}
    )


def nested(depth: int, *, arrays: bool) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value] if arrays else {"a": value}
    return value


@pytest.mark.parametrize("arrays", [True, False])
@pytest.mark.parametrize(
    ("kind", "name"), [("note", "data"), ("head", "rules"), ("seal", "lanes"), ("end", "later"), ("crash", "later")]
)
def test_free_form_parts_are_nested_only_so_deep(kind: str, name: str, arrays: bool) -> None:
    record = {"k": kind} | GOOD.get(kind, {})
    free = name == "later"
    deep = nested(MAX_NESTING - (not free), arrays=arrays)
    parse_record(record | {name: deep if free else {"a": deep}})
    with pytest.raises(RecordError, match="nested at most 64 deep"):
        parse_record(record | {name: [deep] if free else {"a": [deep]}})


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        [],
        ["b64", ""],
        {},
        {"b64": None},
        {"b64": "AAA"},
        {"b64": "AA=A"},
        {"b64": "A AA"},
        {"b64": "é"},
        {"b64": "", "ref": 1},
        {"ref": -1},
        {"ref": "1"},
        {"ref": True},
        {"ref": 1, "head": 1},
        {"like": 1},
        {"like": 1, "head": 1},
        {"like": 1, "head": 1, "tail": -1},
        {"like": 1, "head": 1.0, "tail": 1},
        {"like": 1, "head": 1, "tail": 1, "mid": None},
        {"like": 1, "head": 1, "tail": 1, "mid": {"ref": 1}},
        {"like": 1, "head": 1, "tail": 1, "mid": {"like": 1, "head": 0, "tail": 0}},
        {"like": 1, "head": 1, "tail": 1, "extra": 1},
        {"later": 1},
    ],
)
def test_what_is_no_body_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"text, or an object|base64|integer|mid"):
        parse_body(value)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(kind=st.sampled_from([*GOOD, "later"]), data=st.data())
def test_any_object_gives_a_record_or_a_record_error(kind: str, data: st.DataObject) -> None:
    good = GOOD.get(kind, {})
    changed = data.draw(st.dictionaries(st.sampled_from([*good, "x"]), json))
    try:
        record = parse_record({"k": kind} | good | changed)
    except RecordError as error:
        assert error.kind == kind
    else:
        assert record.kind == kind
