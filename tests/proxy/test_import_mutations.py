"""Whatever is wrong with another tool's file, it is imported or refused with our own error, and what is made opens.

Values of small files of each format are replaced by odd ones, taken out, doubled; bytes are changed and cut.
"""

import base64
import copy
import io
import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy.io import tnetstring
from mitmproxy.test import tflow
from ruamel.yaml import YAML

from tapeproxy.proxy.importing import ImportSettings, import_file
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.imports.nodes import ForeignFormatError

URL = "https://api.example.com/v1/chat?x=1"
B64 = base64.b64encode(b"\x00\xffpng").decode()
MOMENT = "2026-01-02T03:04:05.5Z"


def _cassette(request: dict[str, Any], response: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = {"method": "POST", "uri": URL, "headers": {"A": ["1", "2"], "Content-Type": "text/event-stream"}} | request
    given_ = {"status": {"code": 200, "message": "OK"}, "headers": {"B": ["3"]}} | response
    return {"interactions": [{"request": asked, "response": given_, "recorded_at": MOMENT} | more] * 2, "version": 1}


def _polly() -> dict[str, Any]:
    headers = [{"name": "X", "value": "1"}, {"name": "content-type", "value": "application/json"}]
    posted = {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a", "value": "b"}]}
    asked = {"method": "POST", "url": URL, "headers": headers, "httpVersion": "h2", "postData": posted, "bodySize": 3}
    content = {"text": json.dumps([B64, B64]), "encoding": "base64", "size": 10}
    given_ = {"status": 200, "statusText": "OK", "headers": headers, "content": content}
    own = {"number": 1, "asked": 5, "http": "HTTP/1.1", "answered": 6, "ended": 9, "how": "complete", "digest": "x"}
    own |= {"chunks": [[6, 5], [7, 5]], "headers": [["a", "b"]], "trailers": [["a", "b"]], "body": B64, "url": URL}
    own |= {"informational": [[103, [["a", "b"]]]], "framing": "chunked", "alpn": "h2", "method": "post"}
    plain = {"startedDateTime": MOMENT, "time": 120.5, "timings": {"receive": 20.5}, "request": asked}
    plain["response"] = given_
    return {"log": {"version": "1.2", "entries": [plain, plain | {"_tapeproxy": own}]}}


def _azure() -> dict[str, Any]:
    entry: dict[str, Any] = {"RequestUri": URL, "RequestMethod": "PUT", "StatusCode": 201}
    entry |= {"RequestHeaders": {"Content-Type": "text/plain"}, "RequestBody": ["line\n", "line"]}
    entry |= {"ResponseHeaders": {"Content-Type": ["image/png"]}, "ResponseBody": B64}
    return {"Entries": [entry, entry | {"ResponseBody": {"a": [1]}}], "Variables": {}}


def _wiremock() -> dict[str, Any]:
    asked = {"method": "POST", "urlPath": "/v1", "queryParameters": {"q": {"equalTo": "a"}}}
    asked |= {"headers": {"A": {"equalTo": "b"}}, "bodyPatterns": [{"equalToJson": {"a": 1}}]}
    one = {"scenarioName": "s", "requiredScenarioState": "Started", "newScenarioState": "paid", "request": asked}
    one["response"] = {"status": 200, "headers": {"A": ["b"]}, "base64Body": B64, "fixedDelayMilliseconds": 20}
    two = one | {"requiredScenarioState": "paid", "response": {"jsonBody": {"a": 1}, "statusMessage": "OK"}}
    return {"mappings": [one, two, one | {"response": {"fault": "EMPTY_RESPONSE"}}]}


DOCUMENTS: dict[str, Any] = {
    "vcrpy": _cassette({"body": "text"}, {"body": {"string": b"\x1f\x8b"}}),
    "parsed": _cassette({"parsed_body": {"a": [1]}}, {"body": {"base64_string": B64}}),
    "legacy": _cassette({"content": "x"}, {"status": None, "status_code": 200, "http_version": "HTTP/2"}),
    "go": _cassette(
        {"form": {"a": ["1"]}, "proto": "HTTP/2.0"}, {"status": "200 OK", "code": 200, "duration": "1.5ms"}
    ),
    "ruby": {
        "http_interactions": _cassette(
            {"body": {"encoding": "US-ASCII", "string": "x"}}, {"body": {"encoding": "UTF-8", "string": "caf\xe9"}}
        )["interactions"]
    },
    "cassetter": _cassette({"body": {"type": "json", "content": [1]}}, {"body": {"type": "binary", "content": "00ff"}}),
    "har": _polly(),
    "azure": _azure(),
    "wiremock": _wiremock(),
}
ODD: list[Any] = [
    *(
        None,
        True,
        "",
        "x",
        [],
        {},
        [None],
        {"a": None},
        {"\u20ac": 1},
        b"\xff",
        b"",
        1.5,
        1e300,
        -0.0,
        math.inf,
        math.nan,
    ),
    *(0, -1, 7, 101, 200, 1 << 53, 1 << 63, 1 << 64, 99999999999, 10**400, -(10**30), "9" * 5000, "9e999h", "1.5.5s"),
    *(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31), date(2020, 1, 2), "0001-01-01T00:00:00Z", "9999-12-31"),
    *("https://[::1/", "http://h:99999999/", "http://\u20ac/ x", "http://h/\r\nx: y", "data: 1\n\n", '["x"]', "\x00"),
    *(
        "paid",
        "Started-x",
        "ANY",
        "GE T\r\n",
        "chunked",
        "h2",
        "base64",
        "utf-16",
        "hex",
        "rot13",
        "gzip, br",
        "a\r\nb",
    ),
]
type Place = tuple[Any, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """The way to each value of a document."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*at, key))


def changed(document: Any, place: Place, kind: str, value: Any) -> Any:
    """The document with `value` at that place, without what is there, or with it twice; as it is where none is."""
    if not place:
        return value if kind == "set" else document
    document = copy.deepcopy(document)
    holder = document
    try:
        for step in place[:-1]:
            holder = holder[step]
        if kind == "set":
            holder[place[-1]] = value
        elif kind == "drop":
            del holder[place[-1]]
        elif isinstance(holder, list):
            holder.insert(place[-1], copy.deepcopy(holder[place[-1]]))
    except (TypeError, LookupError):
        pass
    return document


@st.composite
def documents(draw: st.DrawFn, all_of: dict[str, Any]) -> Any:
    document = all_of[draw(st.sampled_from(sorted(all_of)))]
    ways = list(places(document))
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("set", "set", "set", "drop", "double")))
        document = changed(document, draw(st.sampled_from(ways)), kind, draw(st.sampled_from(ODD)))
    return document


@st.composite
def damaged(draw: st.DrawFn, file: bytes) -> bytes:
    data = bytearray(file)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(("set", "set", "cut", "insert", "drop")))
        if kind == "cut":
            del data[at:]
        elif kind == "drop":
            del data[at : at + draw(st.integers(1, 40))]
        else:
            data[at : at + (kind == "set")] = draw(st.binary(min_size=1, max_size=3))
    return bytes(data)


def written(document: Any) -> bytes:
    """The file of a document: JSON, or YAML for values that JSON has no words for."""
    try:
        return json.dumps(document, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        out = io.BytesIO()
        # A list around it: the emitter fails at bytes that are a whole document.
        YAML(typ="safe", pure=True).dump([document] if isinstance(document, bytes) else document, out)
        return out.getvalue()


def flow_files() -> dict[str, dict[str, Any]]:
    flows = {"whole": tflow.tflow(resp=True), "failed": tflow.tflow(err=True), "socket": tflow.twebsocketflow()}
    return {name: flow.get_state() for name, flow in flows.items()}


def settings_of(folder: Path, format_: str = "", *, keep_going: bool = False) -> ImportSettings:
    return ImportSettings(
        source=folder / "f",
        output=folder / "t.tape.jsonl.gz",
        environment={},
        format=format_,
        base="https://h.example",
        force=True,
        keep_going=keep_going,
    )


def imports_or_refuses(data: bytes, folder: Path, format_: str = "") -> None:
    """The statement: an import of these bytes makes a tape that opens, or raises a ForeignFormatError that says why."""
    (folder / "f").write_bytes(data)
    for keep_going in (False, True):
        try:
            done = import_file(settings_of(folder, format_, keep_going=keep_going))
        except ForeignFormatError as error:
            assert error.what
            assert str(folder / "f") in error.where
        else:
            opened, ending = load(done.path)
            assert ending.sealed
            assert len(opened.exchanges) == done.exchanges


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("mutations")
        patch.setenv("TAPEPROXY_HOME", str(folder / "home"))
        yield folder


def test_every_document_is_imported_as_it_is(folder: Path) -> None:
    for name, document in DOCUMENTS.items():
        (folder / "f").write_bytes(written(document))
        done = import_file(settings_of(folder))
        assert done.format in (name, "vcr")
        assert done.exchanges >= 2


def test_a_flow_that_mitmproxy_cannot_read_and_one_behind_it(folder: Path) -> None:
    whole, odd = flow_files()["whole"], flow_files()["whole"]
    del odd["client_conn"]["peername"]
    (folder / "f").write_bytes(b"".join(map(tnetstring.dumps, (whole, odd, whole))))
    done = import_file(settings_of(folder, keep_going=True))
    assert done.exchanges == 2
    assert [error.place for error in done.refused] == ["flow 2"]


def test_times_that_no_tape_has_room_for_are_not_told(folder: Path) -> None:
    entries = _polly()["log"]["entries"][:1] * 3
    starts = ("0001-01-01T00:00:00Z", MOMENT, "9999-12-31T23:59:59Z")
    log = {"entries": [one | {"startedDateTime": start} for one, start in zip(entries, starts, strict=True)]}
    (folder / "f").write_text(json.dumps({"log": log}))
    done = import_file(settings_of(folder))
    assert done.absent["times"] == 2
    assert load(done.path)[0].head.started_at == "2026-01-02T03:04:05.500000Z"


BOTH = pytest.mark.parametrize("most", [30, pytest.param(2000, marks=pytest.mark.soak)])


@BOTH
def test_odd_values(most: int, folder: Path) -> None:
    @given(document=documents(DOCUMENTS))
    @settings(max_examples=most * 3)
    def check(document: Any) -> None:
        imports_or_refuses(written(document), folder)

    check()


@BOTH
def test_odd_values_in_flows(most: int, folder: Path) -> None:
    @given(state=documents(flow_files()))
    @settings(max_examples=most)
    def check(state: Any) -> None:
        try:
            data = tnetstring.dumps(state)
        except (ValueError, TypeError, OverflowError):
            return  # mitmproxy's own writer has no words for it
        imports_or_refuses(data, folder, "mitm")

    check()


@BOTH
def test_odd_bytes(most: int, folder: Path) -> None:
    files = {name: (written(document), "") for name, document in DOCUMENTS.items()}
    files |= {name: (tnetstring.dumps(state), "mitm") for name, state in flow_files().items()}

    @given(name=st.sampled_from(sorted(files)), data=st.data())
    @settings(max_examples=most * 2)
    def check(name: str, data: st.DataObject) -> None:
        file, format_ = files[name]
        imports_or_refuses(data.draw(damaged(file)), folder, format_)

    check()
