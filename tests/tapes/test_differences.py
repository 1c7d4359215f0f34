"""Where two requests differ, place by place."""

import orjson
import pytest

from tapeproxy.tapes.differences import difference_text, differences, json_differences
from tapeproxy.tapes.identity import Identity, identify
from tapeproxy.tapes.reading import Reading
from tapeproxy.tapes.records import Headers
from tapeproxy.tapes.rules import Rules, read_rules

URL = b"https://api.example.com/v1/chat"
JSON = ((b"content-type", b"application/json"),)
FORM = ((b"content-type", b"application/x-www-form-urlencoded"),)
UUIDS = ("5b1f0c1e-8a0f-4c59-9d0f-2f4a1f0b7d11", "0c9e4f0e-1111-4c59-9d0f-2f4a1f0b7d12")


@pytest.mark.parametrize(
    ("taped", "asked", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [("body $.a", "1", "true")]),
        ({"a": 1}, {"a": 1.0}, [("body $.a", "1", "1.0")]),
        ([1], [True], [("body $[0]", "1", "true")]),
        ({"a": None}, {}, [("body $.a", "null", None)]),
        ({}, {"a b": 1}, [('body $["a b"]', None, "1")]),
        ([1, 2, 3], [1, 9, 3], [("body $[1]", "2", "9")]),
        ([1, 2, 3], [1, 3], [("body $[1]", "2", None)]),
        ([1, 3], [1, 2, 3], [("body $[1]", None, "2")]),
        ({"m": [{"r": "a"}, {"r": "b"}]}, {"m": [{"r": "x"}, {"r": "a"}, {"r": "b"}]}, [("body $.m[0]", None, None)]),
        ([{"x": 1}], [[1]], [("body $[0]", '{"x": 1}', "[1]")]),
    ],
)
def test_json_differs_at_its_paths(
    taped: object, asked: object, found: list[tuple[str, str | None, str | None]]
) -> None:
    told = [(d.where, d.taped, d.asked) for d in json_differences(taped, asked)]
    assert [where for where, _, _ in told] == [where for where, _, _ in found]
    for mine, theirs in zip(told, found, strict=True):
        assert theirs[1:] == (None, None) or mine == theirs


@pytest.mark.parametrize(
    ("taped", "asked", "kind", "rule"),
    [
        ({"id": UUIDS[0]}, {"id": UUIDS[1]}, "uuid", "ignore-json $.id"),
        ({"m": [{"t": 1764410400}]}, {"m": [{"t": 1764410401}]}, "timestamp", "ignore-json $.m[*].t"),
        ({"n": 1}, {"n": 2}, "counter", "ignore-json $.n"),
        ({"n": "x"}, {"n": "y"}, "", "ignore-json $.n"),
        (
            {"p": "Today is 2026-11-29. Be brief."},
            {"p": "Today is 2026-11-30. Be brief."},
            "date",
            r"rewrite-body Today is \d[\d./-]*\d=Today is <date>",
        ),
        ({"p": "Answer in English, please"}, {"p": "Answer in French, please"}, "", ""),
    ],
)
def test_noise_is_named_with_the_rule_against_it(taped: object, asked: object, kind: str, rule: str) -> None:
    (found,) = json_differences(taped, asked)
    assert (found.kind, found.rule) == (kind, rule)


def test_pairs_differ_by_name() -> None:
    one = identify(b"POST", URL + b"?page=1&q=a", FORM, b"a=1&b=2")
    other = identify(b"POST", URL + b"?page=2", FORM, b"a=1&b=3")
    found = [(d.where, d.taped, d.asked, d.rule) for d in differences(one, other)]
    assert found == [
        ("query page", "1", "2", "ignore-query page"),
        ("query q", "a", None, "ignore-query q"),
        ("form field b", "2", "3", "ignore-form b"),
    ]


def test_what_comes_before_the_body_is_told_first() -> None:
    one, other = identify(b"POST", URL, JSON, b'{"a":1}'), identify(b"GET", b"http://h:81/v2", (), b"")
    assert [d.where for d in differences(one, other)] == [
        "method",
        "scheme",
        "host",
        "path",
        "header content-type",
        "body",
    ]


def test_a_difference_as_text_ends_with_the_option_to_type() -> None:
    (found,) = json_differences({"id": UUIDS[0]}, {"id": UUIDS[1]})
    assert difference_text(found).splitlines() == [
        "    body $.id",
        f"      tape: {UUIDS[0]}",
        f"      now:  {UUIDS[1]}",
        "      both look like a uuid; if it is noise: --ignore-json '$.id'",
    ]


LINES = ((b"content-type", b"application/x-ndjson"),)
PARTS = ((b"content-type", b"multipart/form-data; boundary=b"),)
PART = b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n%b\r\n--b--'
RULED = [
    (JSON, b'{"id":"a","x":{"n":1}}', b'{"id":"b","x":{"n":1}}', "body $.id", "ignore-json $.id"),
    (JSON, b'[{"a b":1}]', b'[{"a b":2}]', 'body $[0]["a b"]', 'ignore-json $[*]["a b"]'),
    (LINES, b'{"n":1}\n{"x":1}', b'{"n":1}\n{"x":5}', "line 2 body $.x", "ignore-json $.x"),
    (LINES, b'{"n":1}\n{"x":1}', b'{"n":1}\n{}', "line 2 body $.x", "ignore-json $.x"),
    (FORM, b"a=1&b=2", b"a=1&b=3", "form field b", "ignore-form b"),
    (PARTS, PART % b"one", PART % b"two", "part 1 (f) body", "ignore-form f"),
    (
        JSON,
        b'{"p":"At 2026-11-29T10:00:00Z, go"}',
        b'{"p":"At 2026-11-29T10:00:01.5Z, go"}',
        "body $.p",
        r"rewrite-body At \d[\dT:.,+Z-]*[\dZ](?: \d\d?:[\d:.]*\d)?=At <timestamp>",
    ),
    ((*JSON, (b"x-n", b"1")), b"{}", b"{}", "header x-n", "ignore-header x-n"),
    (((b"content-type", b"a/b"),), b"x", b"x", "header content-type", "ignore-header content-type"),
]


@pytest.mark.parametrize(("headers", "taped", "asked", "where", "rule"), RULED)
def test_the_rule_that_is_named_makes_it_no_difference(
    headers: Headers, taped: bytes, asked: bytes, where: str, rule: str
) -> None:
    other = tuple((name, {b"1": b"2", b"a/b": b"c/d"}.get(value, value)) for name, value in headers)

    def pair(*rules: str) -> tuple[Identity, Identity]:
        reading = Reading(rules=Rules(read_rules(["match-header x-n", *rules])))
        one = identify(b"POST", URL, headers, taped, reading=reading)
        return one, identify(b"POST", URL, other, asked, reading=reading)

    (found,) = differences(*pair())
    assert (found.where, found.rule) == (where, rule)
    before, after = pair(), pair(rule)
    assert (before[0].key == before[1].key, after[0].key == after[1].key) == (False, True)


def test_parts_that_are_more_or_have_other_headers() -> None:
    more = PART[:-5] % b"one" + PART.replace(b'"f"', b'"g"') % b"two"
    other = PART.replace(b'"f"', b'"f"; filename="a"') % b"one"
    one = identify(b"POST", URL, PARTS, PART % b"one")
    assert [d.where for d in differences(one, identify(b"POST", URL, PARTS, more))] == ["number of parts"]
    (header,) = differences(one, identify(b"POST", URL, PARTS, other))
    assert (header.where, header.rule) == ("part 1 (f) header content-disposition", "ignore-form f")


@pytest.mark.parametrize(
    ("taped", "asked", "kind", "rule"),
    [
        (
            f"/v1/{UUIDS[0]}/run",
            f"/v1/{UUIDS[1]}/run",
            "uuid",
            "rewrite-url /v1/[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}=/v1/<uuid>",
        ),
        ("/v1/7", "/v1/9", "counter", r"rewrite-url /v1/-?\d+=/v1/<counter>"),
        ("/v1/models", "/v1/files", "", ""),
        ("/v1/7/a", "/v1/9/b", "", ""),
        ("/v1/7", "/v1/9/b", "", ""),
    ],
)
def test_a_noisy_segment_of_a_path_has_its_rule(taped: str, asked: str, kind: str, rule: str) -> None:
    one, other = (identify(b"GET", f"https://h{path}".encode(), (), b"") for path in (taped, asked))
    (found,) = differences(one, other)
    assert (found.where, found.kind, found.rule) == ("path", kind, rule)


@pytest.mark.parametrize(
    ("taped", "asked", "rule"),
    [
        (
            "line\nname=%s\nend",
            "line\nname=%s\nend",
            "rewrite-body name\\=[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}=name\\=<uuid>",
        ),
        ("it's id=758 here", "it's id=759 here", r"rewrite-body it's\ id\=-?\d+=it's id\=<counter>"),
    ],
)
def test_noise_between_signs_and_on_lines_of_its_own_is_found(taped: str, asked: str, rule: str) -> None:
    one, other = ((text % uuid if "%" in text else text) for text, uuid in zip((taped, asked), UUIDS, strict=True))
    (found,) = json_differences({"p": one}, {"p": other})
    assert found.rule.replace("\\ ", " ") == rule.replace("\\ ", " ")
    (read,) = read_rules([found.rule])
    local = Rules((read,)).at("h", b"/")
    texts = {local.rewrite("rewrite-body", orjson.dumps({"p": text})) for text in (one, other)}
    assert len(texts) == 1
